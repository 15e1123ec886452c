"""Compares dyad with other libraries in one run: compare.py BUILD [DATASET ...] writes docs/benchmarks.md and its plots."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import statistics
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "dyad"})
import matplotlib.pyplot as plt  # noqa: E402

import online  # noqa: E402
import sets  # noqa: E402
import systems  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name on PyPI, if it differs from the name of the module.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def by_work(runs):
    """Return the points of all runs for each amount of work."""
    return [list(points) for points in zip(*runs)]


def best_run(system, runs):
    """Return the run with the best final loss for systems with learning rates, and None for systems whose runs are seeds."""
    return min(runs, key=lambda points: points[-1].loss) if hasattr(system, "rates") else None


class Curve:
    """Results of a system on a data set: (work, seconds of all runs, losses) for each amount of work."""

    def __init__(self, system, runs):
        self.name = system.name
        chosen = best_run(system, runs)
        self.points = []
        for points in by_work(runs):
            losses = [point.loss for point in ([chosen[len(self.points)]] if chosen else points)]
            self.points.append((points[0].work, [point.seconds for point in points], losses))

    def seconds(self, index=-1):
        return statistics.median(self.points[index][1])

    def loss(self, index=-1):
        return statistics.median(self.points[index][2])


def spread(values, form):
    """Return "median (minimum to maximum)"."""
    low, middle, high = (format(value, form) for value in (min(values), statistics.median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def measure(data, installed):
    """Run all systems on the data set."""
    curves = []
    for system in [*systems.DYAD_SYSTEMS, *(peer for name in installed for peer in systems.PEER_SYSTEMS[name])]:
        print(f"{data.name}: {system.name}", file=sys.stderr, flush=True)
        runs = system.runs(data)
        if runs:
            curves.append(Curve(system, runs))
    return curves


def plot(data, curves):
    """Plot loss by time; return the path of the plot relative to the page."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for curve in curves:
        seconds = [curve.seconds(i) for i in range(len(curve.points))]
        losses = [curve.loss(i) for i in range(len(curve.points))]
        axes.plot(seconds, losses, marker="o", label=curve.name, linewidth=2 if curve.name == "dyad" else 1)
    best = min(curve.loss() for curve in curves)
    worst = max(loss for curve in curves for i in range(len(curve.points)) if np.isfinite(loss := curve.loss(i)))
    axes.set_ylim(best - 0.05 * (min(worst, 2 * best) - best), min(worst, 2 * best) * 1.02)
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds to fit")
    axes.set_ylabel("log loss" if data.is_classification else "rmse")
    axes.set_title(f"{data.name}: test rows")
    axes.legend(fontsize=7)
    figure.tight_layout()
    path = ROOT / "docs" / "plots" / f"peers_{data.name.lower()}.svg"
    figure.savefig(path)
    plt.close(figure)
    return f"plots/{path.name}"


def section(data, curves):
    """Return the lines of the section of a data set."""
    dyad = next(curve for curve in curves if curve.name == "dyad")
    others = [curve for curve in curves if not curve.name.startswith("dyad")]
    loss_name = "log loss" if data.is_classification else "rmse"
    text = [
        f"### {data.name}",
        "",
        f"{data.X.shape[0]:,} training rows, {data.X_test.shape[0]:,} test rows, {data.X.shape[1]:,} features, "
        f"{data.X.nnz / data.X.shape[0]:.0f} non-zeros per row.",
        "",
        f"| system | work | {loss_name} | processor seconds |",
        "|---|---|---|---|",
    ]
    best = min((curve.loss() for curve in others), default=np.inf)
    for curve in curves:
        work, seconds, losses = curve.points[-1]
        mark = " **worse**" if curve is dyad and curve.loss() > best else ""
        text.append(f"| {curve.name} | {work} | {spread(losses, '.4f')}{mark} | {spread(seconds, '.3f')} |")
    for curve in others:
        own_points = [(own, i) for own in curves if own.name.startswith("dyad") for i in range(len(own.points))]
        reached = [own.seconds(i) for own, i in own_points if own.loss(i) <= curve.loss()]
        if curve.name == "myFM" and reached:
            ratio = f"{curve.seconds() / min(reached):.2g} times as fast as myFM"
            text += ["", f"dyad reaches the final loss of myFM in {min(reached):.3f} s, {ratio}."]
    return [*text, "", f"![{loss_name} by time]({plot(data, curves)})", ""]


