"""Measures the startup time and size of the command, and its peak memory for rows from a pipe: process.py DYAD"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 21
COLUMNS = 10


def milliseconds(command):
    """Return the median and the range of the run time, as text."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(1e3 * (time.perf_counter() - start))
    return f"{statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})"


def train_from_pipe(dyad, rows, folder):
    """Return the number of rows, the peak memory in bytes, and the rows per second."""
    simulate = [dyad, "simulate", "gfm", "--dim", str(COLUMNS), "--rank", "2", "--rows", str(rows), "--format", "csv", "--quiet"]
    train = [dyad, "train", "-", "--format", "csv", "--target", "y", "-m", folder / "model", "--json", "--quiet"]
    simulation = subprocess.Popen([*simulate, "--output", "-"], stdout=subprocess.PIPE)
    output = subprocess.run(train, check=True, stdin=simulation.stdout, capture_output=True)
    simulation.wait()
    summary = json.loads(output.stdout)
    return summary["rows"], summary["peak_rss_bytes"], summary["rows"] / summary["seconds"]


def main(dyad):
    print(f"startup: --version {milliseconds([dyad, '--version'])}; --help {milliseconds([dyad, '--help'])}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["strip", "-o", folder / "stripped", dyad], check=True)
        print(f"stripped binary: {os.path.getsize(folder / 'stripped') / 1e6:.2f} MB")
        print("peak memory and speed for rows from a pipe (csv, one pass):")
        for rows in (100_000, 1_000_000, 4_000_000):
            count, peak, rate = train_from_pipe(dyad, rows, folder)
            print(f"{count:>12,} rows {peak / 1e6:8.1f} MB {rate:12,.0f} rows per second")


if __name__ == "__main__":
    main(sys.argv[1])
