"""Writes docs/recovery-comparison.md."""

from __future__ import annotations

import os
import pathlib
import platform

import numpy as np

from methods import method_names
from problems import Problem
from records import Record, common_ratio, median_seconds, select, smallest_ratio


def table(records: list[Record], problems: list[Problem]) -> list[str]:
    """Return the lines of the table of the smallest ratios and the times."""
    lines = ["| problem | method | smallest rows / dof | CPU seconds | at rows / dof |", "|---|---|---|---|---|"]
    for problem in problems:
        methods = method_names(problem)
        common = common_ratio(records, problem.name, methods)
        for method in methods:
            runs = select(records, problem.name, method)
            smallest = smallest_ratio(runs)
            largest = max(record.ratio for record in runs)
            if smallest is None or common is None:
                lines.append(f"| {problem.name} | {method} | more than {largest:g} | - | - |")
            else:
                seconds = median_seconds(runs, common)
                lines.append(f"| {problem.name} | {method} | {smallest:g} | {seconds:.3f} | {common:g} |")
    return lines


def machine() -> str:
    """Return the number of cores, the processor and the versions of Python and NumPy."""
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, NumPy {np.__version__}"


def write(records: list[Record], problems: list[Problem], path: pathlib.Path) -> str:
    """Insert the table into page.md, write the page, and return the table."""
    lines = table(records, problems)
    template = (pathlib.Path(__file__).parent / "page.md").read_text()
    path.write_text(template.replace("{table}", "\n".join(lines)).replace("{machine}", machine()))
    return "\n".join(lines)
