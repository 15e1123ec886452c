"""Rows as they come, one at a time."""

from __future__ import annotations

import decimal
import math
import numbers
import os
from collections.abc import Hashable, Mapping
from typing import Any, Optional

from . import _core, _files, _plain
from ._checks import range_of, require_choice, require_whole, seed_of

# Squares of products of larger numbers overflow.
_LARGEST_VALUE = 1e70


class Learner:
    """Learn rows as they come, one at a time, each a mapping from names to values; in the manner of river.

    Numbers are features of their own, and should be of a size near 1 (a scaler before it helps); text, booleans and
    everything else are categories, each value a feature. New names may come at any time. Memory grows with the
    features, never with the rows. Learners can be saved, pickled and copied, and then go on as if nothing had happened.

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
        require_choice("task", task, ("regression", "classification"))
        require_whole("rank", rank, 1)
        if half_life is not None and not (isinstance(half_life, numbers.Real) and 0 < half_life < math.inf):
            raise ValueError(f"half_life must be a number above 0, got {half_life!r}.")
        self.task = task
        self.rank = rank
        self.half_life = half_life
        self.range = range
        self.random_state = random_state
        self._own = _core.Learner(
            task, int(rank), float(half_life or 0), range_of(range), 0.0, seed_of(random_state)
        )
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
        entries = self._checked(x)
        if self.task == "classification":
            target = self._class_sign(y)
        else:
            target = _number(y, "y")
        for key, _ in entries:
            self._places.setdefault(key, len(self._places))
        self._own.learn(*self._encoded(entries), target)
        return self

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict one row: its target, or its class (None before the first row)."""
        if self.task == "regression":
            return self._own.predict(*self._encoded(self._checked(x)))[0]
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=lambda name: probabilities[name]) if probabilities else None

    def predict_std_one(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Predict one row and the standard deviation of its target; classes: of the probability of the positive one.

        Features never learned from contribute nothing to the prediction and their prior variance to the deviation.
        """
        entries = self._checked(x)
        unseen = sum(value != 0 for key, value in entries if key not in self._places)
        return self._own.predict(*self._encoded(entries), unseen)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Predict the probabilities of the classes seen so far."""
        if self.task != "classification":
            raise ValueError("Probabilities are for task='classification'.")
        entries = self._checked(x)
        if not self._classes:
            return {}
        if len(self._classes) == 1:
            return {self._classes[0]: 1.0}
        probability = self._own.predict(*self._encoded(entries))[0]
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
    def origin(self) -> str:
        """Where the model comes from, in a line."""
        return self._own.origin()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to a file for `dyad.load`; the ``dyad`` command does not read it.

        Names of features and categories, and classes, must be text, numbers, booleans, None or tuples of these.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced as a whole, or not at all.
        """
        names = ("task", "rank", "half_life", "range", "random_state")
        attributes = {
            "features": [_plain.encoded(key) for key in self._places],
            "classes": [_plain.encoded(name) for name in self._classes],
        }
        parameters = {name: getattr(self, name) for name in names}
        _files.write(path, _files.to_bytes(self, [self._own.to_bytes()], parameters, attributes))

    @classmethod
    def _from_saved(cls, saved: _files.Saved) -> Learner:
        state, parameters, attributes = saved.only_part()
        learner = cls(**parameters)
        learner._own = _core.Learner.from_bytes(state)
        learner._places = {_plain.decoded(key): place for place, key in enumerate(attributes["features"])}
        learner._classes = [_plain.decoded(label) for label in attributes["classes"]]
        return learner

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_own": self._own.to_bytes(), "_places": dict(self._places), "_classes": list(self._classes)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own = _core.Learner.from_bytes(state["_own"])

    def _class_sign(self, y: Any) -> float:
        """1 for the positive class and -1 for the other; a new class is added."""
        if isinstance(y, (numbers.Real, decimal.Decimal)) and not math.isfinite(y):
            raise ValueError(f"y must be a class, got {y!r}.")
        if y not in self._classes:
            if len(self._classes) == 2:
                raise ValueError(f"y has a third class {y!r} besides {self._classes[0]!r} and {self._classes[1]!r}.")
            self._classes.append(y)
        return 1.0 if y == self._positive() else -1.0

    def _positive(self) -> Any:
        """The first class stays what it was taken for when it came."""
        return True if self._classes[0] is True or self._classes[0] == 1 else (self._classes[1:] or [None])[0]

    @staticmethod
    def _checked(x: Mapping[Any, Any]) -> list[tuple[Hashable, float]]:
        """The keys and values of all features. Raises ValueError for numbers that cannot be learned."""
        entries: list[tuple[Hashable, float]] = []
        for name, value in x.items():
            if isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool):
                entries.append((name, _number(value, f"x[{name!r}]")))
            elif isinstance(value, Hashable):
                entries.append(((name, value), 1.0))
            else:
                raise TypeError(f"x[{name!r}] must be a number or a category, got a {type(value).__name__}.")
        return entries

    def _encoded(self, entries: list[tuple[Hashable, float]]) -> tuple[list[int], list[float]]:
        """The columns, in increasing order, and their values; features never learned from are left out."""
        found = {self._places[key]: value for key, value in entries if key in self._places}
        columns = sorted(found)
        return columns, [found[column] for column in columns]


def _number(value: Any, name: str) -> float:
    """The value as a finite number that can be learned."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _LARGEST_VALUE:
        raise ValueError(
            f"{name} must be a finite number of at most {_LARGEST_VALUE:g} in magnitude, got {value!r}; leave out "
            "features whose value is missing."
        )
    return number
