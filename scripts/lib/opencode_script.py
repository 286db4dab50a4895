"""What the scripted model says to opencode while it works on the scratch project `shelf`.

Takes a chat request; gives the `Reply` that belongs to its place in the story, found from the last
human message and the number of answers since. Holds no state, so a repeated request gets the same
reply.
"""

from scripted_upstream import Reply

FIRST = (
    "Four tests in tests/test_fees.py fail. Find out what the fee rules should be, fix the code, and "
    "say what was wrong. Do not change the tests."
)
SECOND = "Good. Now add a --json flag to the report command, with a test. Keep the table as the default."
THIRD = "Mention the new flag in the README, and show me the final diff in numbers."
SURVEY = (
    "Read every module of the package shelf and tell me who calls fees.fee, fees.fee_for_days and "
    "fees.total, with file and line. Change nothing."
)
QUESTION = "What does fees.money(5) give?"
REGRETTED = "Rename money to amount everywhere."

SUMMARY = """## Goal
Repair the late fees of shelf and give the report command a --json flag.

## Instructions
- Tests are not to be changed; new ones may be added. Amounts are integers in cents.
- Run `python3 -m unittest` before saying that something works.

## Done
- shelf/fees.py: grace days are free and not charged afterwards (`days_late - GRACE_DAYS`), the cap
  CAP_CENTS is applied in fee_for_days.
- shelf/report.py: as_json beside as_table. shelf/__main__.py: `report --json`.
- tests/test_report.py: test_json_has_cents_as_integers. 16 tests pass.

## Next
- README.md does not mention --json yet.

## Files
- shelf/fees.py, shelf/report.py, shelf/__main__.py, tests/test_report.py, README.md
"""


def shell(command, why):
    return ("bash", {"command": command, "description": why})


def read(root, path, **more):
    return ("read", {"filePath": f"{root}/{path}", **more})


def edit(root, path, old, new):
    return ("edit", {"filePath": f"{root}/{path}", "oldString": old, "newString": new})


def todos(*states):
    work = ["See which tests fail", "Find the rule for grace days and cap", "Fix shelf/fees.py", "Check the callers"]
    return (
        "todowrite",
        {"todos": [{"content": w, "status": s, "priority": "medium"} for w, s in zip(work, states)]},
    )


TESTS = shell("python3 -m unittest", "Run all tests")


def first_turn(root):
    return [
        Reply(
            reasoning="The user wants the fee tests to pass without touching them. I should look at the layout and the failures first.",
            text="I will look at the project and run the tests.",
            calls=[todos("in_progress", "pending", "pending", "pending")],
        ),
        Reply(calls=[shell("git log --oneline && git ls-files", "List commits and files"), TESTS]),
        Reply(
            reasoning="Four failures, all in fee_for_days or its callers. Read the module and the tests.",
            calls=[read(root, "shelf/fees.py"), read(root, "tests/test_fees.py")],
        ),
        Reply(
            text="The tests pin three rules: two free days, free days never charged, and a cap. Let me see how lateness is counted.",
            calls=[("grep", {"pattern": "days_late|GRACE_DAYS|CAP_CENTS", "include": "*.py"})],
        ),
        Reply(calls=[read(root, "shelf/loans.py")]),
        Reply(calls=[todos("completed", "completed", "in_progress", "pending")]),
        Reply(
            text="`days_late` is right; the fee is not.",
            calls=[
                edit(
                    root,
                    "shelf/fees.py",
                    "    if days_late < GRACE_DAYS:\n        return 0\n    return days_late * CENTS_PER_DAY\n",
                    "    return max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY\n",
                )
            ],
        ),
        Reply(calls=[TESTS]),
        Reply(
            reasoning="One test is left: the cap. CAP_CENTS exists and is not used.",
            text="Only the cap is missing.",
            calls=[
                edit(
                    root,
                    "shelf/fees.py",
                    "    return max(0, days_late - GRACE_DAYS)*CENTS_PER_DAY\n",
                    "    return min(CAP_CENTS, max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY)\n",
                )
            ],
        ),
        Reply(
            text="The old text did not match; I will read the lines again.",
            calls=[read(root, "shelf/fees.py", offset=8, limit=12)],
        ),
        Reply(
            calls=[
                edit(
                    root,
                    "shelf/fees.py",
                    "    return max(0, days_late - GRACE_DAYS) * CENTS_PER_DAY\n",
                    "    charged = max(0, days_late - GRACE_DAYS)\n    return min(CAP_CENTS, charged * CENTS_PER_DAY)\n",
                )
            ],
        ),
        Reply(calls=[TESTS]),
        Reply(
            text="All tests pass. Before I finish, let me have the callers checked.",
            calls=[
                (
                    "task",
                    {"description": "Find callers of fees", "prompt": SURVEY, "subagent_type": "explore"},
                )
            ],
        ),
        Reply(
            calls=[
                shell("python3 -m shelf report loans.csv --today 2026-04-01", "Print a report"),
                shell("python3 -m shelf report missing.csv", "See what a missing file gives"),
            ],
        ),
        Reply(calls=[shell("git diff", "Show the change")]),
        Reply(calls=[todos("completed", "completed", "completed", "completed")]),
        Reply(
            text=(
                "Two things were wrong in `shelf/fees.py`:\n\n"
                "1. The second grace day was charged (`<` instead of `<=`), and once a loan was past the grace "
                "days they were charged too. The fee now counts only days after them.\n"
                "2. `CAP_CENTS` was defined and never used.\n\n"
                "All 15 tests pass. No caller depends on the old numbers."
            )
        ),
    ]


