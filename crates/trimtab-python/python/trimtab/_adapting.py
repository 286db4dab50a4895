"""What the adapters have in common: one session for every conversation, found by how it begins."""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from trimtab._engine import Fitted
from trimtab._errors import BudgetError
from trimtab._session import Session

_LOG = logging.getLogger("trimtab")

#: How many conversations are remembered; the one used least recently is forgotten.
MOST_SESSIONS = 64


class Sessions:
    """Sessions by the beginning of their conversations: system prompt and first message of the user."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._lock = threading.Lock()
        # Wrong settings are reported now, not in the middle of a conversation.
        Session(**{"policy": None, **self._settings, "store": None})

    def of(self, messages: list[Any], system: Any, model: str | None) -> Session:
        """Return the session of a conversation."""
        key = hash((model, _beginning(messages), _text(system)))
        with self._lock:
            session = self._sessions.pop(key, None)
            if session is None:
                session = Session(**{"model": model, **self._settings})
            self._sessions[key] = session
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return session


def fitted_anyway(fit: Callable[[], Fitted]) -> Fitted:
    """Fit; where that cannot be done, say so and return the best that can: the provider may know better."""
    try:
        return fit()
    except BudgetError as over:
        _LOG.warning("%s; the smallest request is sent all the same", over)
        return over.fitted


def _beginning(messages: list[Any]) -> str:
    users = (place for place, message in enumerate(messages) if _role(message) in ("user", None))
    first = next(users, 0)
    return _text(messages[: first + 1])


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)


def _text(value: Any) -> str:
    return json.dumps(value, default=str)
