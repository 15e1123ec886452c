"""Compares one pass over wide rows at several numbers of threads: wide.py BUILD [ROWS]

The rows are those of clicks.py: 39 columns of names with up to a million names each. BUILD is the folder of the command `dyad`.
Prints a section in Markdown. Runs alternate between the settings, and the fastest of RUNS is shown, because other processes on the
machine can only slow a run down.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

ROWS = 400_000
RUNS = 2
RANK = 8
THREADS = (1, 2)
COLUMNS = 39
LABEL_COLUMN = "click"
# Vowpal Wabbit with a low-rank term for each of the 741 pairs of columns reads a tenth of the rows, because of its time.
LOW_RANK_SHARE = 10

VOWPAL_WABBIT = """
import json, resource, sys, time
import vowpalwabbit
start = time.perf_counter()
model = vowpalwabbit.Workspace(sys.argv[1])
loss = model.get_sum_loss() / max(1.0, model.get_weighted_examples())
model.finish()
usage = resource.getrusage(resource.RUSAGE_SELF)
status = open("/proc/self/status").read()
peak = next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
print(json.dumps({"loss": loss, "wall": time.perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime, "peak": peak}))
"""


XLEARN = """
import json, resource, sys, time
import xlearn
start = time.perf_counter()
model = xlearn.create_fm()
model.setTrain(sys.argv[1])
model.fit({"task": "binary", "lr": float(sys.argv[4]), "k": int(sys.argv[3]), "epoch": 1, "nthread": int(sys.argv[2])}, sys.argv[5])
wall = time.perf_counter() - start
usage = resource.getrusage(resource.RUSAGE_SELF)
status = open("/proc/self/status").read()
peak = next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
sys.stdout.flush()
print(json.dumps({"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": peak}))
"""
# The line that xLearn prints after an epoch: its number, the training log-loss, and seconds.
XLEARN_EPOCH = re.compile(r"\s1\s+([0-9.]+)\s+[0-9.]+\s*$", re.MULTILINE)
XLEARN_RATES = ("0.02", "0.2")


class Run(NamedTuple):
    """One pass."""

    loss: float  # progressive log-loss
    wall: float  # seconds
    cpu: float  # seconds of all processors
    peak: int  # bytes


class System(NamedTuple):
    """A command and the number of rows that it reads."""

    name: str
    settings: str
    rows: int
    command: list[str]
    stored: list[pathlib.Path]  # files that the command writes; removed before it runs


def write_rows(folder: pathlib.Path, rows: int) -> tuple[pathlib.Path, pathlib.Path, pathlib.Path]:
    """Write the rows as csv, libsvm and in the format of Vowpal Wabbit, unless the files exist. Return their paths."""
    table, text, sparse = folder / f"wide.{rows}.csv", folder / f"wide.{rows}.vw", folder / f"wide.{rows}.svm"
    if not table.exists():
        part = table.with_suffix(".part")
        with open(part, "w") as file:
            script = pathlib.Path(__file__).with_name("clicks.py")
            subprocess.run([sys.executable, script, str(rows)], stdout=file, check=True)
        part.rename(table)
    if not text.exists():
        part = text.with_suffix(".part")
        indices: dict[tuple[int, str], int] = {}
        with open(table) as source, open(part, "w") as file, open(sparse, "w") as sparse_file:
            names = source.readline().rstrip("\n").split(",")
            label = names.index(LABEL_COLUMN)
            columns = [names.index(f"C{c}") for c in range(1, COLUMNS + 1)]
            for line in source:
                cells = line.rstrip("\n").split(",")
                features = " ".join(f"|{letter(i)} {cells[c]}" for i, c in enumerate(columns))
                is_click = float(cells[label]) > 0
                file.write(f"{1 if is_click else -1} {features}\n")
                row = sorted(indices.setdefault((c, cells[c]), len(indices) + 1) for c in columns)
                sparse_file.write(f"{int(is_click)} {' '.join(f'{index}:1' for index in row)}\n")
        part.rename(text)
    return table, text, sparse


def count_names(folder: pathlib.Path, rows: int) -> int:
    """Return the number of names in the rows, which is the largest index of the libsvm file."""
    with open(folder / f"wide.{rows}.svm") as file:
        return max(int(line.rsplit(" ", 1)[1].split(":")[0]) for line in file)


def letter(column: int) -> str:
    """Return the namespace of a column in the format of Vowpal Wabbit."""
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[column]


def first_rows(path: pathlib.Path, rows: int) -> pathlib.Path:
    """Return a file with the first rows of a file in the format of Vowpal Wabbit."""
    short = path.with_name(f"wide.first-{rows}.vw")
    if not short.exists():
        with open(path) as source, open(short, "w") as file:
            file.writelines(line for _, line in zip(range(rows), source))
    return short


def systems(build: pathlib.Path, folder: pathlib.Path, rows: int) -> list[System]:
    """Return what is measured."""
    table, text, sparse = write_rows(folder, rows)
    found = []
    for threads in THREADS:
        options = f"--passes 1 --solver kalman --rank {RANK} --threads {threads}"
        names = ",".join(f"C{c}" for c in range(1, COLUMNS + 1))
        data = [str(table), "--target", LABEL_COLUMN, "--categorical", names, "--ignore", "probability"]
        command = [str(build / "dyad"), "train", *data, "-m", str(folder / "wide.dyad"), *options.split(), "--json", "--quiet"]
        found.append(System("dyad", f"--rank {RANK} --threads {threads}", rows, command, []))
    if importlib.util.find_spec("xlearn"):
        for threads in THREADS:
            for rate in XLEARN_RATES:
                arguments = [sparse, threads, RANK, rate, folder / "wide.xlearn"]
                command = [sys.executable, "-c", XLEARN, *map(str, arguments)]
                stored = [sparse.with_name(sparse.name + ".bin")]
                found.append(System("xLearn", f"k {RANK}, lr {rate}, {threads} threads", rows, command, stored))
    else:
        print("xLearn is left out: xlearn is not installed", file=sys.stderr)
    if not importlib.util.find_spec("vowpalwabbit"):
        print("Vowpal Wabbit is left out: vowpalwabbit is not installed", file=sys.stderr)
        return found
    base = "-b 22 --quiet --loss_function logistic"
    pairs = " ".join(f"--lrq {letter(i)}{letter(j)}{RANK}" for i in range(COLUMNS) for j in range(i + 1, COLUMNS))
    cache = folder / "wide.cache"
    low_rank_rows = max(1, rows // LOW_RANK_SHARE)
    for settings, options, count, path, stored in (
        ("--coin", "--coin", rows, text, []),
        ("--coin, writes its cache", f"--coin -k --cache_file {cache}", rows, text, [cache]),
        ("--coin, reads its cache", f"--coin --cache_file {cache}", rows, text, []),
        (f"--lrq (all pairs, rank {RANK}) -l 0.02", f"{pairs} -l 0.02", low_rank_rows, first_rows(text, low_rank_rows), []),
        (f"--coin --lrq (all pairs, rank {RANK})", f"--coin {pairs}", low_rank_rows, first_rows(text, low_rank_rows), []),
    ):
        arguments = f"-d {path} {base} {options}"
        found.append(System("Vowpal Wabbit", settings, count, [sys.executable, "-c", VOWPAL_WABBIT, arguments], stored))
    return found


def run(system: System) -> Run:
    """Run a command once."""
    for path in system.stored:
        path.unlink(missing_ok=True)
    before, start = os.times(), time.perf_counter()
    environment = os.environ | {"USER": os.environ.get("USER", "user")}  # xLearn ends without it
    done = subprocess.run(system.command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    wall, after = time.perf_counter() - start, os.times()
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if system.name == "xLearn":
        epoch = XLEARN_EPOCH.search(done.stdout)
        return Run(float(epoch[1]) if epoch else float("nan"), result["wall"], result["cpu"], result["peak"])
    if system.name != "dyad":
        return Run(result["loss"], result["wall"], result["cpu"], result["peak"])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(result["progressive"]["logloss"], wall, cpu, result["peak_rss_bytes"])


def main() -> None:
    """Measure, and print the section."""
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: wide.py BUILD [ROWS]")
    build = pathlib.Path(sys.argv[1]).resolve()
    rows = int(sys.argv[2]) if len(sys.argv) == 3 else ROWS
    folder = build / "one_pass"
    folder.mkdir(exist_ok=True)
    measured = systems(build, folder, rows)
    fastest: dict[int, Run] = {}
    for number in range(RUNS):
        for i, system in enumerate(measured):
            if number > 0 and system.rows < rows:
                continue
            result = run(system)
            print(f"{system.name} {system.settings}: {result}", file=sys.stderr, flush=True)
            if i not in fastest or result.wall < fastest[i].wall:
                fastest[i] = result
    print(pathlib.Path(__file__).with_name("wide.md").read_text().format(rows=f"{rows:,}", names=f"{count_names(folder, rows):,}", runs=RUNS))
    print("| system | settings | rows | log-loss | rows/s | rows/s of processor time | memory, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for i, system in enumerate(measured):
        result = fastest[i]
        rates = [f"{system.rows / seconds:,.0f}" for seconds in (result.wall, result.cpu)]
        cells = [system.name, f"`{system.settings}`", f"{system.rows:,}", f"{result.loss:.4f}", *rates, f"{result.peak / 1e6:.0f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
