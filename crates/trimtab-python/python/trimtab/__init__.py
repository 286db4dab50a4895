"""Keeps an LLM agent's conversation inside its context window: messages in, messages out.

    session = trimtab.Session(model="claude-opus-5")
    ...
    answer = client.messages.create(messages=session.fit(messages).messages, ...)

The engine is trimtab's Rust library; see docs/python.md of the project.
"""

from trimtab._engine import Fitted
from trimtab._errors import (
    BudgetError,
    NotFoundError,
    RequestError,
    SettingsError,
    StoreError,
    SummaryError,
    TrimtabError,
)
from trimtab._session import Session, fit
from trimtab._telling import changelog, count, file_state_at, files, inspect, policies, replay, with_intent

__all__ = [
    "BudgetError",
    "Fitted",
    "NotFoundError",
    "RequestError",
    "Session",
    "SettingsError",
    "StoreError",
    "SummaryError",
    "TrimtabError",
    "changelog",
    "count",
    "file_state_at",
    "files",
    "fit",
    "inspect",
    "policies",
    "replay",
    "with_intent",
]
