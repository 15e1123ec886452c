"""Compares the kernels of two builds in alternating runs: compare_kernels.py BEFORE AFTER [FILTER] prints the ratios of their times."""

import json
import statistics
import subprocess
import sys

RUNS = 9


def times(build, program, pattern):
    command = [f"{build}/{program}", f"--benchmark_filter={pattern}", "--benchmark_min_time=0.05", "--benchmark_format=json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {run["name"]: run["real_time"] for run in json.loads(output)["benchmarks"]} if output.strip() else {}


def main(before, after, pattern="."):
    print(f"{'kernel':58} {'before':>12} {'after':>12} {'ratio':>7}   medians of {RUNS} alternating runs, ns (text and model files: ms); range of the ratio")
    for program in ("kernels", "parsing"):
        runs = [(times(before, program, pattern), times(after, program, pattern)) for _ in range(RUNS)]
        for name in runs[0][1]:
            if name not in runs[0][0]:
                print(f"{name:58} {'':>12} {statistics.median(run[1][name] for run in runs):12.0f}     new")
                continue
            old, new = ([run[side][name] for run in runs] for side in (0, 1))
            ratios = [n / o for o, n in zip(old, new)]
            mark = "  slower" if min(ratios) > 1.05 else "  faster" if max(ratios) < 0.95 else ""
            print(
                f"{name:58} {statistics.median(old):12.0f} {statistics.median(new):12.0f} "
                f"{statistics.median(ratios):7.2f}   {min(ratios):.2f} to {max(ratios):.2f}{mark}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
