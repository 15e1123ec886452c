"""Statistics of the moment solver, which are additive over partitions of the rows."""

from __future__ import annotations

from typing import Any

from . import _core


class Statistics:
    """Sufficient statistics of one iteration of the moment solver on a partition of the rows.

    Objects are created by `FactorizationRegressor.partial_statistics`, added with ``+`` or ``sum``, and passed to
    `FactorizationRegressor.apply_statistics`. They can be pickled, to be sent from a worker to the driver.

    Attributes
    ----------
    rows : int
        Number of rows in the sums.

    Notes
    -----
    With the residuals r = y - f(x) of the current model and its factors U, the sums are p0 = sum r, p1 = sum r x,
    p2 = sum r x*x and G = sum r x (x'U), and power sums of the features [1]_. Their size is proportional to the size of
    the model and does not depend on the number of rows. Only statistics of the same model can be added.

    References
    ----------
    .. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
       Sensing", Advances in Neural Information Processing Systems 29, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import FactorizationRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = FactorizationRegressor(rank=1, solver="moment").partial_fit(X[:500], y[:500])
    >>> (model.partial_statistics(X[:300], y[:300]) + model.partial_statistics(X[300:], y[300:])).rows
    1000
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def rows(self) -> int:
        """Number of rows in the sums."""
        return _core.count_rows(self._data)

    def __add__(self, other: Any) -> Statistics:
        """Return the sums over the rows of both operands; 0 is accepted as the start value of ``sum``."""
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Statistics):
            return NotImplemented
        return Statistics(_core.add_statistics(self._data, other._data))

    __radd__ = __add__

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling."""
        return Statistics, (self._data,)

    def __repr__(self) -> str:
        """Return the numbers of rows and bytes."""
        return f"Statistics({self.rows} rows, {len(self._data)} bytes)"
