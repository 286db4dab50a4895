"""A conversation that goes on: memory, changes, store, threads, forks, tasks."""

import asyncio
import copy
import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import trimtab
from conftest import CONVERSATIONS, anthropic, chat
from trimtab._usage import read_usage


def turns(session, messages, now=1_000.0):
    """Send a conversation turn by turn, five seconds apart; return what was given back each time."""
    sent = []
    for end in range(1, len(messages) + 1, 2):
        sent.append(session.fit(messages[:end], now=now + end * 5))
    return sent


@pytest.mark.parametrize("format", CONVERSATIONS)
def test_what_was_sent_is_sent_again_in_the_same_words(format):
    model = {"anthropic": "claude-opus-4-6", "gemini": "gemini-2.5-pro"}.get(format, "gpt-5")
    sent = turns(trimtab.Session(model=model, budget=20_000), CONVERSATIONS[format](40, lines=120))
    broken = 0
    for before, after in zip(sent, sent[1:]):
        broken += after.messages[: len(before.messages)] != before.messages
    assert sent[-1].tokens_before > 40_000 and sent[-1].tokens <= 20_000
    # Only where the budget presses does anything change that was sent: its beginning for some turns at once, its end where that is cheap.
    assert 0 < broken < len(sent) * 3 / 4


def test_a_message_is_given_back_as_the_same_object_every_turn():
    sent = turns(trimtab.Session(model="gpt-5", budget=20_000), chat(30))
    hidden = {row["message"] for row in sent[-2].plan if row["verdict"] == "shorten"}
    assert hidden and hidden <= set(sent[-2].sources)
    last = dict(zip(sent[-1].sources, sent[-1].messages))
    same = [last.get(number) is message for number, message in zip(sent[-2].sources, sent[-2].messages)]
    assert sum(same) > len(same) * 0.8


@pytest.mark.parametrize("deep", [False, True])
def test_a_message_that_was_changed_in_place_is_read_again(deep):
    messages = chat(3, lines=5)
    session = trimtab.Session(model="gpt-5", budget=20_000)
    before = session.fit(messages)
    if deep:
        messages[1]["tool_calls"][0]["function"]["arguments"] = '{"path": "other"}'
    else:
        messages[2]["content"] = "something else, and much longer than what stood there before"
    after = session.fit(messages)
    assert json.loads(after.request)["messages"] == messages
    assert after.request != before.request


def test_a_changed_copy_that_was_given_back_is_made_anew():
    messages = chat(30)
    session = trimtab.Session(model="gpt-5", budget=20_000)
    first = session.fit(messages)
    place = next(place for place, message in enumerate(first.messages) if any(word in str(message) for word in (" hidden: ", " shortened: ")))
    said = copy.deepcopy(first.messages[place])
    first.messages[place]["content"] = "spoilt by the caller"
    assert session.fit(messages).messages[place] == said


def test_a_conversation_first_seen_in_mid_flight_is_taken_as_cached():
    messages = anthropic(60, lines=60)
    # By its usual limit the policy would keep these files even on a cold cache.
    bold = {"file_need": 0.1}
    cold = trimtab.fit(messages, model="claude-opus-4-6", settings=bold, cold=True)
    assert cold.tokens < trimtab.count(messages, model="claude-opus-4-6")
    session = trimtab.Session(model="claude-opus-4-6", settings=bold)
    for fitted in (session.fit(messages), trimtab.fit(messages, model="claude-opus-4-6", settings=bold)):
        assert all(one is other for one, other in zip(fitted.messages, messages, strict=True))


def test_a_store_lets_another_session_go_on_and_recall(tmp_path):
    store = tmp_path / "kept.db"
    messages = chat(30)
    fitted = trimtab.Session(model="gpt-5", budget=20_000, store=store).fit(messages, now=1_000)
    hidden = next(row for row in fitted.plan if row["handle"])
    other = trimtab.Session(model="gpt-5", budget=60_000, store=store)
    assert other.fit(messages, now=1_010).messages == fitted.messages, "what was hidden stays hidden, with room to spare"
    third = trimtab.Session(store=store, model="gpt-5")
    assert third.recall(hidden["handle"]) == messages[hidden["message"]]["content"]


