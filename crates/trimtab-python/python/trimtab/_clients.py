"""SDK clients whose requests are fitted.

A wrapped client is a client of the same class: what is fitted is the body of the requests that it posts, however they are
made (create, stream, parse, tool runners, raw responses).
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, NamedTuple, TypeVar

from trimtab._adapting import Sessions, fitted_anyway
from trimtab._session import Session
from trimtab._streams import is_stream, listened

Client = TypeVar("Client")


class _Interface(NamedTuple):
    messages: str
    system: str | None
    max_output: tuple[str, ...]
    format: str


_INTERFACES = {
    "/chat/completions": _Interface("messages", None, ("max_completion_tokens", "max_tokens"), "chat"),
    "/responses": _Interface("input", "instructions", ("max_output_tokens",), "responses"),
    "/v1/messages": _Interface("messages", "system", ("max_tokens",), "anthropic"),
}

#: Classes of what a caller of an SDK did not say.
_NOT_GIVEN = ("NotGiven", "Omit")


def wrapped(client: Client, settings: dict[str, Any]) -> Client:
    """Return a copy of a client that fits every request."""
    kind = type(client)
    sessions: dict[str, Sessions] = {
        interface.format: Sessions({**settings, "format": interface.format}) for interface in _INTERFACES.values()
    }

    def prepared(path: str, body: Any) -> tuple[Any, Session | None]:
        interface = _INTERFACES.get(path.split("?")[0])
        if interface is None or not isinstance(body, dict):
            return body, None
        given = {name: value for name, value in body.items() if type(value).__name__ not in _NOT_GIVEN}
        messages = given.get(interface.messages)
        # A bare text is one message; what the server holds of a conversation is not here to be fitted.
        if not isinstance(messages, list) or given.get("previous_response_id") or given.get("conversation"):
            return body, None
        system = given.get(interface.system) if interface.system else None
        session = sessions[interface.format].of(messages, system, given.get("model"))
        most = next((given[key] for key in interface.max_output if isinstance(given.get(key), int)), None)
        fitted = fitted_anyway(
            lambda: session.fit(messages, system=system, tools=given.get("tools") or None, max_output=most)
        )
        return {**body, interface.messages: fitted.messages}, session

    def learn(session: Session | None, answer: Any) -> Any:
        if session is not None and is_stream(answer):
            listened(answer, session.answered)
            return answer
        usage = getattr(answer, "usage", None)
        if session is not None and usage is not None and not callable(usage):
            session.answered(usage)
        return answer

    def post(self: Any, path: str, *, body: Any = None, **rest: Any) -> Any:
        body, session = prepared(path, body)
        return learn(session, kind.post(self, path, body=body, **rest))  # type: ignore[attr-defined]

    async def apost(self: Any, path: str, *, body: Any = None, **rest: Any) -> Any:
        body, session = await asyncio.to_thread(prepared, path, body)
        return learn(session, await kind.post(self, path, body=body, **rest))  # type: ignore[attr-defined]

    is_async = inspect.iscoroutinefunction(kind.post)  # type: ignore[attr-defined]
    copy = client.copy()  # type: ignore[attr-defined]
    # The copy has made none of its resources yet: they take the method of the class it has from now on.
    copy.__class__ = type(kind.__name__, (kind,), {"post": apost if is_async else post})
    return copy  # type: ignore[no-any-return]
