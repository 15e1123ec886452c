import os
import pickle
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import made, ratings
from dyad import FactorizationClassifier, FactorizationRegressor


def test_learns_pairs_and_squares(rows):
    fresh = made(1000, seed=1)
    model = FactorizationRegressor(rank=3).fit(*rows)
    assert np.sqrt(np.mean((model.predict(fresh[0]) - fresh[1]) ** 2)) < 0.34  # of which 0.3 is noise
    strongest = model.interactions(top=2)
    pairs = {tuple(sorted(pair)) for pair in zip(strongest["left"], strongest["right"])}
    assert pairs == {("1", "2"), ("3", "3")}
    assert strongest.set_index("left").loc["3", "coefficient"] == pytest.approx(1, abs=0.1)


def test_two_valued_columns_have_no_square():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(2, size=500), random.normal(size=500), 3 - 5 * random.integers(2, size=500)])
    y = 4 * X[:, 0] + X[:, 1] ** 2 + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=500)
    for data in (X, sp.csr_array(X), pd.DataFrame(X, columns=["0", "1", "2"])):
        found = FactorizationRegressor(rank=2, diagonal="free").fit(data, y).interactions(top=100)
        squares = set(found["left"][found["left"] == found["right"]])
        # Of sparse columns, only values of 0 and 1 are recognized.
        assert squares == ({"1", "2"} if sp.issparse(data) else {"1"})


def test_order_of_rows_does_not_matter(rows):
    X, y = rows
    turned = np.random.default_rng(3).permutation(len(y))
    fresh, _ = made(50, seed=1)
    a = FactorizationRegressor(rank=3).fit(X, y).predict(fresh)
    b = FactorizationRegressor(rank=3).fit(X[turned], y[turned]).predict(fresh)
    np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "float32", "list"])
def test_layouts_do_not_matter(rows, layout):
    X, y = rows
    expected = FactorizationRegressor(rank=3).fit(X, y).predict(X)
    wide = np.empty((len(y), 10))
    wide[:, ::2] = X
    changed = {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": wide[:, ::2],
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[layout]
    got = FactorizationRegressor(rank=3).fit(changed, y).predict(changed)
    np.testing.assert_allclose(got, expected, rtol=1e-3 if layout == "float32" else 1e-9)


def test_error_bars_cover():
    X, y = made(2000)
    fresh, truth = made(4000, seed=1)
    values, deviations = FactorizationRegressor(rank=3).fit(X, y).predict(fresh, return_std=True)
    assert 0.64 < np.mean(np.abs(values - truth) < deviations) < 0.72


def table(count, seed=0):
    random = np.random.default_rng(seed)
    colour = random.choice(["red", "green", "blue"], size=count)
    size = random.normal(10, 3, size=count)
    gappy = np.where(random.random(count) < 0.1, np.nan, random.normal(size=count))
    y = np.where(colour == "red", 2, -1) * (size - 10) + np.nan_to_num(gappy) + 0.1 * random.normal(size=count)
    return pd.DataFrame({"colour": colour, "size": size, "gappy": gappy}), y


@pytest.mark.parametrize("form", ["text", "category", "arrow", "arrow dictionary"])
def test_tables_with_categories_and_gaps(form):
    X, y = table(500)
    fresh, truth = table(500, seed=1)

    def formed(frame):
        if form == "category":
            return frame.astype({"colour": "category"})
        if form.startswith("arrow"):
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
            place = arrow.schema.get_field_index("colour")
            return arrow.set_column(place, "colour", arrow["colour"].dictionary_encode()) if "dict" in form else arrow
        return frame

    model = FactorizationRegressor(rank=2).fit(formed(X), y)
    assert np.std(model.predict(formed(fresh)) - truth) < 0.3 * np.std(truth)
    assert set(model.interactions(top=1)[["left", "right"]].iloc[0]) & {"size"}
    unknown = fresh.assign(colour="mauve")
    assert np.isfinite(model.predict(formed(unknown))).all()
    with pytest.raises(ValueError, match="(?s)feature names|column"):
        model.predict(formed(fresh.rename(columns={"size": "length"})))


def test_sparse_rows_are_taken_as_they_are():
    X, y = ratings(5000)
    fresh, truth = ratings(2000, seed=1)
    model = FactorizationRegressor(rank=4).fit(X, y)
    assert np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) < 0.75 * truth.std()
    np.testing.assert_allclose(model.predict(fresh.tocsc()), model.predict(fresh))
    np.testing.assert_allclose(model.predict(fresh.toarray()), model.predict(fresh))
    assert model.predict(fresh).min() >= 1 and model.predict(fresh).max() <= 5


