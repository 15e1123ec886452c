"""Base classes of scikit-learn, with types for mypy and pyright, because scikit-learn has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Self = TypeVar("Self")

    class BaseEstimator:
        """Typed interface of sklearn.base.BaseEstimator."""

        n_features_in_: int
        feature_names_in_: npt.NDArray[np.object_]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the constructor parameters."""
            ...

        def set_params(self: Self, **params: Any) -> Self:
            """Set constructor parameters."""
            ...

        def __sklearn_tags__(self) -> Any:
            """Return the tags of scikit-learn."""
            ...

        def __getstate__(self) -> dict[str, Any]:
            """Support pickling."""
            ...

        def __setstate__(self, state: dict[str, Any]) -> None:
            """Restore the state of `__getstate__`."""
            ...

    class RegressorMixin:
        """Typed interface of sklearn.base.RegressorMixin."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return R^2 or the accuracy."""
            ...

        def __sklearn_tags__(self) -> Any:
            """Return the tags of scikit-learn."""
            ...

    class ClassifierMixin:
        """Typed interface of sklearn.base.ClassifierMixin."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return R^2 or the accuracy."""
            ...

        def __sklearn_tags__(self) -> Any:
            """Return the tags of scikit-learn."""
            ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
