"""`with_intent`, and what a changelog makes of it."""

import json

import pytest
import trimtab

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def spelled(format, name):
    return {
        "anthropic": {"name": name, "input_schema": SCHEMA},
        "chat": {"type": "function", "function": {"name": name, "parameters": SCHEMA}},
        "responses": {"type": "function", "name": name, "parameters": SCHEMA},
        "gemini": {"functionDeclarations": [{"name": name, "parameters": SCHEMA}]},
    }[format]


@pytest.mark.parametrize("format", ["anthropic", "chat", "responses", "gemini"])
def test_edit_tools_get_an_optional_intent(format):
    tool = spelled(format, "edit_file")
    before = json.dumps(tool)
    (added,) = trimtab.with_intent([tool])
    assert json.dumps(tool) == before and '"intent": {"type": "string"' in json.dumps(added)
    assert '"required": ["path"]' in json.dumps(added), "it stays optional"
    assert trimtab.with_intent([added]) == [added]


@pytest.mark.parametrize("format", ["anthropic", "chat", "responses"])
def test_tools_that_only_read_are_the_very_same_objects(format):
    tools = [spelled(format, name) for name in ("read_file", "bash", "grep", "web_search")]
    assert all(one is other for one, other in zip(trimtab.with_intent(tools), tools, strict=True))


def test_strict_tools_stay_as_they_are():
    tool = {**spelled("responses", "edit_file"), "strict": True}
    assert trimtab.with_intent([tool])[0] is tool


def test_an_intent_is_the_reason_in_the_changelog():
    arguments = {"path": "src/a.py", "old_string": "x = 1", "new_string": "x = 2", "intent": "Start at two."}
    call = {"type": "tool_use", "id": "t", "name": "edit_file", "input": arguments}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]},
    ]
    (changed,) = trimtab.changelog(messages)
    assert changed["path"] == "src/a.py" and changed["changes"][0]["words"] == ["Start at two"]
