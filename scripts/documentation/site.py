"""Write the pages of the site to a folder, from which MkDocs builds it: site.py DYAD DOXYGEN_HTML FOLDER

Copies README.md, docs and the pages of the project, rewrites their links, runs the tutorials, and generates the pages of the references.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import gallery

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages of the project by their name on the site.
PROJECT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
PYTHON_NAMES = (
    "FactorizationRegressor FactorizationClassifier Learner MatrixSensing PhaseRetrieval InductiveMatrixCompletion Statistics Stream stream load "
    "plot_calibration DataError"
).split()
SPARK_NAMES = "FactorizationRegressor FactorizationRegressionModel FactorizationClassifier FactorizationClassificationModel StreamLearner".split()
STYLE = """
.md-grid { max-width: 72rem; }
.md-typeset table:not([class]) { font-size: .66rem; }
.manual dt { margin-top: .6em; font-family: var(--md-code-font-family, monospace); font-size: .75rem; }
.manual dd { margin: .1em 0 .3em 2em; }
"""


def site_path(path: pathlib.Path) -> str | None:
    """Return the place on the site of a file of the repository, or none if it is not part of it."""
    name = path.relative_to(ROOT).as_posix()
    if name in PROJECT_PAGES:
        return PROJECT_PAGES[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if name.startswith("python/tutorials/"):
        return f"tutorials/{path.stem}.md"
    return f"files/{name}"


def rewrite_links(text: str, source: pathlib.Path, folder: pathlib.Path) -> str:
    """Replace links to files of the repository by links to their place on the site. Files without a page are copied."""
    page = folder / site_path(source)

    def replace(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (source.parent / target).resolve()
        if not path.exists():
            sys.exit(f"{source.relative_to(ROOT)}: the link {match[2]} leads to no file")
        place = folder / site_path(path)
        if place.relative_to(folder).parts[0] == "files" and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        return f"{match[1]}({os.path.relpath(place, page.parent)}{'#' + anchor if anchor else ''})"

    return re.sub(r"(\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s]+)\)", replace, text)


def copy_pages(folder: pathlib.Path) -> None:
    shutil.copytree(ROOT / "docs" / "plots", folder / "plots")
    for source in [*(ROOT / name for name in PROJECT_PAGES), *sorted((ROOT / "docs").glob("*.md"))]:
        (folder / site_path(source)).write_text(rewrite_links(source.read_text(), source, folder))
    (folder / "style.css").write_text(STYLE)


def write_tutorials(folder: pathlib.Path) -> None:
    tutorials = folder / "tutorials"
    tutorials.mkdir()
    entries = []
    for script in sorted((ROOT / "python" / "tutorials").glob("*.py")):
        page = tutorials / f"{script.stem}.md"
        print(f"tutorial {script.stem}", flush=True)
        gallery.render(script, page)
        page.write_text(page.read_text() + f"\nScript: `python/tutorials/{script.name}`\n")
        title = page.read_text().partition("\n")[0].removeprefix("# ")
        plots = sorted(tutorials.glob(f"{script.stem}-*.svg"))
        picture = f"[![{title}]({plots[0].name}){{ width=240 }}]({page.name})" if plots else ""
        entries.append(f"| {picture} | [{title}]({page.name}) |\n")
    text = "# Tutorials\n\nEach page is a script with the output and the plots of its cells.\n\n|  | tutorial |\n|---|---|\n"
    (tutorials / "index.md").write_text(text + "".join(entries))


def write_references(dyad: str, doxygen: pathlib.Path, folder: pathlib.Path) -> None:
    manual = subprocess.run([dyad, "man"], check=True, capture_output=True).stdout
    html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment"], input=manual, check=True, capture_output=True).stdout.decode()
    # The page has its own title; the anchors of options repeat in each subcommand.
    html = re.sub(r'<table class="(head|foot)">.*?</table>', "", html, flags=re.DOTALL)
    html = re.sub(r'<dt id="[^"]*"><a class="permalink" href="[^"]*">(.*?)</a></dt>', r"<dt>\1</dt>", html, flags=re.DOTALL)
    html = html.replace("<h2 ", "<h3 ").replace("</h2>", "</h3>").replace("<h1 ", "<h2 ").replace("</h1>", "</h2>")
    html = re.sub(r"\n\s*\n", "\n", html)
    text = "# Command line\n\nThis page is the output of `dyad man`. `dyad COMMAND --help` prints the options of one command.\n\n"
    (folder / "command-line.md").write_text(text + f'<div class="manual">\n{html}\n</div>\n')
    for name, title, module, names in (
        ("python-api.md", "Python API", "dyad", PYTHON_NAMES),
        ("spark-api.md", "Spark API", "dyad.spark", SPARK_NAMES),
    ):
        (folder / name).write_text(f"# {title}\n\n" + "".join(f"::: {module}.{each}\n\n" for each in names))
    shutil.copytree(doxygen, folder / "doxygen")
    (folder / "cpp-api.md").write_text(
        "# C++ API\n\n[C++](cpp.md) describes the use of the library and lists its headers. Doxygen generates their reference:\n\n"
        "- [classes](doxygen/annotated.html)\n- [functions and types](doxygen/namespacedyad.html)\n- [files](doxygen/files.html)\n"
    )


def main() -> None:
    dyad, doxygen, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copy_pages(folder)
    write_tutorials(folder)
    write_references(dyad, doxygen, folder)


if __name__ == "__main__":
    main()
