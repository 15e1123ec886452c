"""Compares one pass of dyad with Vowpal Wabbit and river: compare.py BUILD [--systems A,B] [--sets A,B]

BUILD is the folder of the command `dyad` and of the program `progressive_losses`. The environment variable DYAD_DATA is the folder of
the data. BUILD/one_pass has one file per set, system and settings; existing files of peers are used again. Prints the page in
Markdown.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
from typing import NamedTuple

import numpy as np
from run_peer import Options
from sets import SETS, Set, namespaces, peer_rows

SYSTEMS = ["dyad", "Vowpal Wabbit", "river"]
PEERS = SYSTEMS[1:]
MODULES = {"Vowpal Wabbit": "vowpalwabbit", "river": "river"}
RANK = 8  # of the peers
DYAD_RUNS = 3  # the median time is shown
BLOCKS = 20  # of consecutive rows, for standard errors
# Rows with more columns have a smaller grid, because the time of both peers is proportional to the number of pairs of columns.
MAX_COLUMNS_OF_FULL_GRID = 8
RIVER_RATES = {"full": ["0.003", "0.01", "0.03", "0.05", "0.1", "0.3"], "small": ["0.003", "0.01", "0.03"]}
VOWPAL_WABBIT_RATES = {"full": ["0.02", "0.1", "0.5", "2", "8"], "small": ["0.02", "0.1"]}


class Run(NamedTuple):
    """One pass of a system with its settings."""

    settings: str
    seconds: float  # of all processors
    peak_bytes: int
    base_bytes: int  # memory before learning: the interpreter and its libraries
    losses: np.ndarray  # of each row


class Estimate(NamedTuple):
    """Mean and standard error."""

    mean: float
    error: float


Runs = dict[tuple[str, str], list[Run]]


def grid(system: str, data: Set, letters: str) -> list[str]:
    """Return the settings of a peer: learning rates of river, and options of Vowpal Wabbit with and without pairs of columns."""
    size = "small" if len(letters) > MAX_COLUMNS_OF_FULL_GRID else "full"
    if system == "river":
        return RIVER_RATES[size]
    pairs = [a + b for i, a in enumerate(letters) for b in letters[i + 1 :]] or [2 * letters]
    low_rank = " ".join(f"--lrq {pair}{RANK}" for pair in pairs)
    all_pairs = " ".join(f"-q {pair}" for pair in pairs)
    rates = VOWPAL_WABBIT_RATES[size]
    with_rate = [f"{form} -l {rate}" for form in (low_rank, all_pairs) for rate in rates]
    return ["--coin", f"--coin {all_pairs}", f"--coin {low_rank}", *with_rate]


def short(settings: str) -> str:
    """Return settings with one option for all pairs of columns, for the page."""
    text = re.sub(r"(--lrq \S+ ?)+", f"--lrq (all pairs, rank {RANK}) ", settings)
    return re.sub(r"(-q \S+ ?)+", "-q (all pairs) ", text).strip()


def run_dyad(build: pathlib.Path, data: Set, folder: pathlib.Path) -> Run:
    """Run the command, and then the program that prints the loss of each row.

    The mean of these losses is verified, except if the command omits it because the order of the rows predicts the targets.
    """
    source = data.file(folder)
    command = [build / "dyad", "train", source, *data.arguments(), "-m", folder / "model.dyad", "--passes", "1"]
    summaries, seconds = [], []
    for _ in range(DYAD_RUNS):
        before = children_seconds()
        done = subprocess.run([*command, "--json", "--quiet"], check=True, capture_output=True, text=True)
        seconds.append(children_seconds() - before)
        summaries.append(json.loads(done.stdout))
    rank = summaries[0]["rank"]
    columns = [data.target, ",".join(data.categorical), ",".join(data.ignored)] if data.target else []
    program = [build / "progressive_losses", str(rank), source, *columns]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    losses = np.array(done.stdout.split(), float)
    progressive = summaries[0]["progressive"]
    expected = progressive["logloss" if data.is_class else "rmse"]
    if expected is not None and not np.isclose(total_loss(data, losses), expected, rtol=1e-4):
        sys.exit(f"{data.name}: progressive_losses has the loss {total_loss(data, losses)}, dyad train has {expected}")
    return Run(f"default options (rank {rank})", statistics.median(seconds), summaries[0]["peak_rss_bytes"], 0, losses)


def children_seconds() -> float:
    """Return the processor seconds of the processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_peer(data: Set, system: str, settings: str, file: pathlib.Path) -> Run | None:
    """Run a peer in a process of its own. Returns None if it diverges."""
    options = Options(system, str(file), data.is_class, settings, RANK)
    script = pathlib.Path(__file__).with_name("run_peer.py")
    command = [sys.executable, script, json.dumps(options._asdict())]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    if "diverged" in result:
        return None
    return Run(settings, *(result[name] for name in ("seconds", "peak_bytes", "base_bytes")), np.array(result["losses"]))


