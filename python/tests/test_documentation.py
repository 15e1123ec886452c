"""The documentation names existing files, and what it states about JSON and C++ agrees with the programs. `make docs` runs its commands."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).parents[2]
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").glob("*.md"))]
DYAD = os.environ.get("DYAD_COMMAND", str(PROJECT / "build" / "release" / "dyad"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_contributors_guide_names_existing_files_and_targets():
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    names = re.findall(r"`((?:src|include|cli|python|tests|docs|fuzz|scripts|\.github)/[^` ]*)", text)
    assert len(names) > 40
    for name in names:
        assert name.endswith(("NAME.h", "NAME.cpp")) or (PROJECT / name).exists(), name
    makefile = (PROJECT / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z-]+)`", text):
        assert f"\n{target}:" in makefile, target


def test_every_page_is_in_the_navigation():
    navigation = (PROJECT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.parent.name == "docs":
            assert f": {page.name}\n" in navigation, page.name
    for tutorial in (PROJECT / "python" / "tutorials").glob("*.py"):
        assert f": tutorials/{tutorial.stem}.md\n" in navigation, tutorial.name


def test_picture_of_modules_agrees_with_includes():
    subprocess.run([sys.executable, PROJECT / "scripts" / "include-graph", "--check"], check=True)


def test_cpp_block_is_part_of_the_example_program():
    block = re.search(r"```cpp\n(.*?)```", (PROJECT / "docs" / "cpp.md").read_text(), re.S)[1]
    lines = [line.strip() for line in (PROJECT / "examples" / "online_learner.cpp").read_text().splitlines()]
    for line in filter(None, block.splitlines()):
        assert line in lines


def keys(value):
    """Return the names of all fields of a JSON value, except those of the free-form `training`."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys(field) for name, field in value.items() if name != "training"))


@pytest.mark.skipif(not pathlib.Path(DYAD).exists(), reason="requires the command")
def test_json_fields_are_documented(tmp_path):
    documented = set(re.findall(r"`(\w+)`", (PROJECT / "docs" / "json-output.md").read_text()))
    with open(tmp_path / "ratings.csv", "w") as rows:
        subprocess.run([PROJECT / "scripts" / "make-data", "ratings", "3000"], stdout=rows, check=True)
    with open(tmp_path / "houses.csv", "w") as rows:
        subprocess.run([PROJECT / "scripts" / "make-data", "houses", "500"], stdout=rows, check=True)
    for command in (
        "train ratings.csv --target stars -m ratings.dyad --validation ratings.csv",
        "train houses.csv --target price -m houses.dyad",
        "train houses.csv --target garden -m garden.dyad --rank 2",
        "evaluate -m garden.dyad houses.csv",
        "train houses.csv --target district -m district.dyad --rank 2",
        "evaluate -m district.dyad houses.csv",
        "predict -m district.dyad houses.csv -o districts.txt",
        "inspect district.dyad",
        "predict -m houses.dyad houses.csv -o out.txt",
        "inspect houses.dyad",
        "inspect ratings.dyad",
        "inspect ratings.dyad --verify",
        "simulate phase --dim 10 --rows 60 -o phase.csv",
        "train phase.csv --kind phase --target y -m phase.dyad",
        "inspect phase.dyad",
        "recover phase --dim 20 --noise 0.1 --rows 200",
        "recover gfm --dim 10 --rank 1 --intercept 1 --diagonal free --rows 4000",
        "recover gfm --dim 10 --rank 1 --solver moment --theory --noise 0.1 --rows 4000",
    ):
        done = subprocess.run([DYAD, *command.split(), "--json", "--quiet"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        assert keys(json.loads(done.stdout)) <= documented, command
