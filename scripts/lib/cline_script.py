"""What the scripted model says to Cline while it works on the scratch project `shelf`.

Takes a chat request; gives the `Reply` that belongs to its place in the story, found from the last
human message and the number of answers since. Holds no state.
"""

from opencode_script import FIRST, SURVEY, text_of
from scripted_upstream import Reply

SYSTEM = "You are a coding agent. Use the tools to do what the user asks, then say what you did."


def shell(*commands):
    return ("run_commands", {"commands": list(commands)})


def read(root, *paths, **lines):
    return ("read_files", {"files": [{"path": f"{root}/{path}", **lines} for path in paths]})


def patch(*lines):
    return ("apply_patch", {"input": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])})


def first_turn(root):
    return [
        Reply(
            reasoning="Look at the failures before reading code.",
            text="I will run the tests first.",
            calls=[shell("git ls-files", "python3 -m unittest")],
        ),
        Reply(calls=[read(root, "shelf/fees.py", "tests/test_fees.py")]),
        Reply(
            text="Now where lateness is counted.",
            calls=[("search_codebase", {"queries": ["days_late", "CAP_CENTS"]}), read(root, "shelf/loans.py")],
        ),
        Reply(
            calls=[
                patch(
                    f"*** Update File: {root}/shelf/fees.py",
                    "@@ def fee_for_days(days_late):",
                    "-    if days_late < GRACE_DAYS:",
                    "-        return 0",
                    "-    return days_late * CENTS_PER_DAY",
                    "+    return max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY",
                )
            ],
        ),
        Reply(calls=[shell("python3 -m unittest")]),
        Reply(
            reasoning="Only the cap is left. CAP_CENTS exists and is not used.",
            calls=[
                patch(
                    f"*** Update File: {root}/shelf/fees.py",
                    "@@ def fee_for_days(days_late):",
                    "-    return max(0, days_late-GRACE_DAYS)*CENTS_PER_DAY + 0",
                    "+    return min(CAP_CENTS, max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY)",
                )
            ],
        ),
        Reply(calls=[read(root, "shelf/fees.py", start_line=8, end_line=20)]),
        Reply(
            calls=[
                patch(
                    f"*** Update File: {root}/shelf/fees.py",
                    "@@ def fee_for_days(days_late):",
                    "-    return max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY",
                    "+    charged = max(0, days_late - GRACE_DAYS)",
                    "+    return min(CAP_CENTS, charged * CENTS_PER_DAY)",
                )
            ],
        ),
        Reply(calls=[shell("python3 -m unittest", "python3 -m shelf report missing.csv")]),
        Reply(calls=[("spawn_agent", {"systemPrompt": SYSTEM, "task": SURVEY})]),
        Reply(
            text=(
                "Grace days were charged once a loan was past them, and the cap was never applied. Both are fixed "
                "in `shelf/fees.py`; all 15 tests pass and no caller depends on the old numbers."
            )
        ),
    ]


def survey(root):
    return [
        Reply(calls=[("search_codebase", {"queries": ["fee_for_days", "fees.total"]})]),
        Reply(calls=[read(root, "shelf/report.py", "shelf/__main__.py"), read(root, "shelf/store.py")]),
        Reply(text="Only shelf/report.py:15 calls `fees.fee`; `fees.total` is called by tests alone."),
    ]


def answer(request, root):
    """Returns the reply for this request; a request outside the story gets a short text."""
    turns = {FIRST: first_turn, SURVEY: survey}
    since = 0
    for message in reversed(request["messages"]):
        since += message["role"] == "assistant"
        found = [turn for prompt, turn in turns.items() if message["role"] == "user" and prompt in text_of(message)]
        if found:
            replies = found[0](root)
            return replies[min(since, len(replies) - 1)]
    return Reply(text="There is nothing left to do.")
