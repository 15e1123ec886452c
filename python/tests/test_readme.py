import pathlib

import pytest

from run_readme import check

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_a_page_prints_what_it_says(page):
    check(PROJECT / page)
