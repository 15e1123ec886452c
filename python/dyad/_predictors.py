"""Predictors that are created on first use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from . import _core


class LazyPredictors:
    """Sequence of one predictor per model.

    A predictor is created when it is first accessed, so that ``fit`` without ``predict`` does not parse the model.
    """

    def __init__(self, models: list[bytes]) -> None:
        self._models = models
        self._predictors: list[Optional[_core.Predictor]] = [None] * len(models)

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self._models)

    def __iter__(self) -> Iterator[_core.Predictor]:
        """Iterate over the predictors."""
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> _core.Predictor:
        """Return the predictor of one model."""
        predictor = self._predictors[index]
        if predictor is None:
            predictor = self._predictors[index] = _core.Predictor.from_bytes(self._models[index])
        return predictor
