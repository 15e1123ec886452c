"""The systems of the comparison, with their default settings or those that their documentation recommends.

`runs(data)` returns one list of points per run (seed or learning rate), with a point for each amount of work, or an empty list if the system
does not support the data.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import tempfile
import time
import warnings
from typing import NamedTuple

import numpy as np

import dyad

RANK = 8
RUNS = 3


class Point(NamedTuple):
    work: str  # amount of work, such as "10 passes"
    seconds: float  # of processor time
    loss: float  # on the test rows


def timed(function):
    """Call the function; return the processor seconds of all threads and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def probability_or_value(model, X, is_classification):
    return model.predict_proba(X)[:, 1] if is_classification else model.predict(X)


class Dyad:
    """dyad with one solver; "auto" selects the solver automatically. `works` are numbers of passes, or of samples; None: the default."""

    def __init__(self, name, solver, works=(None,), unit="passes"):
        self.name, self.solver, self.works, self.unit = name, solver, works, unit

    def runs(self, data):
        if self.solver in ("variational", "sampling", "newton") and data.is_dense == (self.solver != "newton"):
            return []  # variational and sampling are for sparse rows, newton for dense rows
        if self.solver == "moment" and not data.is_dense:
            return []  # the moments of one-hot categories carry no information on pairs
        Estimator = dyad.FactorizationClassifier if data.is_classification else dyad.FactorizationRegressor
        X = data.X.toarray() if data.is_dense else data.X
        X_test = data.X_test.toarray() if data.is_dense else data.X_test

        def run(seed, work):
            parameter = "max_iter" if self.unit == "passes" else self.unit
            model = Estimator(RANK, solver=self.solver, random_state=seed, **({} if work is None else {parameter: work}))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # dyad recommends another solver
                seconds, _ = timed(lambda: model.fit(X, data.y))
            loss = data.loss(probability_or_value(model, X_test, data.is_classification))
            return Point("default" if work is None else f"{work} {self.unit}", seconds, loss)

        return [[run(seed, work) for work in self.works] for seed in range(1, RUNS + 1)]


