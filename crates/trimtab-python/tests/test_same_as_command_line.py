"""The package gives what the command line gives."""

import json

import pytest
import trimtab
from conftest import FIXTURES

REQUESTS = sorted((FIXTURES / "requests").glob("*.json"))
RECORDINGS = sorted(path for path in (FIXTURES / "recordings").rglob("*") if path.suffix in (".json", ".jsonl", ".traj"))
LISTS = {"messages": "system", "input": "instructions", "contents": "systemInstruction"}
MAX_OUTPUT = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def parts_of(request):
    """Take a request apart as a caller of the package has it."""
    key = next(key for key in ("contents", "messages", "input") if key in request)
    system = request.get(LISTS[key], request.get("system_instruction"))
    most = next((request[name] for name in MAX_OUTPUT if name in request), None)
    return key, request[key], {"system": system, "tools": request.get("tools"), "model": request.get("model"), "max_output": most}


@pytest.mark.parametrize(
    ("path", "policy"),
    [(path, ("ladder", "steady")[number % 2]) for number, path in enumerate(REQUESTS)],
    ids=lambda value: getattr(value, "stem", value),
)
def test_a_fitted_request_is_the_command_lines(path, policy, command_line, tmp_path):
    request = json.loads(path.read_bytes())
    # The old way to define functions has no name in the package.
    request.pop("functions", None)
    key, messages, beside = parts_of(request)
    if not isinstance(messages, list):
        # One bare text is no list of messages.
        with pytest.raises(TypeError, match="messages"):
            trimtab.fit(messages, budget=1_000, policy=policy, format="responses")
        return
    format = path.name.replace("openai-", "").split("-")[0]
    # The package writes JSON without blanks: what is counted is what stands there.
    spelled = tmp_path / "request.json"
    spelled.write_text(json.dumps(request, separators=(",", ":"), ensure_ascii=False))
    whole = trimtab.count(messages, model=beside["model"], tools=beside["tools"], system=beside["system"], format=format)
    for budget in (whole * 7 // 10, whole * 2)[: 1 + (len(path.stem) % 4 == 0)]:
        report = tmp_path / "report.json"
        asked = ["fit", spelled, "--format", format, "--policy", policy, "--budget", budget, "--report", report]
        code, data, words = command_line(*asked)
        try:
            fitted = trimtab.fit(messages, budget=budget, policy=policy, format=format, **beside)
        except trimtab.BudgetError as over:
            assert code == 1 and str(over) in words
            continue
        assert code == 0, words
        theirs = json.loads(data)[key]
        lead = len(theirs) - len(fitted.messages)
        assert lead == 0 and fitted.messages == theirs
        told, ours = json.loads(report.read_text()), fitted.report()
        for field in ("policy", "budget", "exact", "tokens_before", "tokens_after", "fold_wanted", "verdicts", "supersedes"):
            assert ours[field] == told[field], field


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_what_is_told_of_a_recording_is_the_command_lines(path, command_line):
    code, data, words = command_line("inspect", path, "--json")
    if code != 0:
        with pytest.raises(trimtab.TrimtabError):
            trimtab.inspect(path)
        return
    assert trimtab.inspect(path) == json.loads(data)
    assert trimtab.changelog(path) == json.loads(command_line("changelog", path, "--json")[1])
    assert trimtab.files(path) == json.loads(command_line("files", path, "--json")[1])
    recent = json.loads(command_line("files", path, "--recent", "5", "--modified", "--json")[1])
    assert trimtab.files(path, recent=5, modified=True) == recent
    for changed in trimtab.changelog(path)[:2]:
        theirs = json.loads(command_line("file-at", path, changed["path"], "--json")[1])
        assert trimtab.file_state_at(path, changed["path"]) == theirs


def test_replayed_rows_are_the_command_lines(command_line):
    path = FIXTURES / "recordings" / "pi.jsonl"
    asked = ["replay", path, "--json", "--policy", "steady", "--policy", "none", "--model", "claude-opus-5"]
    theirs = json.loads(command_line(*asked)[1])
    ours = trimtab.replay(path, policies=["steady", "none"], models=["claude-opus-5"])
    timed = {"plan_us_p50", "plan_us_p99"}
    plain = [{name: value for name, value in row.items() if name not in timed} for row in ours]
    assert plain == [{name: value for name, value in row.items() if name not in timed} for row in theirs]


def test_policies_are_the_command_lines(command_line):
    assert trimtab.policies() == json.loads(command_line("policies", "--json")[1])


def test_what_cannot_be_told_is_said_in_the_command_lines_words(command_line):
    path = FIXTURES / "recordings" / "claude-code.jsonl"
    with pytest.raises(trimtab.NotFoundError) as missing:
        trimtab.file_state_at(path, "no/such/file.py")
    assert str(missing.value) in command_line("file-at", path, "no/such/file.py")[2]
