"""Fitting: once, or from turn to turn."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Union

from trimtab import _engine
from trimtab._engine import Fitted
from trimtab._errors import SettingsError, SummaryError
from trimtab._forking import ENGINE
from trimtab._summarizing import obtained, summarizer_of
from trimtab._usage import read_usage

_LOG = logging.getLogger("trimtab")

Settings = Mapping[str, Union[int, float, bool, str]]

_SESSIONS: weakref.WeakSet[Session]


def fit(
    messages: Iterable[Any],
    *,
    budget: int | None = None,
    model: str | None = None,
    policy: str | None = None,
    tools: Any = None,
    system: Any = None,
    format: str | None = None,
    settings: Settings | None = None,
    max_output: int | None = None,
    spent: float = 0.0,
    fold: str | None = None,
    pin: Iterable[str] = (),
    cold: bool = False,
) -> Fitted:
    """Fit messages into a budget. Nothing is remembered: the same messages give the same result.

    `messages` are those of Anthropic, OpenAI Chat, OpenAI Responses (input items) or Gemini (contents), as dicts or as the
    SDKs' own objects. The format is detected from the messages; `format` ("anthropic", "chat", "responses",
    "gemini") overrides. Without a budget the model's window is the limit, less `max_output`. `policy` is a name that
    `policies()` lists or a TOML file, `settings` changes its settings, `spent` is what the session has cost so far in
    dollars; `fold` ("given", "ledger", "never") says what a policy's steps that fold do where no summary is known.
    Blocks whose handles are in `pin` are never hidden. `cold` says that the provider's cache holds nothing of the conversation;
    without it, what the model has answered is left alone where it fits.

    Raises `BudgetError` where the messages cannot be made to fit.
    """
    listed = _listed(messages)
    with ENGINE:
        return _engine.fit(
            listed,
            model=model,
            policy=policy,
            budget=_tokens("budget", budget),
            format=format,
            settings=None if settings is None else dict(settings),
            spent=spent,
            system=system,
            tools=tools,
            max_output=_tokens("max_output", max_output),
            fold=fold,
            pin=list(pin),
            cold=cold,
        )


class Session:
    """A conversation that goes on: what was hidden stays hidden in the same words, so that provider caches hold.

    Every message is read once; after that it is only looked at for changes. What `fit` gives back is taken as sent.
    A session may be used from several threads, one call after the other; a forked process may go on with it.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        policy: str | None = None,
        budget: int | None = None,
        store: str | os.PathLike[str] | bool | None = None,
        name: str | None = None,
        format: str | None = None,
        settings: Settings | None = None,
        spent: float = 0.0,
        summarizer: Any = None,
        summary_model: str | None = None,
        fold: str | None = None,
    ) -> None:
        """Begin a session.

        `store` names a file in which originals and verdicts are kept, so that a conversation goes on in another process and
        `trimtab recall` finds what was hidden; True is the file that the command line uses.

        `summarizer` writes summaries where the policy folds: a function from prompt to text, or a client of openai or
        anthropic with `summary_model`, the model that writes. The engine checks what it says before it is used. Without
        one, `fold` says what happens: "given" (only summaries that the store knows), "ledger" (facts alone) or "never".
        """
        if store is True:
            store = _engine.default_store()
        with ENGINE:
            self._engine = _engine.Session(
                model=model,
                policy=policy,
                budget=_tokens("budget", budget),
                format=format,
                settings=None if settings is None else dict(settings),
                spent=spent,
                store=None if store is None or store is False else os.fspath(store),
                name=name,
                fold=fold,
            )
        self._summarizer = summarizer_of(summarizer, summary_model)
        self._summary_model = summary_model
        self._lock = threading.RLock()
        _SESSIONS.add(self)

    def fit(
        self,
        messages: Iterable[Any],
        *,
        tools: Any = None,
        system: Any = None,
        max_output: int | None = None,
        now: float | None = None,
    ) -> Fitted:
        """Fit the messages of the next request; `now` is the time in seconds since 1970, where it is not the clock's."""
        listed = _listed(messages)
        at = int((time.time() if now is None else now) * 1000)
        most = _tokens("max_output", max_output)
        with self._lock:
            fitted = self._fitted(listed, at, system, tools, most, may_wait=self._summarizer is not None)
            if not self._summarized(fitted, at):
                return fitted
            return self._fitted(listed, at, system, tools, most, may_wait=False)

    def _fitted(
        self, messages: list[Any], now: int, system: Any, tools: Any, max_output: int | None, *, may_wait: bool
    ) -> Fitted:
        with ENGINE:
            return self._engine.fit(
                messages, now=now, system=system, tools=tools, max_output=max_output, may_wait=may_wait
            )

    def _summarized(self, fitted: Fitted, now: int) -> bool:
        """Obtain the summary that a plan wants now, where it wants one; tell whether it is to be fitted again."""
        if self._summarizer is None or not fitted.fold_wanted:
            return False
        with ENGINE:
            asking = fitted.asking(self._summary_model)
        if asking is None:
            return False
        answer = obtained(asking, self._summarizer)
        try:
            if answer is None:
                self._engine.no_summary(asking)
            else:
                self._engine.folded(asking, answer[0], now=now, is_reply=answer[1])
        except SummaryError as fault:
            _LOG.warning("%s: it is not used; folding by the ledger alone", fault)
            self._engine.no_summary(asking)
        return True

    async def afit(self, messages: Iterable[Any], **arguments: Any) -> Fitted:
        """Fit in a thread, so that other tasks go on meanwhile."""
        listed = _listed(messages)
        return await asyncio.to_thread(self.fit, listed, **arguments)

    def answered(self, usage: Any) -> None:
        """Learn what the provider reported for the last request: an SDK's usage object, or a mapping like it."""
        reported = read_usage(usage)
        with self._lock, ENGINE:
            self._engine.answered(**reported)

    def recall(self, handle: str) -> str:
        """Return the original that a note names; raises `NotFoundError` where nothing has the handle."""
        with self._lock, ENGINE:
            return self._engine.recall(handle)

    def pin(self, handle: str) -> None:
        """Never hide the block that a note names, from the next request on; raises `NotFoundError` where nothing has the handle.

        If it is hidden, the next request shows it again. With a store, every process that goes on with the session obeys.
        """
        with self._lock, ENGINE:
            self._engine.pin(handle)

    def unpin(self, handle: str) -> None:
        """Take a pin back: the policy decides about the block again."""
        with self._lock, ENGINE:
            self._engine.unpin(handle)


def _tokens(what: str, value: Any) -> int | None:
    """Check a number of tokens."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} should be a number of tokens, and is of type {type(value).__name__}")
    if value < 0:
        raise SettingsError(f"{what} should be a number of tokens, and is {value}")
    return value


def _listed(messages: Iterable[Any]) -> list[Any]:
    if isinstance(messages, (str, bytes, Mapping)):
        kind = type(messages).__name__
        raise TypeError(f"messages should be a list of messages, and are of type {kind}")
    return list(messages)


_SESSIONS = weakref.WeakSet()


def _new_locks() -> None:
    """In a forked process: threads that had a lock are not here to release it."""
    for session in list(_SESSIONS):
        session._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_locks)