def prefix(data: Set, system: str) -> str:
    """Return the first part of the names of the files of a system."""
    return f"{data.name}.{system.replace(' ', '-')}.settings"


def store(path: pathlib.Path, run: Run | None) -> None:
    """Write a run, or `null` for one that has diverged."""
    path.write_text(json.dumps(run and run._asdict() | {"losses": run.losses.tolist()}))


def load(path: pathlib.Path) -> Run | None:
    """Read a run."""
    content = json.loads(path.read_text())
    return Run(**content | {"losses": np.array(content["losses"])}) if content else None


def total_loss(data: Set, losses: np.ndarray) -> float:
    """Return the root mean square error, or the log-loss."""
    return float(losses.mean() if data.is_class else np.sqrt(losses.mean()))


def estimate(data: Set, run: Run, base: Run | None = None) -> Estimate:
    """Return the loss of a run, or its difference to a base, with the standard error of the means of blocks of rows.

    Squared errors are linearized: the rmse has the derivative 1 / (2 rmse) with respect to their mean.
    """

    def influence(run: Run) -> np.ndarray:
        return run.losses if data.is_class else run.losses / (2 * total_loss(data, run.losses))

    mean, values = total_loss(data, run.losses), influence(run)
    if base is not None:
        mean, values = mean - total_loss(data, base.losses), values - influence(base)
    blocks = np.array([block.mean() for block in np.array_split(values, BLOCKS)])
    return Estimate(mean, float(blocks.std(ddof=1) / np.sqrt(BLOCKS)))


def best(runs: Runs, data: Set, system: str) -> Run | None:
    """Return the run of the settings with the smallest loss."""
    return min(runs.get((data.name, system), []), key=lambda run: total_loss(data, run.losses), default=None)


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *rows])


def loss_table(runs: Runs) -> str:
    """Return the losses, the differences to the peers, and the peers with a smaller loss than dyad."""
    rows = []
    for data in SETS:
        dyad = best(runs, data, "dyad")
        if dyad is None:
            continue
        own = estimate(data, dyad)
        cells, behind = [f"{own.mean:.4f} ({own.error:.4f})"], []
        for peer in PEERS:
            run = best(runs, data, peer)
            if run is None:
                cells += ["-", "-"]
                continue
            loss, difference = estimate(data, run), estimate(data, dyad, run)
            cells += [f"{loss.mean:.4f}", f"{difference.mean:+.4f} ({difference.error:.4f})"]
            if difference.mean > 0:
                behind.append(f"**{peer}**" if difference.mean > 2 * difference.error else peer)
        metric = "log-loss" if data.is_class else "rmse"
        rows.append([f"{data.name}, {metric}", f"{len(dyad.losses):,}", *cells, ", ".join(behind)])
    header = ["rows of", "number", "dyad"] + [name for peer in PEERS for name in (peer, "difference")]
    return format_table([*header, "dyad is behind"], rows)


def speed_table(runs: Runs) -> str:
    """Return rows per second and peak memory. A smaller rate or more memory of dyad than of a peer is marked."""
    rows = []
    for data in SETS:
        found = {system: best(runs, data, system) for system in SYSTEMS}
        dyad = found["dyad"]
        if dyad is None:
            continue
        rates, memory = [], []
        for run in found.values():
            if run is None:
                rates.append("-")
                memory.append("-")
                continue
            rate, is_faster, is_smaller = len(run.losses) / run.seconds, run.seconds < dyad.seconds, run.peak_bytes < dyad.peak_bytes
            rates.append(f"**{rate:,.0f}**" if is_faster else f"{rate:,.0f}")
            used = f"{run.peak_bytes / 1e6:.0f}" + (f" ({run.base_bytes / 1e6:.0f})" if run.base_bytes else "")
            memory.append(f"**{used}**" if is_smaller else used)
        rows.append([data.name, *rates, *memory])
    header = ["rows of", *(f"{system}, rows/s" for system in SYSTEMS), *(f"{system}, MB" for system in SYSTEMS)]
    return format_table(header, rows)


