"""Random small data sets of all kinds and layouts, their files, and runs of the command line on them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

from .encoding import Encoder, stable_hash
from .model_file import ModelFile

KINDS = ("gfm", "sensing", "phase", "bilinear")
LAYOUTS = ("csv", "tsv", "npy", "libsvm")
SHAPES = [
    (kind, layout, diagonal)
    for kind in KINDS
    for layout in LAYOUTS
    for diagonal in (("tied", "zero", "free") if kind == "gfm" else ("tied",))
]

_SPARSE_INDICES = 9
_CLASS_LABELS = ("0", "1")
_RANGE_BOUND = 0.3  # targets have standard deviation 1, so that most of them are censored


@dataclasses.dataclass
class Case:
    """Properties of a data set and its model."""

    kind: str = "gfm"
    layout: str = "csv"
    diagonal: str = "tied"
    is_class: bool = False
    has_weights: bool = False  # csv and tsv
    has_range: bool = False
    hash_bits: int = 0
    precision: str = "double"
    rank: int = 2
    index_step: int = 1  # libsvm: distance between the indices that occur
    has_pairs: bool = False  # every row has two entries, one per side, as in ratings
    has_indicators: bool = False  # libsvm: all values are 1

    @property
    def is_measurement(self) -> bool:
        return self.kind in ("sensing", "phase")

    def arguments(self) -> list[str]:
        """Return the options of ``train``."""
        arguments = ["--kind", self.kind, "--rank", str(self.rank), "--precision", self.precision]
        if self.kind == "gfm":
            arguments += ["--diagonal", self.diagonal]
        if self.layout in ("csv", "tsv"):
            arguments += ["--target", "y"]
            if self.has_weights:
                arguments += ["--weight", "weight"]
        if self.kind == "bilinear":
            right = {"npy": "2-4", "libsvm": f"{_SPARSE_INDICES // 2 * self.index_step}-"}
            arguments += ["--right", right.get(self.layout, "right*")]
        if self.has_range:
            arguments += ["--range", f"-{_RANGE_BOUND},{_RANGE_BOUND}"]
        if self.hash_bits:
            arguments += ["--hash-bits", str(self.hash_bits)]
        return arguments


def random_case(random: np.random.Generator, number: int, solver: str) -> Case:
    """Return a case that the solver supports. Successive numbers cover all kinds, layouts and diagonals."""

    def choose(*values: int) -> int:
        return values[random.integers(len(values))]

    kind, layout, diagonal = SHAPES[number % len(SHAPES)]
    is_measurement = kind in ("sensing", "phase")
    is_class = not is_measurement and bool(random.integers(2))
    return Case(
        kind=kind,
        layout=layout,
        diagonal=diagonal,
        is_class=is_class,
        has_weights=layout in ("csv", "tsv") and bool(random.integers(2)),
        has_range=not is_class and not is_measurement and solver != "moment" and bool(random.integers(2)),
        hash_bits=choose(0, 0, 3) if layout != "npy" and not is_measurement else 0,
        rank=1 if kind == "phase" else choose(1, 2, 3),
        index_step=choose(1, 5),
    )


@dataclasses.dataclass
class Rows:
    """Rows (mappings from a column to a cell), targets and weights."""

    case: Case
    cells: list[dict[Any, Any]]
    targets: list[Any]
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.cells)

    def are_dense(self, dim: int) -> bool:
        """Return whether rows are dense. libsvm rows are dense if a quarter of all entries are not zero."""
        if self.case.layout == "libsvm":
            return 4 * sum(map(len, self.cells)) >= len(self) * dim
        return self.case.layout == "npy" or self.case.is_measurement

    def write(self, folder: pathlib.Path, name: str) -> list[str]:
        """Write the rows to files; return the arguments that name them."""
        path = folder / f"{name}.{self.case.layout}"
        if self.case.layout == "npy":
            np.save(path, np.array([[row[j] for j in sorted(row)] for row in self.cells], dtype=float))
            target_path = folder / f"{name}.target.npy"
            np.save(target_path, np.array(self.targets, dtype=float))
            return [str(path), "--target-file", str(target_path)]
        if self.case.layout == "libsvm":
            lines = [
                " ".join([str(y), *(f"{index}:{value!r}" for index, value in sorted(row.items()))])
                for row, y in zip(self.cells, self.targets)
            ]
        else:
            separator = "\t" if self.case.layout == "tsv" else ","
            lines = [separator.join([*self.cells[0], "y", "weight"][: None if self.case.has_weights else -1])]
            for row, y, weight in zip(self.cells, self.targets, self.weights):
                line = [*map(str, row.values()), str(y)] + ([repr(float(weight))] if self.case.has_weights else [])
                lines.append(separator.join(line))
        path.write_text("\n".join(lines) + "\n")
        return [str(path)]

    def encoded(self, file: ModelFile) -> tuple[np.ndarray, np.ndarray]:
        """Return the features and targets in the encoding of a model file."""
        encoder = Encoder(file)
        X = np.array([encoder.encode(row) for row in self.cells])
        y = np.array([encoder.encode_target(target) for target in self.targets])
        if self.case.precision == "single":
            X, y = X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)
        return X, y


def random_rows(case: Case, random: np.random.Generator, count: int, signal: float = 0) -> Rows:
    """Return rows of independent cells. Targets are normal noise plus ``signal`` times the effects of the cells."""
    make = {"npy": _random_matrix_row, "libsvm": _random_sparse_row}.get(case.layout, _random_table_row)
    cells = [make(case, random) for _ in range(count)]
    effects = np.array([sum(map(_effect, row.items())) for row in cells])
    targets: list[Any] = (random.normal(size=count) + signal * effects).tolist()
    if case.is_class:
        targets = [_CLASS_LABELS[int(value > 0)] for value in targets]
    elif case.has_range:
        targets = [min(max(value, -_RANGE_BOUND), _RANGE_BOUND) for value in targets]
    elif case.kind == "phase":
        targets = [abs(value) for value in targets]
    weights = np.exp(random.normal(size=count)) if case.has_weights else np.ones(count)
    return Rows(case, cells, targets, weights)


def _effect(cell: tuple[Any, Any]) -> float:
    """Return the value times a coefficient of its column, or a number in [-1, 1] for a category."""
    column, value = cell
    try:
        return float(value) * np.cos(stable_hash(str(column).encode(), 1))
    except ValueError:
        return np.cos(stable_hash(f"{column}={value}".encode(), 1))


def _random_matrix_row(case: Case, random: np.random.Generator) -> dict[Any, Any]:
    return dict(enumerate(random.normal(1, 2, size=5).tolist()))


def _random_sparse_row(case: Case, random: np.random.Generator) -> dict[Any, Any]:
    """Return a row with a few indices of each side."""
    half = _SPARSE_INDICES // 2
    left = random.choice(half, size=1 if case.has_pairs else 2, replace=False)
    count = 1 if case.has_pairs else random.integers(1, 4)
    right = half + random.choice(_SPARSE_INDICES - half, size=count, replace=False)
    indices = [int(index) * case.index_step for index in sorted([*left, *right])]
    return {index: 1.0 if case.has_indicators else float(random.uniform(0.3, 3)) for index in indices}


def group_file(folder: pathlib.Path) -> str:
    """Write the prior groups of the indices of libsvm rows, one group per side; return the path."""
    half = _SPARSE_INDICES // 2
    path = folder / "groups.txt"
    path.write_text("left\n" * half + "right\n" * (_SPARSE_INDICES - half))
    return str(path)


def _random_table_row(case: Case, random: np.random.Generator) -> dict[Any, Any]:
    """Return a row of two numbers, one possibly missing, and two categories; measurements: numbers only."""

    def number() -> str:
        return repr(float(random.normal(1, 2)))

    if case.is_measurement:
        return {name: number() for name in ("left_a", "left_b", "right_a", "right_b")}
    if case.has_pairs:
        return {"left_category": "uvwxy"[random.integers(5)], "right_category": "pqr"[random.integers(3)]}
    return {
        "left_number": number(),
        "left_category": "uvw"[random.integers(3)],
        "right_number": number() if random.random() < 0.7 else "",
        "right_category": "pq"[random.integers(2)],
    }


def run(*arguments: str) -> str:
    """Run the ``dyad`` command on one thread, and return its output. Raise if it fails."""
    command = os.environ["DYAD_COMMAND"]
    result = subprocess.run([command, *arguments, "--threads", "1"], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"dyad {' '.join(arguments)}: {result.stderr}")
    return result.stdout


def train(case: Case, rows: Rows, folder: pathlib.Path, *options: str) -> pathlib.Path:
    """Train a new model; return its file."""
    model = folder / "model.dyad"
    model.unlink(missing_ok=True)
    run("train", *rows.write(folder, "rows"), "-m", str(model), *case.arguments(), *options)
    return model


def resume(file: ModelFile, rows: Rows, folder: pathlib.Path) -> ModelFile:
    """Continue training from a changed model file; return the resulting file."""
    path = folder / "resumed.dyad"
    file.write(path)
    run("train", *rows.write(folder, "more"), "-m", str(path), "--resume")
    return ModelFile.read(path)


def predict(model: pathlib.Path, rows: Rows, folder: pathlib.Path, *options: str) -> np.ndarray:
    """Return the predictions of the command line, one line per row."""
    paths = [argument for argument in rows.write(folder, "to_predict") if argument.endswith(f".{rows.case.layout}")][:1]
    output = folder / "predictions.txt"
    run("predict", "-m", str(model), *paths, "-o", str(output), *options)
    return np.loadtxt(output, delimiter=",", ndmin=2)
