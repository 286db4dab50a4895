"""What providers report, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class Usage(TypedDict):
    """Tokens of one request. The kinds of input do not overlap; `cache_write_1h` is a part of `cache_write`."""

    input: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    output: int


def read_usage(usage: Any) -> Usage:
    """Read a usage as Anthropic, OpenAI (both interfaces), Gemini or LangChain report it: an object or a mapping."""

    def number(*path: str) -> int:
        value = usage
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        return value if isinstance(value, int) else 0

    def first(*names: str) -> int:
        return next((found for found in (number(name) for name in names) if found), 0)

    write = number("cache_creation_input_tokens")
    output = first("output_tokens", "completion_tokens", "candidates_token_count", "candidatesTokenCount")
    if write or number("cache_read_input_tokens"):
        # Anthropic reports three kinds that do not overlap.
        hour = number("cache_creation", "ephemeral_1h_input_tokens")
        return Usage(
            input=number("input_tokens"),
            cache_read=number("cache_read_input_tokens"),
            cache_write=write,
            cache_write_1h=hour,
            output=output,
        )
    whole = first("input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount")
    read = max(
        number("input_tokens_details", "cached_tokens"),
        number("prompt_tokens_details", "cached_tokens"),
        number("input_token_details", "cache_read"),
        first("cached_content_token_count", "cachedContentTokenCount"),
    )
    return Usage(input=max(whole - read, 0), cache_read=read, cache_write=0, cache_write_1h=0, output=output)
