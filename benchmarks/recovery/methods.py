"""Methods of the comparison. Each takes the rows of a planted problem and returns the error of its estimate."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import resource
import subprocess
import time
import types

import numpy as np

import alternating_minimization
import reweighted_amplitude_flow
import scaled_gradient_descent
import truncated_amplitude_flow
import wirtinger_flow
from measurements import RankOneMeasurements, matrix_error
from phase import signal_error
from problems import PlantedRows, Problem

PHASE_METHODS: dict[str, types.ModuleType] = {
    "Wirtinger flow": wirtinger_flow,
    "truncated amplitude flow": truncated_amplitude_flow,
    "reweighted amplitude flow": reweighted_amplitude_flow,
}
MATRIX_METHODS: dict[str, types.ModuleType] = {
    "ScaledGD": scaled_gradient_descent,
    "alternating minimization": alternating_minimization,
}
# Errors that count as success: relative error of the signal, and spectral norm of the error of M, whose spectral norm is 1.
SIGNAL_TOLERANCE = 1e-5
MATRIX_TOLERANCE = 1e-6


@dataclasses.dataclass
class Result:
    """Result of one run.

    Attributes
    ----------
    method : str
        Name of the method.
    error : float
        Error of the estimate.
    seconds : float
        CPU time.
    """

    method: str
    error: float
    seconds: float


def method_names(problem: Problem) -> list[str]:
    """Return the names of the methods for a problem, dyad first."""
    return ["dyad", *(PHASE_METHODS if problem.kind == "phase" else MATRIX_METHODS)]


def tolerance(problem: Problem) -> float:
    """Return the error that counts as success."""
    return SIGNAL_TOLERANCE if problem.kind == "phase" else MATRIX_TOLERANCE


def run_dyad(dyad: pathlib.Path, problem: Problem, rows: int, seed: int) -> Result:
    """Run `dyad recover` on the same rows. The CPU time includes the start of the process and the generation of the rows."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(dyad), "recover", *problem.arguments(rows, seed), "--json"]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(output.stdout)
    error = summary["error_a" if problem.kind == "phase" else "error_M"]
    seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    return Result("dyad", np.inf if error is None else error, seconds)


def run_phase_method(name: str, rows: PlantedRows) -> Result:
    """Run a phase retrieval algorithm."""
    start = time.process_time()
    estimate = PHASE_METHODS[name].recover_signal(rows.X, rows.y)
    seconds = time.process_time() - start
    signal = rows.factors[:, 0] * np.sqrt(rows.spectrum[0])
    return Result(name, signal_error(estimate.signal, signal), seconds)


def run_matrix_method(name: str, problem: Problem, rows: PlantedRows) -> Result:
    """Run a matrix sensing algorithm. It gets the rank, and the columns of the linear term if the problem is bilinear."""
    d = problem.dim
    start = time.process_time()
    if problem.kind == "bilinear":
        data = RankOneMeasurements(rows.X[:, :d], rows.X[:, d:], rows.y, linear_columns=rows.X)
    else:
        data = RankOneMeasurements(rows.X, rows.X, rows.y)
    estimate = MATRIX_METHODS[name].recover_matrix(data, problem.rank)
    seconds = time.process_time() - start
    right = rows.factors[d:] if problem.kind == "bilinear" else rows.factors
    return Result(name, matrix_error(estimate.matrix, (rows.factors[:d] * rows.spectrum) @ right.T), seconds)


def run_all(dyad: pathlib.Path, problem: Problem, rows: PlantedRows, seed: int) -> list[Result]:
    """Run all methods for the problem."""
    results = [run_dyad(dyad, problem, len(rows.y), seed)]
    for name in method_names(problem)[1:]:
        if problem.kind == "phase":
            results.append(run_phase_method(name, rows))
        else:
            results.append(run_matrix_method(name, problem, rows))
    return results
