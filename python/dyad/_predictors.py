"""Models that are loaded at the first prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from . import _core


class Predictors:
    """One for each model; a fit that is never asked does not pay for them."""

    def __init__(self, models: list[bytes]) -> None:
        self._models = models
        self._made: list[Optional[_core.Predictor]] = [None] * len(models)

    def __len__(self) -> int:
        return len(self._models)

    def __iter__(self) -> Iterator[_core.Predictor]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> _core.Predictor:
        made = self._made[place]
        if made is None:
            made = self._made[place] = _core.Predictor.from_bytes(self._models[place])
        return made
