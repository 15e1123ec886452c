"""Rows as they come, one at a time."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, Optional

from . import _core
from ._estimators import _require_choice, _require_whole, _seed_of


class Learner:
    """Learn rows as they come, one at a time, each a mapping from names to values; in the manner of river.

    Numbers are features of their own, and should be of a size near 1 (a scaler before it helps); text, booleans and
    everything else are categories, each value a feature. New names may come at any time. Memory grows with the
    features, never with the rows.

    Parameters
    ----------
    task : {'regression', 'classification'}, default='regression'
        What is learned. Classes may be any two values.
    rank : int, default=8
        The rank of the interactions.
    half_life : float, optional
        Rows after which data counts half, for streams that drift.
    range : tuple of two floats, optional
        That targets cannot leave.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> from dyad import Learner
    >>> learner = Learner(rank=2)
    >>> for i in range(3000):
    ...     x = {"user": f"u{i % 3}", "film": f"f{i % 5}"}
    ...     y = 1.0 + (i % 3) * (i % 5)
    ...     guess = learner.predict_one(x)
    ...     _ = learner.learn_one(x, y)
    >>> abs(guess - y) < 0.1
    True
    """

    def __init__(
        self,
        task: str = "regression",
        *,
        rank: int = 8,
        half_life: Optional[float] = None,
        range: Optional[tuple[float, float]] = None,
        random_state: Optional[int] = None,
    ) -> None:
        _require_choice("task", task, ("regression", "classification"))
        _require_whole("rank", rank, 1)
        if half_life is not None and not half_life > 0:
            raise ValueError(f"half_life must be above 0, got {half_life!r}.")
        self.task = task
        self._own = _core.Learner(task, int(rank), float(half_life or 0), range, 0.0, _seed_of(random_state))
        self._places: dict[Hashable, int] = {}
        self._classes: list[Any] = []

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> Learner:
        """Learn one row.

        Parameters
        ----------
        x : mapping
            From names to numbers or categories.
        y : number, or one of two classes
            Its target.

        Returns
        -------
        Learner
            Itself.
        """
        columns, values = self._encoded(x, grow=True)
        if self.task == "classification":
            if y not in self._classes:
                if len(self._classes) == 2:
                    raise ValueError(f"y has a third class {y!r} besides {self._classes[0]!r} and {self._classes[1]!r}.")
                self._classes.append(y)
            target = 1.0 if y == self._positive() else -1.0
        else:
            target = float(y)
        self._own.learn(columns, values, target)
        return self

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict one row: its target, or its class (None before the first row)."""
        if self.task == "regression":
            return self._own.predict(*self._encoded(x, grow=False))[0]
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=lambda name: probabilities[name]) if probabilities else None

    def predict_std_one(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Predict one row and the standard deviation of its target; classes: of the probability of the positive one."""
        return self._own.predict(*self._encoded(x, grow=False))

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Predict the probabilities of the classes seen so far."""
        if self.task != "classification":
            raise ValueError("Probabilities are for task='classification'.")
        if not self._classes:
            return {}
        if len(self._classes) == 1:
            return {self._classes[0]: 1.0}
        probability = self._own.predict(*self._encoded(x, grow=False))[0]
        positive = self._positive()
        return {name: probability if name == positive else 1 - probability for name in self._classes}

    @property
    def rows(self) -> int:
        """Rows learned so far."""
        return self._own.rows()

    @property
    def noise(self) -> float:
        """Standard deviation of what the model cannot explain."""
        return self._own.noise()

    @property
    def story(self) -> str:
        """Where the model comes from, in a line."""
        return self._own.story()

    def _positive(self) -> Any:
        """The first class stays what it was taken for when it came."""
        return True if self._classes[0] is True or self._classes[0] == 1 else (self._classes[1:] or [None])[0]

    def _encoded(self, x: Mapping[Any, Any], grow: bool) -> tuple[list[int], list[float]]:
        entries: list[tuple[int, float]] = []
        for name, value in x.items():
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            key: Hashable = name if is_number else (name, value)
            place = self._places.get(key, -1)
            if place < 0:
                if not grow:
                    continue
                place = self._places[key] = len(self._places)
            entries.append((place, float(value) if is_number else 1.0))
        entries.sort()
        return [place for place, _ in entries], [value for _, value in entries]
