"""Data sets of the comparison, and their rows in the text format of Vowpal Wabbit."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import string
import subprocess
import sys

import pandas as pd

GENERATED_ROWS = 50_000
GENERATED_SEED = 1
# Number of standard deviations to which numeric columns are clipped for the peers.
CLIP = 6


@dataclasses.dataclass(frozen=True)
class Set:
    """Rows of a file. A set without a target is a libsvm file."""

    name: str
    path: str  # relative to DYAD_DATA; empty: generated rows
    is_class: bool
    target: str = ""
    categorical: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def file(self, folder: pathlib.Path) -> pathlib.Path:
        """Return the file of the rows. Generated rows are written to ``folder``. Exit if the file does not exist."""
        if not self.path:
            return generated_rows(folder)
        data = os.environ.get("DYAD_DATA")
        if not data or not (pathlib.Path(data) / self.path).is_file():
            place = f"the folder {data} of DYAD_DATA has no file {self.path}" if data else "DYAD_DATA is not set"
            sys.exit(
                f"{self.name}: {place}. Set DYAD_DATA to the folder with the real data; docs/one-pass-comparison.md lists its "
                "files, their columns and where they are from. `--sets clicks` measures generated rows only."
            )
        return pathlib.Path(data) / self.path

    def arguments(self) -> list[str]:
        """Return the options of ``dyad train``."""
        if not self.target:
            return []
        options = ["--target", self.target, "--categorical", ",".join(self.categorical)]
        return options + (["--ignore", ",".join(self.ignored)] if self.ignored else [])


CRITEO_COLUMNS = tuple(f"C{c}" for c in range(1, 27))
CLICK_COLUMNS = tuple(f"C{c}" for c in range(1, 40))
SETS = [
    Set("ml-small", "ratings/ml-small.stream.csv", False, "rating", ("user", "movie"), ("timestamp",)),
    Set("MovieTweetings", "ratings/movietweetings.stream.csv", False, "rating", ("user", "movie"), ("timestamp",)),
    Set("lastfm-tags", "contexts/lastfm-tags.train.csv", True, "used", ("user", "artist", "tag")),
    Set("criteo-sample", "contexts/criteo-sample.train.csv", True, "click", CRITEO_COLUMNS),
    Set("a9a", "binary/a9a.train.svm", True),
    Set("clicks", "", True, "click", CLICK_COLUMNS, ("probability",)),
]


def generated_rows(folder: pathlib.Path) -> pathlib.Path:
    """Return the file of generated rows; write it unless it exists."""
    path = folder / f"clicks.{GENERATED_ROWS}.{GENERATED_SEED}.csv"
    if not path.exists():
        part = path.with_suffix(".part")
        with open(part, "w") as file:
            script = pathlib.Path(__file__).with_name("clicks.py")
            subprocess.run([sys.executable, script, str(GENERATED_ROWS), str(GENERATED_SEED)], stdout=file, check=True)
        part.rename(path)
    return path


def peer_rows(data: Set, folder: pathlib.Path) -> pathlib.Path:
    """Return a file with the rows in the format of Vowpal Wabbit, one namespace (a, b, c, ...) per column.

    Numeric columns are standardized by the mean and the deviation of the whole file, and clipped. A missing value is a name.
    """
    path = folder / f"{data.name}.vw"
    source = data.file(folder)
    if path.exists() and path.stat().st_mtime > source.stat().st_mtime:
        return path
    lines = table_lines(data, source) if data.target else libsvm_lines(source)
    part = path.with_suffix(".part")
    part.write_text("".join(lines))
    part.rename(path)
    return path


def libsvm_lines(source: pathlib.Path) -> list[str]:
    """Return the lines of a libsvm file with all features in the namespace a."""
    lines = []
    for line in source.read_text().splitlines():
        target, _, features = line.partition(" ")
        lines.append(f"{float(target):g} |a {features}\n")
    return lines


def table_lines(data: Set, source: pathlib.Path) -> list[str]:
    """Return the lines of a csv file."""
    names = dict.fromkeys(data.categorical, str)
    rows = pd.read_csv(source, dtype=names, keep_default_na=False, na_values=[""]).drop(columns=list(data.ignored))
    targets = rows.pop(data.target).astype(float)
    columns = []
    for name, letter in zip(rows, string.ascii_letters):
        missing = rows[name].isna()
        if name in data.categorical:
            texts = rows[name].fillna("missing")
        else:
            deviation = rows[name].std() or 1.0
            scaled = ((rows[name] - rows[name].mean()) / deviation).clip(-CLIP, CLIP)
            texts = scaled.map("value:{:.6g}".format).mask(missing, "missing")
        columns.append([f" |{letter} {text}" for text in texts])
    labels = ["1" if y > 0 else "-1" for y in targets] if data.is_class else [f"{y:g}" for y in targets]
    return [label + "".join(cells) + "\n" for label, *cells in zip(labels, *columns)]


def namespaces(data: Set, path: pathlib.Path) -> str:
    """Return the letters of the namespaces in a file of ``peer_rows``."""
    with open(path) as file:
        return "".join(part[0] for part in file.readline().split(" |")[1:])
