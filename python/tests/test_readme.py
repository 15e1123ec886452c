import pathlib

import pytest

from run_readme import check

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_page_examples_print_documented_output(page):
    check(PROJECT / page)
