"""Reports about conversations: the values that the command line writes with `--json`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from trimtab import _engine
from trimtab._engine import Conversation
from trimtab._forking import ENGINE
from trimtab._session import _listed

Source = Union[str, "os.PathLike[str]", Iterable[Any]]


def _conversation(source: Source, segment: int | None = None, **beside: Any) -> Conversation:
    """Read a file (a request or a recording of an agent) or messages."""
    if isinstance(source, (str, os.PathLike)):
        return Conversation.of_file(os.fspath(source), segment=segment)
    return Conversation.of_messages(_listed(source), **beside)


def count(
    source: str | Iterable[Any],
    *,
    model: str | None = None,
    tools: Any = None,
    system: Any = None,
    format: str | None = None,
) -> int:
    """Count the tokens of a text, or of messages with what stands beside them."""
    with ENGINE:
        if isinstance(source, str):
            return _engine.count_text(source, model=model)
        return _conversation(source, model=model, tools=tools, system=system, format=format).count(model=model)


def inspect(
    source: Source, *, model: str | None = None, segment: int | None = None, tools: Any = None, system: Any = None
) -> dict[str, Any]:
    """Tell what fills the window of messages or of a file, as `trimtab inspect --json` does."""
    with ENGINE:
        if isinstance(source, (str, os.PathLike)):
            return _conversation(source, segment).inspect(model=model)
        return _conversation(source, model=model, tools=tools, system=system).inspect(model=model)


def file_state_at(
    source: Source, path: str, *, step: int | None = None, segment: int | None = None
) -> dict[str, Any]:
    """Tell what the conversation knew of a file after a step, as `trimtab file-at --json` does."""
    with ENGINE:
        return _conversation(source, segment).file_state_at(path, step=step)


def files(
    source: Source,
    *,
    recent: int | None = None,
    stale: int | None = None,
    modified: bool = False,
    segment: int | None = None,
) -> dict[str, Any]:
    """List the files that a conversation touched, the latest first, as `trimtab files --json` does.

    `recent`: only those accessed in the last so many steps; `stale`: only those not accessed for more than so many;
    `modified`: only those that the session changed.
    """
    with ENGINE:
        return _conversation(source, segment).files(recent=recent, stale=stale, modified=modified)


def changelog(source: Source, *, segment: int | None = None) -> list[dict[str, Any]]:
    """Tell what was done to which file, and why, as `trimtab changelog --json` does."""
    with ENGINE:
        return _conversation(source, segment).changelog()


def replay(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    policies: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    budget: int | None = None,
    resamples: int = 1000,
) -> list[dict[str, Any]]:
    """Tell what policies would have cost, saved and missed in recordings, as `trimtab replay --json` does."""
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    with ENGINE:
        return _engine.replay(
            [os.fspath(path) for path in listed],
            policies=None if policies is None else list(policies),
            models=None if models is None else list(models),
            budget=budget,
            resamples=resamples,
        )


def policies() -> list[dict[str, Any]]:
    """List the policies that ship, with their settings."""
    return _engine.policies()


#: What an edit tool's optional parameter says, in a model's words.
INTENT = {
    "type": "string",
    "description": "Why this change is made, in one short sentence. It is kept when the change itself is not shown any more.",
}


def with_intent(tools: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Add an optional parameter `intent` to every tool that changes files; others are returned as the very same objects.

    What a model says there is the reason in `changelog`, and in summaries. Tools are those of Anthropic, OpenAI (both
    interfaces) or Gemini; those that are closed to unknown parameters (strict) list every parameter as required, and so
    are left unchanged.
    """
    return [_with_intent(tool) for tool in tools]


def _with_intent(tool: Mapping[str, Any]) -> Any:
    if "functionDeclarations" in tool or "function_declarations" in tool:
        declared = "functionDeclarations" if "functionDeclarations" in tool else "function_declarations"
        return {**tool, declared: with_intent(tool[declared])}
    if isinstance(tool.get("function"), Mapping):
        inner = _with_intent(tool["function"])
        return tool if inner is tool["function"] else {**tool, "function": inner}
    name = tool.get("name")
    key = next((key for key in ("input_schema", "parameters") if isinstance(tool.get(key), Mapping)), None)
    if not isinstance(name, str) or key is None or tool.get("strict") or not _engine.changes_files(name):
        return tool
    schema = tool[key]
    properties = schema.get("properties") or {}
    if "intent" in properties:
        return tool
    return {**tool, key: {**schema, "properties": {**properties, "intent": dict(INTENT)}}}
