"""Summaries for what is folded: asked of a model, and checked by the engine before they are used.

A summarizer is a callable that takes a prompt and returns a text, or a client of openai or anthropic together with the name
of the model that writes. If it fails, the turn goes on: the user's words and the ledger of facts alone then
replace the folded range.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from trimtab._engine import Asking

_LOG = logging.getLogger("trimtab")

#: Takes a prompt and the most tokens that the answer may have; returns a text, or a provider's reply.
Summarizer = Callable[[str, int], Any]


def summarizer_of(given: Any, model: str | None) -> Summarizer | None:
    """Return how prompts are answered by a callable or a client."""
    if given is None:
        return None
    create = _create_of(given)
    if create is not None:
        if model is None:
            raise TypeError("a client as summarizer needs summary_model=, the name of the model that writes")
        if inspect.iscoroutinefunction(create):
            raise TypeError("the summarizer should be a client that is not asynchronous: it is called in a thread")
        limit = "max_tokens" if type(given).__module__.startswith("anthropic") else "max_completion_tokens"
        return lambda prompt, most: create(
            model=model, messages=[{"role": "user", "content": prompt}], **{limit: most}
        )
    if not callable(given) or inspect.iscoroutinefunction(given):
        kind = type(given).__name__
        raise TypeError(f"the summarizer should be a function from prompt to text, or a client, and is of type {kind}")
    return lambda prompt, most: given(prompt)


def _create_of(client: Any) -> Any:
    module = type(client).__module__
    if module.startswith("anthropic") or _is_kind(client, "anthropic"):
        return client.messages.create
    if module.startswith("openai") or _is_kind(client, "openai"):
        return client.chat.completions.create
    return None


def _is_kind(client: Any, package: str) -> bool:
    return any(base.__module__.startswith(package) for base in type(client).__mro__)


def obtained(asking: Asking, summarizer: Summarizer) -> tuple[str, bool] | None:
    """Ask for a summary, part by part; return the last answer and whether it is a reply, or None where there is none."""
    notes = asking.notes
    answer, is_reply = "", False
    try:
        for part in range(asking.parts):
            answer, is_reply = _text_of(summarizer(asking.prompt(part, notes), asking.target * 2))
            if part < asking.parts - 1:
                # A part that cannot be trusted would spoil the notes on all that follow.
                notes = asking.check_part(answer, is_reply=is_reply)
    except Exception as fault:
        _LOG.warning("no summary: %s; folding by the ledger alone", fault)
        return None
    return answer, is_reply


def _text_of(answer: Any) -> tuple[str, bool]:
    if isinstance(answer, str):
        return answer, False
    dump = getattr(answer, "model_dump_json", None)
    if dump is None:
        raise TypeError(f"the summarizer returned a value of type {type(answer).__name__}, not a text")
    return dump(exclude_unset=True), True
