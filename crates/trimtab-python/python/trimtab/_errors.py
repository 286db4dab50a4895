"""What can go wrong, in the library's own sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab._engine import Fitted


class TrimtabError(Exception):
    """Anything that trimtab cannot do."""


class RequestError(TrimtabError, ValueError):
    """The messages cannot be read as a conversation."""


class SettingsError(TrimtabError, ValueError):
    """A policy, setting, model, format or budget is not what it should be."""


class StoreError(TrimtabError, OSError):
    """The store cannot do what is asked of it. Nothing new was hidden."""


class SummaryError(TrimtabError):
    """A summary is not to be used: it does not pass the engine's checks."""


class NotFoundError(TrimtabError, LookupError):
    """Nothing has the handle, file or step that was asked for."""


class BudgetError(TrimtabError):
    """The messages cannot be made to fit.

    `floor` is the least that they can count, `fitted` the best that could be done: it may be sent all the same.
    """

    def __init__(self, sentence: str, floor: int, fitted: Fitted) -> None:
        super().__init__(sentence)
        self.floor = floor
        self.fitted = fitted

    def __reduce__(self) -> tuple[type[TrimtabError], tuple[str]]:
        # What was fitted stays in its process.
        return (TrimtabError, (str(self),))
