"""The stubs are true, and the package is typed."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
PACKAGE = pathlib.Path(__import__("trimtab").__file__).parent

USE = """
import trimtab
fitted: trimtab.Fitted = trimtab.fit([{"role": "user", "content": "Hi"}], budget=1000, model="gpt-5", settings={"a": 1})
tokens: int = fitted.tokens
messages: list[dict[str, object]] = trimtab.Session(model="gpt-5").fit([]).messages
original: str = trimtab.Session(store=True).recall("0")
trimtab.fit([], budget="many")  # type: ignore[arg-type]
trimtab.Session(nonsense=1)  # type: ignore[call-arg]
fitted.tokens = 3  # type: ignore[misc]
"""


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *map(str, arguments)], capture_output=True, text=True)


def test_the_stubs_of_the_engine_are_what_the_engine_is():
    done = run("mypy.stubtest", "trimtab._engine", "--ignore-disjoint-bases")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_that_uses_the_package_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USE)
    done = run("mypy", "--strict", "--warn-unused-ignores", "--cache-dir", tmp_path / "cache", program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_marks_itself_as_typed():
    assert (PACKAGE / "py.typed").exists()
