"""The laws of fitting, over made-up conversations in every format, through the package."""

import json
import os
import subprocess
import sys

import pytest
import trimtab
from checker import faults
from conftest import CONVERSATIONS, anthropic
from hypothesis import example, given
from hypothesis import strategies as st

POLICIES = [policy["name"] for policy in trimtab.policies() if policy["name"] != "none"]
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)
results = st.one_of(
    words,
    st.integers(1, 400).map(lambda lines: "\n".join(f"{line}: value {line * 31}" for line in range(lines))),
    st.integers(1, 80).map(lambda rows: json.dumps([{"row": row, "name": f"n{row}"} for row in range(rows)])),
    st.just("Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: no\n" * 30),
)
exchanges = st.lists(
    st.tuples(st.sampled_from(["read_file", "bash", "edit_file", "grep"]), words, results), min_size=0, max_size=14
)

# Two copies, one of which is hidden: together with what is older, the other would leave too little for a cache.
LINES = "\n".join(f"{line}: value {line * 31}" for line in range(34))
ROWS = json.dumps([{"row": row, "name": f"n{row}"} for row in range(51)])
EMPTY = ("read_file", "", "")
TWO_COPIES = [EMPTY, EMPTY, ("bash", "", LINES), ("bash", "", ROWS), ("read_file", "", ROWS), ("read_file", "", "0:" * 19 + "0")]


def conversation(format, said):
    """Spell exchanges (tool, words of the assistant, result) in a format."""
    task = "Make the tests pass."
    if format == "gemini":
        messages = [{"role": "user", "parts": [{"text": task}]}]
        for tool, spoken, result in said:
            call = {"functionCall": {"name": tool, "args": {"path": spoken[:20]}}}
            messages.append({"role": "model", "parts": [{"text": spoken.strip() or "."}, call]})
            messages.append({"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": result}}}]})
        return messages
    messages = [{"role": "user", "content": task}]
    for number, (tool, spoken, result) in enumerate(said):
        name, arguments = f"call_{number}", {"path": spoken[:20]}
        if format == "anthropic":
            use = {"type": "tool_use", "id": name, "name": tool, "input": arguments}
            messages.append({"role": "assistant", "content": [{"type": "text", "text": spoken.strip() or "."}, use]})
            messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": result}]})
        elif format == "chat":
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": name, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": spoken or None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": name, "content": result})
        else:
            call = {"type": "function_call", "call_id": name, "name": tool, "arguments": json.dumps(arguments)}
            messages.append(call)
            messages.append({"type": "function_call_output", "call_id": name, "output": result})
    return messages


def fitted_or_floor(messages, budget, policy, format):
    """Fit; where it cannot be done, the best that could be, with its floor."""
    try:
        return trimtab.fit(messages, budget=budget, policy=policy, model="gpt-5", format=format), None
    except trimtab.BudgetError as over:
        return over.fitted, over.floor


@pytest.mark.parametrize("format", CONVERSATIONS)
@given(said=exchanges, budget=st.integers(1, 20_000), policy=st.sampled_from(POLICIES))
def test_laws_4_5_6_and_10(format, said, budget, policy):
    messages = conversation(format, said)
    before = json.dumps(messages)
    fitted, floor = fitted_or_floor(messages, budget, policy, format)
    assert json.dumps(messages) == before, "the caller's messages are the caller's"
    assert faults(format, fitted.messages) == [], "law 4: valid"
    count = trimtab.count(fitted.messages, model="gpt-5", format=format)
    assert count == fitted.tokens
    assert count <= budget if floor is None else count >= floor > budget, "law 5: budget"
    assert count <= fitted.tokens_before == trimtab.count(messages, model="gpt-5", format=format), "law 6: smaller"
    size = len(json.dumps(fitted.messages, ensure_ascii=False).encode())
    assert size <= len(json.dumps(messages, ensure_ascii=False).encode()), "law 6: smaller, in bytes"
    again, _ = fitted_or_floor(messages, budget, policy, format)
    assert again.request == fitted.request and again.plan == fitted.plan, "law 10: deterministic"


@pytest.mark.parametrize("format", CONVERSATIONS)
@given(said=exchanges, budget=st.integers(200, 20_000), policy=st.sampled_from(POLICIES))
@example(said=TWO_COPIES, budget=1180, policy="steady")
def test_law_6_what_is_fitted_is_left_alone(format, said, budget, policy):
    fitted, floor = fitted_or_floor(conversation(format, said), budget, policy, format)
    if floor is None:
        again, _ = fitted_or_floor(fitted.messages, budget, policy, format)
        assert all(one is other for one, other in zip(fitted.messages, again.messages, strict=True))


@pytest.mark.parametrize("format", CONVERSATIONS)
@given(said=exchanges, budget=st.integers(1, 20_000), more=st.integers(0, 5_000), policy=st.sampled_from(POLICIES))
def test_law_6_a_smaller_budget_never_shows_more(format, said, budget, more, policy):
    messages = conversation(format, said)
    less, _ = fitted_or_floor(messages, budget, policy, format)
    plenty, _ = fitted_or_floor(messages, budget + more, policy, format)
    assert less.tokens <= plenty.tokens


@pytest.mark.parametrize("format", CONVERSATIONS)
@given(said=exchanges, budget=st.integers(500, 20_000), policy=st.sampled_from(POLICIES))
def test_untouched_messages_are_the_very_same_objects(format, said, budget, policy):
    messages = conversation(format, said)
    fitted, _ = fitted_or_floor(messages, budget, policy, format)
    touched = {row["message"] for row in fitted.plan if row["verdict"] != "keep"}
    for number, message in zip(fitted.sources, fitted.messages):
        assert (message is messages[number]) == (number not in touched)


@given(said=exchanges, budget=st.integers(500, 20_000))
def test_a_session_gives_what_a_fresh_reading_gives(said, budget):
    """What is kept from turn to turn never changes an output byte: a second session that reads everything anew agrees."""
    messages = conversation("chat", said)
    going, fresh = (trimtab.Session(model="gpt-5", budget=budget) for _ in range(2))
    for end in range(1, len(messages) + 1, 2):
        copied = json.loads(json.dumps(messages[:end]))
        ours, theirs = (attempt(session, part, end) for session, part in ((going, messages[:end]), (fresh, copied)))
        assert ours == theirs


def attempt(session, messages, now):
    try:
        return session.fit(messages, now=now).request
    except trimtab.BudgetError as over:
        return str(over)


def test_law_10_another_process_with_another_seed_gives_the_same_bytes():
    program = (
        "import sys, json, trimtab; sys.path.insert(0, sys.argv[1]); from conftest import anthropic;"
        "sys.stdout.buffer.write(trimtab.fit(anthropic(20), budget=9000, model='claude-opus-5').request)"
    )
    here = os.path.dirname(__file__)
    given_back = set()
    for seed in ("0", "1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", program, here], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        given_back.add(done.stdout)
    given_back.add(trimtab.fit(anthropic(20), budget=9000, model="claude-opus-5").request)
    assert len(given_back) == 1
