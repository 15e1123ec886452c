"""Runs a peer once over a file in a process of its own: run_peer.py OPTIONS, a JSON object with the fields of Options.

Prints a JSON object: processor seconds of learning (parsing included, all threads), peak memory, memory before learning, and the loss of each row, which
is predicted before it is learned. Predictions of numbers are clipped to the range of the targets.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

import numpy as np


class Options(NamedTuple):
    """A run of a peer."""

    system: str  # "Vowpal Wabbit" or "river"
    file: str
    is_class: bool
    settings: str  # options of Vowpal Wabbit, or the learning rate of river
    rank: int


def vowpal_wabbit(options: Options) -> tuple[np.ndarray, float]:
    """Return the predictions and the seconds."""
    import vowpalwabbit

    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "predictions"
        classes = "--loss_function logistic --link logistic" if options.is_class else ""
        command = f"-d {options.file} -p {output} -b 22 --quiet {classes} {options.settings}"
        start = time.process_time()
        vowpalwabbit.Workspace(command).finish()
        seconds = time.process_time() - start
        return np.loadtxt(output), seconds


def river(options: Options) -> tuple[np.ndarray, float]:
    """Return the predictions and the seconds."""
    from river import facto, optim

    rate = float(options.settings)
    make = facto.FMClassifier if options.is_class else facto.FMRegressor
    model = make(n_factors=options.rank, weight_optimizer=optim.SGD(rate), latent_optimizer=optim.SGD(rate), seed=1)
    predictions = []
    start = time.process_time()
    with open(options.file) as file:
        for line in file:
            label, *parts = line.split(" |")
            row = {}
            for part in parts:
                namespace, *features = part.split()
                for feature in features:
                    name, _, value = feature.partition(":")
                    row[f"{namespace}^{name}"] = float(value or 1)
            y = float(label)
            if options.is_class:
                predictions.append(model.predict_proba_one(row).get(True, 0.5))
                model.learn_one(row, y > 0)
            else:
                predictions.append(model.predict_one(row))
                model.learn_one(row, y)
    seconds = time.process_time() - start
    return np.array(predictions), seconds


def row_losses(options: Options, predictions: np.ndarray) -> np.ndarray:
    """Return log-losses or squared errors; infinity where the prediction is not a number."""
    with open(options.file) as file:
        y = np.array([float(line.split(" ", 1)[0]) for line in file])
    if options.is_class:
        p = np.clip(predictions, 1e-15, 1 - 1e-15)
        losses = -np.log(np.where(y > 0, p, 1 - p))
    else:
        losses = (np.clip(predictions, y.min(), y.max()) - y) ** 2
    return np.where(np.isfinite(losses), losses, np.inf)


def peak_bytes() -> int:
    """Return the peak memory of this process. `getrusage` would include that of the process that started it."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def main() -> None:
    """Run, and print the result."""
    options = Options(**json.loads(sys.argv[1]))
    __import__("vowpalwabbit" if options.system == "Vowpal Wabbit" else "river.facto")
    base = peak_bytes()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            predictions, seconds = (vowpal_wabbit if options.system == "Vowpal Wabbit" else river)(options)
        except OverflowError:  # river has diverged
            print(json.dumps({"diverged": True}))
            return
        peak = peak_bytes()
        losses = row_losses(options, predictions)
    result = {"seconds": seconds, "peak_bytes": peak, "base_bytes": base, "losses": losses.tolist()}
    print(json.dumps(result if np.all(np.isfinite(losses)) else {"diverged": True}))


if __name__ == "__main__":
    main()
