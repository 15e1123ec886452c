"""Run a tutorial of python/tutorials and write it as a Markdown page with the output and the plots of each cell: gallery.py SCRIPT PAGE

Cells begin with `# %%`; cells with `# %% [markdown]` contain text. Plots are written to the folder of the page.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "dyad"  # the same plot gives the same file

import matplotlib.pyplot as plt

MARKER = "# %%"


def cells_of(text: str) -> list[tuple[bool, str]]:
    """Return the cells of a script: whether it is text, and its content."""
    cells = []
    for part in text.split(f"\n{MARKER}" if not text.startswith(MARKER) else MARKER)[1:]:
        kind, _, content = part.partition("\n")
        is_text = kind.strip() == "[markdown]"
        if is_text:
            content = "\n".join(line.removeprefix("#").removeprefix(" ") for line in content.strip().splitlines())
        cells.append((is_text, content.strip()))
    return cells


def save_plots(folder: pathlib.Path, stem: str, first: int) -> list[str]:
    """Write all open figures and close them. Returns the file names."""
    names = []
    for number in plt.get_fignums():
        name = f"{stem}-{first + len(names)}.svg"
        plt.figure(number).savefig(folder / name, bbox_inches="tight", metadata={"Date": None})
        names.append(name)
    plt.close("all")
    return names


def render(script: pathlib.Path, page: pathlib.Path) -> None:
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(script)}
    lines, plots = [], 0
    for is_text, content in cells_of(script.read_text()):
        if is_text:
            lines += [content, ""]
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(content, str(script), "exec"), names)
        lines += ["```python", content, "```", ""]
        if printed.getvalue():
            lines += ["```text", printed.getvalue().rstrip(), "```", ""]
        for name in save_plots(page.parent, script.stem, plots + 1):
            plots += 1
            lines += [f"![Plot of the cell above]({name})", ""]
    page.write_text("\n".join(lines))


if __name__ == "__main__":
    render(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