def settings_table(runs: Runs) -> str:
    """Return the loss of each run."""
    rows = []
    for data in SETS:
        for system in SYSTEMS:
            chosen = best(runs, data, system)
            for run in runs.get((data.name, system), []):
                loss = f"{total_loss(data, run.losses):.4f}"
                is_chosen = run is chosen and system != "dyad"
                rate = f"{len(run.losses) / run.seconds:,.0f}"
                rows.append([data.name, system, f"`{short(run.settings)}`", f"**{loss}**" if is_chosen else loss, rate])
    return format_table(["rows of", "system", "settings", "loss", "rows/s"], rows)


def behind_text(runs: Runs) -> str:
    """Return a sentence with the sets on which a peer has a smaller loss."""
    found = []
    for data in SETS:
        dyad = best(runs, data, "dyad")
        for peer in PEERS:
            run = best(runs, data, peer)
            if dyad is not None and run is not None and estimate(data, dyad, run).mean > 0:
                found.append(f"{data.name} ({peer})")
    return f"dyad is behind on {', '.join(found)}." if found else "dyad has the smallest loss on all sets."


def machine() -> str:
    """Return the processor, its load and the versions of the peers."""
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    versions = [f"{m} {importlib.metadata.version(m)}" for m in MODULES.values() if importlib.util.find_spec(m)]
    load = f"load average {os.getloadavg()[2]:.1f} of {os.cpu_count()} cores"
    return f"{model}, {load}, Python {platform.python_version()}, " + ", ".join(versions)


def generated_losses(folder: pathlib.Path) -> tuple[str, str]:
    """Return the log-losses of the true probabilities and of the best constant on the generated rows."""
    path = next(data for data in SETS if not data.path).file(folder)
    columns = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, -1))
    y, p = columns.T
    true, constant = (-np.mean(np.where(y > 0, np.log(q), np.log(1 - q))) for q in (p, y.mean()))
    return f"{true:.4f}", f"{constant:.4f}"


def write_page(runs: Runs, folder: pathlib.Path) -> str:
    """Return the page."""
    text = pathlib.Path(__file__).with_name("page.md").read_text()
    parts = {"losses": loss_table, "speed": speed_table, "settings": settings_table, "behind": behind_text}
    for name, part in parts.items():
        text = text.replace("{" + name + "}", part(runs))
    true, constant = generated_losses(folder)
    return text.replace("{machine}", machine()).replace("{true_loss}", true).replace("{constant_loss}", constant)


def parse(value: str, names: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """Return the comma-separated names; end with a usage message if one is unknown."""
    chosen = [name for name in value.split(",") if name]
    for name in chosen:
        if name not in names:
            parser.error(f"unknown name '{name}' (expected {', '.join(names)})")
    return chosen


def main() -> None:
    """Measure what is selected and missing, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated; empty: print the page of the existing runs")
    parser.add_argument("--sets", default=",".join(data.name for data in SETS), help="comma-separated")
    arguments = parser.parse_args()
    systems = parse(arguments.systems, SYSTEMS, parser)
    names = parse(arguments.sets, [data.name for data in SETS], parser)
    build = arguments.build.resolve()
    for program in ("dyad", "progressive_losses"):
        if not (build / program).is_file():
            sys.exit(f"{build} has no program {program}; `make build-bench` builds it in build/bench")
    folder = build / "one_pass"
    folder.mkdir(exist_ok=True)
    chosen = [data for data in SETS if data.name in names]
    for data in chosen:
        data.file(folder)  # exits before any measurement if a file is missing
    for data in chosen:
        for system in systems:
            if system in PEERS and not importlib.util.find_spec(MODULES[system]):
                print(f"{system} is left out: {MODULES[system]} is not installed", file=sys.stderr)
                continue
            file = peer_rows(data, folder) if system in PEERS else pathlib.Path()
            for settings in grid(system, data, namespaces(data, file)) if system in PEERS else [""]:
                path = folder / f"{prefix(data, system)}{re.sub(r'[^a-z0-9.]+', '-', short(settings))}.json"
                if path.exists() and system in PEERS:
                    continue
                run = run_dyad(build, data, folder) if system == "dyad" else run_peer(data, system, settings, file)
                store(path, run)
                text = f"{total_loss(data, run.losses):.4f} in {run.seconds:.2f} s" if run else "diverged"
                print(f"{data.name}, {system} {short(settings)}: {text}", file=sys.stderr, flush=True)
    runs: Runs = {}
    for data in SETS:
        for system in SYSTEMS:
            paths = sorted(folder.glob(f"{prefix(data, system)}*.json"))
            runs[data.name, system] = [run for run in map(load, paths) if run is not None]
    print(write_page(runs, folder), end="")


if __name__ == "__main__":
    main()
