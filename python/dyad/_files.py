"""Model files: what ``save`` writes, and what `load` reads."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import warnings
from typing import Any, Optional, cast

from . import _core, _plain

# The classes that can be saved.
_CLASSES = (
    "FactorizationClassifier",
    "FactorizationRegressor",
    "InductiveMatrixCompletion",
    "Learner",
    "MatrixSensing",
    "PhaseRetrieval",
)


@dataclasses.dataclass
class Saved:
    """The content of a file. Files of the command line have neither parameters nor attributes."""

    parts: list[bytes]
    parameters: Optional[dict[str, Any]]
    attributes: Optional[dict[str, Any]]
    name: str

    def only_part(self) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
        """The only part, parameters and attributes. Raises ValueError if there are others."""
        if len(self.parts) != 1 or self.parameters is None or self.attributes is None:
            raise ValueError("it must have one part, parameters and attributes")
        return self.parts[0], self.parameters, self.attributes


def to_bytes(estimator: Any, parts: list[bytes], parameters: dict[str, Any], attributes: dict[str, Any]) -> bytes:
    """Return a file of the estimator: a model file if it has one part, which must be a model, else a container.

    Parameters
    ----------
    parts : list of bytes
        Its models, or the state of a learner.
    parameters : dict
        Those of its constructor. Functions and generators of random numbers are left out, with a warning.
    attributes : dict
        What else it needs; values of JSON.
    """
    # Subclasses of a user are loaded as the class of dyad that they extend.
    saved = next(one for one in type(estimator).__mro__ if one.__module__.startswith("dyad.") and one.__name__ in _CLASSES)
    kept, left_out = {}, []
    for name, value in parameters.items():
        if name not in inspect.signature(saved).parameters:
            continue
        try:
            kept[name] = _plain.encoded(value)
        except TypeError:
            left_out.append(name)
    if left_out:
        warnings.warn(
            f"{', '.join(left_out)} cannot be saved to a model file, and will be None after dyad.load; pickle keeps it.",
            stacklevel=3,
        )
    annotations = {"estimator": saved.__name__, "parameters": json.dumps(kept), "attributes": json.dumps(attributes)}
    if len(parts) == 1 and saved.__name__ != "Learner":
        return _core.annotate(parts[0], annotations)
    return _core.pack(annotations, parts)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file as a whole; if that fails, the old one stays. Links and permissions are kept."""
    name = os.fsencode(path)
    os.stat(os.path.dirname(name) or b".")  # FileNotFoundError
    _core.write_file(b"./-" if name == b"-" else name, content)  # "-" is standard output on the command line


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that ``save`` or the ``dyad`` command wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    FactorizationRegressor, FactorizationClassifier, MatrixSensing, PhaseRetrieval, InductiveMatrixCompletion or Learner
        Fitted, of the class that was saved and with its parameters. Models of the command line become a
        FactorizationRegressor or a FactorizationClassifier. ``partial_fit`` goes on from it.
    """
    os.stat(path)  # FileNotFoundError
    name = os.fsencode(path).decode(errors="replace")
    content = _core.read_file(os.fsencode(path))
    estimator = from_bytes(content, name)
    if not _core.has_checksum(content):
        warnings.warn(
            f"{name} has format version 1, which has no checksum, so that damage to the file may go unnoticed. Save the "
            "estimator again to add one.",
            stacklevel=2,
        )
    return estimator


def from_bytes(content: bytes, name: str = "the model") -> Any:
    """Make a fitted estimator of the bytes of a file; `name` is for messages."""
    annotations, parts = _core.unpack(content, name)
    if "estimator" not in annotations:
        is_class = bool(parts) and bool(_core.Predictor.from_bytes(parts[0], name).labels())
        annotations = {"estimator": "FactorizationClassifier" if is_class else "FactorizationRegressor"}
    saved = annotations["estimator"]
    if saved not in _CLASSES:
        raise _core.DataError(f"{name}: the file holds a {saved}, which this version of dyad does not know.")
    made = getattr(importlib.import_module(str(__package__)), saved)
    try:
        parameters = _read_json(annotations, "parameters")
        if parameters is not None:
            parameters = {key: _plain.decoded(value) for key, value in parameters.items()}
        return made._from_saved(Saved(parts, parameters, _read_json(annotations, "attributes"), name))
    except _core.DataError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise _core.DataError(f"{name}: the file of a {saved} is damaged: {error}.") from error


def _read_json(annotations: dict[str, str], key: str) -> Optional[dict[str, Any]]:
    if key not in annotations:
        return None
    value = json.loads(annotations[key])
    if not isinstance(value, dict):
        raise ValueError(f"'{key}' is not a table")
    return cast(dict[str, Any], value)
