"""Generates small data files of all layouts."""

import dataclasses
import pathlib

import numpy as np

TRAINING_ROWS = 600
HELD_OUT_ROWS = 60
LIKELIHOODS = ("number", "class", "range")


@dataclasses.dataclass
class Files:
    """Arguments of `dyad train` and `dyad predict` that specify the rows, and options that describe their columns."""

    training: list[str]
    held_out: list[str]
    options: list[str]


def generate(folder: pathlib.Path, seed: int) -> dict[tuple[str, str], Files]:
    """Write all files. Return them by data set and likelihood."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for likelihood in LIKELIHOODS:
        for number, (name, make) in enumerate(_DATA_SETS.items()):
            random = np.random.default_rng([seed, number])
            files[name, likelihood] = make(folder / f"{name}-{likelihood}", random, likelihood)
    for number, (name, make) in enumerate(_MEASUREMENTS.items()):
        files[name, "number"] = make(folder / f"{name}-number", np.random.default_rng([seed, 100 + number]))
    return files


def _targets(scores: np.ndarray, random: np.random.Generator, likelihood: str, labels: tuple[str, str]) -> list[str]:
    """Return noisy scores as numbers, as two classes, or as integer ratings from 1 to 5, many of them at a bound."""
    noisy = (scores - scores.mean()) / scores.std() + 0.3 * random.normal(size=len(scores))
    if likelihood == "class":
        return [labels[int(value > 0)] for value in noisy]
    if likelihood == "range":
        return [str(int(value)) for value in np.clip(np.round(3 + 1.5 * noisy), 1, 5)]
    return [repr(float(10 + 4 * value)) for value in noisy]


def _write_split(path: pathlib.Path, suffix: str, lines: list[str], header: list[str]) -> tuple[list[str], list[str]]:
    names = []
    for split, rows in (("train", lines[:TRAINING_ROWS]), ("test", lines[TRAINING_ROWS:])):
        file = path.with_name(f"{path.name}.{split}.{suffix}")
        file.write_text("\n".join(header + rows) + "\n")
        names.append([str(file)])
    return names[0], names[1]


def _table(path: pathlib.Path, random: np.random.Generator, likelihood: str, separator: str = ",") -> Files:
    """Numeric columns (one with missing values), categories (one of them numeric), weights, and an ignored column."""
    count = TRAINING_ROWS + HELD_OUT_ROWS
    area, rooms, age = random.normal(80, 20, count), random.normal(4, 1, count), random.exponential(30, count)
    city, zip_code, heating = random.integers(5, size=count), random.integers(4, size=count), random.integers(3, size=count)
    effects = random.normal(size=(5, 4))
    scores = area * rooms / 100 + effects[city, zip_code] + 0.02 * age * (heating == 1)
    targets = _targets(scores, random, likelihood, ("no", "yes"))
    lines = []
    for i in range(count):
        # Two cities occur only in held-out rows.
        name = f"c{city[i]}" if i < TRAINING_ROWS or i % 9 else f"new{i % 2}"
        cells = [f"{area[i]:.6g}", f"{rooms[i]:.6g}", "" if random.random() < 0.1 else f"{age[i]:.6g}", name]
        cells += [str(1000 + zip_code[i]), "abc"[heating[i]], str(1 + i % 3), f"note {i}", targets[i]]
        lines.append(separator.join(cells))
    header = separator.join(["area", "rooms", "age", "city", "zip", "heating", "count", "note", "y"])
    train, test = _write_split(path, "tsv" if separator == "\t" else "csv", lines, [header])
    return Files(train, test, ["--target", "y", "--categorical", "zip", "--ignore", "note", "--weight", "count"])


def _tab_table(path: pathlib.Path, random: np.random.Generator, likelihood: str) -> Files:
    return _table(path, random, likelihood, "\t")


def _ratings(path: pathlib.Path, random: np.random.Generator, likelihood: str) -> Files:
    """Two categorical columns."""
    count = TRAINING_ROWS + HELD_OUT_ROWS
    user, film = random.integers(25, size=count), random.integers(15, size=count)
    factors = random.normal(size=(25, 2)), random.normal(size=(15, 2))
    scores = (factors[0][user] * factors[1][film]).sum(axis=1) + factors[1][film, 0]
    targets = _targets(scores, random, likelihood, ("bad", "good"))
    lines = [f"u{user[i]},f{film[i]},{targets[i]}" for i in range(count)]
    return Files(*_write_split(path, "csv", lines, ["user,film,y"]), ["--target", "y"])


def _matrix(path: pathlib.Path, random: np.random.Generator, likelihood: str) -> Files:
    """Numeric matrix in a npy file, with a second file for the targets."""
    count = TRAINING_ROWS + HELD_OUT_ROWS
    X = random.normal(2, 3, size=(count, 6))
    Z = (X - 2) / 3
    scores = Z[:, 0] - 2 * Z[:, 1] * Z[:, 4] + Z[:, 2] * Z[:, 5] + Z[:, 3] ** 2
    y = np.array(_targets(scores, random, likelihood, ("0", "1")), dtype=float)
    names = []
    for part, rows in (("train", slice(0, TRAINING_ROWS)), ("test", slice(TRAINING_ROWS, None))):
        file, targets = (path.with_name(f"{path.name}.{part}{end}.npy") for end in ("", ".target"))
        np.save(file, X[rows])
        np.save(targets, y[rows])
        names.append([str(file), "--target-file", str(targets)])
    return Files(names[0], names[1], [])


def _libsvm_line(target: str, row: dict[int, float]) -> str:
    return " ".join([target, *(f"{index}:{value:.6g}" for index, value in sorted(row.items()))])


def _sparse(path: pathlib.Path, random: np.random.Generator, likelihood: str) -> Files:
    """libsvm rows with indices from 1 to 24: two of the lower half and two or three of the upper half."""
    count = TRAINING_ROWS + HELD_OUT_ROWS
    effects = random.normal(size=(25, 3))
    rows, scores = [], []
    for _ in range(count):
        left = 1 + random.choice(12, size=2, replace=False)
        right = 13 + random.choice(12, size=random.integers(2, 4), replace=False)
        rows.append({int(index): float(random.uniform(0.5, 2)) for index in (*left, *right)})
        halves = [sum(rows[-1][int(i)] * effects[i] for i in half) for half in (left, right)]
        scores.append(halves[0] @ halves[1] + 4 * halves[0][0])
    targets = _targets(np.array(scores), random, likelihood, ("-1", "1"))
    lines = [_libsvm_line(target, row) for target, row in zip(targets, rows)]
    return Files(*_write_split(path, "libsvm", lines, []), ["--index-base", "1"])


def _filled(path: pathlib.Path, random: np.random.Generator, likelihood: str) -> Files:
    """libsvm rows in which most values are non-zero."""
    count = TRAINING_ROWS + HELD_OUT_ROWS
    X = random.normal(size=(count, 7)) * (random.random(size=(count, 7)) < 0.8)
    targets = _targets(X[:, 0] + X[:, 1] * X[:, 2] - X[:, 5] * X[:, 6], random, likelihood, ("0", "1"))
    lines = [_libsvm_line(y, {j: x for j, x in enumerate(row) if x != 0}) for y, row in zip(targets, X)]
    return Files(*_write_split(path, "libsvm", lines, []), [])


def _measure(random: np.random.Generator, is_phase: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y = x'Mx with eigenvalues of both signs or, for phases, (a'x)^2, with noise 0.01."""
    X = random.normal(size=(TRAINING_ROWS + HELD_OUT_ROWS, 8))
    U = np.linalg.qr(random.normal(size=(8, 2)))[0]
    y = (X @ U[:, 0]) ** 2 - (0 if is_phase else 0.5 * (X @ U[:, 1]) ** 2)
    return X, np.abs(y + 0.01 * random.normal(size=len(y))) if is_phase else y + 0.01 * random.normal(size=len(y))


