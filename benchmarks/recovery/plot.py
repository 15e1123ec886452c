"""Draws the phase-transition diagrams."""

from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "dyad"})
import matplotlib.axes  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402

from methods import method_names  # noqa: E402
from problems import Problem  # noqa: E402
from records import Record, common_ratio, median_seconds, select, smallest_ratio, success_rates  # noqa: E402

COLORS = {
    "dyad": "tab:blue",
    "Wirtinger flow": "tab:gray",
    "truncated amplitude flow": "tab:orange",
    "reweighted amplitude flow": "tab:green",
    "ScaledGD": "tab:red",
    "alternating minimization": "tab:purple",
}


def draw_transition(axes: matplotlib.axes.Axes, records: list[Record], problem: Problem) -> None:
    """Draw success against rows per degree of freedom."""
    for method in method_names(problem):
        rates = success_rates(select(records, problem.name, method))
        axes.plot(list(rates), list(rates.values()), marker="o", markersize=3, color=COLORS[method], label=method)
    axes.set_title(problem.name, fontsize=9)
    axes.set_xlabel("rows / degrees of freedom", fontsize=8)
    axes.set_ylabel("success rate", fontsize=8)
    axes.set_ylim(-0.05, 1.05)
    axes.legend(fontsize=6, loc="lower right")


def draw_times(axes: matplotlib.axes.Axes, records: list[Record], problems: list[Problem]) -> None:
    """Draw the median CPU time of each method at the common ratio of each problem."""
    labels: list[str] = []
    for problem in problems:
        methods = method_names(problem)
        ratio = common_ratio(records, problem.name, methods)
        if ratio is None:
            continue
        for method in methods:
            runs = select(records, problem.name, method)
            if smallest_ratio(runs) is None:
                continue
            seconds = median_seconds(runs, ratio)
            axes.plot(seconds, len(labels), marker="o", color=COLORS[method])
        labels.append(f"{problem.name}\n{ratio:g} rows / dof")
    axes.set_yticks(range(len(labels)), labels, fontsize=6)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_title("time where all succeed", fontsize=9)
    axes.set_xlabel("CPU seconds, median", fontsize=8)


def draw(records: list[Record], problems: list[Problem], path: pathlib.Path) -> None:
    """Draw one panel per problem and a panel of the times."""
    columns = 2
    figure, grid = plt.subplots((len(problems) + columns) // columns, columns, figsize=(8, 11), squeeze=False)
    panels = list(grid.flat)
    for axes, problem in zip(panels, problems):
        draw_transition(axes, records, problem)
    draw_times(panels[len(problems)], records, problems)
    for axes in panels:
        axes.tick_params(axis="x", labelsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
