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

from conftest import make_rows, make_ratings
import dyad
from dyad import FactorizationClassifier, FactorizationRegressor, _core


def test_regressor_recovers_pairs_and_squares(rows):
    fresh = make_rows(1000, seed=1)
    model = FactorizationRegressor(rank=3).fit(*rows)
    assert np.sqrt(np.mean((model.predict(fresh[0]) - fresh[1]) ** 2)) < 0.34  # the noise is 0.3
    strongest = model.interactions(top=2)
    pairs = {tuple(sorted(pair)) for pair in zip(strongest["left"], strongest["right"])}
    assert pairs == {("1", "2"), ("3", "3")}
    assert strongest.set_index("left").loc["3", "coefficient"] == pytest.approx(1, abs=0.1)


def test_interactions_omit_squares_of_binary_columns():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(2, size=500), random.normal(size=500), 3 - 5 * random.integers(2, size=500)])
    y = 4 * X[:, 0] + X[:, 1] ** 2 + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=500)
    for data in (X, sp.csr_array(X), pd.DataFrame(X, columns=["0", "1", "2"])):
        found = FactorizationRegressor(rank=2, diagonal="free").fit(data, y).interactions(top=100)
        squares = set(found["left"][found["left"] == found["right"]])
        # In sparse columns, only the values 0 and 1 are recognized as binary.
        assert squares == ({"1", "2"} if sp.issparse(data) else {"1"})


def test_fit_does_not_depend_on_row_order(rows):
    X, y = rows
    permutation = np.random.default_rng(3).permutation(len(y))
    fresh, _ = make_rows(50, seed=1)
    a = FactorizationRegressor(rank=3).fit(X, y).predict(fresh)
    b = FactorizationRegressor(rank=3).fit(X[permutation], y[permutation]).predict(fresh)
    np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "float32", "list"])
def test_fit_does_not_depend_on_memory_layout(rows, layout):
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
    found = FactorizationRegressor(rank=3).fit(changed, y).predict(changed)
    np.testing.assert_allclose(found, expected, rtol=1e-3 if layout == "float32" else 1e-9)


def test_predict_std_has_nominal_coverage():
    X, y = make_rows(2000)
    fresh, truth = make_rows(4000, seed=1)
    values, deviations = FactorizationRegressor(rank=3).fit(X, y).predict(fresh, return_std=True)
    assert 0.64 < np.mean(np.abs(values - truth) < deviations) < 0.72


def table(count, seed=0):
    random = np.random.default_rng(seed)
    color = random.choice(["red", "green", "blue"], size=count)
    size = random.normal(10, 3, size=count)
    partial = np.where(random.random(count) < 0.1, np.nan, random.normal(size=count))
    y = np.where(color == "red", 2, -1) * (size - 10) + np.nan_to_num(partial) + 0.1 * random.normal(size=count)
    return pd.DataFrame({"color": color, "size": size, "partial": partial}), y


@pytest.mark.parametrize("form", ["text", "category", "arrow", "arrow dictionary"])
def test_fit_tables_with_categories_and_missing_values(form):
    X, y = table(500)
    fresh, truth = table(500, seed=1)

    def convert(frame):
        if form == "category":
            return frame.astype({"color": "category"})
        if form.startswith("arrow"):
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
            index = arrow.schema.get_field_index("color")
            return arrow.set_column(index, "color", arrow["color"].dictionary_encode()) if "dict" in form else arrow
        return frame

    model = FactorizationRegressor(rank=2).fit(convert(X), y)
    assert np.std(model.predict(convert(fresh)) - truth) < 0.3 * np.std(truth)
    assert set(model.interactions(top=1)[["left", "right"]].iloc[0]) & {"size"}
    unknown = fresh.assign(color="mauve")
    assert np.isfinite(model.predict(convert(unknown))).all()
    with pytest.raises(ValueError, match="length|feature names"):
        model.predict(convert(fresh.rename(columns={"size": "length"})))


def test_fit_sparse_rows_without_scaling():
    X, y = make_ratings(5000)
    fresh, truth = make_ratings(2000, seed=1)
    model = FactorizationRegressor(rank=4).fit(X, y)
    assert np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) < 0.75 * truth.std()
    np.testing.assert_allclose(model.predict(fresh.tocsc()), model.predict(fresh))
    np.testing.assert_allclose(model.predict(fresh.toarray()), model.predict(fresh))
    assert model.predict(fresh).min() >= 1 and model.predict(fresh).max() <= 5


@pytest.mark.parametrize("classes", [[0, 1], ["ham", "spam"], [2.0, 7.0], ["a", "b", "c"]])
def test_classifier_supports_labels_of_any_type(classes):
    X, score = make_rows(600, noise=0)
    edges = np.quantile(score, np.linspace(0, 1, len(classes) + 1)[1:-1])
    y = np.array(classes)[np.searchsorted(edges, score)]
    model = FactorizationClassifier(rank=3).fit(X, y)
    assert list(model.classes_) == classes
    assert model.score(X, y) > 0.85
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (600, len(classes))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()


