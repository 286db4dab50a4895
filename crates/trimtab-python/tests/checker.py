"""Judges messages by the rules of the providers: the project's checker, which knows nothing of trimtab, as a program."""

import atexit
import functools
import os
import pathlib

import provider

ROOT = pathlib.Path(__file__).resolve().parents[3]
LISTS = {"anthropic": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}


def faults(format, messages):
    """Return what a provider would refuse in these messages, as sentences."""
    return judge().faults(format, {"model": "gpt-5", "max_tokens": 1000, LISTS[format]: messages})


@functools.cache
def judge():
    """Start the checker: where TRIMTAB_JUDGE says, else where cargo builds it."""
    named = os.environ.get("TRIMTAB_JUDGE")
    built = [ROOT / "target" / profile / "examples" / "judge" for profile in ("debug", "release")]
    found = [pathlib.Path(named)] if named else [path for path in built if path.exists()]
    assert found, "the checker is not built: cargo build -p trimtab --example judge"
    checker = provider.Judge(max(found, key=lambda path: path.stat().st_mtime))
    atexit.register(checker.process.kill)
    return checker
