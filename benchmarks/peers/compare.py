"""dyad beside its peers, in one run: compare.py BUILD [SET ...] writes docs/benchmarks.md and its plots."""

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
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def by_work(runs):
    """For each amount of work the points of all runs."""
    return [list(points) for points in zip(*runs)]


def best_run(system, runs):
    """Learning rates are tried one by one: the run with the best end. Seeds are not chosen."""
    return min(runs, key=lambda points: points[-1].loss) if hasattr(system, "rates") else None


class Line:
    """What a system made of a set: one point for each amount of work."""

    def __init__(self, system, runs):
        self.name = system.name
        chosen = best_run(system, runs)
        self.points = []
        for points in by_work(runs):
            losses = [point.loss for point in ([chosen[len(self.points)]] if chosen else points)]
            self.points.append((points[0].work, [point.seconds for point in points], losses))

    def seconds(self, place=-1):
        return statistics.median(self.points[place][1])

    def loss(self, place=-1):
        return statistics.median(self.points[place][2])


def spread(values, form):
    low, middle, high = (format(value, form) for value in (min(values), statistics.median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def measure(data, found):
    lines = []
    for system in [*systems.OWN, *(one for name in found for one in systems.PEERS[name])]:
        print(f"{data.name}: {system.name}", file=sys.stderr, flush=True)
        runs = system.runs(data)
        if runs:
            lines.append(Line(system, runs))
    return lines


def plot(data, lines):
    figure, axes = plt.subplots(figsize=(7, 4))
    for line in lines:
        seconds = [line.seconds(i) for i in range(len(line.points))]
        losses = [line.loss(i) for i in range(len(line.points))]
        axes.plot(seconds, losses, marker="o", label=line.name, linewidth=2 if line.name == "dyad" else 1)
    best = min(line.loss() for line in lines)
    worst = max(loss for line in lines for i in range(len(line.points)) if np.isfinite(loss := line.loss(i)))
    axes.set_ylim(best - 0.05 * (min(worst, 2 * best) - best), min(worst, 2 * best) * 1.02)
    axes.set_xscale("log")
    axes.set_xlabel("seconds to fit")
    axes.set_ylabel("log loss" if data.is_classification else "rmse")
    axes.set_title(f"{data.name}: test rows")
    axes.legend(fontsize=7)
    figure.tight_layout()
    path = ROOT / "docs" / "plots" / f"peers_{data.name.lower()}.svg"
    figure.savefig(path)
    plt.close(figure)
    return f"plots/{path.name}"


def section(data, lines):
    own = next(line for line in lines if line.name == "dyad")
    others = [line for line in lines if not line.name.startswith("dyad")]
    what = "log loss" if data.is_classification else "rmse"
    text = [
        f"### {data.name}",
        "",
        f"{data.X.shape[0]:,} rows to learn from, {data.X_test.shape[0]:,} to test, {data.X.shape[1]:,} features, "
        f"{data.X.nnz / data.X.shape[0]:.0f} non-zeros in a row.",
        "",
        f"| system | work | {what} | seconds |",
        "|---|---|---|---|",
    ]
    best = min((line.loss() for line in others), default=np.inf)
    for line in lines:
        work, seconds, losses = line.points[-1]
        mark = " **behind**" if line is own and line.loss() > best else ""
        text.append(f"| {line.name} | {work} | {spread(losses, '.4f')}{mark} | {spread(seconds, '.3f')} |")
    for line in others:
        reached = [own.seconds(i) for i in range(len(own.points)) if own.loss(i) <= line.loss()]
        if line.name == "myFM" and reached:
            ratio = f"{line.seconds() / min(reached):.2g} times myFM's speed"
            text += ["", f"What myFM reaches with its last sample, dyad reaches in {min(reached):.3f} s: {ratio}."]
    return [*text, "", f"![{what} against time]({plot(data, lines)})", ""]


def sweep_rates(data, found):
    """Seconds of one more sweep, or sample: from the difference of two runs."""

    def per_sweep(system, few, many):
        system.works = (few, many)
        runs = system.runs(data)
        return [(many_run.seconds - few_run.seconds) / (many - few) for few_run, many_run in runs]

    own = per_sweep(systems.Dyad("dyad", "variational"), 6, 26)
    lines = ["", f"| one sweep over {data.name} | seconds |", "|---|---|"]
    lines.append(f"| dyad, variational | {spread(own, '.4f')} |")
    if "myfm" in found:
        theirs = per_sweep(systems.MyFM(), 5, 25)
        ratio = statistics.median(theirs) / statistics.median(own)
        lines.append(f"| myFM, Gibbs | {spread(theirs, '.4f')} ({ratio:.1f} times dyad's) |")
    return lines


def kernels(build):
    """What the programs before this one have left, if they ran."""
    text = []
    parts = [
        ("bounds.md", "Kernels beside their bounds", BOUNDS_TEXT, ""),
        ("scaling.txt", "How time grows", SCALING_TEXT, "```"),
        ("process.txt", "The command itself", "", "```"),
    ]
    for file, title, words, fence in parts:
        if (build / file).exists():
            text += [f"## {title}", "", *([words, ""] if words else []), *([fence] if fence else [])]
            text += [(build / file).read_text().rstrip(), *([fence] if fence else []), ""]
    return text


BOUNDS_TEXT = """Medians of five repetitions; kernel and bound in one run. The bounds: for moment sums the two bare matrix products at
OpenBLAS's rate for these shapes, for Gauss-Newton products half as much again; for predictions and sweeps the numbers of each
row's features read, and nothing computed; for the Kalman pass these numbers read and written; for text and models a plain read
of the file. 200,000 features, of which few are most of the rows."""
SCALING_TEXT = """The exponent is the slope of the best line through the logarithms: 1 is linear, 0 does not grow, -1 halves with
twice as many."""


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}"


def main(build, wanted):
    found = [name for name in systems.PEERS if importlib.util.find_spec(name)]
    missing = [name for name in systems.PEERS if name not in found]
    packages = [DISTRIBUTIONS.get(name, name) for name in found]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    chosen = [data for data in sets.all_sets() if not wanted or data.name in wanted]
    text = [(pathlib.Path(__file__).parent / "page.md").read_text().rstrip(), ""]
    text += [f"Measured on {machine()}; {', '.join(versions)}."]
    if missing:
        text += [f"Not installed, and so not here: {', '.join(missing)}."]
    if not os.environ.get("DYAD_DATA"):
        text += ["Without the real data, whose folder `DYAD_DATA` names."]
    what, rows = sets.stream()
    text += ["", "## Row by row", ""]
    text += online.table(what, rows, online.compare(rows, build / "dyad", found))
    text += ["", "## Accuracy against time", ""]
    for data in chosen:
        text += section(data, measure(data, found))
    pairs = [data for data in chosen if len(data.fields) == 2 and data.fields[0] > 0]
    if pairs:
        text += ["## The speed of a sweep", *sweep_rates(pairs[-1], found), ""]
    text += kernels(build)
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