def test_the_command_line_finds_what_a_session_kept(tmp_path, command_line):
    store = tmp_path / "kept.db"
    messages = chat(30)
    fitted = trimtab.Session(model="gpt-5", budget=20_000, store=store).fit(messages)
    hidden = next(row for row in fitted.plan if row["handle"])
    code, data, words = command_line("recall", hidden["handle"], "--store", store, folder=Path.cwd())
    assert code == 0, words
    assert data.decode() == messages[hidden["message"]]["content"]


def test_a_handle_is_recalled_from_the_latest_request_without_a_store():
    messages = chat(30)
    session = trimtab.Session(model="gpt-5", budget=20_000)
    hidden = next(row for row in session.fit(messages).plan if row["handle"])
    assert session.recall(hidden["handle"]) == messages[hidden["message"]]["content"]
    with pytest.raises(trimtab.NotFoundError, match="no block has the handle 000000000000"):
        session.recall("000000000000")


# Few results stay, and each is hidden at once.
FEW = {"keep_last": 5, "batch": 1}


def hidden_rows(fitted):
    return {row["handle"]: row for row in fitted.plan if row["verdict"] != "keep"}


@pytest.mark.parametrize("stored", [False, True])
def test_a_pinned_block_is_sent_whole_until_it_is_unpinned(stored, tmp_path):
    messages = chat(30)
    store = tmp_path / "trimtab.db" if stored else None
    session = trimtab.Session(model="gpt-5", policy="recent", settings=FEW, budget=400_000, store=store)
    handle, row = next(iter(hidden_rows(session.fit(messages, now=1_000.0)).items()))
    session.pin(handle)
    shown = session.fit(messages, now=1_001.0)
    assert handle not in hidden_rows(shown)
    assert shown.messages[row["message"]] is messages[row["message"]]
    if stored:
        other = trimtab.Session(model="gpt-5", policy="recent", settings=FEW, budget=400_000, store=store)
        assert handle not in hidden_rows(other.fit(messages, now=1_002.0))
        other.unpin(handle)
        assert handle in hidden_rows(other.fit(messages, now=1_003.0))
    else:
        session.unpin(handle)
    assert handle in hidden_rows(session.fit(messages, now=1_004.0))
    with pytest.raises(trimtab.NotFoundError):
        session.pin("0123456789ab")
    with pytest.raises(trimtab.NotFoundError):
        session.pin("no handle")


def test_a_pin_of_a_single_fit_holds_for_it():
    messages = chat(30)
    handle = next(iter(hidden_rows(trimtab.fit(messages, model="gpt-5", policy="recent", settings=FEW, budget=400_000))))
    pinned = trimtab.fit(messages, model="gpt-5", policy="recent", settings=FEW, budget=400_000, pin=[handle])
    assert handle not in hidden_rows(pinned)


def test_pins_and_undos_of_the_command_line_reach_a_running_session(tmp_path, command_line):
    messages = chat(30)
    store = tmp_path / "trimtab.db"
    session = trimtab.Session(model="gpt-5", policy="recent", settings=FEW, budget=400_000, store=store)
    pinned, undone = list(hidden_rows(session.fit(messages, now=1_000.0)))[:2]
    command_line("pin", pinned, "--store", str(store), folder=Path.cwd())
    command_line("undo", undone, "--now", "--store", str(store), folder=Path.cwd())
    shown = hidden_rows(session.fit(messages, now=1_001.0))
    assert pinned not in shown and undone not in shown


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 90_000, "output_tokens": 5},
        {"input_tokens": 10, "cache_read_input_tokens": 89_000, "cache_creation_input_tokens": 990, "output_tokens": 1},
        {"prompt_tokens": 90_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80_000}},
        {"promptTokenCount": 90_000, "candidatesTokenCount": 5},
        SimpleNamespace(prompt_token_count=90_000, candidates_token_count=5),
    ],
)
def test_what_the_provider_counts_moves_the_budget(usage):
    messages = anthropic(60, lines=60)
    plain, taught = (trimtab.Session(model="claude-opus-4-6", budget=60_000) for _ in range(2))
    plain.fit(messages[:81], now=1), taught.fit(messages[:81], now=1)
    taught.answered(usage)
    # The provider counts more than the estimate: less is sent.
    assert taught.fit(messages, now=2).tokens < plain.fit(messages, now=2).tokens


