import pathlib

from run_readme import check


def test_the_readme_prints_what_it_says():
    check(pathlib.Path(__file__).parents[2] / "README.md")
