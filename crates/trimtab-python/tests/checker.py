"""Judges messages by the rules of the providers. Knows nothing of trimtab."""


def faults(format, messages):
    """Return what a provider would refuse, as sentences that name no position."""
    found = {"anthropic": _anthropic, "chat": _chat, "responses": _responses, "gemini": _gemini}[format](messages)
    roles = [message.get("role") for message in messages]
    if not any(role == "user" or (role is None and "parts" in message) for role, message in zip(roles, messages)):
        found.append("no message is the user's")
    return found


def _anthropic(messages):
    found = []
    if messages and messages[0]["role"] != "user":
        found.append("the first message is not the user's")
    for place, message in enumerate(messages):
        content = message["content"]
        if content == "" or content == []:
            found.append("a message is empty")
        blocks = content if isinstance(content, list) else []
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        behind = messages[place + 1]["content"] if place + 1 < len(messages) else None
        if calls and behind is not None:
            answered = [block["tool_use_id"] for block in behind if isinstance(block, dict) and block["type"] == "tool_result"]
            if sorted(answered) != sorted(calls):
                found.append("calls are not answered in the next message")
        before = messages[place - 1]["content"] if place else []
        asked = [block["id"] for block in before if isinstance(block, dict) and block["type"] == "tool_use"]
        if set(results) - set(asked):
            found.append("a result has no call in the message before it")
    return found


def _chat(messages):
    found, waiting = [], []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append("a result has no call before it")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            found.append("a call is not answered before the next message")
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        if message["role"] == "assistant" and not waiting and not message.get("content"):
            found.append("an assistant message is empty")
    return found


def _responses(items):
    found, waiting = [], set()
    for item in items:
        if item.get("type") == "function_call":
            waiting.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                found.append("a result has no call before it")
            waiting.discard(item["call_id"])
    return found + ["a call is not answered"] * bool(waiting)


def _gemini(contents):
    found, asked = [], 0
    for content in contents:
        parts = content["parts"]
        if not parts:
            found.append("a content has no parts")
        answers = sum("functionResponse" in part for part in parts)
        if answers != asked:
            found.append("calls and results are not as many")
        asked = sum("functionCall" in part for part in parts)
    return found + ["a call is not answered"] * bool(asked)
