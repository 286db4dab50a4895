"""Anthropic's client, with every request fitted.

    client = trimtab.anthropic.wrap(anthropic.Anthropic())

Messages, streamed or not, in the plain and the beta interface; `AsyncAnthropic` likewise.
"""

from __future__ import annotations

from typing import Any, TypeVar

try:
    import anthropic as _anthropic
except ImportError as missing:
    raise ImportError("trimtab.anthropic needs the package anthropic: pip install anthropic") from missing

from trimtab._clients import wrapped

Client = TypeVar("Client", _anthropic.Anthropic, _anthropic.AsyncAnthropic)


def wrap(client: Client, **settings: Any) -> Client:
    """Return a client of the same class that fits every request; the settings are those of `Session`."""
    if not isinstance(client, (_anthropic.Anthropic, _anthropic.AsyncAnthropic)):
        raise TypeError(f"wrap takes a client of anthropic, not one of type {type(client).__name__}")
    return wrapped(client, settings)