def test_reports_are_read_as_the_proxy_reads_them():
    def kinds(usage):
        return tuple(read_usage(usage).values())

    details = SimpleNamespace(cached_tokens=60, cache_creation_tokens=30)
    reported = SimpleNamespace(prompt_tokens=100, completion_tokens=7, prompt_tokens_details=details)
    assert kinds(reported) == (10, 60, 30, 0, 7)
    assert kinds({"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 64}) == (36, 64, 0, 0, 7)
    assert kinds({"prompt_tokens": 100, "completion_tokens": 7, "cache_read_input_tokens": 90}) == (10, 90, 0, 0, 7)
    gemini = {"prompt_token_count": 30, "candidates_token_count": 4, "thoughts_token_count": 6}
    assert kinds(gemini) == (30, 0, 0, 0, 10)
    assert kinds({"output_tokens": 5}) == kinds(None) == kinds("many") == (0, 0, 0, 0, 0)


def test_a_store_that_cannot_be_opened_is_said(tmp_path):
    bad = tmp_path / "not-a-store.db"
    bad.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(trimtab.StoreError, match="store"):
        trimtab.Session(model="gpt-5", store=bad)


def test_tasks_go_on_while_a_session_works():
    session = trimtab.Session(model="gpt-5", budget=20_000)

    async def main():
        ticks = 0
        work = asyncio.create_task(session.afit(chat(120), now=3))
        while not work.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return ticks, await work

    ticks, fitted = asyncio.run(main())
    assert ticks > 3 and fitted.tokens <= 20_000


def test_the_interpreter_runs_while_the_engine_works():
    messages = chat(150)
    seen, done = [], threading.Event()

    def tick():
        while not done.is_set():
            seen.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    trimtab.fit(messages, model="gpt-5", budget=20_000)
    end = time.perf_counter()
    done.set()
    thread.join()
    during = [moment for moment in seen if start < moment < end]
    assert len(during) > 5, "the other thread stood still"


def test_threads_share_a_session_one_after_the_other():
    messages = chat(40, lines=40)
    session = trimtab.Session(model="gpt-5", budget=10_000)
    faults = []

    def work(seed):
        try:
            for end in range(1 + 2 * (seed % 3), len(messages), 8):
                assert session.fit(messages[:end]).tokens <= 10_000
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    [thread.start() for thread in threads]
    [thread.join(timeout=120) for thread in threads]
    assert not faults and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("stored", [False, True])
def test_a_forked_process_goes_on_while_another_thread_is_at_work(stored, tmp_path):
    store = tmp_path / "kept.db" if stored else None
    session = trimtab.Session(model="gpt-5", budget=10_000, store=store)
    messages = chat(40, lines=40)
    session.fit(messages[:21])
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            session.fit(messages)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        fork = multiprocessing.get_context("fork")
        for _ in range(5):
            queue = fork.Queue()
            child = fork.Process(target=lambda: queue.put(session.fit(messages).tokens))
            child.start()
            assert queue.get(timeout=60) <= 10_000
            child.join(timeout=60)
            assert child.exitcode == 0
    finally:
        stop.set()
        thread.join()


def test_a_session_asked_again_from_a_messages_own_code_says_so():
    session = trimtab.Session(model="gpt-5", budget=10_000)

    class Odd:
        def model_dump(self, **_):
            session.fit([{"role": "user", "content": "again"}])

    with pytest.raises(RuntimeError, match="at work"):
        session.fit([Odd()])
    assert session.fit([{"role": "user", "content": "still good"}]).tokens > 0
