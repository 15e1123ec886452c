"""The model file (docs/model-file.md): safetensors with a checksum, read and written without dyad."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import zlib
from typing import Any

import numpy as np

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}
_CHECKSUM_KEY = b'"checksum":"'
_CHECKSUM_DIGITS = 8


@dataclasses.dataclass
class ModelFile:
    """Tensors and metadata of a model file. ``features`` is the parsed JSON of the metadata entry of that name."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]
    features: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ModelFile:
        """Read a file. Raise ValueError if its checksum or its size is wrong."""
        with open(path, "rb") as file:
            content = file.read()
        if _with_checksum(content) != content:
            raise ValueError(f"{path}: the checksum does not match the content")
        (header_size,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + header_size])
        metadata = header.pop("__metadata__")
        arrays = content[8 + header_size :]
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            values = np.frombuffer(arrays[begin:end], dtype=_DTYPES[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"]).copy()
        if max((entry["data_offsets"][1] for entry in header.values()), default=0) != len(arrays):
            raise ValueError(f"{path}: the arrays do not fill the file")
        return cls(tensors, metadata, json.loads(metadata["features"]))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file with a new checksum. A changed ``features`` replaces the metadata entry."""
        metadata = dict(self.metadata, checksum="0" * _CHECKSUM_DIGITS)
        if self.features != json.loads(metadata["features"]):
            metadata["features"] = json.dumps(self.features)
        header: dict[str, Any] = {"__metadata__": metadata}
        arrays = b""
        for name, values in sorted(self.tensors.items()):
            dtype = next(key for key, numpy_name in _DTYPES.items() if np.dtype(numpy_name) == values.dtype)
            begin = len(arrays)
            arrays += np.ascontiguousarray(values).tobytes()
            header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [begin, len(arrays)]}
        text = json.dumps(header, separators=(",", ":")).encode()
        with open(path, "wb") as file:
            file.write(_with_checksum(struct.pack("<Q", len(text)) + text + arrays))

    def number(self, name: str) -> float:
        """Return the value of an array of one element."""
        return float(self.tensors[name].item())

    def set_number(self, name: str, value: float) -> None:
        """Set an array of one element."""
        self.tensors[name] = np.array([value], dtype=float)


def _with_checksum(content: bytes) -> bytes:
    """Return the content with its CRC-32, computed with the digits of the checksum set to zero."""
    begin = content.index(_CHECKSUM_KEY) + len(_CHECKSUM_KEY)
    end = begin + _CHECKSUM_DIGITS
    zeroed = content[:begin] + b"0" * _CHECKSUM_DIGITS + content[end:]
    return content[:begin] + b"%08x" % zlib.crc32(zeroed) + content[end:]
