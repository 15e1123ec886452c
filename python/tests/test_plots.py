import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from conftest import make_rows
from dyad import FactorizationRegressor, load, plot_calibration


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
