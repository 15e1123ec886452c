"""Compares dyad with ridge or logistic regression on the data sets of scikit-learn: scikit_learn_sets.py [SET...]

Prints a table in Markdown: mean loss of both methods over the folds, the paired difference with its standard error, and processor seconds of
one fit of dyad. Regression: root mean square error divided by the deviation of the targets. Classes: log-loss. The package dyad must be installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from dyad import FactorizationClassifier, FactorizationRegressor
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FRIEDMAN = {"friedman1": datasets.make_friedman1, "friedman2": datasets.make_friedman2, "friedman3": datasets.make_friedman3}
# Noise of the targets as a share of their deviation.
FRIEDMAN_NOISE = 0.3
# Rows of Friedman's problems.
FRIEDMAN_ROWS = 500
# Training rows of the small subsets of diabetes, and the number of random subsets.
SMALL_TRAINING_ROWS = {"diabetes, 30 rows": 30, "diabetes, 60 rows": 60}
SMALL_SUBSETS = 20


def read_set(name: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return features, targets and whether the targets are classes."""
    if name in FRIEDMAN:
        x, y = FRIEDMAN[name](n_samples=FRIEDMAN_ROWS, random_state=1)
        return x, y + FRIEDMAN_NOISE * y.std() * np.random.default_rng(1).normal(size=len(y)), False
    if name.startswith("diabetes"):
        x, y = datasets.load_diabetes(return_X_y=True)
        return x, y, False
    load = {"breast_cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}[name]
    x, y = load(return_X_y=True)
    return x, y == 0, True


def splits(name: str, x: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of each fold: ten folds, or random subsets with few training rows."""
    if name in SMALL_TRAINING_ROWS:
        return ShuffleSplit(SMALL_SUBSETS, train_size=SMALL_TRAINING_ROWS[name], random_state=1).split(x)
    return KFold(10, shuffle=True, random_state=1).split(x)


def loss(model: Any, x: np.ndarray, y: np.ndarray, is_class: bool, scale: float) -> float:
    """Return the loss of a fitted model."""
    if is_class:
        return float(log_loss(y, model.predict_proba(x), labels=[False, True]))
    return float(np.sqrt(np.mean((model.predict(x) - y) ** 2)) / scale)


def main() -> None:
    """Print one row per data set."""
    names = sys.argv[1:] or [*FRIEDMAN, "diabetes", *SMALL_TRAINING_ROWS, "breast_cancer", "wine"]
    print("| set | dyad | linear | difference | CPU seconds |\n|---|---|---|---|---|")
    for name in names:
        x, y, is_class = read_set(name)
        linear = LogisticRegression(max_iter=1000) if is_class else RidgeCV(np.logspace(-3, 4, 15))
        results = []
        start = time.process_time()
        seconds = 0.0
        for train, test in splits(name, x):
            start = time.process_time()
            own = (FactorizationClassifier if is_class else FactorizationRegressor)(n_jobs=1).fit(x[train], y[train])
            seconds += time.process_time() - start
            peer = make_pipeline(StandardScaler(), linear).fit(x[train], y[train])
            results.append([loss(model, x[test], y[test], is_class, y.std()) for model in (own, peer)])
        values = np.array(results)
        difference = values[:, 0] - values[:, 1]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        print(f"| {name} | {values[:, 0].mean():.4f} | {values[:, 1].mean():.4f} | {difference.mean():+.4f} ({error:.4f}) | {seconds / len(values):.2f} |")


if __name__ == "__main__":
    main()
