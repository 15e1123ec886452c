"""Names, coefficients, standard errors, counts and importances of fitted models."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from conftest import make_ratings, make_rows
from dyad import FactorizationClassifier, FactorizationRegressor, load


def mixed_table(count=1500, seed=0):
    random = np.random.default_rng(seed)
    color = random.choice(["red", "green", "blue"], size=count, p=[0.5, 0.3, 0.2])
    size = np.where(random.random(count) < 0.1, np.nan, random.normal(10, 3, size=count))
    age = random.exponential(size=count)
    y = np.where(color == "red", 2, -1) * np.nan_to_num(size - 10) + age**2 + 0.1 * random.normal(size=count)
    return pd.DataFrame({"color": color, "size": size, "age": age}), y


def second_order(model, rows):
    """Return the prediction from intercept_, coef_ and interactions."""
    names = list(model.get_feature_names_out())
    terms = model.interactions(top=10**6)
    left, right = ([names.index(name) for name in terms[side]] for side in ("left", "right"))
    return model.intercept_ + rows @ model.coef_ + (rows[:, left] * rows[:, right]) @ terms["coefficient"]


def test_terms_add_up_to_predictions(rows):
    X, y = rows
    model = FactorizationRegressor(rank=3).fit(X, y)
    np.testing.assert_allclose(second_order(model, X), model.predict(X), rtol=1e-8)
    noisy = y + 3 * np.random.default_rng(1).normal(size=len(y)) > 3
    classifier = FactorizationClassifier(rank=2, solver="newton", n_jobs=1).fit(X, noisy)
    np.testing.assert_allclose(second_order(classifier, X), classifier.decision_function(X), rtol=1e-6, atol=1e-6)
    sparse, ratings = make_ratings(1000)
    model = FactorizationRegressor(rank=2, solver="newton", target_range=(-50, 50)).fit(sparse, ratings)
    found = second_order(model, sparse.toarray()[:, : len(model.coef_)])
    np.testing.assert_allclose(found, model.predict(sparse), rtol=1e-6)


def test_frames_have_names_and_counts():
    X, y = mixed_table()
    model = FactorizationRegressor(rank=2, solver="newton", n_jobs=1).fit(X, y)
    names = model.get_feature_names_out().tolist()
    assert set(names) == {"size", "age", "size is missing", "color=red", "color=green", "color=blue"}
    assert model.coef_.shape == (len(names),) and np.isfinite(model.intercept_)
    weights = model.weights()
    assert (np.diff(np.abs(weights["effect"])) <= 0).all()
    by_name = weights.set_index("feature")
    np.testing.assert_allclose(by_name.loc[names, "coefficient"], model.coef_)
    assert by_name.loc["color=red", "count"] == (X["color"] == "red").sum()
    assert by_name.loc["size is missing", "count"] == X["size"].isna().sum()
    assert by_name.loc["size", "count"] == X["size"].notna().sum()
    factors = model.factors()
    assert list(factors["feature"]) == names
    spectrum = np.sort(np.abs(model.parameters()["spectrum"]))[::-1]
    np.testing.assert_allclose((factors[["factor_1", "factor_2"]] ** 2).sum(), spectrum)
    pairs = model.interactions(top=3)
    assert set(pairs.columns) >= {"left", "right", "coefficient", "effect", "standard_error", "left_count", "right_count"}
    for frame in (weights, pairs):
        assert (frame["standard_error"] > 0).all()
    assert (factors[["standard_error_1", "standard_error_2"]] > 0).all().all()
    assert len(model.weights(top=2)) == 2
    doubled = model.partial_fit(X, y).weights().set_index("feature")
    np.testing.assert_array_equal(doubled["count"], 2 * by_name.loc[doubled.index, "count"])


def test_standard_errors_have_the_scale_of_least_squares():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.5 * random.normal(size=600)
    model = FactorizationRegressor(rank=1, solver="newton", n_jobs=1, diagonal="zero").fit(X, y)
    expected = 0.5 / np.sqrt(600)  # uncorrelated terms of variance 1
    error = model.weights().set_index("feature").loc["0", "standard_error"]
    assert error == pytest.approx(expected, rel=0.3)
    # Each of the 2 rank = 2 entries of the factors determines the product, with the variance given the other entry. The
    # sum of the two variances exceeds that of the product by a factor of up to 2.
    assert 0.7 * expected < model.interactions(top=1).loc[0, "standard_error"] < 1.5 * np.sqrt(2) * expected


def test_importances_are_variance_shares():
    random = np.random.default_rng(0)
    X = random.normal(size=(2500, 4))
    # Variances: 4 for column 0, 1 for the pair (1, 2), 2 for the square of column 3.
    y = 2 * X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.01 * random.normal(size=2500)
    expected = np.array([4, 0.5, 0.5, 2]) / 7
    for model in (FactorizationRegressor(rank=2), FactorizationRegressor(), FactorizationRegressor(rank=2, solver="kalman")):
        np.testing.assert_allclose(model.fit(X, y).feature_importances_, expected, atol=0.04)
    sparse = FactorizationRegressor(rank=2, solver="newton", n_jobs=1).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.feature_importances_, expected, atol=0.04)


def test_importances_of_categories_and_missing_values_match_brute_force():
    X, y = mixed_table()
    model = FactorizationRegressor(rank=2, solver="newton", n_jobs=1).fit(X, y)
    random = np.random.default_rng(1)

    def predict(resampled):  # independent columns
        return model.predict(pd.DataFrame(resampled))

    columns = {name: X[name].to_numpy()[random.integers(len(X), size=4000)] for name in X}
    base = predict(columns)
    total, first = {}, {}
    for name in X:
        other = X[name].to_numpy()[random.integers(len(X), size=4000)]
        # Jansen's estimators of the total variance, with pairs, and of the variance of a column alone.
        total[name] = np.mean((base - predict({**columns, name: other})) ** 2) / 2
        fresh = {key: X[key].to_numpy()[random.integers(len(X), size=4000)] for key in X}
        first[name] = np.var(base) - np.mean((base - predict({**fresh, name: columns[name]})) ** 2) / 2
    expected = np.array([(total[name] + first[name]) / 2 for name in X])
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), atol=0.05)


def test_importances_sum_to_one_for_all_models():
    X, y = mixed_table(600)
    for model in (FactorizationRegressor(), FactorizationRegressor(rank=2), FactorizationClassifier(rank=2)):
        target = y if isinstance(model, FactorizationRegressor) else np.digitize(y, [-1, 3])
        shares = model.fit(X, target).feature_importances_
        assert shares.shape == (3,) and shares.min() >= 0 and shares.sum() == pytest.approx(1)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).feature_importances_, shares)


def test_attributes_of_loaded_models(tmp_path):
    X, y = mixed_table(600)
    model = FactorizationRegressor(rank=2).fit(X, y)
    model.save(tmp_path / "model.dyad")
    loaded = load(tmp_path / "model.dyad")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.weights()["count"].isna().all()
    assert not hasattr(loaded, "feature_importances_") and not hasattr(loaded, "n_iter_")
    assert model.n_iter_ == model.summary_["passes"] >= 1
    anova = FactorizationRegressor().fit(X, y)
    anova.save(tmp_path / "model.dyad")
    np.testing.assert_allclose(load(tmp_path / "model.dyad").feature_importances_, anova.feature_importances_)


def test_anova_models_name_the_alternative():
    X, y = mixed_table(600)
    model = FactorizationRegressor().fit(X, y)
    assert model.summary_["solver"] == "anova"
    for call in (lambda: model.coef_, model.weights, model.factors, model.parameters):
        with pytest.raises(AttributeError, match="effects"):
            call()
    assert np.isfinite(model.intercept_)
    assert (model.interactions(top=1)["standard_error"] > 0).all()
    assert "color=red" in model.get_feature_names_out()
    assert not hasattr(model, "coef_")


def test_classes_have_one_row_of_coefficients_each():
    X, score = make_rows(600, noise=0)
    model = FactorizationClassifier(rank=1, solver="newton", n_jobs=1).fit(X, np.digitize(score, [0, 5]))
    assert model.coef_.shape[1] == 5 and len(model.coef_) == len(model.intercept_) == len(model._models)
    assert len(model.weights(class_index=2)) == 5
