"""Online learning of rows that are mappings, one row per call."""

from __future__ import annotations

import decimal
import math
import numbers
import os
from collections.abc import Hashable, Mapping
from typing import Any, Optional

from . import _core, _files, _json_values
from ._checks import check_choice, check_integer, check_target_range, resolve_seed

# Largest magnitude of a number, as max_abs_value in include/dyad/rows.h. The square of the product of two such numbers,
# 1e280, is below the largest double, 1.8e308.
_MAX_ABS_VALUE = 1e70


class Learner:
    """Online learner of second-order models, with one row per call and the interface of river.

    A row is a mapping from feature names to values. A number is the value of a feature; it should have a magnitude near
    1, for example after scaling. Every other value (string, boolean, None, tuple) is a category, and each pair of a
    name and a category is a feature with the value 1. Features may be added at any time. Memory grows with the number
    of features and does not depend on the number of rows.

    Parameters
    ----------
    task : {'regression', 'classification'}, default='regression'
        Type of the target. Classification supports two classes of any hashable type.
    rank : int, default=8
        Rank of M.
    half_life : float, optional
        Number of rows after which the weight of a row is halved, for drifting data. By default, rows keep their weight.
    target_range : tuple of two floats, optional
        Lower and upper bound of the targets. Targets at a bound are treated as censored.
    random_state : int, optional
        Seed of the random start; default 1.

    Attributes
    ----------
    rows : int
        Number of rows learned.
    noise : float
        Estimated standard deviation of the noise.
    origin : str
        One line that describes how the model was estimated.

    See Also
    --------
    FactorizationRegressor : Estimator for rows in arrays and tables.

    Notes
    -----
    The model is y = b + w'x + x'Mx with M = A diag(s) A' and signs s, or the log-odds of the positive class have this
    form. Each parameter theta has a Gaussian posterior with a mean and a variance P. For a row with the prediction f,
    the gradient g = df/dtheta and the noise variance s2, an extended Kalman filter with a diagonal covariance updates

    - v = sum P g^2 and S = s2 + v,
    - theta += P g (y - f) / S and P -= (P g)^2 / S.

    A learner can be saved, pickled and copied; the copy gives the same results as the original.

    Examples
    --------
    >>> from dyad import Learner
    >>> learner = Learner(rank=2)
    >>> for i in range(3000):
    ...     x = {"user": f"u{i % 3}", "film": f"f{i % 5}"}
    ...     y = 1.0 + (i % 3) * (i % 5)
    ...     prediction = learner.predict_one(x)
    ...     _ = learner.learn_one(x, y)
    >>> abs(prediction - y) < 0.1
    True
    """

    def __init__(
        self,
        task: str = "regression",
        *,
        rank: int = 8,
        half_life: Optional[float] = None,
        target_range: Optional[tuple[float, float]] = None,
        random_state: Optional[int] = None,
    ) -> None:
        check_choice("task", task, ("regression", "classification"))
        check_integer("rank", rank, 1)
        if half_life is not None and not (isinstance(half_life, numbers.Real) and 0 < half_life < math.inf):
            raise ValueError(f"half_life must be a positive finite number or None, got {half_life!r}.")
        self.task = task
        self.rank = rank
        self.half_life = half_life
        self.target_range = target_range
        self.random_state = random_state
        self._learner = _core.Learner(
            task, int(rank), float(half_life or 0), check_target_range(target_range), memory=0.0, seed=resolve_seed(random_state)
        )
        self._columns: dict[Hashable, int] = {}
        self._classes: list[Any] = []

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> Learner:
        """Update the model with one row.

        Parameters
        ----------
        x : mapping
            Numbers and categories by feature name. Omit features whose value is missing.
        y : float, or one of two classes
            Target.

        Returns
        -------
        Learner
            The learner itself.

        Raises
        ------
        TypeError
            If a value is neither a number nor hashable.
        ValueError
            If a number is not finite or too large, or if ``y`` is a third class. The learner is unchanged.
        """
        entries = self._make_entries(x)
        target = self._class_sign(y) if self.task == "classification" else _check_number(y, "y")
        for key, _ in entries:
            self._columns.setdefault(key, len(self._columns))
        self._learner.learn(*self._encode(entries), target)
        return self

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict the target or the class of one row.

        Parameters
        ----------
        x : mapping
            Numbers and categories by feature name. Features that were not learned have no effect.

        Returns
        -------
        float, class or None
            Expected target, or the more probable class; None before the first row of a classification.
        """
        if self.task == "regression":
            return self._learner.predict(*self._encode(self._make_entries(x)))[0]
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=lambda name: probabilities[name]) if probabilities else None

    def predict_std_one(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Predict the target of one row and its standard deviation.

        Parameters
        ----------
        x : mapping
            Numbers and categories by feature name.

        Returns
        -------
        prediction : float
            Expected target. Classification: probability of the positive class, which is the class that equals 1 or
            True, or else the second class that was learned.
        std : float
            Standard deviation of the target, sqrt(s2 + v), including the noise. Classification: of the probability.
            Features that were not learned contribute their prior variance.
        """
        entries = self._make_entries(x)
        unseen = sum(value != 0 for key, value in entries if key not in self._columns)
        return self._learner.predict(*self._encode(entries), unseen)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Predict the probability of each class for one row.

        Parameters
        ----------
        x : mapping
            Numbers and categories by feature name.

        Returns
        -------
        dict
            Probability by class, for the classes learned so far.

        Raises
        ------
        ValueError
            If ``task`` is 'regression'.
        """
        if self.task != "classification":
            raise ValueError(f"predict_proba_one requires task='classification', got task={self.task!r}.")
        entries = self._make_entries(x)
        if not self._classes:
            return {}
        if len(self._classes) == 1:
            return {self._classes[0]: 1.0}
        probability = self._learner.predict(*self._encode(entries))[0]
        positive = self._positive_class()
        return {name: probability if name == positive else 1 - probability for name in self._classes}

    @property
    def rows(self) -> int:
        """Number of rows learned."""
        return self._learner.rows()

    @property
    def noise(self) -> float:
        """Estimated standard deviation of the noise; infinite before the second row."""
        return self._learner.noise()

    @property
    def origin(self) -> str:
        """One line that describes how the model was estimated."""
        return self._learner.origin()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner to a file for `dyad.load`. The ``dyad`` command does not read this file.

        Parameters
        ----------
        path : str or path-like
            File. It is replaced atomically.

        Raises
        ------
        OSError
            If the file cannot be written.
        TypeError
            If a feature name, a category or a class is not a string, number, boolean, None or a tuple of these.
        """
        names = ("task", "rank", "half_life", "target_range", "random_state")
        attributes = {
            "features": [_json_values.encode_value(key) for key in self._columns],
            "classes": [_json_values.encode_value(name) for name in self._classes],
        }
        parameters = {name: getattr(self, name) for name in names}
        _files.write(path, _files.to_bytes(self, [self._learner.to_bytes()], parameters, attributes))

    @classmethod
    def _from_saved(cls, saved: _files.SavedEstimator) -> Learner:
        state, parameters, attributes = saved.single_part()
        learner = cls(**parameters)
        learner._learner = _core.Learner.from_bytes(state)
        learner._columns = {_json_values.decode_value(key): column for column, key in enumerate(attributes["features"])}
        learner._classes = [_json_values.decode_value(label) for label in attributes["classes"]]
        return learner

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling and copying."""
        return {
            **self.__dict__,
            "_learner": self._learner.to_bytes(),
            "_columns": dict(self._columns),
            "_classes": list(self._classes),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of `__getstate__`."""
        self.__dict__.update(state)
        self._learner = _core.Learner.from_bytes(state["_learner"])

    def _class_sign(self, y: Any) -> float:
        """Return 1 for the positive class and -1 for the other. A new class is registered."""
        if isinstance(y, (numbers.Real, decimal.Decimal)) and not math.isfinite(y):
            raise ValueError(f"y must be a class, got {y!r}.")
        if y not in self._classes:
            if len(self._classes) == 2:
                raise ValueError(
                    f"y must be one of the two classes {self._classes[0]!r} and {self._classes[1]!r}, got {y!r}."
                )
            self._classes.append(y)
        return 1.0 if y == self._positive_class() else -1.0

    def _positive_class(self) -> Any:
        """Return the positive class, which never changes: the first class if it equals 1, else the second."""
        return True if self._classes[0] is True or self._classes[0] == 1 else (self._classes[1:] or [None])[0]

    @staticmethod
    def _make_entries(x: Mapping[Any, Any]) -> list[tuple[Hashable, float]]:
        """Validate a row. Return the key and the value of each feature.

        The key of a number is the feature name. The key of a category is the pair of name and category; its value is 1.
        """
        entries: list[tuple[Hashable, float]] = []
        for name, value in x.items():
            if isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool):
                entries.append((name, _check_number(value, f"x[{name!r}]")))
            elif isinstance(value, Hashable):
                entries.append(((name, value), 1.0))
            else:
                raise TypeError(
                    f"x[{name!r}] must be a number or a hashable category, got an object of type "
                    f"{type(value).__name__}; convert it to a string or a tuple."
                )
        return entries

    def _encode(self, entries: list[tuple[Hashable, float]]) -> tuple[list[int], list[float]]:
        """Return increasing columns and their values. Features that were not learned are omitted."""
        by_column = {self._columns[key]: value for key, value in entries if key in self._columns}
        columns = sorted(by_column)
        return columns, [by_column[column] for column in columns]


def _check_number(value: Any, name: str) -> float:
    """Return the value as a float. Raise ValueError unless it is finite and at most `_MAX_ABS_VALUE` in magnitude."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _MAX_ABS_VALUE:
        raise ValueError(
            f"{name} must be a finite number of at most {_MAX_ABS_VALUE:g} in magnitude, got {value!r}; omit features "
            "whose value is missing."
        )
    return number
