"""mypy --strict and pyright see concrete types of all public methods (typed_usage.py)."""

import inspect
import pathlib
import subprocess
import sys

import pytest

import dyad

USAGE = pathlib.Path(__file__).parent / "typed_usage.py"
SOURCES = pathlib.Path(__file__).parents[1]


@pytest.mark.long
def test_pyright_sees_concrete_types(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{SOURCES}"], "reportUnnecessaryTypeIgnoreComment": false}}')
    command = [sys.executable, "-m", "pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, str(USAGE)]
    result = subprocess.run(command, capture_output=True, text=True)
    if "0 errors" not in result.stdout and "error:" not in result.stdout:
        pytest.skip(f"pyright cannot run: {result.stdout[-200:]}{result.stderr[-200:]}")
    assert result.returncode == 0, result.stdout


def test_public_methods_have_examples():
    """Examples run as doctests. Those of plots show a call only."""
    for name in dyad.__all__:
        item = getattr(dyad, name)
        if not isinstance(item, type) or issubclass(item, Exception):
            continue
        methods = [method for method in dir(item) if inspect.isfunction(getattr(item, method)) and not method.startswith("_")]
        for method in methods:
            function = getattr(item, method)
            if function.__module__.startswith("dyad.") and not method.startswith("plot_"):
                assert "Examples\n" in function.__doc__, f"{name}.{method}"
