"""Methods of the comparison on tables: dyad's command and its peers, each with default options and one thread."""

from __future__ import annotations

import importlib.util
import pathlib
import resource
import subprocess
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Task(NamedTuple):
    """Training and test rows of one table and one fold."""

    train: pd.DataFrame
    test: pd.DataFrame
    target: str
    is_class: bool

    def targets(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the targets as numbers; classes: 1 for the label that is last in sorted order."""
        y = frame[self.target]
        return np.asarray(y == max(self.train[self.target].unique()) if self.is_class else y, dtype=float)


class Prediction(NamedTuple):
    """Predicted targets or probabilities, standard deviations (None: the method has none), and processor seconds of the fit."""

    values: np.ndarray
    deviations: np.ndarray | None
    seconds: float


# Penalties of ridge regression, chosen by generalized cross-validation.
RIDGE_PENALTIES = np.logspace(-3, 4, 15)
# Ridge regression on all products is left out for tables with more features.
MAX_FEATURES_OF_PAIRS = 60
# Modules of the methods that may be missing.
MODULES = {"histogram boosting": "sklearn", "LightGBM": "lightgbm", "CatBoost": "catboost", "EBM": "interpret"}
METHODS = ["dyad", "constant", "linear ridge", "ridge on all pairs", *MODULES]


def is_installed(method: str) -> bool:
    """Return whether the library of a method is installed."""
    return method not in MODULES or importlib.util.find_spec(MODULES[method]) is not None


def fit_dyad(command: pathlib.Path, task: Task) -> Prediction:
    """Run `dyad train` and `dyad predict --std`. The time includes the start of the process and reading the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        task.train.to_csv(folder / "train.csv", index=False)
        task.test.drop(columns=task.target).to_csv(folder / "test.csv", index=False)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        train = [command, "train", folder / "train.csv", "--target", task.target, "-m", folder / "model", "--threads", "1", "--quiet", "--json"]
        subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        predict = [command, "predict", "-m", folder / "model", folder / "test.csv", "--std", "--threads", "1", "--quiet"]
        output = subprocess.run(predict, check=True, capture_output=True, text=True).stdout
    values, deviations = np.array([line.split(",") for line in output.split()], dtype=float).T
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Prediction(values, None if task.is_class else deviations, seconds)


def split_features(task: Task) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return the features of the training and the test rows and the names of the categorical columns, which have the type category."""
    train, test = task.train.drop(columns=task.target), task.test.drop(columns=task.target)
    names = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    for name in names:
        kind = pd.CategoricalDtype(sorted(train[name].dropna().unique()))
        train[name], test[name] = train[name].astype(kind), test[name].astype(kind)
    return train, test, names


def encode(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Encode features for ridge: one-hot categories, means and an indicator for missing values, clipped to six deviations."""
    frames = []
    mean, deviation = train.mean(numeric_only=True), train.std(numeric_only=True)
    for frame in (train, test):
        numeric = frame[mean.index]
        missing = numeric.isna().astype(float).add_suffix(" is missing")
        clipped = numeric.fillna(mean).clip(mean - 6 * deviation, mean + 6 * deviation, axis=1)
        frames.append(pd.get_dummies(pd.concat([clipped, missing, frame.drop(columns=mean.index)], axis=1), dtype=float))
    varying = frames[0].std() > 1e-12
    return frames[0].loc[:, varying].to_numpy(), frames[1].loc[:, varying].to_numpy()


def ridge(task: Task, method: str) -> tuple[Any, np.ndarray, np.ndarray] | None:
    """Return a linear model and its features, or None if there are too many for all products."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    train, test, _ = split_features(task)
    x, z = encode(train, test)
    last = LogisticRegression(max_iter=1000) if task.is_class else RidgeCV(RIDGE_PENALTIES)
    if method == "linear ridge":
        return make_pipeline(StandardScaler(), last), x, z
    if x.shape[1] > MAX_FEATURES_OF_PAIRS:
        return None
    return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), last), x, z


def boosting(task: Task, method: str) -> tuple[Any, Any, Any]:
    """Return a boosted model and its features. Only the seed, the number of threads and the categorical columns are set."""
    x, z, names = split_features(task)
    kind = "Classifier" if task.is_class else "Regressor"
    if method == "histogram boosting":
        from sklearn import ensemble

        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0), x, z
    if method == "LightGBM":
        import lightgbm

        return getattr(lightgbm, f"LGBM{kind}")(n_jobs=1, verbose=-1), x, z
    # CatBoost and EBM get categories as text.
    for frame in (x, z):
        for name in names:
            frame[name] = frame[name].astype(object).fillna("missing")
    if method == "CatBoost":
        import catboost

        model = getattr(catboost, f"CatBoost{kind}")(thread_count=1, cat_features=names, verbose=False, allow_writing_files=False)
        return model, x, z
    from interpret import glassbox

    return getattr(glassbox, f"ExplainableBoosting{kind}")(n_jobs=1), x, z


def fit(command: pathlib.Path, task: Task, method: str) -> Prediction | None:
    """Fit a method on the training rows and predict the test rows. Returns None if the method does not apply to the table."""
    if method == "dyad":
        return fit_dyad(command, task)
    y = task.targets(task.train)
    if method == "constant":
        return Prediction(np.full(len(task.test), y.mean()), None, 0.0)
    prepared = ridge(task, method) if "ridge" in method else boosting(task, method)
    if prepared is None:
        return None
    model, x, z = prepared
    start = time.process_time()
    model.fit(x, y.astype(int) if task.is_class else y)
    seconds = time.process_time() - start
    return Prediction(model.predict_proba(z)[:, 1] if task.is_class else model.predict(z), None, seconds)
