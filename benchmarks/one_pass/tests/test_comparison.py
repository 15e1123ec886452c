import clicks
import numpy as np
import pytest
import sets
from compare import BLOCKS, Run, estimate


def test_share_of_clicks():
    rows = list(clicks.Clicks(seed=3).blocks(20_000))
    probability = np.concatenate([block[2] for block in rows])
    found = np.concatenate([block[1] for block in rows])
    # The intercept is that of other rows, BLOCK_ROWS in number.
    error = probability.std() * np.sqrt(1 / len(probability) + 1 / clicks.BLOCK_ROWS)
    assert abs(probability.mean() - clicks.CLICK_SHARE) < 5 * error
    assert abs((found - probability).mean()) < 5 * np.sqrt((probability * (1 - probability)).mean() / len(found))


def test_rows_depend_on_the_seed_only():
    first, second, other = [next(clicks.Clicks(seed).blocks(50)) for seed in (1, 1, 2)]
    assert all(np.array_equal(a, b) for a, b in zip(first, second))
    assert not np.array_equal(first[0], other[0])
    assert first[0].shape == (50, clicks.COLUMNS)


def test_peer_rows_keep_names_and_mark_missing_values(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,a,n\n1,007,2\n0,,4\n1,x,\n")
    lines = sets.table_lines(sets.Set("rows", "rows.csv", True, "y", ("a",)), path)
    assert lines == ["1 |a 007 |b value:-0.707107\n", "-1 |a missing |b value:0.707107\n", "1 |a x |b missing\n"]


@pytest.mark.parametrize("is_class", [False, True])
def test_difference_of_constant_gain(is_class):
    """The difference of log-losses that differ by the same number in all rows has no standard error."""
    data = sets.Set("rows", "", is_class)
    losses = np.random.default_rng(0).exponential(size=100 * BLOCKS)
    worse = losses + 0.1 if is_class else losses * 1.21
    run, base = (Run("", 1, 1, 1, values) for values in (losses, worse))
    difference = estimate(data, run, base)
    expected = -0.1 if is_class else np.sqrt(losses.mean()) - np.sqrt(worse.mean())
    assert difference.mean == pytest.approx(expected)
    if is_class:
        assert difference.error == pytest.approx(0, abs=1e-12)