class MyFM:
    """Gibbs sampling, with one group of priors per field, as its manual recommends. `is_ordered`: ordered probit for ratings."""

    def __init__(self, is_ordered=False):
        self.name, self.is_ordered = "myFM, ordered probit" if is_ordered else "myFM", is_ordered
        if is_ordered:
            self.works = (512,)

    works = (10, 30, 100, 512)

    def runs(self, data):
        import myfm

        if self.is_ordered and (data.is_classification or data.is_dense):
            return []
        Estimator = myfm.MyFMClassifier if data.is_classification else myfm.MyFMRegressor
        y = data.y > 0 if data.is_classification else data.y
        groups = data.fields if len(data.fields) > 1 and data.fields[0] > 0 else None
        if self.is_ordered:
            Estimator = myfm.MyFMOrderedProbit
            levels, y = np.unique(data.y, return_inverse=True)

        def run(seed, samples):
            model = Estimator(rank=RANK, random_seed=seed)
            with contextlib.redirect_stderr(io.StringIO()):
                seconds, _ = timed(
                    lambda: model.fit(data.X, y, n_iter=samples, n_kept_samples=samples // 2 + 1, group_shapes=groups)
                )
            if self.is_ordered:
                prediction = model.predict_proba(data.X_test) @ levels
            else:
                prediction = (model.predict_proba if data.is_classification else model.predict)(data.X_test)
            return Point(f"{samples} samples", seconds, data.loss(prediction))

        return [[run(seed, samples) for samples in self.works] for seed in range(1, RUNS + 1)]


def vw_text(data, X, y):
    """Yield lines of Vowpal Wabbit's format, with one namespace (a, b, c, ...) per field."""
    field_of = np.repeat(np.arange(len(data.fields)), data.fields)
    offsets, columns, values = X.indptr, X.indices, X.data
    for i in range(X.shape[0]):
        words, last = [f"{y[i]:g}"], -1
        for e in range(offsets[i], offsets[i + 1]):
            field = int(field_of[columns[e]])
            if field != last:
                words.append(f"|{chr(97 + field)}")
                last = field
            words.append(f"{columns[e]}:{values[e]:g}" if values[e] != 1 else f"{columns[e]}")
        yield " ".join(words) + "\n"


class VowpalWabbit:
    """Low-rank interactions between fields (--lrq), or all pairs (-q) if there is a single field."""

    name = "Vowpal Wabbit"
    works = (1, 3, 10)
    rates = (0.02, 0.05, 0.1, 0.25, 0.5)

    def options(self, data):
        names = [chr(97 + field) for field, size in enumerate(data.fields) if size > 0]
        low_rank = [f"--lrq {a}{b}{RANK}" for i, a in enumerate(names) for b in names[i + 1 :]]
        loss = "--loss_function logistic --link logistic" if data.is_classification else ""
        return f"{loss} -b 22 --quiet " + (" ".join(low_rank) or f"-q {2 * names[0]}")

    def runs(self, data):
        import vowpalwabbit

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for part, X, y in (("train", data.X, data.y), ("test", data.X_test, data.y_test)):
                (folder / part).write_text("".join(vw_text(data, X, y)))

            def run(rate, passes):
                multiple_passes = f"--passes {passes} --cache_file {folder}/cache -k --holdout_off" if passes > 1 else ""
                options = f"-d {folder}/train -f {folder}/model -l {rate} {self.options(data)} {multiple_passes}"
                seconds, _ = timed(lambda: vowpalwabbit.Workspace(options).finish())
                vowpalwabbit.Workspace(f"-d {folder}/test -t -i {folder}/model -p {folder}/out --quiet").finish()
                loss = data.loss(np.loadtxt(folder / "out"))
                return Point(f"{passes} passes", seconds, loss)

            return [[run(rate, passes) for passes in self.works] for rate in self.rates]


class River:
    """Stochastic gradient descent in one pass; river is a library for online learning."""

    name = "river"
    works = (1,)
    rates = (0.003, 0.01, 0.03, 0.1, 0.3)
    max_entries = 8  # mean non-zeros per row; with more, its loops over pairs take minutes

    def runs(self, data):
        if data.X.nnz > self.max_entries * data.X.shape[0]:
            return []
        from river import facto, optim

        Estimator = facto.FMClassifier if data.is_classification else facto.FMRegressor
        y = data.y > 0 if data.is_classification else data.y

        def dicts(X):
            for i in range(X.shape[0]):
                entries = slice(X.indptr[i], X.indptr[i + 1])
                yield {f"{j}": float(x) for j, x in zip(X.indices[entries], X.data[entries])}

        rows, rows_test = list(dicts(data.X)), list(dicts(data.X_test))

        def run(rate):
            model = Estimator(
                n_factors=RANK, weight_optimizer=optim.SGD(rate), latent_optimizer=optim.SGD(rate), seed=1
            )
            learn = lambda: [model.learn_one(x, target) for x, target in zip(rows, y)]  # noqa: E731
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    seconds, _ = timed(learn)
                    if data.is_classification:
                        predictions = [model.predict_proba_one(x).get(True, 0.5) for x in rows_test]
                    else:
                        predictions = [model.predict_one(x) for x in rows_test]
                except OverflowError:  # diverged
                    return None
            loss = data.loss(np.array(predictions))
            return [Point("1 pass", seconds, loss if np.isfinite(loss) else np.inf)]

        return [points for rate in self.rates if (points := run(rate)) is not None]


class ScikitLearn:
    """A scikit-learn estimator; runs differ in the seed only. `supports(data)` is true for data sets to run on."""

    works = (1,)

    def __init__(self, name, make, supports):
        self.name, self.make, self.supports = name, make, supports

    def runs(self, data):
        if not self.supports(data):
            return []
        X = data.X.toarray() if data.is_dense else data.X
        X_test = data.X_test.toarray() if data.is_dense else data.X_test

        def run(seed):
            model = self.make(data, seed)
            seconds, _ = timed(lambda: model.fit(X, data.y))
            return [Point("fit", seconds, data.loss(probability_or_value(model, X_test, data.is_classification)))]

        return [run(seed) for seed in range(RUNS)]


def linear(data, seed):
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression(max_iter=200) if data.is_classification else Ridge(random_state=seed)


def pairs(data, seed):
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(2), RidgeCV(np.logspace(-3, 3, 7)))


def trees(data, seed):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


DYAD_SYSTEMS = [
    Dyad("dyad", "auto"),
    Dyad("dyad, one pass", "kalman"),
    Dyad("dyad, sampling", "sampling", (3, 10, 30, 100, 300), "samples"),
    Dyad("dyad, Gauss-Newton", "newton"),
    Dyad("dyad, variational", "variational"),
    Dyad("dyad, moments", "moment"),
]
PEER_SYSTEMS = {
    "myfm": [MyFM(), MyFM(is_ordered=True)],
    "vowpalwabbit": [VowpalWabbit()],
    "river": [River()],
    "sklearn": [
        ScikitLearn("scikit-learn, linear", linear, lambda data: True),
        ScikitLearn("scikit-learn, all pairs", pairs, lambda data: data.is_dense),
        ScikitLearn("scikit-learn, trees", trees, lambda data: data.is_dense),
    ],
}
