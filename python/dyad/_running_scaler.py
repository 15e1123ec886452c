"""Online standardization of the numbers of a stream."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from typing import Any

# Numbers of rows after which the scales of all features are fixed to the moments of the values so far. `Learner` then
# learns all rows so far again. Learner<Scalar> starts after 50 rows; 1,000 values give a scale with a standard error of 2%.
REFIT_ROWS = (50, 200, 1000)

# Number of values after which the scale of a feature that occurs later is fixed.
_MIN_VALUES = 50

# A feature that occurs in at least this share of the rows is centered. The absence of a rarer feature, such as the count
# of a word, stands for 0, so that it is only scaled.
_MIN_CENTERED_SHARE = 0.5

# Largest magnitude of a scaled number. It bounds the influence of outliers, as in FeatureMap (6 standard deviations of at
# least 100 rows), with a margin for scales that are estimated from fewer rows.
_MAX_SCALED = 10.0


@dataclasses.dataclass
class _Moments:
    """Running mean and sum of squared deviations (Welford's algorithm), and the fixed scale."""

    count: int = 0
    mean: float = 0.0
    deviations: float = 0.0
    is_centered: bool = True
    is_fixed: bool = False
    center: float = 0.0
    divisor: float = 0.0  # 0: all values are equal

    def estimate(self) -> tuple[float, float]:
        """Return the center and the divisor of the values so far."""
        center, variance = self.mean, self.deviations / max(1, self.count - 1)
        if not self.is_centered:
            center, variance = 0.0, self.deviations / self.count + self.mean**2
        # The rounding error of a constant is not a scale.
        return center, math.sqrt(variance) if variance > (1e-12 * self.mean) ** 2 else 0.0

    def fix(self) -> None:
        self.center, self.divisor = self.estimate()
        self.is_fixed = True

    def scale(self, value: float) -> float:
        center, divisor = (self.center, self.divisor) if self.is_fixed else self.estimate()
        return min(_MAX_SCALED, max(-_MAX_SCALED, (value - center) / divisor)) if divisor > 0 else 0.0


class RunningScaler:
    """Standardizes numbers by the mean and the standard deviation of their first values."""

    def __init__(self) -> None:
        self._moments: dict[Hashable, _Moments] = {}

    def update(self, name: Hashable, value: float, rows: int) -> None:
        """Add a value of a feature. ``rows``: number of rows before this one."""
        moments = self._moments.setdefault(name, _Moments())
        is_final = rows >= REFIT_ROWS[-1]
        if is_final and moments.is_fixed:
            return
        moments.count += 1
        difference = value - moments.mean
        moments.mean += difference / moments.count
        moments.deviations += difference * (value - moments.mean)
        moments.is_centered = moments.count >= _MIN_CENTERED_SHARE * (rows + 1)
        if is_final and moments.count >= _MIN_VALUES:
            moments.fix()

    def fix(self) -> None:
        """Fix the scales of all features to the moments of their values so far."""
        for moments in self._moments.values():
            moments.fix()

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
        for name, values in state:
            scaler._moments[name] = _Moments(*values)
        return scaler
