"""Wrong input is an exception with a sentence, never an abort and never a wrong answer."""

import decimal

import pytest
import trimtab
from conftest import FIXTURES, chat

USER = {"role": "user", "content": "Hi"}


def deep(levels):
    value = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def looped():
    message = {"role": "user", "content": []}
    message["content"].append(message)
    return message


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ("Hi", TypeError, "messages should be a list of messages, and are of type str"),
        ({"messages": [USER]}, TypeError, "of type dict"),
        (None, TypeError, "not iterable"),
        ([1], TypeError, "message 0 should be a dict, and is of type int"),
        ([USER, None], TypeError, "message 1 should be a dict, and is of type NoneType"),
        ([USER, [USER]], TypeError, "message 1 should be a dict, and is of type list"),
        ([{"role": "user", "content": object()}], TypeError, "message 0: a value of type object"),
        ([{"role": "user", "content": b"bytes"}], TypeError, "message 0: a value of type bytes"),
        ([{"role": "user", "content": decimal.Decimal(1)}], TypeError, "message 0: a value of type Decimal"),
        ([{"role": "user", 3: "three"}], TypeError, "message 0: a key of a dict is of type int"),
        ([{"role": "user", "content": float("nan")}], trimtab.RequestError, "message 0: NaN is no number"),
        ([{"role": "user", "content": float("inf")}], trimtab.RequestError, "message 0: inf is no number"),
        ([{"role": "user", "content": deep(5_000)}], trimtab.RequestError, "message 0: it is nested more than 1000"),
        ([looped()], trimtab.RequestError, "or holds itself"),
        ([], trimtab.RequestError, "there are no messages"),
        ([{"text": "no role"}], trimtab.RequestError, "not a conversation"),
        ([{"role": "user", "content": "x"}, {"role": "user", "parts": []}], trimtab.RequestError, "message 0 has `content`"),
        (
            [*chat(1), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]}],
            trimtab.RequestError,
            "message 3 is written as Anthropic Messages, the others as OpenAI Chat",
        ),
    ],
)
def test_messages_that_are_none(messages, kind, words):
    for call in (
        lambda: trimtab.fit(messages, budget=1000),
        lambda: trimtab.Session(budget=1000).fit(messages),
        lambda: trimtab.inspect(messages) if not isinstance(messages, str) else trimtab.fit(messages),
    ):
        with pytest.raises(kind) as fault:
            call()
        assert words in str(fault.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({}, trimtab.SettingsError, "no budget: the model is not known"),
        ({"budget": -1}, trimtab.SettingsError, "budget should be a number of tokens, and is -1"),
        ({"budget": "many"}, TypeError, "budget should be a number of tokens, and is of type str"),
        ({"budget": 9, "max_output": 1.5}, TypeError, "max_output should be a number of tokens"),
        ({"budget": 9, "policy": "nope"}, trimtab.SettingsError, 'there is no policy "nope"; there are: none, recent'),
        ({"budget": 9, "policy": "no/such/file.toml"}, trimtab.SettingsError, "the policy cannot be read"),
        ({"budget": 9, "format": "smoke"}, trimtab.SettingsError, "there are: anthropic, chat, responses, gemini"),
        ({"budget": 9, "settings": {"bogus": 1}}, trimtab.SettingsError, 'has no setting "bogus"'),
        ({"budget": 9, "settings": {"low_water": []}}, TypeError, "setting low_water should be a number"),
        ({"budget": 9, "settings": {"low_water": "wet"}}, trimtab.SettingsError, "low_water"),
        ({"budget": 9, "system": object()}, TypeError, "system: a value of type object"),
        ({"budget": 9, "tools": [object()]}, TypeError, "tools: a value of type object"),
    ],
)
def test_settings_that_are_none(arguments, kind, words):
    with pytest.raises(kind) as fault:
        trimtab.fit([USER], **arguments)
    assert words in str(fault.value)


def test_what_does_not_fit_names_the_floor_and_carries_the_best():
    with pytest.raises(trimtab.BudgetError, match="cannot be hidden") as over:
        trimtab.fit(chat(30), model="gpt-5", budget=20)
    assert over.value.floor == over.value.fitted.tokens > 20
    assert len(over.value.fitted.messages) < 61


def test_an_empty_list_is_fitted_where_its_format_is_named():
    for format in ("anthropic", "chat", "responses", "gemini"):
        assert trimtab.fit([], budget=1000, format=format).messages == []


def test_halves_of_surrogate_pairs_pass_and_are_shortened_around():
    lone = "\ud83d alone, \udc00 too"
    kept = [{"role": "user", "content": lone}]
    assert trimtab.fit(kept, budget=1000).messages[0] is kept[0]
    messages = chat(20)
    for message in messages[2::2]:
        message["content"] = f"{lone}\n{message['content']}\n{lone}"
    fitted = trimtab.fit(messages, budget=9_000, model="gpt-5")
    assert fitted.tokens <= 9_000
    assert any(any(word in str(message["content"]) for word in (" hidden: ", " shortened: ")) for message in fitted.messages)


def test_huge_strings_and_numbers_pass():
    huge = "word " * 1_000_000
    messages = [USER, {"role": "assistant", "content": "ok"}, {"role": "user", "content": huge, "n": 10**300, "f": 1e-300}]
    fitted = trimtab.fit(messages, budget=2_000_000, model="chars/4", policy="none")
    assert fitted.messages[2] is messages[2] and fitted.tokens > 1_000_000
    assert b"1" + b"0" * 300 in fitted.request and b"1e-300" in fitted.request


@pytest.mark.parametrize("path", sorted((FIXTURES / "broken").iterdir()), ids=lambda path: path.name)
def test_broken_files_are_read_or_refused_with_a_sentence(path):
    try:
        assert trimtab.inspect(path)["tokens"] >= 0
    except (trimtab.TrimtabError, OSError) as fault:
        assert len(str(fault)) > 20


def test_a_file_that_is_not_there_is_an_error_of_the_system():
    with pytest.raises(FileNotFoundError):
        trimtab.inspect("no/such/file.json")
