import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from conftest import make_rows
from dyad import FactorizationClassifier, FactorizationRegressor, load, plot_calibration, plot_learning_curve


@pytest.fixture(scope="module")
def model():
    return FactorizationRegressor(rank=3).fit(*make_rows(500))


def test_plot_spectrum_shows_sorted_eigenvalues(model):
    heights = [bar.get_height() for bar in model.plot_spectrum().patches]
    assert len(heights) == 3
    assert np.all(np.diff(np.abs(heights)) <= 0)


def test_plot_convergence_ends_at_last_row(model):
    line = model.plot_convergence().lines[0]
    assert line.get_xdata()[-1] == 500
    assert line.get_ydata()[-1] < line.get_ydata().max()


def test_plot_interactions_labels_pairs(model):
    axes = model.plot_interactions(top=2)
    assert {label.get_text() for label in axes.get_yticklabels()} == {"1 × 2", "3²"}


def test_plot_calibration_is_near_diagonal(model):
    line = plot_calibration(model, *make_rows(3000, seed=5)).lines[1]
    assert np.abs(line.get_xdata() - line.get_ydata()).max() < 0.05


def test_plot_convergence_of_loaded_model_raises_value_error(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="summary_"):
        load(tmp_path / "model").plot_convergence()


@pytest.mark.parametrize("thresholds", [[0], [-1, 1]], ids=["two classes", "three classes"])
def test_plot_calibration_of_classes_is_near_diagonal(thresholds):
    X, y = make_rows(2000)
    y = np.digitize(y, 3 + np.array(thresholds))
    model = FactorizationClassifier(rank=2).fit(X[:1000], y[:1000])
    line = plot_calibration(model, X[1000:], y[1000:]).lines[1]
    assert np.abs(line.get_xdata() - line.get_ydata()).max() < 0.15


def test_plot_learning_curve_shows_both_losses(model):
    X, y = make_rows(300)
    axes = plot_learning_curve(FactorizationRegressor(rank=2, solver="kalman"), X, y, sizes=[0.3, 1.0], cv=3)
    training, validation = axes.lines
    assert validation.get_xdata().tolist() == [60, 200]
    assert validation.get_ydata()[1] < validation.get_ydata()[0]
    axes = plot_learning_curve(FactorizationClassifier(rank=2, solver="kalman"), X, y > 3, sizes=[1.0], cv=2)
    assert axes.get_ylabel() == "log-loss"
