"""Plots of fitted models. They require matplotlib."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._predictors import LazyPredictors


def _make_axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots require matplotlib; install it with: pip install dyad[plots]") from error
    return plt.subplots(layout="constrained")[1]


class PlotMixin:
    """Plots of a fitted factorization model."""

    _predictors: LazyPredictors
    summary_: Any

    def plot_spectrum(self, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Plot the eigenvalues of M by decreasing absolute value.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. By default, a new figure is created.
        class_index : int, optional
            Index in ``classes_`` of the model to plot. Required for classifiers of more than two classes.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the plot.

        Notes
        -----
        The eigenvalues are those for scaled features and the scaled target. If the smallest ones are close to zero, a
        lower rank is sufficient.
        """
        index = self._model_index(class_index)  # type: ignore[attr-defined]
        values = np.array(self._predictors[index].inspect(0)["spectrum"])
        ax = _make_axes(ax)
        ax.bar(np.arange(1, len(values) + 1), values, color=np.where(values < 0, "tab:red", "tab:blue"))
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(xlabel="factor", ylabel="eigenvalue of M", title="Spectrum of the interactions")
        return ax

    def plot_convergence(self, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Plot the progressive loss of the first pass against the number of rows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. By default, a new figure is created.
        class_index : int, optional
            Index in ``classes_`` of the model to plot. Required for classifiers of more than two classes.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the plot.

        Raises
        ------
        ValueError
            If the model was loaded from a file, which does not contain the losses of the training run.

        Notes
        -----
        The progressive loss is the average over all rows so far, each predicted before the model learned it.
        """
        index = self._model_index(class_index)  # type: ignore[attr-defined]
        summary = self.summary_[index] if isinstance(self.summary_, list) else self.summary_
        if not summary.get("trace"):
            raise ValueError(
                "summary_ has no losses to plot, because the model was loaded from a file or updated by "
                "apply_statistics; call fit first."
            )
        rows, losses = zip(*summary["trace"])
        ax = _make_axes(ax)
        ax.plot(rows, losses, marker="o")
        ax.set(xscale="log", xlabel="rows", ylabel=summary["progressive"]["kind"], title="Progressive loss, first pass")
        return ax

    def plot_interactions(self, top: int = 20, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Plot the effects of the strongest pairs of features.

        Parameters
        ----------
        top : int, default=20
            Number of pairs.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. By default, a new figure is created.
        class_index : int, optional
            Index in ``classes_`` of the model to plot. Required for classifiers of more than two classes.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the plot.

        See Also
        --------
        FactorizationRegressor.interactions : The same pairs as a DataFrame.
        """
        table = self.interactions(top, class_index)[::-1]  # type: ignore[attr-defined]
        names = [
            f"{left}²" if left == right else f"{left} × {right}" for left, right in zip(table["left"], table["right"])
        ]
        ax = _make_axes(ax)
        ax.barh(names, table["effect"], color=np.where(table["effect"] < 0, "tab:red", "tab:blue"))
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set(xlabel="effect of one standard deviation of each feature", title="Strongest interactions")
        return ax


def plot_calibration(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Plot the coverage of prediction intervals against their nominal probability.

    Parameters
    ----------
    model : FactorizationRegressor
        Fitted regressor with standard deviations: any solver except 'moment'.
    X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
        Rows that were not used for training.
    y : array-like of shape (n_samples,)
        Targets.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Notes
    -----
    The interval of probability p is mean ± z std with z = Phi^-1((1 + p) / 2), where Phi is the distribution function
    of the standard normal distribution. The curve of a calibrated model is the diagonal.

    Examples
    --------
    ::

        model = dyad.FactorizationRegressor().fit(X_train, y_train)
        dyad.plot_calibration(model, X_test, y_test).figure.savefig("calibration.png")
    """
    from scipy.stats import norm

    check_is_fitted(model)
    values, deviations = model.predict(X, return_std=True)
    standardized_errors = np.abs(values - column_or_1d(y)) / deviations
    nominal = np.linspace(0.02, 0.98, 49)
    coverage = [np.mean(standardized_errors <= norm.ppf(0.5 + probability / 2)) for probability in nominal]
    ax = _make_axes(ax)
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.plot(nominal, coverage)
    ax.set(
        xlabel="nominal probability",
        ylabel="share of targets in the interval",
        title="Calibration of prediction intervals",
        aspect="equal",
    )
    return ax
