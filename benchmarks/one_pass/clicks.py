"""Generates rows like those of click logs: clicks.py ROWS [SEED] > FILE.csv

A row has 39 columns of names. Column c has 10 to 1,000,000 names, spaced logarithmically, and the ranks of its names have a Zipf
distribution with exponent 1.1. The log-odds of a click are the sum of a normal weight per name, of interactions of rank 3 in ten
pairs of columns, and of an intercept such that 3% of the rows are clicks. The column `probability` has the true probability.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

COLUMNS = 39
PAIRS = 10
RANK = 3
EXPONENT = 1.1
WEIGHT_DEVIATION = 0.2
# Standard deviation of an interaction of two names, divided by the square root of RANK.
FACTOR_DEVIATION = 0.2
CLICK_SHARE = 0.03
BLOCK_ROWS = 10_000


class Clicks:
    """Parameters of the rows; ``blocks`` draws rows."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.sizes = np.geomspace(10, 1_000_000, COLUMNS).astype(int)
        self.random.shuffle(self.sizes)
        self.cumulative = []
        for size in self.sizes:
            shares = np.arange(1, size + 1) ** -EXPONENT
            self.cumulative.append(np.cumsum(shares) / shares.sum())
        self.weights = [WEIGHT_DEVIATION * self.random.normal(size=size) for size in self.sizes]
        chosen = self.random.choice(COLUMNS * (COLUMNS - 1) // 2, size=PAIRS, replace=False)
        all_pairs = [(i, j) for i in range(COLUMNS) for j in range(i)]
        self.pairs = [all_pairs[pair] for pair in chosen]
        columns = sorted({column for pair in self.pairs for column in pair})
        scale = FACTOR_DEVIATION**0.5
        self.factors = {c: scale * self.random.normal(size=(self.sizes[c], RANK)).astype(np.float32) for c in columns}
        self.intercept = self._intercept()

    def _draw(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks of the names and the log-odds without the intercept."""
        names = np.column_stack([np.searchsorted(c, self.random.random(rows)) for c in self.cumulative])
        score = sum(w[names[:, i]] for i, w in enumerate(self.weights))
        for i, j in self.pairs:
            score = score + np.sum(self.factors[i][names[:, i]] * self.factors[j][names[:, j]], axis=1)
        return names, score

    def _intercept(self) -> float:
        """Return the intercept with which the mean probability of BLOCK_ROWS rows is CLICK_SHARE, by bisection."""
        score = self._draw(BLOCK_ROWS)[1]
        low, high = -50.0, 50.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if np.mean(logistic(score + middle)) < CLICK_SHARE else (low, middle)
        return low

    def blocks(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield names, clicks and probabilities of at most BLOCK_ROWS rows at a time."""
        for first in range(0, rows, BLOCK_ROWS):
            names, score = self._draw(min(BLOCK_ROWS, rows - first))
            probability = logistic(score + self.intercept)
            yield names, self.random.random(len(names)) < probability, probability


def logistic(f: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-f))."""
    return np.exp(-np.logaddexp(0, -f))


def main() -> None:
    """Write a csv file to standard output."""
    if not 2 <= len(sys.argv) <= 3 or not all(argument.isdigit() for argument in sys.argv[1:]):
        sys.exit(f"usage: {sys.argv[0]} ROWS [SEED] > FILE.csv")
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    print(",".join(["click", *(f"C{c + 1}" for c in range(COLUMNS)), "probability"]))
    for names, clicks, probability in Clicks(seed).blocks(int(sys.argv[1])):
        for row, click, p in zip(names.tolist(), clicks.tolist(), probability.tolist()):
            print(int(click), *row, f"{p:.6g}", sep=",")


if __name__ == "__main__":
    main()