@pytest.mark.parametrize("classes", [[0, 1], ["ham", "spam"], [2.0, 7.0], ["a", "b", "c"]])
def test_classes_of_any_name(classes):
    X, score = made(600, noise=0)
    edges = np.quantile(score, np.linspace(0, 1, len(classes) + 1)[1:-1])
    y = np.array(classes)[np.searchsorted(edges, score)]
    model = FactorizationClassifier(rank=3).fit(X, y)
    assert list(model.classes_) == classes
    assert model.score(X, y) > 0.85
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (600, len(classes))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()


def test_partial_fit_goes_on():
    X, y = ratings(20000)
    fresh, truth = ratings(2000, seed=1)
    model = FactorizationRegressor(rank=2)
    losses = []
    for part in range(5):
        here = slice(4000 * part, 4000 * (part + 1))
        model.partial_fit(X[here], y[here])
        losses.append(np.mean((model.predict(fresh) - truth) ** 2))
    assert losses[-1] < losses[0]
    assert model.summary_["all_rows"] == 20000

    classifier = FactorizationClassifier(rank=2)
    with pytest.raises(ValueError, match="classes"):
        classifier.partial_fit(X, y > 3)
    classifier.partial_fit(X, y > 3, classes=[False, True])
    with pytest.raises(ValueError, match="class"):
        classifier.partial_fit(X, y)


def test_warm_start_goes_on(rows):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows).fit(*rows)
    assert model.summary_["all_rows"] == 600
    assert clone(model).fit(*rows).summary_["all_rows"] == 300


@pytest.mark.parametrize(
    "change",
    [{"rank": 3}, {"solver": "newton"}, {"diagonal": "tied"}, {"passes": 3}, {"half_life": 50}, {"precision": "single"},
     {"random_state": 5}, {"range": (-90, 90)}],
)
def test_a_model_that_goes_on_keeps_its_parameters(rows, change):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows)
    model.set_params(**change)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=next(iter(change))):
            train(*rows)
    assert model.summary_["all_rows"] == 300
    model.set_params(warm_start=False).fit(*rows)
    assert model.summary_["rows"] == 300


def test_free_parameters_may_change_while_training_goes_on(rows):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows)
    model.set_params(n_threads=1, verbose=0, callback=lambda *_: None, memory=1e6)
    assert model.fit(*rows).summary_["all_rows"] == 600


def test_defaults_do_not_warn(rows, capsys):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FactorizationRegressor().fit(X, y)
        FactorizationClassifier().fit(X, y > 3)
        FactorizationRegressor().fit(X[:, :1], y)
        FactorizationRegressor(verbose=1).fit(X, y)
        FactorizationClassifier(verbose=1).fit(X, y > 3)
    printed = capsys.readouterr().out
    assert printed.count("dyad: ") > 4
    assert "nan" not in printed
    with pytest.warns(ConvergenceWarning, match="rank"):
        FactorizationRegressor(rank=9).fit(X, y)


def test_weights_that_leave_one_class(rows):
    """A warning does not claim a constant model if predictions vary."""
    X, y = rows
    y = (y > 3).astype(int)
    for solver in ("auto", "kalman"):
        model = FactorizationClassifier(rank=2, solver=solver)
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            model.fit(X, y, sample_weight=y.astype(float))
        messages = [str(warning.message) for warning in raised]
        assert any("class" in message for message in messages)
        if np.ptp(model.predict_proba(X)[:, 1]) > 0:
            assert not any("constant" in message for message in messages), messages
        assert (model.predict(X) == 1).all()


