"""Folds with summaries: asked for when the plan wants one, checked, kept, and done without where there is none."""

import json
import logging

import pytest
import trimtab
from checker import faults
from conftest import CONVERSATIONS, chat, text

#: The policy that folds, with a window that the conversation outgrows.
FOLDING = {"model": "gpt-5", "budget": 12_000, "policy": "ladder"}
GOOD = "## Goal\nAdd up the values in all files.\n## Progress\n" + "\n".join(
    f"- src/{number}.py was read; its values follow a pattern that is known by now." for number in range(12)
)


def talk(session, format="chat", turns=60):
    """Talk until the end; return all that was given back."""
    messages = CONVERSATIONS[format](turns, lines=40)
    said = [f"Thinking about file {turn}: " + text(turn, 12) for turn in range(turns)]
    if format == "chat":
        for turn, words in enumerate(said):
            messages[1 + 2 * turn]["content"] = words
    sent = []
    for end in range(1, len(messages) + 1, 2):
        sent.append(session.fit(messages[:end], now=end * 10))
        assert faults(format, sent[-1].messages) == []
    return sent


def folded(sent):
    return [fitted for fitted in sent if None in fitted.sources]


@pytest.mark.parametrize("format", CONVERSATIONS)
def test_a_summary_stands_for_what_is_old(format):
    prompts = []

    def summarizer(prompt):
        prompts.append(prompt)
        return GOOD

    sent = talk(trimtab.Session(summarizer=summarizer, **FOLDING), format, turns=90)
    assert prompts and "Add up the values" in prompts[0]
    assert len(prompts) < 15, "a summary is not asked for again and again"
    assert folded(sent) and "follow a pattern that is known by now" in str(folded(sent)[-1].messages)
    assert all(fitted.tokens <= FOLDING["budget"] for fitted in sent)
    if format == "chat":
        assert any(row["verdict"] == "fold" for row in folded(sent)[-1].plan)


@pytest.mark.parametrize("answer", ["", "no", "I cannot help with that.", 17])
def test_a_summary_that_cannot_be_trusted_is_not_used(answer, caplog):
    with caplog.at_level(logging.WARNING, "trimtab"):
        sent = talk(trimtab.Session(summarizer=lambda prompt: answer, **FOLDING), turns=90)
    assert "folding by the ledger alone" in caplog.text
    assert folded(sent), "what is folded is told by the ledger"


def test_a_summarizer_that_fails_never_stops_a_turn(caplog):
    def broken(prompt):
        raise OSError("no network")

    sent = talk(trimtab.Session(summarizer=broken, **FOLDING), turns=90)
    assert folded(sent) and "no summary: no network" in caplog.text


def test_without_a_summarizer_the_ledger_may_stand_for_what_is_old():
    assert folded(talk(trimtab.Session(fold="ledger", **FOLDING), turns=90))
    assert not folded(talk(trimtab.Session(fold="never", **FOLDING), turns=90))
    with pytest.raises(trimtab.SettingsError, match="fold should be"):
        trimtab.Session(fold="always", **FOLDING)


def test_a_summary_is_kept_with_the_conversation(tmp_path):
    calls = []
    store = tmp_path / "kept.db"
    session = trimtab.Session(summarizer=lambda prompt: calls.append(1) or GOOD, store=store, **FOLDING)
    sent = talk(session, turns=70)
    assert folded(sent) and calls
    messages = chat(70, lines=40)
    for turn in range(70):
        messages[1 + 2 * turn]["content"] = f"Thinking about file {turn}: " + text(turn, 12)
    other = trimtab.Session(store=store, **FOLDING)
    assert other.fit(messages, now=141 * 10 + 5).messages == sent[-1].messages


def test_a_client_writes_summaries(monkeypatch):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1/v1")
    asked = []

    def post(path, *, body, cast_to, **rest):
        asked.append((path, body["model"], body["max_completion_tokens"]))
        reply = {
            "id": "x", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": GOOD}, "finish_reason": "stop"}],
        }
        return cast_to.model_validate(json.loads(json.dumps(reply)))

    monkeypatch.setattr(client.chat.completions, "_post", post)
    session = trimtab.Session(summarizer=client, summary_model="gpt-5-mini", **FOLDING)
    assert folded(talk(session, turns=90)) and asked[0][:2] == ("/chat/completions", "gpt-5-mini")
    with pytest.raises(TypeError, match="summary_model"):
        trimtab.Session(summarizer=client, **FOLDING)
    with pytest.raises(TypeError, match="from prompt to text"):
        trimtab.Session(summarizer=3, **FOLDING)
