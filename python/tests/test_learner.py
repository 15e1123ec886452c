import copy
import decimal
import pickle

import numpy as np
import pandas as pd
import pytest

import dyad
from dyad import Learner


def test_learner_fits_categorical_stream():
    random = np.random.default_rng(0)
    factors = random.normal(size=(30, 2)), random.normal(size=(20, 2))
    learner = Learner(rank=2)
    errors = []
    for _ in range(6000):
        user, film = random.integers(30), random.integers(20)
        y = 3 + factors[0][user] @ factors[1][film] + 0.1 * random.normal()
        x = {"user": f"u{user}", "film": f"f{film}"}
        errors.append((learner.predict_one(x) - y) ** 2)
        learner.learn_one(x, y)
    assert np.sqrt(np.mean(errors[-1000:])) < 0.3
    assert learner.rows == 6000
    value, deviation = learner.predict_std_one({"user": "u1", "film": "f1"})
    assert 0.05 < deviation < 0.5
    assert np.isfinite(learner.predict_one({"user": "a new user", "film": "f1"}))


def test_predict_std_one_increases_for_unknown_features():
    random = np.random.default_rng(0)
    effects = random.normal(size=600), random.normal(size=30)
    factors = random.normal(size=600), random.normal(size=30)

    def rating(first_user):
        user, film = first_user + random.integers(300), random.integers(30)
        y = effects[0][user] + effects[1][film] + factors[0][user] * factors[1][film] + 0.5 * random.normal()
        return {"user": f"u{user}", "film": f"f{film}"}, y

    learner = Learner(rank=2)
    for _ in range(6000):
        learner.learn_one(*rating(0))
    residuals, deviations = [], []
    for _ in range(2000):
        x, y = rating(300)
        value, deviation = learner.predict_std_one(x)
        assert value == learner.predict_one(x) == learner.predict_one({"film": x["film"]})
        assert deviation > learner.predict_std_one({"film": x["film"]})[1]
        residuals.append(value - y)
        deviations.append(deviation)
    # Residuals and deviations come from 300 users each. Their standard errors are 1/sqrt(2 * 300) = 4%, together 6%.
    assert np.sqrt(np.mean(np.square(deviations)) / np.mean(np.square(residuals))) == pytest.approx(1, abs=0.3)
    row = {"user": "u1", "film": "f1"}
    known = learner.predict_std_one(row)[1]
    assert learner.predict_std_one({**row, "a": 0.0})[1] == known
    assert learner.predict_std_one({**row, "a": 2.0})[1] > known
    assert learner.predict_std_one({**row, "a": 2.0, "mood": "good"})[1] > learner.predict_std_one({**row, "a": 2.0})[1]


def test_predict_proba_one_equals_class_frequency_without_evidence():
    for seed in range(10):
        random = np.random.default_rng(seed)
        learner = Learner("classification", rank=2)
        rows = [{"a": random.normal(), "b": f"b{random.integers(20)}"} for _ in range(1000)]
        positive = random.integers(1000)
        for i, x in enumerate(rows):
            learner.learn_one(x, i == positive)
        for x in rows:
            assert learner.predict_proba_one(x)[True] == pytest.approx(0.001)


def test_classification_supports_any_two_values():
    random = np.random.default_rng(0)
    for negative, positive in ((False, True), ("no", "yes"), ("yes", "no"), (0, 1)):
        learner = Learner("classification", rank=1)
        assert learner.predict_one({"a": 1.0}) is None
        correct = 0
        for i in range(3000):
            a, b = random.normal(size=2)
            y = positive if a * b > 0 else negative
            correct += i >= 2000 and learner.predict_one({"a": a, "b": b}) == y
            learner.learn_one({"a": a, "b": b}, y)
        assert correct > 850, (negative, positive)
        assert sum(learner.predict_proba_one({"a": 1.0, "b": 1.0}).values()) == pytest.approx(1)


