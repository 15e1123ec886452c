"""Computes the rows per second of `dyad train` for 1 to 64 cores from the time of each stage on one thread.

    thread_scaling.py BUILD FILE ROWS [OPTION...]

Runs `dyad train FILE --threads 1 OPTION...` under `perf record`, assigns the samples to the stages by the names of the functions, and
prints a table in Markdown. With c_s processor seconds per row in stage s, T cores train at most

    min(T / sum of all c_s, 1 / largest c_s of a stage that uses one thread)

rows per second: all threads take part in the stages that can be divided, and a stage that cannot be divided is never faster than one
thread. The memory bandwidth that the cores share is left out.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
import time

CORES = (1, 2, 4, 8, 16, 32, 64)
# The first pattern that matches the name of a function, in this order. Functions of no stage, such as memory copies and page
# faults, are distributed over all stages in proportion to their times.
STAGES = {
    "read": r"LineReader|ByteStream|inflate|ZSTD|HUF_|copy_folio|_copy_to_iter|filemap|adler",
    "parse": r"TableEncoder|RowScanner|parse_lines|parse_libsvm|parse_number|RowEncoder|Dictionary|is_missing|Scaling::apply|introsort|"
    r"insertion_sort|from_chars|KeyedHash|parse_csv|LineScanner|Target::encode|find_hashed",
    "append": r"TableMerger|append_rows|update_values|encode_sparse|densify|encode_category|group_of|RowReader",
    "learn": r"dyad::|libm|exp|log",
}
SERIAL = ("read", "append", "learn")


def stage_shares(build: pathlib.Path, arguments: list[str]) -> tuple[dict[str, float], float]:
    """Return the share of each stage in the samples, and the processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        samples = pathlib.Path(folder) / "perf.data"
        model = pathlib.Path(folder) / "model.dyad"
        command = [str(build / "dyad"), "train", *arguments, "--threads", "1", "--quiet", "-m", str(model)]
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        subprocess.run(["perf", "record", "-q", "-o", str(samples), *command], check=True, stdout=subprocess.DEVNULL)
        elapsed = time.clock_gettime(time.CLOCK_MONOTONIC) - before
        report = ["perf", "report", "-i", str(samples), "--stdio", "--sort", "symbol", "--show-total-period"]
        text = subprocess.run(report, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    nanoseconds = dict.fromkeys(STAGES, 0.0)
    total = 0.0
    for percent, period, name in re.findall(r"^\s*([0-9.]+)%\s+([0-9]+)\s+(.*)$", text, re.MULTILINE):
        total += float(period)
        stage = next((s for s, pattern in STAGES.items() if re.search(pattern, name)), None)
        if stage:
            nanoseconds[stage] += float(period)
    known = sum(nanoseconds.values())
    seconds = min(total * 1e-9, elapsed)  # the period of the event task-clock is in nanoseconds
    return {stage: value / known for stage, value in nanoseconds.items()}, seconds


def main() -> None:
    """Measure, and print the table."""
    if len(sys.argv) < 4:
        sys.exit("usage: thread_scaling.py BUILD FILE ROWS [OPTION...]")
    rows = int(sys.argv[3])
    shares, seconds = stage_shares(pathlib.Path(sys.argv[1]).resolve(), [sys.argv[2], *sys.argv[4:]])
    per_row = {stage: share * seconds / rows for stage, share in shares.items()}
    print("Nanoseconds per row: " + ", ".join(f"{stage} {1e9 * value:.0f}" for stage, value in per_row.items()) + "\n")
    print("| cores | rows/s | limit |")
    print("| --- | --- | --- |")
    slowest = max(SERIAL, key=lambda stage: per_row[stage])
    for cores in CORES:
        shared, serial = cores / sum(per_row.values()), 1 / per_row[slowest]
        print(f"| {cores} | {min(shared, serial):,.0f} | {'all stages' if shared < serial else slowest} |")


if __name__ == "__main__":
    main()
