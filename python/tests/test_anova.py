"""Models of the solver 'anova' in Python."""

import math

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest

from dyad import FactorizationClassifier, FactorizationRegressor, load


def make_table(count=600, seed=0):
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": random.uniform(-2, 2, count),
            "b": random.uniform(-2, 2, count),
            "c": random.choice(["red", "green", "blue"], count),
        }
    )
    mean = np.sin(2 * table["a"]) + table["a"] * table["b"] + table["c"].map({"red": 0.0, "green": 1.0, "blue": -1.0})
    table.loc[random.random(count) < 0.05, "b"] = math.nan
    return table, mean + random.normal(0, 0.1, count)


@pytest.fixture(scope="module")
def model():
    return FactorizationRegressor().fit(*make_table())


def test_tables_are_fitted_by_anova(model):
    assert model.summary_["solver"] == "anova"
    table, target = make_table(seed=1)
    complete = table["b"].notna()
    assert model.score(table[complete], target[complete]) > 0.97


def test_explicit_rank_selects_low_rank_model():
    table, target = make_table()
    model = FactorizationRegressor(rank=2).fit(table, target)
    assert model.summary_["solver"] != "anova"
    assert len(model.parameters()["spectrum"]) > 0
    with pytest.raises(AttributeError, match="interactions"):
        model.effects()


@pytest.mark.parametrize("method", ["parameters", "plot_spectrum", "plot_convergence"])
def test_low_rank_attributes_name_the_alternative(model, method):
    with pytest.raises(AttributeError, match="effects"):
        getattr(model, method)()


def test_effects_sum_to_the_prediction(model):
    """The prediction at a knot of all columns is the intercept and the sum of the functions."""
    table = pd.DataFrame({"a": [0.3, 0.3], "b": [-0.4, -0.4], "c": ["red", "green"]})
    difference = np.diff(model.predict(table))[0]
    total = 0.0
    for effect in model.effects(top=1000):
        if "c" not in effect["columns"]:
            continue
        levels = list(effect["positions"][effect["columns"].index("c")])
        values = np.moveaxis(effect["values"], effect["columns"].index("c"), 0)
        change = values[levels.index("green")] - values[levels.index("red")]
        if len(effect["columns"]) == 1:
            total += change
        else:
            other = effect["columns"][1 - effect["columns"].index("c")]
            knots = effect["positions"][1 - effect["columns"].index("c")]
            is_number = np.array([isinstance(knot, float) for knot in knots])
            total += np.interp(table[other][0], knots[is_number].astype(float), change[is_number])
    assert difference == pytest.approx(total, abs=1e-6)


def test_effect_of_a_level_is_within_its_error_bars(model):
    effect = next(effect for effect in model.effects() if effect["columns"] == ("c",))
    values = dict(zip(effect["positions"][0], effect["values"]))
    errors = dict(zip(effect["positions"][0], effect["standard_errors"]))
    for level, true_value in (("green", 1.0), ("blue", -1.0)):
        assert abs(values[level] - values["red"] - true_value) < 5 * (errors[level] + errors["red"]) + 0.05


def test_interactions_list_the_pair_first(model):
    first = model.interactions(top=1).iloc[0]
    assert {first["left"], first["right"]} == {"a", "b"}
    assert first["effect"] > 0 and math.isnan(first["coefficient"])


def test_intervals_cover():
    """95% of 2,000 new targets lie in their intervals: five standard errors are 2.4 points, and noise is estimated."""
    table, target = make_table(800)
    complete = table["b"].notna()
    model = FactorizationRegressor().fit(table[complete], target[complete])
    table, target = make_table(2000, seed=2)
    complete = table["b"].notna()
    mean, std = model.predict(table[complete], return_std=True)
    assert np.mean(np.abs(mean - target[complete]) < 1.96 * std) == pytest.approx(0.95, abs=0.04)


def test_saved_model_predicts_identically(model, tmp_path):
    table, _ = make_table(50, seed=3)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.predict(table), model.predict(table))
    assert loaded.effects(top=1)[0]["columns"] == model.effects(top=1)[0]["columns"]


def test_straight_model_has_no_curves():
    table, target = make_table()
    model = FactorizationRegressor(curves="off").fit(table[["a", "b"]].dropna(), target[table["b"].notna()])
    effect = next(effect for effect in model.effects(top=1000) if effect["columns"] == ("a",))
    knots = effect["positions"][0].astype(float)
    residual = effect["values"] - np.polyval(np.polyfit(knots, effect["values"], 2), knots)
    assert np.abs(residual).max() < 1e-6 * np.ptp(effect["values"])


def test_classifier_separates_a_curve():
    random = np.random.default_rng(4)
    X = random.normal(size=(800, 3))
    y = np.where(np.abs(X[:, 0]) > 0.7, "far", "near")
    model = FactorizationClassifier().fit(X, y)
    assert model.summary_["solver"] == "anova"
    assert model.score(X, y) > 0.95


def test_plots_show_functions(model):
    axes = model.plot_effect("a")
    assert len(axes.lines[0].get_xdata()) > 10
    assert model.plot_effect("c").get_xlabel() == "c"
    axes = model.plot_interaction("b", "a")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("b", "a")
    assert len(model.plot_effects(top=4).axes) >= 4
    with pytest.raises(ValueError, match="no function"):
        model.plot_effect("unknown")