def test_invalid_parameters_raise_value_error():
    with pytest.raises(ValueError, match="task"):
        Learner("ranking")
    with pytest.raises(ValueError, match="rank"):
        Learner(rank=0)
    with pytest.raises(ValueError, match="half_life"):
        Learner(half_life=-1)
    learner = Learner(rank=2)
    with pytest.raises(ValueError, match=r"x\['a'\]"):
        learner.learn_one({"a": float("nan")}, 1.0)
    with pytest.raises(ValueError, match="classification"):
        learner.predict_proba_one({})


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1e300, np.float32("inf"), decimal.Decimal("NaN")])
def test_invalid_numbers_raise_value_error_and_keep_state(wrong):
    learner = Learner(rank=2)
    learner.learn_one({"a": 1.0}, 2.0)
    for call in (
        lambda: learner.learn_one({"a": wrong}, 1.0),
        lambda: learner.learn_one({"b": 1.0, "a": wrong}, 1.0),
        lambda: learner.predict_one({"a": wrong}),
        lambda: learner.predict_one({"never seen": wrong}),
        lambda: learner.predict_std_one({"a": wrong}),
    ):
        with pytest.raises(ValueError, match=r"x\['(a|never seen)'\]"):
            call()
    with pytest.raises(ValueError, match="^y "):
        learner.learn_one({"a": 1.0, "c": "new"}, wrong)
    assert learner.rows == 1
    assert list(learner._columns) == ["a"]  # rejected rows add no features
    classifier = Learner("classification", rank=2)
    with pytest.raises(ValueError, match=r"x\['a'\]"):
        classifier.learn_one({"a": wrong}, "yes")
    with pytest.raises(ValueError, match=r"x\['a'\]"):
        classifier.predict_proba_one({"a": wrong})
    if not np.isfinite(float(wrong)):
        with pytest.raises(ValueError, match="^y "):
            classifier.learn_one({"a": 1.0}, wrong)
    assert classifier.classes == []


def test_invalid_targets_and_features_raise():
    learner = Learner(rank=2)
    with pytest.raises(ValueError, match="^y "):
        learner.learn_one({"a": 1.0}, "much")
    with pytest.raises(TypeError, match=r"x\['a'\].*list"):
        learner.learn_one({"a": [1.0]}, 1.0)
    for wrong in ((0, 1, 2), (1, 0), "ab", 5):
        with pytest.raises(ValueError, match="target_range"):
            Learner(target_range=wrong)
    with pytest.raises(ValueError, match="half_life"):
        Learner(half_life=float("nan"))


def test_decimals_are_numeric():
    learner = Learner(rank=1)
    for i in range(100):
        learner.learn_one({"a": decimal.Decimal(i % 7)}, float(i % 7))
    assert learner.predict_one({"a": 3}) == learner.predict_one({"a": decimal.Decimal(3)})
    assert len(learner._columns) == 1


