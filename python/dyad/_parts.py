"""Learning from rows that lie in many parts, whoever holds them: blocks, what is asked about them, and who asks."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable
from typing import Any, Callable, Optional, Protocol

import numpy as np
import numpy.typing as npt

from . import _core

Array = npt.NDArray[Any]
ALL_HASHES = 2.0**64


@dataclasses.dataclass
class Block:
    """Rows of one part: a matrix, or compressed rows (``indices`` and ``offsets``); of ``width`` features."""

    width: int
    values: Array
    targets: Array
    weights: Optional[Array] = None
    indices: Optional[Array] = None
    offsets: Optional[Array] = None
    hashes: Optional[Array] = None

    @property
    def is_sparse(self) -> bool:
        return self.offsets is not None

    def __len__(self) -> int:
        return len(self.targets)

    def as_sparse(self) -> Block:
        if self.is_sparse:
            return self
        rows, columns = np.nonzero(self.values)
        offsets = np.searchsorted(rows, np.arange(len(self) + 1)).astype(np.int64)
        indices = columns.astype(np.int32)
        return dataclasses.replace(self, values=self.values[rows, columns], indices=indices, offsets=offsets)

    def as_dense(self) -> Block:
        if self.offsets is None or self.indices is None:
            return self
        values = np.zeros((len(self), self.width))
        values[np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices] = self.values
        return dataclasses.replace(self, values=values, indices=None, offsets=None)

    def laid_out(self, is_sparse: bool) -> Block:
        return self.as_sparse() if is_sparse else self.as_dense()

    def rows(self, labels: list[str]) -> _core.Rows:
        """As the library sees them; with labels, targets are the classes 0 and 1."""
        if self.offsets is None or self.indices is None:
            rows = _core.Rows.dense(self.values)
        else:
            rows = _core.Rows.sparse(self.offsets, self.indices, self.values, self.width)
        rows.set_targets(self.targets, labels)
        if self.weights is not None:
            rows.set_weights(self.weights)
        return rows

    def with_hashes(self) -> Block:
        return dataclasses.replace(self, hashes=_core.row_hashes(self.rows([])))

    def only(self, chosen: Array) -> Block:
        """The rows at these places, in this order."""
        weights = None if self.weights is None else self.weights[chosen]
        hashes = None if self.hashes is None else self.hashes[chosen]
        targets = self.targets[chosen]
        if self.offsets is None or self.indices is None:
            return Block(self.width, self.values[chosen], targets, weights, hashes=hashes)
        counts = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(self.offsets[:-1][chosen] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Block(self.width, self.values[entries], targets, weights, self.indices[entries], offsets, hashes)


def joined(blocks: list[Block]) -> Block:
    """All rows of blocks that are alike, sorted by their hashes: the same whatever the parts."""
    has_weights = any(block.weights is not None for block in blocks)
    weights = [np.ones(len(block)) if block.weights is None else block.weights for block in blocks]
    whole = Block(
        blocks[0].width,
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.targets for block in blocks]),
        np.concatenate(weights) if has_weights else None,
        hashes=np.concatenate([block.hashes for block in blocks if block.hashes is not None]),
    )
    if blocks[0].is_sparse:
        whole.indices = np.concatenate([block.indices for block in blocks if block.indices is not None])
        counts = np.concatenate([np.diff(block.offsets) for block in blocks if block.offsets is not None])
        whole.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    assert whole.hashes is not None
    return whole.only(np.argsort(whole.hashes, kind="stable"))


def sample_of(blocks: Iterable[Block], share: float, is_sparse: bool) -> list[Block]:
    """The rows with the smallest hashes, about this share of all."""
    found = []
    for block in blocks:
        assert block.hashes is not None
        chosen = np.flatnonzero(block.hashes < share * ALL_HASHES) if share < 1 else np.arange(len(block))
        if len(chosen):
            found.append(block.laid_out(is_sparse).only(chosen))
    return found


@dataclasses.dataclass
class Task:
    """What a part does with its blocks; it goes from the driver to all of them."""

    model: bytes
    question: Optional[bytes]  # none: the sums of the moment solver
    labels: list[str]
    is_sparse: bool  # the model's rows
    threads: int = 1

    def answer(self, blocks: Iterable[Block], part: Optional[_core.Part] = None) -> Optional[bytes]:
        """Of one part, or nothing where it has no rows. ``part``: made for this model before."""
        if self.question is None:
            total: Optional[bytes] = None
            for block in blocks:
                own = _core.gather_statistics(self.model, self._rows(block), self.threads)
                total = own if total is None else added(total, own)
            return total
        part = part or _core.Part(self.model, self.threads)
        part.ask(self.question)
        for block in blocks:
            assert block.hashes is not None
            part.add(self._rows(block), block.hashes)
        return part.answer()

    def _rows(self, block: Block) -> _core.Rows:
        return block.laid_out(self.is_sparse).rows(self.labels)


def added(one: bytes, other: bytes) -> bytes:
    """The sum of two answers, or of two statistics."""
    return _core.add_statistics(one, other)


class Parts(Protocol):
    """Rows in many parts, wherever these are."""

    rows: int
    width: int
    is_sparse: bool  # any of them

    def sample(self, share: float) -> list[Block]: ...

    def ask(self, task: Task) -> bytes:
        """The sum of all parts' answers."""
        ...


