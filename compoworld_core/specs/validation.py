"""Validators: JSON Schema 2020-12 as it is compiled everywhere, with bounds on what a pattern may cost.

Schemas come from strangers and are evaluated in processes that a stalled match would stall. A pattern whose compiled
form is large costs its size at every character, and one that looks around or back may try without end; both are bounded
here, and nowhere else are schemas compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

_PATTERN_BYTES: Final = 64 * 1024
"""Most that one compiled pattern may occupy; all but absurd repetitions stay far below."""

_BACKTRACKS: Final = 100_000
"""Most steps back that one match may take; a value that needs more does not match."""

_OPTIONS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES)


def validator(schema: Mapping[str, Any], **options: Any) -> jsonschema_rs.Draft202012Validator:
    """A compiled schema; references to other documents are never followed.

    Args:
        schema: JSON Schema 2020-12.
        options: Further options of the compiler, such as `formats`.

    Raises:
        ValueError: It is not a schema, or has a pattern that would cost too much.
    """
    return jsonschema_rs.Draft202012Validator(dict(schema), pattern_options=_OPTIONS, offline=True, **options)
