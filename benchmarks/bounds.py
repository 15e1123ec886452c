"""Compares the kernels with simpler operations that estimate lower bounds: bounds.py BUILD prints medians of five repetitions."""

import json
import subprocess
import sys

# By kernel: the benchmark that estimates a lower bound on its time, and the factor by which the time of the benchmark is multiplied.
LOWER_BOUNDS = {
    "moment_sums<float>": ("two_matrix_products<float>", 1),
    "moment_sums<double>": ("two_matrix_products<double>", 1),
    "newton_product<double>": ("two_matrix_products<double>", 1.5),
    "prediction": ("read_factors", 1),
    "variational_sweep<double>": ("read_posterior", 1),
    "kalman_sparse<float>": ("read_write_sparse<float>", 1),
    "kalman_sparse<double>": ("read_write_sparse<double>", 1),
    "kalman_dense<float>": ("read_write_dense<float>", 1),
    "kalman_dense<double>": ("read_write_dense<double>", 1),
    "kalman_wide<float>": ("read_write_wide<float>", 1),
    "kalman_wide<double>": ("read_write_wide<double>", 1),
    "text_to_rows": ("plain_read", 1),
    "model_load": ("plain_read", 1),
}


def measure(build, program):
    """Return the time and the rate (rows or bytes per second) of each benchmark."""
    command = [f"{build}/{program}", "--benchmark_repetitions=5", "--benchmark_min_time=0.1", "--benchmark_format=json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        run["run_name"].replace("/process_time", "").replace("/real_time", ""): (run["real_time"], run.get("items_per_second") or run["bytes_per_second"])
        for run in json.loads(output)["benchmarks"]
        if run.get("aggregate_name") == "median"
    }


def fraction_of_bound(results, name, rate):
    """Return the rate of the kernel divided by that of its bound, or None if the bound was not measured."""
    kernel, _, arguments = name.partition("/")
    bound, factor = LOWER_BOUNDS[kernel]
    arguments = "ratings_model" if kernel == "model_load" else arguments.split("/free")[0]
    arguments = arguments.split("/threads")[0] if kernel == "text_to_rows" else arguments
    bound_result = results.get(f"{bound}/{arguments}")
    return None if bound_result is None else rate * factor / bound_result[1]


def main(build):
    print("| kernel | per second | fraction of the bound | speedup with 2 threads |")
    print("|---|---|---|---|")
    for program in ("kernels", "wide_rows", "parsing"):
        results = measure(build, program)
        for name, (time, rate) in results.items():
            if name.split("/")[0] not in LOWER_BOUNDS:
                continue
            fraction = fraction_of_bound(results, name, rate)
            one_thread = results.get(name.replace("threads:2", "threads:1")) if "threads:2" in name else None
            rate_text = f"{rate / 1e6:.0f} MB" if program == "parsing" else f"{rate / 1e6:.2f}M rows"
            speedup = f"{one_thread[0] / time:.2f}" if one_thread else ""
            print(f"| {name} | {rate_text} | {fraction:.0%} | {speedup} |")


if __name__ == "__main__":
    main(sys.argv[1])
