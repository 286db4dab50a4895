"""OpenAI's client, with every request fitted.

    client = trimtab.openai.wrap(openai.OpenAI())

Chat Completions and Responses, streamed or not; `AsyncOpenAI` likewise. A request that names a `previous_response_id` or a
`conversation` is sent unchanged, because the server holds the history.
"""

from __future__ import annotations

from typing import Any, TypeVar

try:
    import openai as _openai
except ImportError as missing:
    raise ImportError("trimtab.openai needs the package openai: pip install openai") from missing

from trimtab._clients import wrapped

Client = TypeVar("Client", _openai.OpenAI, _openai.AsyncOpenAI)


def wrap(client: Client, **settings: Any) -> Client:
    """Return a client of the same class that fits every request; the settings are those of `Session`."""
    if not isinstance(client, (_openai.OpenAI, _openai.AsyncOpenAI)):
        raise TypeError(f"wrap takes a client of openai, not one of type {type(client).__name__}")
    return wrapped(client, settings)
