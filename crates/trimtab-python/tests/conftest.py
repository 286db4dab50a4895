"""What the tests have in common: the project's fixtures, the command line, made-up conversations."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(ROOT / "scripts" / "clients"))
sys.dont_write_bytecode = True

settings.register_profile(
    "package",
    max_examples=int(os.environ.get("TRIMTAB_PYTHON_CASES", "25")),
    deadline=None,
    derandomize="TRIMTAB_PYTHON_CASES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("package")


def binary():
    """Find the command line: where TRIMTAB_BIN says, else where cargo builds it."""
    named = os.environ.get("TRIMTAB_BIN")
    built = [ROOT / "target" / profile / "trimtab" for profile in ("debug", "release")]
    found = [pathlib.Path(named)] if named else [path for path in built if path.exists()]
    assert found, "the command line is not built: cargo build -p trimtab"
    return max(found, key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="session")
def command_line(tmp_path_factory):
    """Run the command line in an empty home, or in a folder; return its exit code, data and words."""
    home = tmp_path_factory.mktemp("home")
    program = binary()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRIMTAB_", "XDG_"))}

    def run(*arguments, folder=home):
        done = subprocess.run(
            [program, *map(str, arguments)],
            cwd=folder,
            env={**clean, "HOME": str(home), "NO_COLOR": "1"},
            capture_output=True,
        )
        return done.returncode, done.stdout, done.stderr.decode()

    return run


def chat(turns, lines=300, answered=True):
    """A conversation in OpenAI Chat: one tool call a turn, with a long result."""
    messages = [{"role": "user", "content": "Add up the values in all files."}]
    for turn in range(turns):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/{turn}.py"})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": call}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": text(turn, lines)})
    return messages if answered else messages[:-1]


def anthropic(turns, lines=300):
    messages = [{"role": "user", "content": "Add up the values in all files."}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "read_file", "input": {"path": f"src/{turn}.py"}}
        said = {"type": "text", "text": f"Now file {turn}."}
        messages.append({"role": "assistant", "content": [said, call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": text(turn, lines)}
        messages.append({"role": "user", "content": [result]})
    return messages


def responses(turns, lines=300):
    items = [{"role": "user", "content": "Add up the values in all files."}]
    for turn in range(turns):
        arguments = json.dumps({"path": f"src/{turn}.py"})
        items.append({"type": "function_call", "call_id": f"call_{turn}", "name": "read_file", "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": f"call_{turn}", "output": text(turn, lines)})
    return items


def gemini(turns, lines=300):
    contents = [{"role": "user", "parts": [{"text": "Add up the values in all files."}]}]
    for turn in range(turns):
        call = {"name": "read_file", "args": {"path": f"src/{turn}.py"}}
        contents.append({"role": "model", "parts": [{"functionCall": call}]})
        answer = {"name": "read_file", "response": {"output": text(turn, lines)}}
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    return contents


def text(number, lines):
    return "\n".join(f"line {line} of file {number} holds {number * 7919 + line * 104729}" for line in range(lines))


CONVERSATIONS = {"anthropic": anthropic, "chat": chat, "responses": responses, "gemini": gemini}
