"""Online standardization of the numbers of a stream."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from typing import Any

# Number of values of a feature after which its center and scale stay constant, so that the meaning of its weights does
# not drift. The relative standard error of the scale is then 2%.
_MAX_COUNT = 1000

# A feature that occurs in at least this share of the rows is centered. The absence of a rarer feature, such as the count
# of a word, stands for 0, so that it is only scaled.
_MIN_CENTERED_SHARE = 0.5

# Largest magnitude of a scaled number. It bounds the influence of outliers, as in FeatureMap (6 standard deviations of at
# least 100 rows), with a margin for scales that are estimated from fewer rows.
_MAX_SCALED = 10.0


@dataclasses.dataclass
class _Moments:
    """Running mean and sum of squared deviations (Welford's algorithm)."""

    count: int = 0
    mean: float = 0.0
    deviations: float = 0.0
    is_centered: bool = True

    def scale(self, value: float) -> float:
        center, variance = self.mean, self.deviations / max(1, self.count - 1)
        if not self.is_centered:
            center, variance = 0.0, self.deviations / self.count + self.mean**2
        # The rounding error of a constant is not a scale.
        if variance <= (1e-12 * self.mean) ** 2:
            return 0.0
        return min(_MAX_SCALED, max(-_MAX_SCALED, (value - center) / math.sqrt(variance)))


class RunningScaler:
    """Standardizes each number by the running mean and standard deviation of its first values."""

    def __init__(self) -> None:
        self._moments: dict[Hashable, _Moments] = {}

    def update(self, name: Hashable, value: float, rows: int) -> None:
        """Add a value of a feature. ``rows``: number of rows before this one."""
        moments = self._moments.setdefault(name, _Moments())
        if moments.count >= _MAX_COUNT:
            return
        moments.count += 1
        difference = value - moments.mean
        moments.mean += difference / moments.count
        moments.deviations += difference * (value - moments.mean)
        moments.is_centered = moments.count >= _MIN_CENTERED_SHARE * (rows + 1)

    def scale(self, name: Hashable, value: float) -> float:
        """Return the scaled number; that of an unknown feature is unchanged."""
        moments = self._moments.get(name)
        return value if moments is None else moments.scale(value)

    def state(self) -> list[tuple[Hashable, list[Any]]]:
        """Return the name and the state of each feature."""
        return [(name, list(dataclasses.astuple(moments))) for name, moments in self._moments.items()]

    @classmethod
    def from_state(cls, state: list[tuple[Hashable, list[Any]]]) -> RunningScaler:
        """Return the scaler of `state`."""
        scaler = cls()
        for name, (count, mean, deviations, is_centered) in state:
            scaler._moments[name] = _Moments(int(count), float(mean), float(deviations), bool(is_centered))
        return scaler