def test_sampling_finds_noisy_categories(tmp_path):
    random = np.random.default_rng(0)
    users, items = random.integers(20, size=4000), random.integers(15, size=4000)
    factors = random.normal(size=(35, 2))
    noise = np.where(users < 10, 0.2, 0.8)
    y = (factors[users] * factors[20 + items]).sum(1) + noise * random.normal(size=4000)
    X = pd.DataFrame({"user": pd.Categorical(users.astype(str)), "item": pd.Categorical(items.astype(str))})
    model = FactorizationRegressor(solver="sampling", samples=60, random_state=1).fit(X, y)
    assert model.summary_["solver"] == "sampling" and model.summary_["samples"] == 60
    factor = {name: value for name, value, error in model.noise_factors(100) if error < 0.3 * value}
    quiet = np.mean([np.log(factor[f"user={u}"]) for u in range(10)])
    noisy = np.mean([np.log(factor[f"user={u}"]) for u in range(10, 20)])
    # log 4 = 1.39. 200 rows per user give a standard error of 5%, the mean of 10 users one of 2%.
    assert noisy - quiet == pytest.approx(np.log(4), abs=0.15)
    prediction, deviation = model.predict(X, return_std=True)
    assert np.mean(np.abs(y - prediction) < deviation) == pytest.approx(0.68, abs=0.05)
    model.save(tmp_path / "model.dyad")
    np.testing.assert_array_equal(dyad.load(tmp_path / "model.dyad").predict(X), prediction)
    unknown = pd.DataFrame({"user": ["new"], "item": ["1"]})
    wide = model.predict(unknown, return_std=True)[1][0]
    assert wide > deviation.max() / 2
    model.warm_start = True
    with pytest.warns(ConvergenceWarning, match="average of samples"):
        model.fit(X, y)


def test_partial_fit_continues_training():
    X, y = make_ratings(20000)
    fresh, truth = make_ratings(2000, seed=1)
    model = FactorizationRegressor(rank=2)
    losses = []
    for batch in range(5):
        rows = slice(4000 * batch, 4000 * (batch + 1))
        model.partial_fit(X[rows], y[rows])
        losses.append(np.mean((model.predict(fresh) - truth) ** 2))
    assert losses[-1] < losses[0]
    assert model.summary_["all_rows"] == 20000

    classifier = FactorizationClassifier(rank=2)
    with pytest.raises(ValueError, match="classes"):
        classifier.partial_fit(X, y > 3)
    classifier.partial_fit(X, y > 3, classes=[False, True])
    with pytest.raises(ValueError, match="y must"):
        classifier.partial_fit(X, y)


def test_warm_start_continues_training(rows):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows).fit(*rows)
    assert model.summary_["all_rows"] == 600
    assert clone(model).fit(*rows).summary_["all_rows"] == 300


@pytest.mark.parametrize(
    "change",
    [{"rank": 3}, {"solver": "newton"}, {"diagonal": "tied"}, {"max_iter": 3}, {"half_life": 50}, {"precision": "single"},
     {"random_state": 5}, {"target_range": (-90, 90)}],
)
def test_continued_training_rejects_changed_parameters(rows, change):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows)
    model.set_params(**change)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=next(iter(change))):
            train(*rows)
    assert model.summary_["all_rows"] == 300
    model.set_params(warm_start=False).fit(*rows)
    assert model.summary_["rows"] == 300


def test_continued_training_accepts_changed_runtime_parameters(rows):
    model = FactorizationRegressor(rank=2, warm_start=True).fit(*rows)
    model.set_params(n_jobs=1, verbose=0, callback=lambda *_: None, max_bytes=1e6)
    assert model.fit(*rows).summary_["all_rows"] == 600


@pytest.mark.parametrize("jobs", [None, 1, 2, -1, -2])
def test_predictions_do_not_depend_on_n_jobs(rows, jobs):
    expected = FactorizationRegressor(rank=2, n_jobs=1).fit(*rows).predict(rows[0])
    with joblib.parallel_config(n_jobs=2):
        np.testing.assert_allclose(FactorizationRegressor(rank=2, n_jobs=jobs).fit(*rows).predict(rows[0]), expected)


def test_prior_scale_shrinks_first_rows():
    X, y = make_ratings(2000)
    norms = []
    for scale in (None, 1.0, 0.01):
        model = FactorizationRegressor(rank=2, solver="kalman", prior_scale=scale).fit(X[:30], y[:30])
        norms.append(np.linalg.norm(model.predict(X) - model.predict(X).mean()))
    assert norms[0] == norms[1] > norms[2]


def test_library_rejects_invalid_prior_scales(rows):
    X, y = rows
    for scale, solver in ((-1.0, "kalman"), (np.nan, "kalman"), (2.0, "newton"), (2.0, None)):
        data = _core.Rows.dense(X)
        data.set_targets(y, [])
        settings = _core.Settings()
        settings.solver, settings.prior_scale = solver, scale
        with pytest.raises(ValueError, match="prior_scale"):
            _core.fit(data, settings)


