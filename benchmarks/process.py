"""What the command itself takes: process.py DYAD measures its start, its size, and memory against the rows of a pipe."""

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


def milliseconds(words):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        times.append(1e3 * (time.perf_counter() - start))
    return f"{statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})"


def peak_bytes(dyad, rows, folder):
    make = [dyad, "simulate", "gfm", "--dim", str(COLUMNS), "--rank", "2", "--rows", str(rows), "--format", "csv", "--quiet"]
    learn = [dyad, "train", "-", "--format", "csv", "--target", "y", "-m", folder / "model", "--json", "--quiet"]
    made = subprocess.Popen([*make, "--output", "-"], stdout=subprocess.PIPE)
    said = subprocess.run(learn, check=True, stdin=made.stdout, capture_output=True)
    made.wait()
    summary = json.loads(said.stdout)
    return summary["rows"], summary["peak_rss_bytes"], summary["rows"] / summary["seconds"]


def main(dyad):
    print(f"start of the command: {milliseconds([dyad, '--version'])}; --help: {milliseconds([dyad, '--help'])}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["strip", "-o", folder / "stripped", dyad], check=True)
        print(f"the stripped binary: {os.path.getsize(folder / 'stripped') / 1e6:.2f} MB")
        print("memory against the rows of a pipe (csv, one pass):")
        for rows in (100_000, 1_000_000, 4_000_000):
            done, peak, rate = peak_bytes(dyad, rows, folder)
            print(f"{done:>12,} rows {peak / 1e6:8.1f} MB {rate:12,.0f} rows per second")


if __name__ == "__main__":
    main(sys.argv[1])
