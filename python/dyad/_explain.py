"""Terms of predictions as a DataFrame."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from . import _core
from ._checks import check_integer

# Names of the terms that do not belong to columns, by kind. The parentheses distinguish them from columns.
_SPECIAL_NAMES = {
    "intercept": "(intercept)",
    "posterior_average": "(posterior average)",
    "limit": "(limits)",
}

# Order of the kinds in the result.
_KINDS = ("intercept", "column", "square", "pair", "posterior_average", "limit")

# Largest number of cells of the result: 400 MB. Models of many columns have more pairs than fit in memory.
_MAX_CELLS = 50_000_000

_OTHER_TERMS = "(other terms)"


def explain_rows(
    predictor: _core.Predictor,
    rows: _core.Rows,
    threads: int,
    *,
    index: Any = None,
    top: Optional[int] = None,
    scale: float = 1.0,
    rename: Optional[Callable[[str], str]] = None,
) -> pd.DataFrame:
    """Return the terms of the predictions of rows, one column per term.

    Parameters
    ----------
    predictor : _core.Predictor
        Model.
    rows : _core.Rows
        Rows.
    threads : int
        Number of threads; 0: all cores.
    index : pandas.Index, optional
        Index of the result.
    top : int, optional
        Number of terms of columns and pairs, by decreasing mean absolute value; the column '(other terms)' is the sum of
        the others.
    scale : float, default=1.0
        Factor on all terms.
    rename : callable, optional
        Maps the name of a column of the model to the name in the result.
    """
    check_integer("top", top, 0, optional=True)
    content = predictor.explain(rows, threads)
    terms: list[tuple[str, str, str]] = content["terms"]
    counts = np.diff(content["offsets"])
    row_of = np.repeat(np.arange(len(counts)), counts)
    values = scale * content["values"]
    order = sorted(range(len(terms)), key=lambda number: _KINDS.index(terms[number][0]))
    if top is not None:
        order = _strongest(order, terms, np.bincount(content["indices"], np.abs(values), len(terms)), int(top))
    has_others = len(order) < len(terms)
    if len(counts) * (len(order) + has_others) > _MAX_CELLS:
        raise ValueError(
            f"The terms of {len(counts)} rows have {len(order)} columns, which is too large a table; pass fewer rows, or "
            "set top to the number of terms to list."
        )
    position = np.full(len(terms), len(order), dtype=np.intp)  # terms that are not listed are in the last column
    position[order] = np.arange(len(order))
    table = np.zeros((len(counts), len(order) + has_others))
    np.add.at(table, (row_of, position[content["indices"]]), values)
    names = [_term_name(terms[number], rename or str) for number in order] + [_OTHER_TERMS] * has_others
    return pd.DataFrame(table, columns=names, index=index)


def _strongest(
    order: list[int], terms: list[tuple[str, str, str]], strengths: npt.NDArray[Any], top: int
) -> list[int]:
    """Return the terms without column names and the ``top`` strongest other ones, in the given order."""
    named = [number for number in order if terms[number][0] not in _SPECIAL_NAMES]
    kept = set(sorted(named, key=lambda number: -strengths[number])[:top])
    return [number for number in order if number in kept or terms[number][0] in _SPECIAL_NAMES]


def _term_name(term: tuple[str, str, str], rename: Callable[[str], str]) -> str:
    kind, left, right = term
    if kind in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[kind]
    if kind == "pair":
        return f"{rename(left)} × {rename(right)}"
    return f"{rename(left)}²" if kind == "square" else rename(left)


class ExplainMixin:
    """Terms of the predictions of a factorization model."""

    def explain(self, X: Any, top: Optional[int] = None, class_index: Optional[int] = None) -> pd.DataFrame:
        """Return the terms of each prediction: those of single columns and of pairs of columns.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows.
        top : int, optional
            Number of terms of columns and pairs to list, by decreasing mean absolute value. The column '(other terms)'
            is the sum of the others. By default, all terms are listed.
        class_index : int, optional
            Index in ``classes_`` of the class. Required for classifiers of more than two classes.

        Returns
        -------
        pandas.DataFrame of shape (n_samples, n_terms)
            Terms. They add up to ``predict(X)`` of a regressor, and to ``decision_function(X)`` of a classifier, or to
            its column ``class_index``. The columns are '(intercept)', the names of columns, 'a²' for the square of the
            column a, 'a × b' for the pair of a and b, '(posterior average)' for the contribution of unknown categories
            and, for classes, of the uncertainty of the parameters, and '(limits)' for the change by the limits of
            the predictions. The last two are present only if they differ from 0 in a row.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid, or if the result would have more than 5e7 cells.

        Notes
        -----
        Terms of low-rank models are those of the standardized columns: the linear term of a column is 0 at its mean, and
        the term of a pair is 0 if one of the two columns is at its mean. Functions of the solver 'anova' have the mean 0
        over the training rows. The categories of a column belong to the column. Hashed categories, and the columns of
        sparse matrices, have one term per feature.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = FactorizationRegressor(rank=2).fit(X, 2 + X[:, 0] * X[:, 1])
        >>> terms = model.explain(X[:5])
        >>> bool(np.allclose(terms.sum(axis=1), model.predict(X[:5]), rtol=0, atol=1e-9))
        True
        """
        rows = self._make_prediction_rows(X)  # type: ignore[attr-defined]
        number = self._model_index(class_index)  # type: ignore[attr-defined]
        return explain_rows(
            self._predictors[number],  # type: ignore[attr-defined]
            rows,
            self._threads,  # type: ignore[attr-defined]
            index=X.index if isinstance(X, pd.DataFrame) else None,
            top=top,
            scale=getattr(self, "temperature_", 1.0),
        )
