import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from conftest import made
from dyad import FactorizationRegressor, load, plot_calibration


@pytest.fixture(scope="module")
def model():
    return FactorizationRegressor(rank=3).fit(*made(500))


def test_the_spectrum_is_that_of_the_model(model):
    heights = [bar.get_height() for bar in model.plot_spectrum().patches]
    assert len(heights) == 3
    assert np.all(np.diff(np.abs(heights)) <= 0)


def test_convergence_ends_at_the_last_row(model):
    line = model.plot_convergence().lines[0]
    assert line.get_xdata()[-1] == 500
    assert line.get_ydata()[-1] < line.get_ydata().max()


def test_interactions_are_named(model):
    axes = model.plot_interactions(top=2)
    assert {label.get_text() for label in axes.get_yticklabels()} == {"1 × 2", "3²"}


def test_error_bars_are_near_the_diagonal(model):
    line = plot_calibration(model, *made(3000, seed=5)).lines[1]
    assert np.abs(line.get_xdata() - line.get_ydata()).max() < 0.05


def test_a_loaded_model_says_that_it_does_not_know(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="loaded"):
        load(tmp_path / "model").plot_convergence()
