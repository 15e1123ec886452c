"""Online learners of a target or of any number of classes."""

from __future__ import annotations

from typing import Any, Callable

from . import _core

# Columns and values of the features of a row.
Row = tuple[list[int], list[float]]

# Largest number of earlier rows that the learner of a new class receives as rows of other classes.
_MAX_EARLIER_ROWS = 1000


class ClassLearners:
    """Learners of one class against the others; a single learner for regression and for up to two classes.

    Attributes
    ----------
    classes : list
        Classes in the order of their first occurrence.
    learners : list of _core.Learner
        One learner, or one per class if there are more than two classes.
    are_inverted : list of bool
        Whether each learner predicts the probability that a row is not of its class.
    """

    def __init__(self, make_learner: Callable[[], _core.Learner]) -> None:
        self._make_learner = make_learner
        self.classes: list[Any] = []
        self.learners = [make_learner()]
        self.are_inverted = [False]

    def learn_target(self, row: Row, target: float) -> None:
        """Learn a row of a regression."""
        self.learners[0].learn(*row, target)

    def learn_class(self, row: Row, y: Any) -> None:
        """Learn a row of a classification. A new class is added."""
        if y not in self.classes:
            self._add_class(y)
        for index, learner in enumerate(self.learners):
            is_positive = y == self._positive_class()
            if len(self.classes) > 2:
                is_positive = (y == self.classes[index]) != self.are_inverted[index]
            learner.learn(*row, 1.0 if is_positive else -1.0)

    def predict_proba(self, row: Row) -> dict[Any, float]:
        """Return the probability of each class; those of more than two classes are divided by their sum."""
        count = len(self.classes)
        if count < 2:
            return dict.fromkeys(self.classes, 1.0)
        predicted = [learner.predict(*row)[0] for learner in self.learners]
        if count == 2:
            positive = self._positive_class()
            return {name: predicted[0] if name == positive else 1 - predicted[0] for name in self.classes}
        shares = [1 - value if is_inverted else value for value, is_inverted in zip(predicted, self.are_inverted)]
        total = sum(shares)
        return {name: share / total if total > 0 else 1 / count for name, share in zip(self.classes, shares)}

    def _positive_class(self) -> Any:
        """Return the positive class of two, which never changes: the first class if it equals 1, else the second."""
        return True if self.classes[0] is True or self.classes[0] == 1 else (self.classes[1:] or [None])[0]

    def _add_class(self, y: Any) -> None:
        """Add a class. The third class replaces the single learner by one learner per class."""
        rows = self.learners[0].rows()
        if len(self.classes) == 2:
            # So far, one learner has predicted the positive class. Its copy predicts that a row is not of the other class.
            copy = _core.Learner.from_bytes(self.learners[0].to_bytes())
            is_first = self._positive_class() == self.classes[0]
            self.learners = [self.learners[0], copy] if is_first else [copy, self.learners[0]]
            self.are_inverted = [False, True] if is_first else [True, False]
        self.classes.append(y)
        if len(self.classes) <= 2:
            return
        learner = self._make_learner()
        for _ in range(min(rows, _MAX_EARLIER_ROWS)):
            learner.learn([], [], -1.0)
        self.learners.append(learner)
        self.are_inverted.append(False)