def test_messages_name_parameters(rows):
    with pytest.raises(ValueError, match="max_iter") as raised:
        FactorizationRegressor(solver="newton", max_iter=1).fit(*rows)
    assert "passes`" not in str(raised.value)
    X, y = make_rows(3000, dim=20)
    with pytest.warns(ConvergenceWarning, match="max_bytes") as warned:
        FactorizationRegressor(rank=2, solver="newton", max_bytes=1e5).fit(X, y)
    assert not any("`memory`" in str(warning.message) for warning in warned)


def test_default_parameters_do_not_warn(rows, capsys):
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


def test_fit_with_one_weighted_class_warns(rows):
    """The warning does not state that the model is constant if predictions differ."""
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


def test_class_index_out_of_range_raises_value_error(rows):
    X, y = rows
    multiclass = FactorizationClassifier(rank=1, solver="kalman").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    binary = FactorizationClassifier(rank=1, solver="kalman").fit(X, X[:, 0] > 0)
    for call in (multiclass.interactions, multiclass.parameters, binary.interactions):
        for wrong in (7, 3, -1, 1.5, "a"):
            with pytest.raises(ValueError, match="class_index"):
                call(class_index=wrong)
    with pytest.raises(ValueError, match="class_index"):
        multiclass.interactions()
    assert len(multiclass.interactions(top=2, class_index=2)) == 2


def test_estimator_works_in_grid_search_pickle_and_joblib(rows, tmp_path):
    X, y = rows
    search = GridSearchCV(make_pipeline(StandardScaler(), FactorizationRegressor()),
                          {"factorizationregressor__rank": [1, 3]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    model = FactorizationRegressor(rank=3).fit(X, y)
    for restored in (pickle.loads(pickle.dumps(model)), joblib.load(joblib.dump(model, tmp_path / "model")[0])):
        np.testing.assert_array_equal(restored.predict(X), model.predict(X))


def test_predict_is_thread_safe(rows):
    X, y = rows
    model = FactorizationRegressor(rank=3, n_jobs=1).fit(X, y)
    expected = model.predict(X, return_std=True)
    found = joblib.Parallel(n_jobs=4, prefer="threads")(
        joblib.delayed(model.predict)(X, return_std=True) for _ in range(20)
    )
    for values, deviations in found:
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(deviations, expected[1])


def test_fit_ends_on_keyboard_interrupt():
    X, y = make_rows(400_000, dim=60)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        FactorizationRegressor(rank=20).fit(X, y)
    assert time.monotonic() - start < 5


def test_callback_receives_stages_and_may_raise(rows):
    calls = []
    FactorizationRegressor(rank=2, callback=lambda *arguments: calls.append(arguments)).fit(*rows)
    assert {stage for stage, *_ in calls} == {"pass", "multi_pass"}

    def stop(*_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        FactorizationRegressor(rank=2, callback=stop).fit(*rows)


@pytest.mark.parametrize(
    "parameters, name",
    [
        ({"rank": 0}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"solver": "sgd"}, "solver"),
        ({"diagonal": "none"}, "diagonal"),
        ({"precision": "half"}, "precision"),
        ({"max_iter": 0}, "max_iter"),
        ({"half_life": -1}, "half_life"),
        ({"max_bytes": -1}, "max_bytes"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"prior_scale": 0.0, "solver": "kalman"}, "prior_scale"),
        ({"prior_scale": np.inf, "solver": "kalman"}, "prior_scale"),
        ({"prior_scale": 2.0}, "solver"),
        ({"random_state": "x"}, "random_state"),
        ({"target_range": (5, 1)}, "target_range"),
        ({"target_range": (0, 1, 2)}, "target_range"),
        ({"target_range": (0,)}, "target_range"),
        ({"target_range": 5}, "target_range"),
        ({"target_range": ("a", "b")}, "target_range"),
        ({"target_range": (0, np.nan)}, "target_range"),
    ],
)
def test_invalid_parameters_raise_value_error(rows, parameters, name):
    with pytest.raises(ValueError, match=name):
        FactorizationRegressor(**parameters).fit(*rows)


def test_invalid_rows_raise_value_error(rows):
    X, y = rows
    model = FactorizationRegressor(rank=2)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(X > 2, np.inf, X), y)
    for solver in ("auto", "kalman"):
        with pytest.raises(ValueError, match="NaN"):
            FactorizationRegressor(solver=solver).fit(sp.csr_matrix(np.where(X > 2, np.nan, X)), y)
    with pytest.raises(ValueError, match="X has 300, y 299"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="(?i)sample.weight"):
        model.fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"1e\+100"):
        model.fit(np.where(X > 2, 1e100, X), y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="column names"):
        model.fit(pd.DataFrame(X[:, :2], columns=["a", "a"]), y)
    with pytest.raises(ValueError, match="'when'"):
        model.fit(pd.DataFrame({"when": pd.date_range("2026-01-01", periods=len(y))}), y)


def test_predict_empty_sparse_rows_is_constant():
    X, y = make_ratings(500)
    model = FactorizationRegressor(rank=2).fit(X, y)
    assert np.ptp(model.predict(sp.csr_matrix((3, X.shape[1])))) == 0