def sweep_rates(data, installed):
    """Return a table of the seconds per sweep or sample, from the difference of two runs."""

    def per_sweep(system, low, high):
        system.works = (low, high)
        runs = system.runs(data)
        return [(long_run.seconds - short_run.seconds) / (high - low) for short_run, long_run in runs]

    dyad = per_sweep(systems.Dyad("dyad", "variational"), 6, 26)
    lines = ["", f"| one sweep over {data.name} | processor seconds |", "|---|---|"]
    lines.append(f"| dyad, variational | {spread(dyad, '.4f')} |")
    if "myfm" in installed:
        myfm = per_sweep(systems.MyFM(), 5, 25)
        ratio = statistics.median(myfm) / statistics.median(dyad)
        lines.append(f"| myFM, Gibbs | {spread(myfm, '.4f')} ({ratio:.1f} times as long as dyad) |")
    return lines


def program_sections(build):
    """Return the sections with the output of bounds.py, scaling and process.py (see scripts/bench), if it exists."""
    text = []
    sections = [
        ("bounds.md", "Kernels and their lower bounds", BOUNDS_TEXT, ""),
        ("scaling.txt", "Scaling", SCALING_TEXT, "```"),
        ("process.txt", "Startup, size and memory of the command", "", "```"),
    ]
    for file, title, introduction, fence in sections:
        if (build / file).exists():
            text += [f"## {title}", "", *([introduction, ""] if introduction else []), *([fence] if fence else [])]
            text += [(build / file).read_text().rstrip(), *([fence] if fence else []), ""]
    return text


BOUNDS_TEXT = """Medians of five repetitions, measured in the same run as the bounds. The lower bound on time is, for moment sums, the two matrix
products alone, by OpenBLAS with the same shapes; for Gauss-Newton products, 1.5 times that; for predictions and sweeps, reading the
parameters of each row's features; for the Kalman filter, reading and writing them; for text and models, reading the file. A fraction
above 100% means that the kernel is faster than this operation, which is then not a lower bound. The sparse
rows have 200,000 features with a skewed distribution."""
SCALING_TEXT = """The exponent is the slope of the regression of log time on log size: 1 is linear, 0 is constant, and -1 halves the time when the size
doubles."""


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}"


def main(build, names):
    installed = [name for name in systems.PEER_SYSTEMS if importlib.util.find_spec(name)]
    missing = [name for name in systems.PEER_SYSTEMS if name not in installed]
    packages = [DISTRIBUTIONS.get(name, name) for name in installed]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    datasets = [data for data in sets.all_sets() if not names or data.name in names]
    text = [(pathlib.Path(__file__).parent / "page.md").read_text().rstrip(), ""]
    text += [f"Measured on {machine()}; {', '.join(versions)}."]
    if missing:
        text += [f"Not installed and therefore not measured: {', '.join(missing)}."]
    if not os.environ.get("DYAD_DATA"):
        text += ["Without the real data sets, because `DYAD_DATA` is not set."]
    title, rows = sets.stream()
    text += ["", "## Online learning", ""]
    text += online.table(title, rows, online.compare(rows, build / "dyad", installed))
    text += ["", "## Accuracy and time", ""]
    for data in datasets:
        text += section(data, measure(data, installed))
    pairs = [data for data in datasets if len(data.fields) == 2 and data.fields[0] > 0]
    if pairs:
        text += ["## Time per sweep", *sweep_rates(pairs[-1], installed), ""]
    text += program_sections(build)
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
