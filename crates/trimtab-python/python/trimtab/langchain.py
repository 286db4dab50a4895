"""LangChain agents, with every model call fitted.

    agent = create_agent(model, tools, middleware=[trimtab.langchain.TrimtabMiddleware()])

The agent's state keeps every message; only what the model is sent is fitted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as missing:
    raise ImportError("trimtab.langchain needs langchain 1.0 or newer: pip install 'langchain>=1.0'") from missing

from trimtab._adapting import Sessions, fitted_anyway
from trimtab._session import Session

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class TrimtabMiddleware(AgentMiddleware[Any, Any, Any]):
    """Fits the messages of every model call; the settings are those of `Session`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._sessions = Sessions({**settings, "format": "chat"})

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Fit the messages, then let the model answer."""
        fitted, session = self._fitted(request)
        return _learned(session, handler(fitted))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Fit the messages in a thread, then let the model answer."""
        fitted, session = await asyncio.to_thread(self._fitted, request)
        return _learned(session, await handler(fitted))

    def _fitted(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Session]:
        messages = list(request.messages)
        wire = [_to_chat(message) for message in messages]
        system = None if request.system_message is None else request.system_message.content
        tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
        session = self._sessions.of(wire, system, _model(request.model))
        done = fitted_anyway(lambda: session.fit(wire, system=system, tools=tools or None))
        sent = [
            _from_chat(None if number is None else messages[number], None if number is None else wire[number], said)
            for number, said in zip(done.sources, done.messages)
        ]
        return request.override(messages=sent), session


def _model(model: Any) -> str | None:
    names = (getattr(model, name, None) for name in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str)), None)


def _learned(session: Session, response: ModelResponse[Any]) -> ModelResponse[Any]:
    for message in getattr(response, "result", None) or []:
        usage = getattr(message, "usage_metadata", None)
        if usage:
            session.answered(usage)
    return response


def _to_chat(message: BaseMessage) -> dict[str, Any]:
    """Return a message as OpenAI Chat spells it."""
    role = _ROLES.get(message.type) or getattr(message, "role", "user")
    content = message.content
    if isinstance(content, list):
        # Calls stand beside the content, whichever way the provider spells them.
        content = [part for part in content if not _is_call(part)]
    wire: dict[str, Any] = {"role": role, "content": content}
    if isinstance(message, AIMessage):
        calls: list[tuple[str | None, str | None, str]] = []
        calls += [(call["id"], call["name"], json.dumps(call["args"])) for call in message.tool_calls]
        calls += [(call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls]
        if calls:
            wire["tool_calls"] = [
                {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
                for name, tool, arguments in calls
            ]
    if isinstance(message, ToolMessage):
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _from_chat(message: AnyMessage | None, wire: dict[str, Any] | None, said: dict[str, Any]) -> AnyMessage:
    """Return what is sent as a message of LangChain: the very same one where nothing changed."""
    if message is None:
        kind = AIMessage if said.get("role") == "assistant" else HumanMessage
        return kind(content=said.get("content") or "")
    if said is wire:
        return message
    content = said.get("content") or ""
    update: dict[str, Any] = {}
    if isinstance(message, AIMessage):
        left = {call["id"] for call in said.get("tool_calls") or []}
        update["tool_calls"] = [call for call in message.tool_calls if call["id"] in left]
        update["invalid_tool_calls"] = [call for call in message.invalid_tool_calls if call["id"] in left]
        raw = message.additional_kwargs.get("tool_calls")
        if raw is not None:
            kept = [call for call in raw if call.get("id") in left]
            update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": kept}
        if isinstance(message.content, list):
            said_calls = [part for part in message.content if isinstance(part, dict) and _is_call(part)]
            kept_calls = [part for part in said_calls if part.get("id", part.get("call_id")) in left]
            texts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            content = [*texts, *kept_calls]
    return message.model_copy(update={**update, "content": content})


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call", "function_call")
