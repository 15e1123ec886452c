"""Files are replaced atomically: concurrent readers, permissions, links, and failing system calls."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import make_rows
from dyad import FactorizationRegressor, load


def two_models():
    """Return two models with different ranks and intercepts, and their rows."""
    X, y = make_rows(40, dim=4)
    return [FactorizationRegressor(rank=rank, solver="kalman").fit(X, y + 1000 * rank) for rank in (1, 3)], X


def test_load_during_save_reads_complete_models(tmp_path):
    models, X = two_models()
    expected = [model.predict(X) for model in models]
    path = tmp_path / "model"
    models[0].save(path)
    failures, loads, done = [], [0], threading.Event()

    def read():
        while not done.is_set():
            try:
                found = load(path)
                values = found.predict(X)
                assert any(np.array_equal(values, one) for one in expected)
                assert found.rank == (1 if np.array_equal(values, expected[0]) else 3)
                loads[0] += 1
            except Exception as error:  # noqa: BLE001
                failures.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(60):
        models[i % 2].save(path)
        if failures:
            break
    while not failures and loads[0] < 5:
        models[0].save(path)
    done.set()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert os.listdir(tmp_path) == ["model"]


def test_save_keeps_permissions_and_links(tmp_path, rows):
    model = FactorizationRegressor(rank=2).fit(*rows)
    (tmp_path / "real").write_text("old")
    os.chmod(tmp_path / "real", 0o640)
    os.symlink("real", tmp_path / "link")
    model.save(tmp_path / "link")
    assert os.readlink(tmp_path / "link") == "real"
    assert os.stat(tmp_path / "real").st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(load(tmp_path / "link").predict(rows[0]), model.predict(rows[0]))
    mask = os.umask(0o027)
    try:
        model.save(tmp_path / "new")
    finally:
        os.umask(mask)
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o640


def test_save_accepts_any_file_name(tmp_path, rows, monkeypatch):
    model = FactorizationRegressor(rank=1, solver="kalman").fit(*rows)
    monkeypatch.chdir(tmp_path)
    for name in ("-", b"bytes", "\udcff not UTF-8", "ä"):
        model.save(name)
        np.testing.assert_array_equal(load(name).predict(rows[0]), model.predict(rows[0]))
    assert len(os.listdir()) == 4
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "missing" / "model")
    with pytest.raises(OSError):
        model.save("ä/model")
    with pytest.raises(ValueError, match="null"):
        model.save("a\0b")


@pytest.fixture
def library():
    if "DYAD_FAILING_CALLS" not in os.environ:
        pytest.skip("DYAD_FAILING_CALLS is not set to the library of failing system calls")
    return os.environ["DYAD_FAILING_CALLS"]


CALLS = ["write", "fsync", "rename", "read", "linkat", "ftruncate", "mmap"]


def test_save_is_atomic_for_failing_system_calls(library, tmp_path):
    output = run_with_failing_calls(library, tmp_path, [*CALLS, "malloc"], 3)
    assert "fsync 1: save failed" in output  # without fsync, the file may be empty after a power failure
    assert "save done" in output


@pytest.mark.long
def test_save_is_atomic_for_every_failing_system_call(library, tmp_path):
    run_with_failing_calls(library, tmp_path, CALLS, 40)
    run_with_failing_calls(library, tmp_path, ["malloc"], 4000, step=11)


def run_with_failing_calls(library, folder, calls, maximum, step=1):
    """Save and load while each call fails from its n-th use on, n = 1, 1 + step, ..., maximum. Return the output."""
    script = os.path.join(os.path.dirname(__file__), "failing_saves.py")
    # Python allocates small objects from its own arenas; without them, the interpreter cannot raise MemoryError.
    environment = {**os.environ, "LD_PRELOAD": library, "PYTHONMALLOC": "pymalloc"}
    result = subprocess.run(
        [sys.executable, script, str(folder), str(maximum), str(step), *calls], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