def test_wrong_class_indices_are_named(rows):
    X, y = rows
    several = FactorizationClassifier(rank=1, solver="kalman").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    two = FactorizationClassifier(rank=1, solver="kalman").fit(X, X[:, 0] > 0)
    for call in (several.interactions, several.parameters, two.interactions):
        for wrong in (7, 3, -1, 1.5, "a"):
            with pytest.raises(ValueError, match="class_index"):
                call(class_index=wrong)
    with pytest.raises(ValueError, match="class_index"):
        several.interactions()
    assert len(several.interactions(top=2, class_index=2)) == 2


def test_works_with_the_rest_of_scikit_learn(rows, tmp_path):
    X, y = rows
    search = GridSearchCV(make_pipeline(StandardScaler(), FactorizationRegressor()),
                          {"factorizationregressor__rank": [1, 3]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    model = FactorizationRegressor(rank=3).fit(X, y)
    for back in (pickle.loads(pickle.dumps(model)), joblib.load(joblib.dump(model, tmp_path / "model")[0])):
        np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_many_threads_may_predict_at_once(rows):
    X, y = rows
    model = FactorizationRegressor(rank=3, n_threads=1).fit(X, y)
    expected = model.predict(X, return_std=True)
    got = joblib.Parallel(n_jobs=4, prefer="threads")(
        joblib.delayed(model.predict)(X, return_std=True) for _ in range(20)
    )
    for values, deviations in got:
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(deviations, expected[1])


def test_interruption_ends_fit_soon():
    X, y = made(400_000, dim=60)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        FactorizationRegressor(rank=20).fit(X, y)
    assert time.monotonic() - start < 5


def test_a_callback_hears_and_may_stop(rows):
    heard = []
    FactorizationRegressor(rank=2, callback=lambda *said: heard.append(said)).fit(*rows)
    assert {said[0] for said in heard} == {"pass", "refine"}

    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        FactorizationRegressor(rank=2, callback=stop).fit(*rows)


@pytest.mark.parametrize(
    "settings, word",
    [
        ({"rank": 0}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"solver": "sgd"}, "solver"),
        ({"diagonal": "none"}, "diagonal"),
        ({"precision": "half"}, "precision"),
        ({"passes": 0}, "passes"),
        ({"half_life": -1}, "half_life"),
        ({"memory": -1}, "memory"),
        ({"n_threads": 0}, "n_threads"),
        ({"random_state": "x"}, "random_state"),
        ({"range": (5, 1)}, "range"),
        ({"range": (0, 1, 2)}, "range"),
        ({"range": (0,)}, "range"),
        ({"range": 5}, "range"),
        ({"range": ("a", "b")}, "range"),
        ({"range": (0, np.nan)}, "range"),
    ],
)
def test_wrong_settings_are_named(rows, settings, word):
    with pytest.raises(ValueError, match=word):
        FactorizationRegressor(**settings).fit(*rows)


def test_wrong_rows_are_named(rows):
    X, y = rows
    model = FactorizationRegressor(rank=2)
    with pytest.raises(NotFittedError):
        model.predict(X)
    for wrong in (np.where(X > 2, np.nan, X), np.where(X > 2, np.inf, X)):
        with pytest.raises(ValueError, match="NaN|infinity"):
            model.fit(wrong, y)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="(?i)sample.weight"):
        model.fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="1e70"):
        model.fit(np.where(X > 2, 1e100, X), y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="different names|unique column names"):
        model.fit(pd.DataFrame(X[:, :2], columns=["a", "a"]), y)
    with pytest.raises(ValueError, match="'when'"):
        model.fit(pd.DataFrame({"when": pd.date_range("2026-01-01", periods=len(y))}), y)


def test_an_empty_sparse_matrix_predicts_the_intercept():
    X, y = ratings(500)
    model = FactorizationRegressor(rank=2).fit(X, y)
    assert np.ptp(model.predict(sp.csr_matrix((3, X.shape[1])))) == 0
