"""The Rust engine, as the package uses it."""

import os
from typing import Any, final

__all__ = [
    "Asking",
    "Conversation",
    "Fitted",
    "Session",
    "changes_files",
    "count_text",
    "default_store",
    "fit",
    "policies",
    "read_usage",
    "replay",
]

@final
class Fitted:
    """Messages that fit."""

    @property
    def messages(self) -> list[Any]:
        """The messages to send."""

    @property
    def sources(self) -> list[int | None]:
        """For each message to send, which of the given messages it was, counted from 0; None for one that replaces others."""

    @property
    def tokens(self) -> int:
        """The tokens of the request to send."""

    @property
    def tokens_before(self) -> int:
        """The tokens of the unchanged request."""

    @property
    def budget(self) -> int | None:
        """The most tokens that the request may have."""

    @property
    def exact(self) -> bool:
        """Whether counts are exact."""

    @property
    def seconds(self) -> float:
        """How long the engine worked, in seconds; the rest of a call is spent at the border to Python."""

    @property
    def format(self) -> str:
        """The wire format of the messages."""

    @property
    def fold_wanted(self) -> bool:
        """Whether the policy asks for a summary of what is old."""

    def asking(self, model: str | None = None) -> Asking | None:
        """The summary that the policy asks for, to be had from a model of this name."""

    @property
    def request(self) -> bytes:
        """The request as it was fitted: the messages with what stands beside them, as JSON."""

    @property
    def plan(self) -> list[dict[str, Any]]:
        """What became of every block: its message, role, kind, verdict, reason, tokens and handle."""

    def report(self) -> dict[str, Any]:
        """What was done, as `trimtab fit --report` writes it."""

@final
class Session:
    """A conversation that goes on from turn to turn."""

    def __new__(
        cls,
        *,
        model: str | None = None,
        policy: str | None = None,
        budget: int | None = None,
        format: str | None = None,
        settings: dict[str, Any] | None = None,
        spent: float = 0.0,
        store: str | os.PathLike[str] | None = None,
        name: str | None = None,
        fold: str | None = None,
    ) -> Session: ...
    @property
    def budget(self) -> int | None:
        """Return the budget that was asked for or that the policy names."""

    def fit(
        self,
        messages: list[Any],
        *,
        now: int,
        system: Any = None,
        tools: Any = None,
        max_output: int | None = None,
        may_wait: bool = False,
    ) -> Fitted:
        """Fit the messages of the next request; `now` is in milliseconds since 1970.

        With `may_wait`, a plan that asks for a summary now is not taken as sent: it will be fitted again.
        """

    def folded(self, asking: Asking, answer: str, *, now: int, is_reply: bool = False) -> None:
        """Take an answer to the last prompt, a text or a provider's reply; raises where it is not to be used."""

    def no_summary(self, asking: Asking) -> None:
        """Learn that no summary could be had for what was asked for: it is folded by the ledger alone."""

    def answered(
        self, *, input: int, cache_read: int, cache_write: int, cache_write_1h: int, output: int
    ) -> None:
        """Learn what the provider reported for the last request, in tokens of each kind."""

    def recall(self, handle: str) -> str:
        """Return the original that a handle names: of the latest request, else of the store."""

    def pin(self, handle: str) -> None:
        """Keep a block from being hidden, from the next request on."""

    def unpin(self, handle: str) -> None:
        """Take a pin back."""

@final
class Asking:
    """A summary that is asked for."""

    @property
    def parts(self) -> int:
        """How many prompts are to be sent, one after the other."""

    @property
    def notes(self) -> str | None:
        """The notes to begin with: the summary of what was folded before."""

    @property
    def target(self) -> int:
        """How many tokens the summary should have."""

    def prompt(self, part: int, notes: str | None = None) -> str:
        """Return the prompt of a part, counted from 0, which updates the notes on the parts before."""

    def check_part(self, answer: str, *, is_reply: bool = False) -> str:
        """Return the words of an answer to any part but the last; raises where it cannot be gone on with."""

@final
class Conversation:
    """A conversation that is read."""

    @staticmethod
    def of_file(path: str | os.PathLike[str], *, segment: int | None = None) -> Conversation:
        """Read a file: a request or a recording."""

    @staticmethod
    def of_messages(
        messages: list[Any],
        *,
        model: str | None = None,
        system: Any = None,
        tools: Any = None,
        format: str | None = None,
    ) -> Conversation:
        """Read messages."""

    def inspect(self, *, model: str | None = None) -> dict[str, Any]:
        """Tell what fills the window."""

    def file_state_at(self, path: str, *, step: int | None = None) -> dict[str, Any]:
        """Tell what was known of a file after a step."""

    def files(
        self, *, recent: int | None = None, stale: int | None = None, modified: bool = False
    ) -> dict[str, Any]:
        """List the files that were touched, the latest first."""

    def changelog(self) -> list[dict[str, Any]]:
        """Tell what was done to which file, and why."""

    def count(self, *, model: str | None = None) -> int:
        """Count the tokens of the whole request."""

def fit(
    messages: list[Any],
    *,
    model: str | None = None,
    policy: str | None = None,
    budget: int | None = None,
    format: str | None = None,
    settings: dict[str, Any] | None = None,
    spent: float = 0.0,
    system: Any = None,
    tools: Any = None,
    max_output: int | None = None,
    fold: str | None = None,
    pin: list[str] | None = None,
    cold: bool = False,
    now: int = 0,
) -> Fitted:
    """Fit messages that stand for themselves: nothing is remembered."""

def count_text(text: str, *, model: str | None = None) -> int:
    """Count the tokens of a text."""

def read_usage(report: str) -> tuple[int, int, int, int, int] | None:
    """Read a provider's report in JSON: input, cache read, cache write, the part of it for an hour, output."""

def policies() -> list[dict[str, Any]]:
    """List the policies that ship."""

def changes_files(name: str) -> bool:
    """Tell whether a tool of this name changes files."""

def replay(
    paths: list[str],
    *,
    policies: list[str] | None = None,
    models: list[str] | None = None,
    budget: int | None = None,
    resamples: int = 1000,
) -> list[dict[str, Any]]:
    """Tell what policies would have cost, saved and missed in recordings."""

def default_store() -> str | None:
    """Return the file that conversations are kept in where none is named."""
