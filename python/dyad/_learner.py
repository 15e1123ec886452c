"""Online learning of rows that are mappings, one row per call."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, Optional

from . import _core, _files, _json_values
from ._checks import check_choice, check_integer, check_target_range, resolve_seed
from ._class_learners import ClassLearners
from ._learner_rows import Entry, check_class, check_number, iterate_rows, read_row
from ._running_scaler import REFIT_ROWS, RunningScaler

_PARAMETERS = {
    "task": "regression",
    "rank": 8,
    "half_life": None,
    "target_range": None,
    "scaling": "standard",
    "random_state": None,
}


class Learner:
    """Online learner of second-order models, with one row per call and the interface of river.

    A row is a mapping from feature names to values. A number is the value of a feature, and is scaled along the stream.
    Every other value (string, boolean, None, tuple) is a category, and each pair of a name and a category is a feature
    with the value 1. Features and classes may be added at any time. Memory grows with the number of features and classes,
    and does not depend on the number of rows.

    Parameters
    ----------
    task : {'regression', 'classification'}, default='regression'
        Type of the target. Classification supports classes of any hashable type; for more than two, one model of each
        class against the others is learned, and the probabilities are divided by their sum.
    rank : int, default=8
        Rank of M.
    half_life : float, optional
        Number of rows after which the weight of a row is halved, for drifting data. By default, rows keep their weight.
    target_range : tuple of two floats, optional
        Lower and upper bound of the targets. Targets at a bound are treated as censored.
    scaling : {'standard'}, optional
        Scaling of numbers. 'standard', the default: (x - mean) / standard deviation of the values in the first 1,000 rows,
        limited to 10 in magnitude; a feature that occurs in less than half of the rows is divided by its root mean square.
        The first rows are kept, and learned again with new scales after 50, 200 and 1,000 rows. None: numbers are used
        unchanged, and should have magnitudes near 1.
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
    classes : list
        Classes in the order of their first occurrence; empty for regression.

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
        task: Literal["regression", "classification"] = "regression",
        *,
        rank: int = 8,
        half_life: Optional[float] = None,
        target_range: Optional[tuple[float, float]] = None,
        scaling: Optional[Literal["standard"]] = "standard",
        random_state: Optional[int] = None,
    ) -> None:
        check_choice("task", task, ("regression", "classification"))
        check_integer("rank", rank, 1)
        if half_life is not None and not (isinstance(half_life, numbers.Real) and 0 < half_life < math.inf):
            raise ValueError(f"half_life must be a positive finite number or None, got {half_life!r}.")
        if scaling is not None:
            check_choice("scaling", scaling, ("standard",))
        self.task = task
        self.rank = rank
        self.half_life = half_life
        self.target_range = target_range
        self.scaling = scaling
        self.random_state = random_state
        self._models = ClassLearners(self._make_learner)
        self._scaler = None if scaling is None else RunningScaler()
        # Rows that are learned again when the scales are fixed; None: all scales are fixed, or there is no scaling.
        self._first_rows: Optional[list[tuple[list[Entry], Any]]] = None if scaling is None else []
        self._columns: dict[Hashable, int] = {}

    def _make_learner(self) -> _core.Learner:
        return _core.Learner(
            self.task,
            int(self.rank),
            float(self.half_life or 0),
            check_target_range(self.target_range),
            memory=0.0,
            seed=resolve_seed(self.random_state),
        )

    def __repr__(self) -> str:
        """Return the parameters that differ from their default, and the numbers of rows and features."""
        changed = {name: getattr(self, name) for name, default in _PARAMETERS.items()}
        arguments = [f"{name}={value!r}" for name, value in changed.items() if value != _PARAMETERS[name]]
        counts = f"{self.rows} rows, {len(self._columns)} features"
        if self.classes:
            counts += f", {len(self.classes)} classes"
        return f"Learner({', '.join(arguments)}) <{counts}>"

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> Learner:
        """Update the model with one row.

        Parameters
        ----------
        x : mapping
            Numbers and categories by feature name. Omit features whose value is missing.
        y : float or class
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
            If a number is not finite or too large. The learner is unchanged.

        Examples
        --------
        >>> from dyad import Learner
        >>> learner = Learner("classification", rank=1).learn_one({"age": 31, "city": "Rome"}, "yes")
        >>> learner.predict_one({"age": 40})
        'yes'
        """
        entries = read_row(x)
        if self.task == "classification":
            check_class(y)
        else:
            y = check_number(y, "y")
        for key, value, is_number in entries:
            self._columns.setdefault(key, len(self._columns))
            if is_number and self._scaler is not None:
                self._scaler.update(key, value, self.rows)
        if self._first_rows is not None:
            self._first_rows.append((entries, y))
            if len(self._first_rows) in REFIT_ROWS:
                return self._learn_first_rows()
        self._learn_entries(entries, y)
        return self

    def _learn_first_rows(self) -> Learner:
        """Fix the scales, and learn the rows so far again from the start."""
        assert self._scaler is not None and self._first_rows is not None
        self._scaler.fix()
        self._models = ClassLearners(self._make_learner)
        for entries, y in self._first_rows:
            self._learn_entries(entries, y)
        if len(self._first_rows) == REFIT_ROWS[-1]:
            self._first_rows = None
        return self

    def _learn_entries(self, entries: list[Entry], y: Any) -> None:
        learn = self._models.learn_class if self.task == "classification" else self._models.learn_target
        learn(self._encode(entries), y)

    def learn_many(self, X: Any, y: Iterable[Any]) -> Learner:
        """Update the model with several rows, in their order.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table, or iterable of mappings
            Rows. Missing values of a table are omitted.
        y : iterable of float or class
            Target of each row.

        Returns
        -------
        Learner
            The learner itself.

        Raises
        ------
        TypeError
            If a value is neither a number nor hashable.
        ValueError
            If a number is invalid, or if X and y have different lengths. The message contains the index of the row; the
            rows before it have been learned.

        Examples
        --------
        >>> import pandas as pd
        >>> from dyad import Learner
        >>> Learner(rank=1).learn_many(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), [3.0, 4.0])
        Learner(rank=1) <2 rows, 3 features>
        """
        missing = object()
        targets = iter(y)
        count = 0
        for count, x in enumerate(iterate_rows(X), 1):
            target = next(targets, missing)
            if target is missing:
                raise ValueError(f"X and y must have the same length; y ends before row {count - 1}.")
            try:
                self.learn_one(x, target)
            except (TypeError, ValueError) as error:
                raise type(error)(f"row {count - 1}: {error}") from error
        if next(targets, missing) is not missing:
            raise ValueError(f"X and y must have the same length; X has {count} rows, y has more.")
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

        Examples
        --------
        >>> from dyad import Learner
        >>> learner = Learner(rank=1)
        >>> for step in range(300):
        ...     _ = learner.learn_one({"x": step % 10}, 3.0 * (step % 10))
        >>> round(learner.predict_one({"x": 5}))
        15
        """
        if self.task == "regression":
            return self._models.learners[0].predict(*self._encode(read_row(x)))[0]
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

        Raises
        ------
        ValueError
            If there are more than two classes.

        Examples
        --------
        >>> from dyad import Learner
        >>> learner = Learner(rank=1)
        >>> for step in range(300):
        ...     _ = learner.learn_one({"city": step % 3 and "Rome" or "Oslo"}, step % 2)
        >>> value, std = learner.predict_std_one({"city": "Rome"})
        >>> 0.3 < std < 0.7
        True
        """
        if len(self.classes) > 2:
            raise ValueError(f"predict_std_one supports two classes, got {len(self.classes)}; use predict_proba_one.")
        entries = read_row(x)
        unseen = sum(value != 0 for key, value, _ in entries if key not in self._columns)
        return self._models.learners[0].predict(*self._encode(entries), unseen)

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

        Examples
        --------
        >>> from dyad import Learner
        >>> learner = Learner("classification", rank=1)
        >>> for step in range(300):
        ...     _ = learner.learn_one({"city": ["Rome", "Oslo", "Bonn"][step % 3]}, ["it", "no", "de"][step % 3])
        >>> probabilities = learner.predict_proba_one({"city": "Oslo"})
        >>> max(probabilities, key=probabilities.get), round(sum(probabilities.values()), 6)
        ('no', 1.0)
        """
        if self.task != "classification":
            raise ValueError(f"predict_proba_one requires task='classification', got task={self.task!r}.")
        return self._models.predict_proba(self._encode(read_row(x)))

    @property
    def rows(self) -> int:
        """Number of rows learned."""
        return self._models.learners[0].rows()

    @property
    def noise(self) -> float:
        """Estimated standard deviation of the noise; infinite before the second row."""
        return self._models.learners[0].noise()

    @property
    def origin(self) -> str:
        """One line that describes how the model was estimated."""
        return self._models.learners[0].origin()

    @property
    def classes(self) -> list[Any]:
        """Classes in the order of their first occurrence."""
        return list(self._models.classes)

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

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import dyad
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "learner.dyad"
        >>> dyad.Learner(rank=1).learn_one({"a": 1.0}, 2.0).save(path)
        >>> dyad.load(path)
        Learner(rank=1) <1 rows, 1 features>
        """
        attributes = {
            "features": [_json_values.encode_value(key) for key in self._columns],
            "classes": [_json_values.encode_value(name) for name in self.classes],
            "are_inverted": self._models.are_inverted,
        }
        if self._scaler is not None:
            attributes["scaler"] = [[_json_values.encode_value(name), state] for name, state in self._scaler.state()]
        if self._first_rows is not None:
            attributes["first_rows"] = [
                [[[_json_values.encode_value(key), value, is_number] for key, value, is_number in entries], _json_values.encode_value(y)]
                for entries, y in self._first_rows
            ]
        parameters = {name: getattr(self, name) for name in _PARAMETERS}
        states = [learner.to_bytes() for learner in self._models.learners]
        _files.write(path, _files.to_bytes(self, states, parameters, attributes))

    @classmethod
    def _from_saved(cls, saved: _files.SavedEstimator) -> Learner:
        if saved.parameters is None or saved.attributes is None:
            raise ValueError("it must have parameters and attributes")
        parameters, attributes = saved.parameters, saved.attributes
        if len(saved.parts) != len(attributes["are_inverted"]):
            raise ValueError("it must have one part per model")
        learner = cls(**parameters)
        learner._models.learners = [_core.Learner.from_bytes(state) for state in saved.parts]
        learner._models.are_inverted = [bool(value) for value in attributes["are_inverted"]]
        learner._columns = {_json_values.decode_value(key): column for column, key in enumerate(attributes["features"])}
        learner._models.classes = [_json_values.decode_value(label) for label in attributes["classes"]]
        if learner._scaler is not None:
            states = [(_json_values.decode_value(name), state) for name, state in attributes["scaler"]]
            learner._scaler = RunningScaler.from_state(states)
            learner._first_rows = None
            if "first_rows" in attributes:
                learner._first_rows = [
                    (
                        [(_json_values.decode_value(key), float(value), bool(is_number)) for key, value, is_number in entries],
                        _json_values.decode_value(y),
                    )
                    for entries, y in attributes["first_rows"]
                ]
        return learner

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling and copying."""
        return {
            **self.__dict__,
            "_models": (
                [learner.to_bytes() for learner in self._models.learners],
                list(self._models.are_inverted),
                list(self._models.classes),
            ),
            "_scaler": None if self._scaler is None else self._scaler.state(),
            "_first_rows": None if self._first_rows is None else list(self._first_rows),
            "_columns": dict(self._columns),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of `__getstate__`."""
        self.__dict__.update(state)
        self._models = ClassLearners(self._make_learner)
        learners, self._models.are_inverted, self._models.classes = state["_models"]
        self._models.learners = [_core.Learner.from_bytes(learner) for learner in learners]
        self._scaler = None if state["_scaler"] is None else RunningScaler.from_state(state["_scaler"])

    def _encode(self, entries: list[Entry]) -> tuple[list[int], list[float]]:
        """Return increasing columns and their scaled values. Features that were not learned are omitted."""
        by_column = {}
        for key, value, is_number in entries:
            if key in self._columns:
                scaler = self._scaler if is_number else None
                by_column[self._columns[key]] = value if scaler is None else scaler.scale(key, value)
        columns = sorted(by_column)
        return columns, [by_column[column] for column in columns]
