"""Encoding of cells as features, and of predictions in the units of the target (docs/model-file.md)."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from .model_file import ModelFile

_MISSING = ("", "NA", "NaN", "nan", "NAN")
_UNBOUNDED = np.finfo(float).max  # stored bound of a target without a range
_UINT64 = (1 << 64) - 1


def stable_hash(content: bytes, seed: int) -> int:
    """64-bit FNV-1a, followed by the finalizer of MurmurHash3."""
    value = 0xCBF29CE484222325 ^ (seed * 0x9E3779B97F4A7C15 & _UINT64)
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & _UINT64
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _UINT64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _UINT64
    return value ^ value >> 33


class Encoder:
    """Encoder of rows, which are mappings from a column to a cell.

    A column is a name (csv), a position (npy) or an index (libsvm). A cell is a string (csv) or a number.
    """

    def __init__(self, file: ModelFile) -> None:
        self.map = file.features
        self.columns = self.map["columns"]
        self.target = self.map["target"]
        self.is_bilinear = self.map["kind"] == "bilinear"
        self.is_libsvm = self.map["format"] == "libsvm"
        self._read_categories(file)
        self._assign_indices()

    def _read_categories(self, file: ModelFile) -> None:
        """Read the concatenated names of all categories. ``ends`` and ``columns`` have one entry per category."""
        text = file.tensors["categories.text"].tobytes()
        begin = 0
        self.categories: list[tuple[int, str]] = []
        for end, column in zip(file.tensors["categories.ends"], file.tensors["categories.columns"]):
            self.categories.append((int(column), text[begin:end].decode()))
            begin = int(end)
        used = file.tensors.get("hash.used", np.zeros(0, np.uint8))
        self._used_bits = np.unpackbits(used, bitorder="little")

    def _assign_indices(self) -> None:
        """Assign feature indices. The order on each side: numbers by column, indicators of missing cells, categories."""
        bits = self.map["hash_bits"]
        self._number: dict[int, int] = {}
        self._missing_indicator: dict[int, int] = {}
        self._category: dict[tuple[int, str], int] = {}
        self._first_slot = [0, 0]
        counts = [0, 0]
        self._used_slots = [np.zeros(0, np.uint8), np.zeros(0, np.uint8)]
        first_bit = 0
        for side in (0, 1):
            side_columns = [i for i, column in enumerate(self.columns) if column.get("right", False) == bool(side)]
            for i in side_columns:
                if self.columns[i]["role"] == "number":
                    self._number[i] = counts[side]
                    counts[side] += 1
            for i in side_columns:
                if self.columns[i].get("marks_missing", False):
                    self._missing_indicator[i] = counts[side]
                    counts[side] += 1
            self._first_slot[side] = counts[side]
            has_categories = any(self.columns[i]["role"] == "category" for i in side_columns)
            has_categories = has_categories or (self.is_libsvm and (side == 0 or self.is_bilinear))
            if bits and has_categories:
                counts[side] += 1 << bits
                # The bits of a side are padded to whole bytes.
                self._used_slots[side] = self._used_bits[first_bit : first_bit + (1 << bits)]
                first_bit += -(-(1 << bits) // 8) * 8
            for column, text in self.categories:
                if column in side_columns:
                    self._category[column, text] = counts[side]
                    counts[side] += 1
            if self.is_libsvm and not bits:
                counts[side] = self.map["left_count" if side == 0 else "right_count"]
            if has_categories and not bits:
                counts[side] = max(counts[side], self.map["least_count"])
        self.left_count = counts[0]
        self.dim = counts[0] + counts[1]

    @property
    def left_dim(self) -> int:
        """Number of features of x; 0 for a symmetric model."""
        return self.left_count if self.is_bilinear else 0

    def encode(self, row: Mapping[Any, Any]) -> np.ndarray:
        """Return z_j = (min(max(x_j, low_j), high_j) - centre_j) / scale_j, and 1 for each category of the row.

        Unknown categories are omitted.
        """
        features = np.zeros(self.dim)
        if self.is_libsvm:
            for index, value in row.items():
                side, position = self._position_of_index(index)
                if position is not None:
                    features[position + side * self.left_count] += value
            return features
        for i, column in enumerate(self.columns):
            cell = row[column["name"]] if self.map["format"] == "csv" else row[i]
            side = int(column.get("right", False))
            offset = side * self.left_count
            if column["role"] == "category":
                position = self._position_of_category(i, side, "" if cell in _MISSING else cell)
                if position is not None:
                    features[offset + position] += 1
            elif isinstance(cell, str) and cell in _MISSING:
                if i in self._missing_indicator:
                    features[offset + self._missing_indicator[i]] = 1
            else:
                features[offset + self._number[i]] = _scaled(column["scaling"], float(cell))
        return features

    def unknown_groups(self, row: Mapping[Any, Any]) -> list[int]:
        """Return the prior group of each category or index of a row that is not in the model.

        The group is the column; hashed features and indices: a group per side behind the columns; bilinear: the side.
        """
        unknown = []
        if self.is_libsvm:
            unknown = [side for side, position in map(self._position_of_index, row) if position is None]
            return unknown if self.is_bilinear else [len(self.columns) + side for side in unknown]
        for i, column in enumerate(self.columns):
            side = int(column.get("right", False))
            if column["role"] != "category":
                continue
            cell = row[column["name"]]
            if self._position_of_category(i, side, "" if cell in _MISSING else cell) is None:
                group = len(self.columns) + side if self.map["hash_bits"] else i
                unknown.append(side if self.is_bilinear else group)
        return unknown

    def _position_of_category(self, column: int, side: int, text: str) -> int | None:
        if self.map["hash_bits"]:
            return self._slot(side, stable_hash(text.encode(), column))
        return self._category.get((column, text))

    def _position_of_index(self, index: int) -> tuple[int, int | None]:
        is_right = self.is_bilinear and index >= self.map["right_first"]
        side = int(is_right)
        if self.map["hash_bits"]:
            return side, self._slot(side, stable_hash(int(index).to_bytes(8, "little"), 0))
        position = index - (self.map["right_first"] if is_right else self.map["index_base"])
        count = self.map["right_count" if is_right else "left_count"]
        return side, position if position < count else None

    def _slot(self, side: int, hashed: int) -> int | None:
        slot = hashed & (1 << self.map["hash_bits"]) - 1
        return self._first_slot[side] + slot if self._used_slots[side][slot] else None

    def encode_target(self, cell: Any) -> float:
        """Return the scaled number, or -1 and +1 for classes."""
        if self.target["task"] == "classification":
            return 1.0 if str(cell) == self.target["positive"] else -1.0
        return _scaled(self.target["scaling"], float(cell))

    def scaled_range(self) -> tuple[float, float]:
        """Return the bounds of the scaled targets; infinite if there are none."""
        low, high = self.target["low"], self.target["high"]
        return (
            _scaled(self.target["scaling"], low) if low > -_UNBOUNDED else -np.inf,
            _scaled(self.target["scaling"], high) if high < _UNBOUNDED else np.inf,
        )

    def in_units(self, predictions: np.ndarray) -> np.ndarray:
        """Return p = 1 / (1 + exp(-f)) for classes, and target.centre + target.scale * f for numbers.

        Numbers are clipped to [low, high] and to [least_seen - width, most_seen + width], width = most_seen - least_seen.
        """
        if self.target["task"] == "classification":
            return np.exp(-np.logaddexp(0, -predictions))
        values = self.target["scaling"]["centre"] + self.target["scaling"]["scale"] * predictions
        least, most = self.target["least_seen"], self.target["most_seen"]
        if most < least:
            return values
        width = most - least
        return np.clip(values, max(self.target["low"], least - width), min(self.target["high"], most + width))


def _scaled(scaling: Mapping[str, float], value: float) -> float:
    return (min(max(value, scaling["low"]), scaling["high"]) - scaling["centre"]) / scaling["scale"]
