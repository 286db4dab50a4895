"""What a streamed answer reports of its usage, while its reader reads it.

A stream that is listened to is the same object with the same events in the same order, no sooner and no later; what it
reports is learnt where the provider puts it: in Anthropic's `message_delta`, in the last chunk of Chat Completions (where the
caller asked for it with `stream_options`), in the event that ends a Response.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from trimtab._errors import TrimtabError

_LOG = logging.getLogger("trimtab")

#: Events that end a Response.
_ENDS = ("response.completed", "response.incomplete", "response.failed")
#: What Anthropic reports when a message begins, and what of it may come again, corrected, when it ends.
_ANTHROPIC = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation")


def is_stream(answer: Any) -> bool:
    """Tell whether an answer is one of the SDKs' streams of events."""
    return type(answer).__name__ in ("Stream", "AsyncStream") and hasattr(answer, "response")


def listened(stream: Any, answered: Callable[[Any], None]) -> None:
    """Hand what a stream reports on, once; what reads the stream sees what it would see anyway."""
    kind = type(stream)
    reported = _Reported(answered)

    def each(self: Any) -> Iterator[Any]:
        for event in kind.__iter__(self):
            reported.note(event)
            yield event
        reported.end()

    def following(self: Any) -> Any:
        try:
            event = kind.__next__(self)
        except StopIteration:
            reported.end()
            raise
        reported.note(event)
        return event

    async def aeach(self: Any) -> AsyncIterator[Any]:
        async for event in kind.__aiter__(self):
            reported.note(event)
            yield event
        reported.end()

    async def afollowing(self: Any) -> Any:
        try:
            event = await kind.__anext__(self)
        except StopAsyncIteration:
            reported.end()
            raise
        reported.note(event)
        return event

    methods: dict[str, Any] = (
        {"__aiter__": aeach, "__anext__": afollowing}
        if hasattr(kind, "__aiter__")
        else {"__iter__": each, "__next__": following}
    )
    stream.__class__ = type(kind.__name__, (kind,), methods)


class _Reported:
    """The usage that the events of one answer report."""

    def __init__(self, answered: Callable[[Any], None]) -> None:
        self._answered = answered
        self._told = False
        self._usage: Any = None

    def note(self, event: Any) -> None:
        name = getattr(event, "type", None)
        if name == "message_start":
            self._usage = _fields(getattr(event.message, "usage", None))
        elif name == "message_delta":
            self._usage = {**(self._usage or {}), **_fields(getattr(event, "usage", None))}
        elif name == "message_stop":
            self.end()
        elif name in _ENDS:
            self._usage = getattr(event.response, "usage", None)
            self.end()
        elif getattr(event, "object", None) == "chat.completion.chunk" and getattr(event, "usage", None) is not None:
            # Some servers report with every chunk: the last one tells.
            self._usage = event.usage
            if not event.choices:
                self.end()

    def end(self) -> None:
        """Hand on what is known, the first time that anything is."""
        if self._told or not self._usage:
            return
        self._told = True
        try:
            self._answered(self._usage)
        except TrimtabError as fault:
            _LOG.warning("the usage of a streamed answer is not learnt: %s", fault)


def _fields(usage: Any) -> dict[str, Any]:
    found = {name: getattr(usage, name, None) for name in _ANTHROPIC}
    return {name: value for name, value in found.items() if value is not None}
