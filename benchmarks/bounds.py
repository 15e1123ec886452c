"""The kernels beside their bounds, as a table: bounds.py BUILD. Medians of five repetitions, all in one run."""

import json
import subprocess
import sys

# What bounds a kernel, and how often that has to be done for it.
BOUNDS = {
    "moment_sums<float>": ("two_bare_products<float>", 1),
    "moment_sums<double>": ("two_bare_products<double>", 1),
    "newton_product<double>": ("two_bare_products<double>", 1.5),
    "prediction": ("read_factors", 1),
    "variational_sweep<double>": ("read_posterior", 1),
    "kalman_sparse<float>": ("touch_sparse<float>", 1),
    "kalman_sparse<double>": ("touch_sparse<double>", 1),
    "kalman_dense<float>": ("touch_dense<float>", 1),
    "kalman_dense<double>": ("touch_dense<double>", 1),
    "text_to_rows": ("plain_read", 1),
    "model_load": ("plain_read", 1),
}


def measured(build, program):
    words = [f"{build}/{program}", "--benchmark_repetitions=5", "--benchmark_min_time=0.1", "--benchmark_format=json"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return {
        one["run_name"].replace("/real_time", ""): (one["real_time"], one.get("items_per_second") or one["bytes_per_second"])
        for one in json.loads(said)["benchmarks"]
        if one.get("aggregate_name") == "median"
    }


def seconds_of_bound(times, name, per_second):
    kernel, _, arguments = name.partition("/")
    bound, often = BOUNDS[kernel]
    arguments = "ratings_model" if kernel == "model_load" else arguments.split("/free")[0]
    other = times.get(f"{bound}/{arguments}")
    return None if other is None else per_second * often / other[1]


def main(build):
    print("| kernel | per second | of its bound | 2 threads beside 1 |")
    print("|---|---|---|---|")
    for program in ("kernels", "parsing"):
        times = measured(build, program)
        for name, (seconds, per_second) in times.items():
            if name.split("/")[0] not in BOUNDS:
                continue
            share = seconds_of_bound(times, name, per_second)
            one = times.get(name.replace("threads:2", "threads:1")) if "threads:2" in name else None
            rate = f"{per_second / 1e6:.2f}M rows" if program == "kernels" else f"{per_second / 1e6:.0f} MB"
            print(f"| {name} | {rate} | {share:.0%} | {f'{one[0] / seconds:.2f}' if one else ''} |")


if __name__ == "__main__":
    main(sys.argv[1])
