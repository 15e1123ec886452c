import decimal

import numpy as np
import pytest

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
    with pytest.raises(ValueError, match="'perhaps'"):
        learner.learn_one({"a": 1.0}, "perhaps")


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
    assert classifier._classes == []


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
