"""What a model looks like; needs matplotlib."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._predictors import Predictors


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install dyad[plots]") from error
    return plt.subplots(layout="constrained")[1]


class Plots:
    """Plots of a fitted estimator; each takes axes to draw on, or makes some, and returns them."""

    _predictors: Predictors
    summary_: Any

    def plot_spectrum(self, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Draw the eigenvalues of M, strongest first, by their sign: how much rank the data asked for."""
        place = self._of_class(class_index)  # type: ignore[attr-defined]
        values = np.array(self._predictors[place].inspect(0)["spectrum"])
        ax = _axes(ax)
        ax.bar(np.arange(1, len(values) + 1), values, color=np.where(values < 0, "tab:red", "tab:blue"))
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(xlabel="factor", ylabel="eigenvalue of M", title="Spectrum of the interactions")
        return ax

    def plot_convergence(self, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Draw the average loss of the first pass, each row predicted before it was learned."""
        place = self._of_class(class_index)  # type: ignore[attr-defined]
        summary = self.summary_[place] if isinstance(self.summary_, list) else self.summary_
        if not summary.get("trace"):
            raise ValueError("This model was loaded from a file, which does not hold how it was learned.")
        rows, losses = zip(*summary["trace"])
        ax = _axes(ax)
        ax.plot(rows, losses, marker="o")
        ax.set(xscale="log", xlabel="rows", ylabel=summary["progressive"]["kind"], title="Progressive loss, first pass")
        return ax

    def plot_interactions(self, top: int = 20, ax: Any = None, class_index: Optional[int] = None) -> Any:
        """Draw the effects of the strongest pairs of features."""
        table = self.interactions(top, class_index)[::-1]  # type: ignore[attr-defined]
        names = [
            f"{left}²" if left == right else f"{left} × {right}" for left, right in zip(table["left"], table["right"])
        ]
        ax = _axes(ax)
        ax.barh(names, table["effect"], color=np.where(table["effect"] < 0, "tab:red", "tab:blue"))
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set(xlabel="effect of one standard deviation of each", title="Strongest interactions")
        return ax


def plot_calibration(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Draw how many targets lie within so many error bars, beside how many should.

    Parameters
    ----------
    model : FactorizationRegressor
        Fitted.
    X, y
        Rows that it has not seen, and their targets.
    ax : matplotlib axes, optional
        To draw on.

    Returns
    -------
    matplotlib axes
    """
    from scipy.stats import norm

    check_is_fitted(model)
    values, deviations = model.predict(X, return_std=True)
    off = np.abs(values - column_or_1d(y)) / deviations
    nominal = np.linspace(0.02, 0.98, 49)
    covered = [np.mean(off <= norm.ppf(0.5 + share / 2)) for share in nominal]
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.plot(nominal, covered)
    ax.set(xlabel="should lie within", ylabel="lie within", title="Calibration of the error bars", aspect="equal")
    return ax
