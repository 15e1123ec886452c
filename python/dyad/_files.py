"""Model files: written by the ``save`` methods and read by `load`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import warnings
from typing import Any, Optional, cast

from . import _core, _json_values

# Names of the classes that can be saved.
_SAVABLE_CLASSES = (
    "FactorizationClassifier",
    "FactorizationRegressor",
    "InductiveMatrixCompletion",
    "Learner",
    "MatrixSensing",
    "PhaseRetrieval",
)


@dataclasses.dataclass
class SavedEstimator:
    """Content of a model file.

    Attributes
    ----------
    parts : list of bytes
        Models, or the state of a learner. A container file has one tensor per part.
    parameters : dict, optional
        Constructor parameters; None for files of the command line.
    attributes : dict, optional
        Fitted attributes besides the models; None for files of the command line.
    name : str
        Name of the file in error messages.
    content : bytes
        The whole file.
    """

    parts: list[bytes]
    parameters: Optional[dict[str, Any]]
    attributes: Optional[dict[str, Any]]
    name: str
    content: bytes

    def single_part(self) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
        """Return the part, the parameters and the attributes. Raise ValueError unless there is one of each."""
        if len(self.parts) != 1 or self.parameters is None or self.attributes is None:
            raise ValueError("it must have one part, parameters and attributes")
        return self.parts[0], self.parameters, self.attributes


def to_bytes(estimator: Any, parts: list[bytes], parameters: dict[str, Any], attributes: dict[str, Any]) -> bytes:
    """Serialize an estimator: as a model file if it has one model, else as a container.

    Parameters
    ----------
    estimator : object
        Instance of a class that can be saved, or of a subclass.
    parts : list of bytes
        Models, or the state of a learner.
    parameters : dict
        Constructor parameters. Functions and random generators are omitted with a warning.
    attributes : dict
        Fitted attributes as JSON values.
    """
    # A subclass defined by a user is saved and loaded as the class of dyad that it extends.
    saved_class = next(
        base
        for base in type(estimator).__mro__
        if base.__module__.startswith("dyad.") and base.__name__ in _SAVABLE_CLASSES
    )
    encoded, omitted = {}, []
    for name, value in parameters.items():
        if name not in inspect.signature(saved_class).parameters:
            continue
        try:
            encoded[name] = _json_values.encode_value(value)
        except TypeError:
            omitted.append(name)
    if omitted:
        warnings.warn(
            f"{', '.join(omitted)} cannot be saved to a model file and will be None after dyad.load; use pickle to "
            "keep the value.",
            stacklevel=3,
        )
    annotations = {
        "estimator": saved_class.__name__,
        "parameters": json.dumps(encoded),
        "attributes": json.dumps(attributes),
    }
    if len(parts) == 1 and saved_class.__name__ != "Learner":
        return _core.annotate(parts[0], annotations)
    return _core.pack_container(annotations, parts)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file atomically; if writing fails, the old file is unchanged. Links and permissions are kept."""
    name = os.fsencode(path)
    os.stat(os.path.dirname(name) or b".")  # raises FileNotFoundError
    _core.write_file(b"./-" if name == b"-" else name, content)  # the extension writes "-" to standard output


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator from a model file that ``save`` or the ``dyad`` command wrote.

    Parameters
    ----------
    path : str or path-like
        Model file.

    Returns
    -------
    estimator : FactorizationRegressor, FactorizationClassifier, MatrixSensing, PhaseRetrieval, \
InductiveMatrixCompletion or Learner
        Fitted estimator of the class that was saved, with the same constructor parameters. A model of the command line
        is a `FactorizationRegressor` or a `FactorizationClassifier`. Training can be continued with ``partial_fit``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the file is not a model file, or is damaged.

    Warns
    -----
    UserWarning
        If the file has format version 1, which has no checksum.

    See Also
    --------
    FactorizationRegressor.save : Save an estimator.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import dyad
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dyad"
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> dyad.FactorizationRegressor(rank=1).fit(X, X[:, 0]).save(path)
    >>> dyad.load(path)
    FactorizationRegressor(rank=1)
    """
    os.stat(path)  # raises FileNotFoundError
    name = os.fsencode(path).decode(errors="replace")
    content = _core.read_file(os.fsencode(path))
    estimator = from_bytes(content, name)
    if not _core.has_checksum(content):
        warnings.warn(
            f"{name} has format version 1 without a checksum, so that damage to the file may not be detected. Save the "
            "estimator again to add a checksum.",
            stacklevel=2,
        )
    return estimator


def from_bytes(content: bytes, name: str = "the model") -> Any:
    """Return the fitted estimator of the bytes of a model file; ``name`` is used in error messages."""
    annotations, parts = _core.unpack_container(content, name)
    if "estimator" not in annotations:
        is_classifier = bool(parts) and bool(_core.Predictor.from_bytes(parts[0], name).labels())
        annotations = {"estimator": "FactorizationClassifier" if is_classifier else "FactorizationRegressor"}
    class_name = annotations["estimator"]
    if class_name not in _SAVABLE_CLASSES:
        raise _core.DataError(
            f"{name}: the estimator {class_name!r} is unknown to this version of dyad; load the file with the version "
            "that wrote it."
        )
    estimator_class = getattr(importlib.import_module(str(__package__)), class_name)
    try:
        parameters = _read_json(annotations, "parameters")
        if parameters is not None:
            parameters = {key: _json_values.decode_value(value) for key, value in parameters.items()}
            unknown = sorted(set(parameters) - set(inspect.signature(estimator_class).parameters))
            if unknown:
                raise _core.DataError(
                    f"{name}: the parameters {', '.join(unknown)} of {class_name} are unknown to this version of dyad; load "
                    "the file with the version that wrote it, or predict with the dyad command."
                )
        return estimator_class._from_saved(
            SavedEstimator(parts, parameters, _read_json(annotations, "attributes"), name, content)
        )
    except _core.DataError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise _core.DataError(f"{name}: the file of a {class_name} is damaged: {error}.") from error


def _read_json(annotations: dict[str, str], key: str) -> Optional[dict[str, Any]]:
    if key not in annotations:
        return None
    value = json.loads(annotations[key])
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object for '{key}'")
    return cast(dict[str, Any], value)