class LocalParts:
    """Parts in this process: one of them, and there is nothing to add."""

    def __init__(self, parts: list[list[Block]]) -> None:
        self._parts = [[block.with_hashes() for block in part] for part in parts]
        blocks = [block for part in self._parts for block in part]
        self.rows = sum(len(block) for block in blocks)
        self.width = blocks[0].width
        self.is_sparse = any(block.is_sparse for block in blocks)

    def sample(self, share: float) -> list[Block]:
        return [found for part in self._parts for found in sample_of(part, share, self.is_sparse)]

    def ask(self, task: Task) -> bytes:
        answers = [answer for part in self._parts if (answer := task.answer(part)) is not None]
        return functools.reduce(added, answers)


Report = Callable[[str, float, float, float], None]


def learn(
    parts: Parts,
    settings: _core.Settings,
    labels: list[str],
    *,
    sample_rows: int,
    most_looks: int,
    report: Report,
    known: Optional[bytes] = None,
) -> tuple[bytes, dict[str, Any]]:
    """Learn from all parts; from the model that is known, or from a sample of the rows."""
    start = time.perf_counter()
    share = 0.0
    is_sparse = parts.is_sparse
    solver = settings.solver or "auto"
    summary: dict[str, Any] = {}
    if known is not None:
        is_sparse = _require_alike(known, parts)
    else:
        share = sample_rows / parts.rows if parts.rows > 2 * sample_rows else 1.0
        while not (sample := parts.sample(share)):  # rows that are all alike have one hash
            share = min(1.0, 2 * share)
        if share < 1 and solver != "moment":
            settings.passes = 1
            settings.solver = "kalman" if solver == "kalman" else None
        known, summary = _core.fit(joined(sample).rows(labels), settings, None, None)
    if solver == "moment":
        known, summary = _moment_rounds(parts, known, labels, is_sparse, report)
    elif share < 1:
        base = _core.begin_parts(known)

        def ask(question: bytes) -> bytes:
            return parts.ask(Task(base, question, labels, is_sparse))

        known, summary = _core.learn_from_parts(base, solver, share, most_looks, ask, report)
    summary.update(rows=parts.rows, seconds=time.perf_counter() - start, solver=solver)
    return known, summary


def _require_alike(known: bytes, parts: Parts) -> bool:
    """Whether the model's rows are sparse; refuses vectors of another size."""
    predictor = _core.Predictor.from_bytes(known)
    width = len(predictor.column_names())
    if parts.width != width:
        raise ValueError(f"The vectors have {parts.width} features; the model that is to go on has {width}.")
    return predictor.layout() == "sparse"


def _moment_rounds(
    parts: Parts, model: bytes, labels: list[str], is_sparse: bool, report: Report
) -> tuple[bytes, dict[str, Any]]:
    """Rounds of the paper's sums, as long as the steps make the model better."""
    most_rounds, patience, worth_it = 60, 6, 1e-4
    best, since_best = np.inf, 0
    summary: dict[str, Any] = {}
    for round_ in range(most_rounds):
        model, summary = _core.apply_statistics(model, parts.ask(Task(model, None, labels, is_sparse)))
        report(f"round {round_ + 1}", 1.0, summary["rmse"], -1.0)
        since_best = 0 if summary["rmse"] < (1 - worth_it) * best else since_best + 1
        best = min(best, summary["rmse"])
        if since_best >= patience or best < 1e-12:
            break
    return model, {**summary, "questions": round_ + 1, "origin": "by the moments of all parts"}
