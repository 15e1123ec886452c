"""Training runs of the extension, with messages that name the parameters of the estimators."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

from . import _core

# Parameters whose names differ from the field of the library, which its messages quote as `field` or Options::field.
_PARAMETERS = {
    "has_curves": "curves",
    "memory": "max_bytes",
    "passes": "max_iter",
    "range": "target_range",
    "seed": "random_state",
    "threads": "n_jobs",
}


def fit(
    rows: _core.Rows,
    settings: _core.Settings,
    model: Optional[bytes] = None,
    progress: Optional[Callable[[str, int, str, float], None]] = None,
) -> tuple[bytes, dict[str, Any]]:
    """Call `_core.fit`. Errors and warnings name the parameters of the estimators."""
    try:
        trained, summary = _core.fit(rows, settings, model, progress)
    except ValueError as error:
        raise type(error)(with_parameter_names(str(error))) from None
    summary["warnings"] = [with_parameter_names(warning) for warning in summary["warnings"]]
    return trained, summary


def with_parameter_names(message: str) -> str:
    """Replace the fields of the library in a message by the parameters of the estimators."""

    def parameter(match: re.Match[str]) -> str:
        field = match[1] or match[2]
        return f"`{_PARAMETERS.get(field, field)}`"

    return re.sub(r"`(\w+)`|\b\w+Options::(\w+)", parameter, message)