def _measurements(layout: str, is_phase: bool):
    def make(path: pathlib.Path, random: np.random.Generator) -> Files:
        X, y = _measure(random, is_phase)
        if layout == "npy":
            names = []
            for part, rows in (("train", slice(0, TRAINING_ROWS)), ("test", slice(TRAINING_ROWS, None))):
                file, targets = (path.with_name(f"{path.name}.{part}{end}.npy") for end in ("", ".target"))
                np.save(file, X[rows])
                np.save(targets, y[rows])
                names.append([str(file), "--target-file", str(targets)])
            return Files(names[0], names[1], [])
        if layout == "libsvm":
            lines = [_libsvm_line(repr(float(target)), dict(enumerate(row))) for target, row in zip(y, X)]
            return Files(*_write_split(path, "libsvm", lines, []), [])
        lines = [",".join(map(repr, [*row.tolist(), float(target)])) for target, row in zip(y, X)]
        header = ",".join([*(f"x{j}" for j in range(8)), "y"])
        return Files(*_write_split(path, "csv", lines, [header]), ["--target", "y"])

    return make


_DATA_SETS = {
    "table": _table,
    "tsv": _tab_table,
    "ratings": _ratings,
    "matrix": _matrix,
    "sparse": _sparse,
    "filled": _filled,
}
_MEASUREMENTS = {
    f"{kind}-{name}": _measurements(layout, kind == "phase")
    for kind in ("sensing", "phase")
    for name, layout in (("table", "csv"), ("matrix", "npy"), ("sparse", "libsvm"))
}
