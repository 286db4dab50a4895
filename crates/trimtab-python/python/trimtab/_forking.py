"""Forks wait for the engine.

A thread of the engine may hold a lock of the allocator, of SQLite or of a table that is being loaded; a process forked at that
moment would wait for it for ever. So a fork waits until no call is in the engine, which is milliseconds.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType


class Gate:
    """Lets any number of calls into the engine, and none while the process is forked."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._inside = 0
        self._closing = False
        self._own = threading.local()

    def __enter__(self) -> None:
        own = getattr(self._own, "inside", 0)
        with self._changed:
            # A call that is made inside of another must come to its end, or the gate would never close.
            while self._closing and own == 0:
                self._changed.wait()
            self._inside += 1
        self._own.inside = own + 1

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.inside -= 1
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until nobody else is inside, and let nobody in."""
        self._changed.acquire()
        self._closing = True
        while self._inside > getattr(self._own, "inside", 0):
            self._changed.wait()

    def open(self) -> None:
        """Let calls in again."""
        self._closing = False
        self._changed.notify_all()
        self._changed.release()

    def renew(self) -> None:
        """Begin again in a forked process, with the calls of the one thread that is left."""
        own = getattr(self._own, "inside", 0)
        self._begin()
        self._inside = own
        self._own.inside = own


ENGINE = Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=ENGINE.close, after_in_parent=ENGINE.open, after_in_child=ENGINE.renew)
