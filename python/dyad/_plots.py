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
        raise ImportError("Plots require matplotlib; install it with: pip install dyad-ml[plots]") from error
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
        if self._predictors[index].is_anova():
            raise AttributeError("A model of the solver 'anova' has no spectrum; use plot_effects().")
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
        if summary["solver"] == "anova":
            raise AttributeError("The solver 'anova' does not predict rows before it learns them; use plot_effects().")
        rows, losses = zip(*summary["trace"])
        ax = _make_axes(ax)
        ax.plot(rows, losses, marker="o")
        ax.set(xscale="log", xlabel="rows", ylabel=summary["progressive"]["kind"], title="Progressive loss, first pass")
        return ax

    def _find_effect(self, columns: tuple[Any, ...], class_index: Optional[int]) -> dict[str, Any]:
        """Return the function of one column or of two columns, which may be given in either order."""
        names = tuple(str(column) for column in columns)
        effects: list[dict[str, Any]] = self.effects(10**6, class_index)  # type: ignore[attr-defined]
        for effect in effects:
            if effect["columns"] == names:
                return effect
            if len(names) == 2 and effect["columns"] == names[::-1]:
                return {
                    **effect,
                    "columns": names,
                    "positions": effect["positions"][::-1],
                    "values": effect["values"].T,
                    "standard_errors": effect["standard_errors"].T,
                }
        known = sorted({column for effect in effects for column in effect["columns"]})
        raise ValueError(f"The model has no function of {' and '.join(names)}; its columns are {', '.join(known)}.")

    def plot_effect(self, column: Any, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Plot the function of one column with bands of two standard errors (solver 'anova').

        Parameters
        ----------
        column : str or int
            Name or number of the column.
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
        AttributeError
            If the model is a low-rank model.
        ValueError
            If the model has no function of the column.
        """
        effect = self._find_effect((column,), class_index)
        ax = _make_axes(ax)
        _draw_curve(ax, effect)
        return ax

    def plot_interaction(self, a: Any, b: Any, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Plot the function of a pair of columns as a heat map (solver 'anova').

        Parameters
        ----------
        a : str or int
            Column of the horizontal axis.
        b : str or int
            Column of the vertical axis.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. By default, a new figure is created.
        class_index : int, optional
            Index in ``classes_`` of the model to plot. Required for classifiers of more than two classes.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the plot. Hatched cells are within two standard errors of 0.

        Raises
        ------
        AttributeError
            If the model is a low-rank model.
        ValueError
            If the model has no function of the pair.
        """
        effect = self._find_effect((a, b), class_index)
        ax = _make_axes(ax)
        _draw_surface(ax, effect)
        return ax

    def plot_effects(self, top: int = 9, class_index: Optional[int] = None) -> Any:
        """Plot the functions with the largest shares of the explained variance in a grid (solver 'anova').

        Parameters
        ----------
        top : int, default=9
            Number of functions.
        class_index : int, optional
            Index in ``classes_`` of the model to plot. Required for classifiers of more than two classes.

        Returns
        -------
        matplotlib.figure.Figure
            Figure with one plot per function.

        Raises
        ------
        AttributeError
            If the model is a low-rank model.
        """
        effects = self.effects(top, class_index)  # type: ignore[attr-defined]
        columns = min(3, max(1, len(effects)))
        rows = max(1, -(-len(effects) // columns))
        figure = _make_axes(None).figure
        figure.clear()
        figure.set_size_inches(4 * columns, 3 * rows)
        for position, effect in enumerate(effects):
            ax = figure.add_subplot(rows, columns, position + 1)
            (_draw_curve if len(effect["columns"]) == 1 else _draw_surface)(ax, effect)
        return figure

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


def _draw_curve(ax: Any, effect: dict[str, Any]) -> None:
    """Draw a function of one column. Levels and missing values are points with error bars."""
    positions, values, errors = effect["positions"][0], effect["values"], effect["standard_errors"]
    is_number = np.array([isinstance(position, float) for position in positions])
    if is_number.any():
        x = positions[is_number].astype(float)
        ax.fill_between(
            x, values[is_number] - 2 * errors[is_number], values[is_number] + 2 * errors[is_number], alpha=0.3
        )
        ax.plot(x, values[is_number])
        for value, error in zip(values[~is_number], errors[~is_number]):
            ax.errorbar([x.max() + 0.05 * np.ptp(x)], [value], yerr=[2 * error], fmt="o", label="missing")
    else:
        ax.errorbar(np.arange(len(positions)), values, yerr=2 * errors, fmt="o")
        ax.set_xticks(np.arange(len(positions)), [str(position) for position in positions], rotation=45, ha="right")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xlabel=effect["columns"][0], ylabel="effect", title=f"{100 * effect['share']:.1f}% of the variance")


def _draw_surface(ax: Any, effect: dict[str, Any]) -> None:
    """Draw a function of two columns. Cells within two standard errors of 0 are hatched."""
    values = effect["values"].T
    limit = max(float(np.abs(values).max()), np.finfo(float).tiny)
    shape = values.shape
    edges = [np.arange(count + 1) - 0.5 for count in (shape[1], shape[0])]
    image = ax.pcolormesh(edges[0], edges[1], values, cmap="RdBu_r", vmin=-limit, vmax=limit)
    is_uncertain = np.abs(values) < 2 * effect["standard_errors"].T
    if min(shape) > 1 and is_uncertain.any():
        ax.contourf(
            np.arange(shape[1]), np.arange(shape[0]), is_uncertain, levels=[0.5, 1.5], colors="none", hatches=["//"]
        )
    for axis, positions in ((ax.xaxis, effect["positions"][0]), (ax.yaxis, effect["positions"][1])):
        shown = np.unique(np.linspace(0, len(positions) - 1, min(6, len(positions))).astype(int))
        labels = [f"{positions[i]:.3g}" if isinstance(positions[i], float) else str(positions[i]) for i in shown]
        axis.set_ticks(shown, labels)
    ax.set(
        xlabel=effect["columns"][0],
        ylabel=effect["columns"][1],
        title=f"{100 * effect['share']:.1f}% of the variance",
    )
    ax.figure.colorbar(image, ax=ax, label="effect")


def plot_calibration(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Plot the calibration of a model: coverages of intervals of a regressor, or frequencies of predicted classes.

    Parameters
    ----------
    model : FactorizationRegressor or FactorizationClassifier
        Fitted estimator. Regressors need standard deviations: any solver except 'moment'.
    X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
        Rows that were not used for training.
    y : array-like of shape (n_samples,)
        Targets.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot. The second line is the curve; the first one is the diagonal.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Notes
    -----
    Regressors: the interval of probability p is mean ± z std with z = Phi^-1((1 + p) / 2), where Phi is the distribution
    function of the standard normal distribution. The curve is the share of targets in the interval.

    Classifiers: the probabilities of all classes (two classes: of the second one) are sorted into ten groups of equal
    size. The curve is the share of rows of the class by the mean probability of a group.

    The curve of a calibrated model is the diagonal.

    Examples
    --------
    ::

        model = dyad.FactorizationRegressor().fit(X_train, y_train)
        dyad.plot_calibration(model, X_test, y_test).figure.savefig("calibration.png")
    """
    check_is_fitted(model)
    y = column_or_1d(y)
    is_classifier = hasattr(model, "classes_")
    x, shares = (_class_frequencies if is_classifier else _interval_coverages)(model, X, y)
    ax = _make_axes(ax)
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.plot(x, shares, marker="o" if is_classifier else None)
    ax.set(
        xlabel="predicted probability" if is_classifier else "nominal probability",
        ylabel="share of rows of the class" if is_classifier else "share of targets in the interval",
        title="Calibration of probabilities" if is_classifier else "Calibration of prediction intervals",
        aspect="equal",
    )
    return ax


def _interval_coverages(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return nominal probabilities of intervals, and the shares of the targets in them."""
    from scipy.stats import norm

    values, deviations = model.predict(X, return_std=True)
    standardized_errors = np.abs(values - y) / deviations
    nominal = np.linspace(0.02, 0.98, 49)
    return nominal, [np.mean(standardized_errors <= norm.ppf(0.5 + probability / 2)) for probability in nominal]


def _class_frequencies(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the mean probability and the share of rows of the class for ten groups of predicted probabilities."""
    probabilities = model.predict_proba(X)
    is_class = y[:, np.newaxis] == model.classes_
    if len(model.classes_) == 2:
        probabilities, is_class = probabilities[:, 1:], is_class[:, 1:]
    order = np.argsort(probabilities, axis=None, kind="stable")
    groups = [group for group in np.array_split(order, 10) if len(group)]
    return (
        [probabilities.ravel()[group].mean() for group in groups],
        [is_class.ravel()[group].mean() for group in groups],
    )


def plot_learning_curve(
    model: Any, X: Any, y: Any, *, sizes: Any = (0.1, 0.2, 0.4, 0.7, 1.0), cv: Any = 5, ax: Any = None
) -> Any:
    """Plot the loss on training rows and by cross-validation against the number of training rows.

    Parameters
    ----------
    model : FactorizationRegressor or FactorizationClassifier
        Estimator; it is cloned for each fit and need not be fitted.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets.
    sizes : sequence of float or int, default=(0.1, 0.2, 0.4, 0.7, 1.0)
        Shares, or numbers, of the training rows of a fold.
    cv : int or cross-validation generator, default=5
        Folds, as in scikit-learn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the rmse (regressors) or the log-loss (classifiers); bands are one standard error of the mean over the
        folds.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Notes
    -----
    If the loss by cross-validation still decreases at the last size, more rows will decrease it further. If it is close
    to the loss of the training rows, a richer model (a higher rank, or more columns) is needed instead.

    Examples
    --------
    ::

        dyad.plot_learning_curve(dyad.FactorizationRegressor(), X, y).figure.savefig("learning.png")
    """
    from sklearn.base import is_classifier
    from sklearn.model_selection import learning_curve

    scoring, name = ("neg_log_loss", "log-loss") if is_classifier(model) else ("neg_root_mean_squared_error", "rmse")
    counts, training, validation = learning_curve(
        model, X, y, train_sizes=np.asarray(sizes), cv=cv, scoring=scoring, shuffle=True, random_state=0
    )
    ax = _make_axes(ax)
    for scores, label in ((training, "training rows"), (validation, "cross-validation")):
        mean = -scores.mean(axis=1)
        error = scores.std(axis=1) / np.sqrt(scores.shape[1])
        ax.plot(counts, mean, marker="o", label=label)
        ax.fill_between(counts, mean - error, mean + error, alpha=0.3)
    ax.legend()
    ax.set(xlabel="training rows", ylabel=name, title="Learning curve")
    return ax
