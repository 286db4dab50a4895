"""Objects of the SDKs go in, and come out as objects of the same kind."""

import pytest
import trimtab
from conftest import text

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
from anthropic.types import TextBlock, ToolUseBlock  # noqa: E402
from openai.types.chat import ChatCompletionMessage  # noqa: E402
from openai.types.responses import ResponseFunctionToolCall  # noqa: E402


def openai_turn(number, words=""):
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "read_file", "arguments": f'{{"path": "{number}"}}'}}
    said = ChatCompletionMessage.model_validate({"role": "assistant", "content": words or None, "tool_calls": [call]})
    return [said, {"role": "tool", "tool_call_id": f"call_{number}", "content": text(number, 200)}]


def anthropic_turn(number):
    said = TextBlock.model_validate({"type": "text", "text": f"Reading file {number}. " + text(number, 40)})
    call = ToolUseBlock.model_validate({"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {"path": str(number)}})
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text(number, 200)}
    return [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]


def test_openai_messages_are_kept_and_dropped_as_objects():
    messages = [{"role": "user", "content": "Go."}, *(item for n in range(30) for item in openai_turn(n))]
    fitted = trimtab.fit(messages, budget=9_000, model="gpt-5")
    assert fitted.format == "chat" and fitted.tokens <= 9_000
    said = [message for message in fitted.messages if isinstance(message, ChatCompletionMessage)]
    assert said and all(any(message is own for own in messages) for message in said)
    plain = [message if isinstance(message, dict) else message.model_dump(exclude_unset=True) for message in messages]
    assert trimtab.fit(plain, budget=9_000, model="gpt-5").request == fitted.request


def test_a_changed_openai_message_is_one_again():
    messages = [{"role": "user", "content": "Go."}, *(item for n in range(6) for item in openai_turn(n, text(n, 300)))]
    changed = trimtab._kinds.rebuilt(messages[1], {**messages[1].model_dump(exclude_unset=True), "content": "short"})
    assert isinstance(changed, ChatCompletionMessage) and changed.content == "short" and changed.tool_calls == messages[1].tool_calls


def test_anthropic_blocks_inside_a_changed_message_are_the_same_objects():
    turn = anthropic_turn(1)[0]
    plain = {"role": "assistant", "content": [{"type": "text", "text": "short"}, turn["content"][1].model_dump(exclude_unset=True)]}
    changed = trimtab._kinds.rebuilt(turn, plain)
    assert isinstance(changed["content"][0], TextBlock) and changed["content"][0].text == "short"
    assert changed["content"][1] is turn["content"][1]


def test_anthropic_conversations_with_blocks_are_fitted_turn_by_turn():
    messages = [{"role": "user", "content": "Go."}]
    session = trimtab.Session(model="claude-opus-4-6", budget=20_000)
    for number in range(25):
        messages += anthropic_turn(number)
        fitted = session.fit(messages, now=number * 10)
        assert fitted.tokens <= 20_000
    blocks = [block for message in fitted.messages for block in message["content"] if not isinstance(block, (dict, str))]
    assert blocks and all(isinstance(block, (TextBlock, ToolUseBlock)) for block in blocks)


def test_an_object_that_is_changed_in_place_is_read_again():
    messages = [{"role": "user", "content": "Go."}, *openai_turn(1, "before")]
    session = trimtab.Session(model="gpt-5", budget=9_000)
    assert b'"before"' in session.fit(messages).request
    messages[1].content = "after"
    assert b'"after"' in session.fit(messages).request


def test_response_items_are_responses():
    call = ResponseFunctionToolCall.model_validate(
        {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": "{}", "id": "fc", "status": "completed"}
    )
    items = [{"role": "user", "content": "Go."}, call, {"type": "function_call_output", "call_id": "c", "output": "x"}]
    fitted = trimtab.fit(items, budget=9_000, model="gpt-5")
    assert fitted.format == "responses" and fitted.messages[1] is call


def test_langchains_messages_are_sent_to_their_adapter():
    messages = pytest.importorskip("langchain_core.messages")
    with pytest.raises(TypeError, match="use the middleware of trimtab.langchain"):
        trimtab.fit([messages.HumanMessage("Go.")], budget=1000)