def numeric_stream(count, center, scale, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(count):
        z = random.normal(size=3)
        y = 2 * z[0] + z[1] * z[2] + 0.1 * random.normal()
        yield {name: center + scale * value for name, value in zip("abc", z)}, y


def progressive_rmse(learner, rows, last):
    errors = []
    for x, y in rows:
        errors.append((learner.predict_one(x) - y) ** 2)
        learner.learn_one(x, y)
    return np.sqrt(np.mean(errors[-last:]))


@pytest.mark.parametrize("center, scale", [(0, 1), (1e5, 1), (-3, 1e-3), (0, 1e6)])
def test_numbers_are_scaled_along_the_stream(center, scale):
    assert progressive_rmse(Learner(rank=2), numeric_stream(1500, center, scale), last=500) < 0.15


def test_scaling_does_not_depend_on_units():
    first, second = Learner(rank=2), Learner(rank=2)
    for (x, y), (scaled, _) in zip(numeric_stream(300, 0, 1), numeric_stream(300, 7, 3)):
        first.learn_one(x, y)
        second.learn_one(scaled, y)
        assert second.predict_one(scaled) == pytest.approx(first.predict_one(x), rel=1e-6, abs=1e-6)


def test_rare_numbers_are_not_centered():
    """Counts of words are learned as indicators."""
    random = np.random.default_rng(0)
    rows = []
    for _ in range(2000):
        words = {f"w{word}": 3 for word in random.integers(40, size=3)}
        rows.append((words, sum(float(name[1:]) / 40 for name in words)))
    indicators = [({name: "present" for name in words}, y) for words, y in rows]
    assert progressive_rmse(Learner(rank=1), rows, last=500) < 1.1 * progressive_rmse(Learner(rank=1), indicators, last=500)


def test_numbers_are_unchanged_without_scaling():
    learner = Learner(rank=1, scaling=None)
    for i in range(200):
        learner.learn_one({"a": i % 2}, float(i % 2))
    assert learner.predict_one({"a": 1}) == pytest.approx(1, abs=0.05)
    assert learner.predict_one({"a": 0}) == learner.predict_one({})
    with pytest.raises(ValueError, match="scaling"):
        Learner(scaling="robust")


def class_stream(count, classes, seed=0):
    """Yield rows, classes and the probability of each class, which is a softmax of linear functions."""
    random = np.random.default_rng(seed)
    directions = 3 * random.normal(size=(len(classes), 2))
    for _ in range(count):
        z = random.normal(size=2)
        probabilities = np.exp(directions @ z - (directions @ z).max())
        probabilities /= probabilities.sum()
        index = random.choice(len(classes), p=probabilities)
        yield {"a": 10 + z[0], "b": z[1]}, classes[index], probabilities[index]


@pytest.mark.parametrize("classes", [["x", "y", "z"], [0, 1, 2, 3], [True, False, None]])
def test_classification_of_several_classes(classes):
    learner = Learner("classification", rank=1)
    losses, optimal = [], []
    for x, y, probability in class_stream(3000, classes):
        probabilities = learner.predict_proba_one(x)
        if probabilities:
            assert sum(probabilities.values()) == pytest.approx(1)
            assert learner.predict_one(x) == max(probabilities, key=probabilities.get)
        losses.append(-np.log(max(1e-6, probabilities.get(y, 0))))
        optimal.append(-np.log(probability))
        learner.learn_one(x, y)
    assert set(learner.classes) == set(classes) and len(learner.classes) == len(classes)
    # One class against the others is an approximation of the softmax.
    assert np.mean(losses[-1500:]) < np.mean(optimal[-1500:]) + 0.15
    with pytest.raises(ValueError, match="two classes"):
        learner.predict_std_one({"a": 1.0})


def test_late_class_gets_small_probability():
    learner = Learner("classification", rank=1)
    rows = list(class_stream(2000, ["x", "y"]))
    for x, y, _ in rows:
        learner.learn_one(x, y)
    before = [learner.predict_proba_one(x)["x"] for x, *_ in rows[:50]]
    learner.learn_one(rows[0][0], "late")
    for (x, *_), value in zip(rows[:50], before):
        probabilities = learner.predict_proba_one(x)
        assert probabilities["x"] == pytest.approx(value, abs=0.05)
        assert probabilities["late"] < 0.05


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "mappings"])
def test_learn_many_equals_learn_one(form):
    rows = [{"a": float(i % 7), "b": f"b{i % 3}", "c": None if i % 4 == 0 else i} for i in range(200)]
    targets = [row["a"] + (row["b"] == "b1") for row in rows]
    present = [{name: value for name, value in row.items() if value is not None} for row in rows]
    expected = Learner(rank=1)
    for x, y in zip(present, targets):
        expected.learn_one(x, y)
    if form == "pandas":
        table = pd.DataFrame(rows).astype({"c": "Int64"})
    elif form == "polars":
        table = pytest.importorskip("polars").DataFrame(rows)
    elif form == "arrow":
        table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
    else:
        table = iter(present)
    learner = Learner(rank=1).learn_many(table, np.array(targets))
    assert [learner.predict_one(x) for x in present] == [expected.predict_one(x) for x in present]


def test_learn_many_names_the_wrong_row():
    rows = [{"a": 1.0}, {"a": float("inf")}]
    learner = Learner(rank=1)
    with pytest.raises(ValueError, match="row 1"):
        learner.learn_many(rows, [1.0, 2.0])
    assert learner.rows == 1
    for targets in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="length"):
            Learner(rank=1).learn_many([{"a": 1.0}, {"a": 2.0}], targets)


@pytest.mark.parametrize("classes", [None, ["x", "y"], ["x", "y", ("z", 1)]])
@pytest.mark.parametrize("how", ["file", "pickle", "copy"])
def test_restored_learner_gives_the_same_results(classes, how, tmp_path):
    learner = Learner("classification" if classes else "regression", rank=2, random_state=3)
    stream = list(class_stream(300, classes) if classes else numeric_stream(300, 5, 2))
    for x, y, *_ in stream[:200]:
        learner.learn_one(x, y)
    if how == "file":
        learner.save(tmp_path / "learner.dyad")
        restored = dyad.load(tmp_path / "learner.dyad")
    else:
        restored = pickle.loads(pickle.dumps(learner)) if how == "pickle" else copy.deepcopy(learner)
    assert repr(restored) == repr(learner)
    for x, y, *_ in stream[200:]:
        assert restored.predict_one(x) == learner.predict_one(x)
        restored.learn_one(x, y)
        learner.learn_one(x, y)
    assert restored.classes == learner.classes


def test_repr_has_parameters_and_counts():
    assert repr(Learner()) == "Learner() <0 rows, 0 features>"
    learner = Learner("classification", rank=1).learn_one({"a": 1, "b": "x"}, "yes")
    assert repr(learner) == "Learner(task='classification', rank=1) <1 rows, 2 features, 1 classes>"
