"""Compares two folders of models."""

import dataclasses
import hashlib
import json
import math
import pathlib
from typing import Any, Iterator

import numpy as np
from reference.model_file import ModelFile

# The checksum depends on all other bytes. The program version is not part of the result.
IGNORED_METADATA = ("checksum", "written_by")


@dataclasses.dataclass
class Tolerance:
    """Maximum relative differences by precision. None: all bytes must be equal."""

    double: float | None = None
    single: float | None = None


def digest(content: bytes) -> str:
    """Return the first 64 bits of the SHA-256 hash."""
    return hashlib.sha256(content).hexdigest()[:16]


def describe(path: pathlib.Path) -> Iterator[str]:
    """Yield a line for each metadata entry and each tensor: name, type, shape, SHA-256 and leading values."""
    file = ModelFile.read(path)
    for name, text in sorted(file.metadata.items()):
        if name not in IGNORED_METADATA:
            yield f"{name}  text {digest(text.encode())}  {text}"
    for name, values in sorted(file.tensors.items()):
        leading = " ".join(f"{value:.17g}" for value in values.ravel()[:4])
        yield f"{name}  {values.dtype.str[1:]} {list(values.shape)} {digest(values.tobytes())}  {leading}"


def relative_difference(a: Any, b: Any) -> float:
    """Return the largest difference divided by the largest absolute value; infinity if shapes, NaNs or infinite values differ."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return math.inf
    same = (a == b) | np.isnan(a)
    if same.all():
        return 0.0
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite[~same].all():
        return math.inf
    return float(np.max(np.abs(a - b)[~same]) / max(np.max(np.abs(a[finite])), np.max(np.abs(b[finite]))))


def compare_folders(a: pathlib.Path, b: pathlib.Path, tolerance: Tolerance, predictions_only: bool) -> list[str]:
    """Return a line for each difference."""
    differences = []
    for name in sorted({str(path.relative_to(root)) for root in (a, b) for path in root.rglob("*") if path.is_file()}):
        left, right = a / name, b / name
        if name == "listing.txt" or (predictions_only and name.endswith(".dyad")):
            continue
        if not (left.exists() and right.exists()):
            differences.append(f"{name}: only in {a if left.exists() else b}")
        elif left.read_bytes() == right.read_bytes():
            continue
        elif name.startswith("data/"):
            differences.append(f"{name}: the training data differ")
        else:
            differences += [f"{name}: {difference}" for difference in _compare_files(left, right, tolerance)]
    return differences


def _compare_files(a: pathlib.Path, b: pathlib.Path, tolerance: Tolerance) -> Iterator[str]:
    if a.suffix == ".dyad":
        yield from _compare_models(ModelFile.read(a), ModelFile.read(b), tolerance)
    elif a.suffix == ".json":
        yield from _compare_json("", json.loads(a.read_text()), json.loads(b.read_text()), tolerance.double)
    else:
        is_single = a.name.endswith("-single.predictions.txt")
        limit = tolerance.single if is_single else tolerance.double
        left, right = (np.loadtxt(path, delimiter=",", ndmin=2) for path in (a, b))
        if left.shape != right.shape:
            yield f"{left.shape} predictions instead of {right.shape}"
            return
        for name, column in zip(("predictions", "deviations"), range(left.shape[1])):
            yield from _compare_values(name, left[:, column], right[:, column], limit)


def _compare_values(name: str, a: Any, b: Any, limit: float | None) -> Iterator[str]:
    """Yield a difference above the limit or, without a limit, of any byte. Zeros of different sign have a relative difference of 0."""
    difference = relative_difference(a, b)
    is_equal = difference <= limit if limit is not None else np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if not is_equal:
        yield f"{name}: relative difference {difference:.2g}"


def _compare_models(a: ModelFile, b: ModelFile, tolerance: Tolerance) -> Iterator[str]:
    is_single = a.tensors["weights"].dtype == np.float32
    limit = tolerance.single if is_single else tolerance.double
    for name in sorted(a.metadata.keys() | b.metadata.keys()):
        left, right = a.metadata.get(name), b.metadata.get(name)
        if left == right or name in IGNORED_METADATA:
            continue
        if name == "features" and limit is not None:
            yield from _compare_json("features", a.features, b.features, limit)
        else:
            yield f"metadata {name}: {left} instead of {right}"
    for name in sorted(a.tensors.keys() | b.tensors.keys()):
        if name not in a.tensors or name not in b.tensors:
            yield f"tensor {name} is only in the {'first' if name in a.tensors else 'second'} file"
            continue
        left, right = a.tensors[name], b.tensors[name]
        if left.dtype != right.dtype or left.shape != right.shape:
            yield f"tensor {name}: {left.dtype} {left.shape} instead of {right.dtype} {right.shape}"
        elif limit is not None and name.endswith("factors") and name.replace("factors", "spectrum") in a.tensors:
            products = _products(a, name), _products(b, name)
            yield from _compare_values(f"tensor {name}, as U diag(spectrum) U'", *products, limit)
        else:
            yield from _compare_values(f"tensor {name}", left, right, limit)


def _products(file: ModelFile, name: str) -> np.ndarray:
    """Return U diag(spectrum) U', which does not depend on the arbitrary signs of the eigenvectors."""
    spectrum = file.tensors[name.replace("factors", "spectrum")].astype(float)
    factors = file.tensors[name].astype(float).reshape(-1, spectrum.size)
    return factors * spectrum @ factors.T


def _compare_json(path: str, a: Any, b: Any, limit: float | None) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _compare_json(f"{path}.{key}", a[key], b[key], limit)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b)):
            yield from _compare_json(f"{path}[{index}]", left, right, limit)
    elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (a, b)):
        yield from _compare_values(path, a, b, limit)
    elif a != b:
        yield f"{path}: {a} instead of {b}"
