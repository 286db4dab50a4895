"""What providers report, in one form. The library reads the fields: here an SDK's object only becomes JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from trimtab import _engine

_DEPTH = 4  # levels of a report that are looked at: no provider's has more than three


class Usage(TypedDict):
    """Tokens of one request. The kinds of input do not overlap; `cache_write_1h` is a part of `cache_write`."""

    input: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    output: int


def read_usage(usage: Any) -> Usage:
    """Read a usage as Anthropic, OpenAI (both interfaces), Gemini or LangChain report it: an object or a mapping."""
    figures = _engine.read_usage(json.dumps(_plain(usage, _DEPTH)))
    return Usage(**dict(zip(Usage.__annotations__, figures or (0, 0, 0, 0, 0))))  # type: ignore[typeddict-item]


def _plain(value: Any, depth: int) -> Any:
    """Return the numbers of a report with their names, whatever kind of object holds them."""
    if value is None or isinstance(value, int):
        return value
    if depth == 0 or isinstance(value, (str, bytes, float, list, tuple)):
        return None
    if isinstance(value, Mapping):
        members = value.items()
    elif hasattr(value, "model_dump"):
        members = value.model_dump(warnings=False).items()
    else:
        members = ((name, getattr(value, name, None)) for name in dir(value) if not name.startswith("_"))
    return {str(name): _plain(member, depth - 1) for name, member in members if not callable(member)}