def survey(root):
    return [
        Reply(
            text="I will search for the three names first.",
            calls=[("grep", {"pattern": r"fees\.(fee|fee_for_days|total)\b|fee_for_days\(", "include": "*.py"})],
        ),
        Reply(calls=[("glob", {"pattern": "shelf/*.py"}), read(root, "shelf/report.py"), read(root, "shelf/__main__.py")]),
        Reply(calls=[read(root, "shelf/store.py"), read(root, "shelf/fees.py")]),
        Reply(
            text=(
                "- `fees.fee`: shelf/report.py:15 (in `rows`), shelf/fees.py:31 (in `total`)\n"
                "- `fees.fee_for_days`: shelf/fees.py:23 (in `fee`); tests\n"
                "- `fees.total`: tests only\n"
                "shelf/store.py and shelf/__main__.py do not use them."
            )
        ),
    ]


AS_JSON = '''

def as_json(loans, today):
    """Returns the same rows as a JSON array, the fee in cents."""
    found = [
        {
            "book": loan.book,
            "reader": loan.reader,
            "due": loan.due_date.isoformat(),
            "late": loan.days_late(today),
            "fee_cents": fees.fee(loan, today),
        }
        for loan in sorted(loans, key=lambda loan: (loan.due_date, loan.book))
    ]
    return json.dumps(found, indent=2) + "\\n"
'''

JSON_TEST = '''
    def test_json_has_cents_as_integers(self):
        late = datetime.date(2026, 3, 30)
        found = json.loads(report.as_json([Loan("Dune", "ana", MARCH)], late))
        self.assertEqual(found[0]["fee_cents"], 125)
'''


def second_turn(root):
    end_of_table = '        text += "  ".join(cells).rstrip() + "\\n"\n    return text\n'
    last_line = '            "The Trial  bo      2026-03-23  0     0.00\\n",\n        )\n'
    return [
        Reply(
            text="I will read the report, the command line and the test.",
            calls=[read(root, "shelf/report.py"), read(root, "shelf/__main__.py"), read(root, "tests/test_report.py")],
        ),
        Reply(
            calls=[
                edit(root, "shelf/report.py", end_of_table, end_of_table + AS_JSON),
                edit(root, "shelf/report.py", "from shelf import fees\n", "import json\n\nfrom shelf import fees\n"),
            ],
        ),
        Reply(
            calls=[
                edit(
                    root,
                    "shelf/__main__.py",
                    '    reporting.add_argument("file")\n',
                    '    reporting.add_argument("file")\n    reporting.add_argument("--json", action="store_true")\n',
                )
            ],
        ),
        Reply(
            calls=[
                edit(
                    root,
                    "shelf/__main__.py",
                    "    sys.stdout.write(report.as_table(loans, options.today))\n",
                    "    write = report.as_json if options.json else report.as_table\n"
                    "    sys.stdout.write(write(loans, options.today))\n",
                )
            ],
        ),
        Reply(
            calls=[
                edit(root, "tests/test_report.py", last_line, last_line + JSON_TEST),
                edit(root, "tests/test_report.py", "import datetime\n", "import datetime\nimport json\n"),
            ],
        ),
        Reply(calls=[TESTS, shell("python3 -m shelf report --json loans.csv --today 2026-04-01", "Print the report as JSON")]),
        Reply(text="`python3 -m shelf report --json FILE` prints the rows as JSON with `fee_cents`; 16 tests pass."),
    ]


def third_turn(root):
    return [
        Reply(calls=[read(root, "README.md")]),
        Reply(
            calls=[
                edit(
                    root,
                    "README.md",
                    "    python3 -m shelf report loans.csv\n",
                    "    python3 -m shelf report loans.csv\n    python3 -m shelf report --json loans.csv\n",
                )
            ],
        ),
        Reply(calls=[TESTS, shell("git diff --stat", "Show the size of the change")]),
        Reply(text="The README shows the flag. Five files changed; all 16 tests pass."),
    ]


def question(root):
    return [
        Reply(calls=[shell("python3 -c 'from shelf import fees; print(fees.money(5))'", "Call fees.money")]),
        Reply(text="`0.05`."),
    ]


def regretted(root):
    return [
        Reply(calls=[("grep", {"pattern": r"\bmoney\b", "include": "*.py"})]),
        Reply(calls=[shell("sed -i 's/\\bmoney\\b/amount/' shelf/fees.py shelf/report.py", "Rename in the package")]),
        Reply(text="Renamed in the package; tests/test_fees.py still says `money`."),
    ]


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def answer(request, root):
    """Returns the reply for this request; a request outside the story gets a short text."""
    messages = request["messages"]
    system = "\n".join(text_of(m) for m in messages if m["role"] == "system")
    if "title generator" in system:
        return Reply(text="Late fees of shelf")
    # The client words its wish for a summary itself, so it is known by what is missing: no tools.
    if not request.get("tools"):
        return Reply(text=SUMMARY)
    turns = {
        FIRST: first_turn,
        SECOND: second_turn,
        THIRD: third_turn,
        SURVEY: survey,
        QUESTION: question,
        REGRETTED: regretted,
    }
    since = 0
    for message in reversed(messages):
        since += message["role"] == "assistant"
        found = [turn for prompt, turn in turns.items() if message["role"] == "user" and prompt in text_of(message)]
        if found:
            replies = found[0](root)
            return replies[min(since, len(replies) - 1)]
    return Reply(text="There is nothing left to do.")
