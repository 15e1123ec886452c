"""Data sets of the comparison: generated ones, and real ones from the folder DYAD_DATA if it is set."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


@dataclass
class DataSet:
    name: str
    is_classification: bool
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray
    # Numbers of columns of the one-hot categories. One entry: numeric columns. [0, d]: sparse columns without known fields.
    fields: list[int]

    @property
    def is_dense(self) -> bool:
        return len(self.fields) == 1

    def loss(self, prediction: np.ndarray) -> float:
        """Return the rmse of the predictions, clipped to the range of the targets, or the log loss of classes."""
        if self.is_classification:
            p = np.clip(np.asarray(prediction, float), 1e-6, 1 - 1e-6)
            return float(-np.mean(np.where(self.y_test > 0, np.log(p), np.log(1 - p))))
        clipped = np.clip(np.asarray(prediction, float), self.y.min(), self.y.max())
        return float(np.sqrt(np.mean((clipped - self.y_test) ** 2)))


def split(name, X, y, fields, is_classification=False, train_fraction=0.9):
    """Split the rows, in their order, into training and test rows."""
    cut = int(train_fraction * X.shape[0])
    X = sp.csr_matrix(X)
    return DataSet(name, is_classification, X[:cut], y[:cut], X[cut:], y[cut:], fields)


def one_hot(codes, sizes):
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = codes.shape[0]
    columns = (codes + starts).astype(np.int32)
    offsets = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
    return sp.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=(rows, int(sum(sizes))))


def planted(rows=6000, d=30, rank=3):
    """y = b + w'x + x'Mx with M of rank 3, eigenvalues of both signs, and noise of standard deviation 0.1."""
    random = np.random.default_rng(1)
    X = random.normal(size=(rows, d))
    U, _ = np.linalg.qr(random.normal(size=(d, rank)))
    y = 1 + X @ random.normal(size=d) / np.sqrt(d) + ((X @ U) ** 2) @ np.array([1, -1, 0.5])
    return split("planted", X, y + 0.1 * random.normal(size=rows), [d])


def ratings(rows=100_000, users=5000, films=2000, rank=4):
    """Ratings from 1 to 5 of films by users, with a skewed distribution of both."""
    random = np.random.default_rng(2)
    u = (users * random.random(rows) ** 2).astype(int)
    f = (films * random.random(rows) ** 2).astype(int)
    A, B = random.normal(size=(users, rank)), random.normal(size=(films, rank))
    y = 3.5 + 0.4 * random.normal(size=users)[u] + 0.4 * random.normal(size=films)[f]
    y += 0.25 * np.sum(A[u] * B[f], axis=1) + 0.7 * random.normal(size=rows)
    return split("ratings", one_hot(np.stack([u, f], 1), [users, films]), np.clip(np.round(y), 1, 5), [users, films])


def tabular(rows=10_000, d=12):
    """Numeric columns; the target depends on products, a square and a piecewise linear term."""
    random = np.random.default_rng(3)
    X = random.normal(size=(rows, d))
    y = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.5 * X[:, 4] ** 2 + X[:, 5] + np.maximum(X[:, 6], 0)
    return split("tabular", X, y + 0.3 * random.normal(size=rows), [d])


def clicks(rows=60_000):
    """Six categorical columns and a binary target."""
    random = np.random.default_rng(4)
    sizes = [1000, 500, 200, 50, 20, 10]
    codes = np.stack([(size * random.random(rows) ** 2).astype(int) for size in sizes], 1)
    factors = [0.5 * random.normal(size=(size, 3)) for size in sizes]
    score = -1 + sum(0.5 * random.normal(size=size)[codes[:, i]] for i, size in enumerate(sizes))
    for i in range(6):
        for j in range(i):
            score = score + np.sum(factors[i][codes[:, i]] * factors[j][codes[:, j]], 1)
    y = np.where(random.random(rows) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    return split("clicks", one_hot(codes, sizes), y, sizes, is_classification=True)


def libsvm(name, folder, file, is_classification, zero_based):
    X, y = load_svmlight_file(str(folder / f"{file}.train.svm"), zero_based=zero_based)
    X_test, y_test = load_svmlight_file(str(folder / f"{file}.test.svm"), n_features=X.shape[1], zero_based=zero_based)
    return DataSet(name, is_classification, X, y, X_test, y_test, [0, X.shape[1]])


def table(name, folder):
    """Read a csv table. Features are standardized and clipped at 6 standard deviations, targets are standardized."""

    def read(part):
        with open(folder / f"{name}.{part}.csv") as file:
            header = file.readline().strip().split(",")
            values = np.loadtxt(file, delimiter=",")
        target = header.index("y")
        return np.delete(values, target, 1), values[:, target]

    (X, y), (X_test, y_test) = read("train"), read("test")
    mean, deviation = X.mean(0), np.where(X.std(0) > 0, X.std(0), 1)
    scaled = [sp.csr_matrix(np.clip((part - mean) / deviation, -6, 6)) for part in (X, X_test)]
    return DataSet(name, False, scaled[0], (y - y.mean()) / y.std(), scaled[1], (y_test - y.mean()) / y.std(), [X.shape[1]])


def ratings_or_classes(name, folder, target, categories, numbers=()):
    """Read csv files of categories and numbers.

    Categories are one-hot; those without training rows are omitted. Numbers are sign(x) log(1 + |x|), standardized; missing values are 0.
    """
    frames = {part: pd.read_csv(folder / f"{name}.{part}.csv") for part in ("train", "test")}
    levels = [{value: code for code, value in enumerate(frames["train"][column].unique())} for column in categories]

    def encode(frame):
        codes = np.stack([frame[column].map(known).fillna(-1) for column, known in zip(categories, levels)], 1).astype(int)
        starts = np.concatenate([[0], np.cumsum([len(known) for known in levels])])
        rows, fields = np.nonzero(codes >= 0)
        columns = starts[fields] + codes[rows, fields]
        return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(frame), int(starts[-1])))

    def scale(frame):
        values = frame[list(numbers)].to_numpy(float)
        return np.sign(values) * np.log1p(np.abs(values))

    parts = {part: encode(frame) for part, frame in frames.items()}
    if numbers:
        known = scale(frames["train"])
        mean, deviation = np.nanmean(known, 0), np.nanstd(known, 0)
        for part, frame in frames.items():
            parts[part] = sp.hstack([parts[part], np.nan_to_num((scale(frame) - mean) / deviation)], format="csr")
    y, y_test = (frames[part][target].to_numpy(float) for part in ("train", "test"))
    is_classification = set(y) == {0.0, 1.0}
    if is_classification:
        y, y_test = 2 * y - 1, 2 * y_test - 1
    fields = [len(known) for known in levels] + ([len(numbers)] if numbers else [])
    return DataSet(name, is_classification, parts["train"], y, parts["test"], y_test, fields)


def real():
    folder = os.environ.get("DYAD_DATA")
    if not folder:
        return []
    root = pathlib.Path(folder)
    films = libsvm("MovieTweetings", root / "ratings", "movietweetings", False, zero_based=True)
    users = int(films.X.indices[films.X.indptr[:-1]].max()) + 1
    films.fields = [users, films.X.shape[1] - users]
    tables = [table(name, root / "tabular") for name in ("concrete", "bike", "kin40k")]
    counts, names = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
    categories = [
        ratings_or_classes("ml-small", root / "ratings", "rating", ["user", "movie"]),
        ratings_or_classes("lastfm-tags", root / "contexts", "used", ["user", "artist", "tag"]),
        ratings_or_classes("criteo-sample", root / "contexts", "click", names, counts),
    ]
    return [films, *categories, *tables, libsvm("a9a", root / "binary", "a9a", True, zero_based=False)]


def stream():
    """Return a title and the rows (user, film, rating) of MovieTweetings in time order or, without DYAD_DATA, of generated ratings."""
    folder = os.environ.get("DYAD_DATA")
    if folder:
        with open(pathlib.Path(folder) / "ratings" / "movietweetings.stream.csv") as file:
            next(file)
            return "MovieTweetings in time order", [tuple(line.split(",")[:3]) for line in file]
    data = ratings()
    pairs = data.X.indices.reshape(-1, 2)
    return "generated ratings", [(f"{u}", f"{f}", f"{y:g}") for (u, f), y in zip(pairs, data.y)]


def all_sets():
    return [planted(), ratings(), tabular(), clicks(), *real()]
