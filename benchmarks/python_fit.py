"""Compares `fit` in Python with the C++ library on the same rows: python_fit.py BUILD.

Medians of five alternating runs, each after a warm-up run. Memory is the peak above that of the data.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp

import dyad

ROWS, USERS, FILMS, RUNS = 1_000_000, 20_000, 5_000, 5


def ratings():
    random = np.random.default_rng(0)
    user = random.integers(USERS, size=ROWS, dtype=np.int32)
    film = random.integers(FILMS, size=ROWS, dtype=np.int32)
    y = 3 + random.normal(size=USERS)[user] + random.normal(size=FILMS)[film] + 0.5 * random.normal(size=ROWS)
    columns = np.empty(2 * ROWS, np.int32)
    columns[::2] = user
    columns[1::2] = USERS + film
    offsets = np.arange(0, 2 * ROWS + 1, 2, dtype=np.int32)
    return sp.csr_matrix((np.ones(2 * ROWS), columns, offsets), shape=(ROWS, USERS + FILMS)), y


def save(folder, X, y):
    """Write the arrays that fit_in_memory reads."""
    arrays = {"offsets": X.indptr, "indices": X.indices, "values": X.data, "targets": y, "columns": [X.shape[1]]}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def memory(name):
    """Return a value of /proc/self/status in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))


def fit(X, y, solver):
    """Return the seconds, the peak memory above that before the fit, and the size of the model in bytes."""
    model = dyad.FactorizationRegressor(rank=8, solver=solver)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets VmHWM
    before = memory("VmRSS")
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, memory("VmHWM") - before, len(model._models[0])


def main(build):
    X, y = ratings()
    print(f"fit on {ROWS:,} rows with 2 non-zeros, rank 8; seconds: median of {RUNS} runs and range")
    print(f"{'solver':8} {'library':>22} {'Python':>22} {'ratio':>6} {'memory above data':>18} {'model':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save(folder, X, y)
        for solver in ("kalman", "auto"):
            library, python = [], []
            for _ in range(RUNS):
                output = subprocess.run(
                    [build / "fit_in_memory", folder, solver, "2"], check=True, capture_output=True, text=True
                )
                library.append(float(output.stdout.split()[-1]))
                python.append([fit(X, y, solver) for _ in range(2)][-1])
            seconds = [run[0] for run in python]
            texts = [f"{statistics.median(runs):.3f} ({min(runs):.3f} to {max(runs):.3f})" for runs in (library, seconds)]
            ratio = statistics.median(seconds) / statistics.median(library)
            above = statistics.median(run[1] for run in python) / 1e6
            print(f"{solver:8} {texts[0]:>22} {texts[1]:>22} {ratio:6.2f} {above:15.0f} MB {python[0][2] / 1e6:5.0f} MB")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
