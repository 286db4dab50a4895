#!/usr/bin/env python3
"""Times `Session.fit` against LangChain's `trim_messages`, in one run, on histories of 100,000 and a million tokens.

Usage: crates/trimtab-python/bench/against_langchain.py

What is timed is the next turn of a conversation: trimtab has seen the request before it, LangChain keeps nothing from one
call to the next. Half of the history fits. LangChain's exact counter is tiktoken's, its approximate one its own; its
messages are made beforehand, outside the clock. Installs the package (a release build) and LangChain below
target/python-bench.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
PINNED = ["langchain-core==1.7.0", "tiktoken==0.14.0"]
SIZES = (100_000, 1_000_000)
ROUNDS = {"trimtab": 20, "approximate": 10, "exact": 3}
POLICIES = ("steady", "recent")


def main():
    if "--inside" in sys.argv:
        return inside()
    sys.path.insert(0, str(ROOT / "scripts" / "lib"))
    from tiktoken_environment import place_vocabulary

    folder = ROOT / "target" / "python-bench"
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PINNED, "maturin>=1.9,<2"], check=True)
    found = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    built = ["--no-build-isolation", "--no-deps", "--force-reinstall", HERE.parents[1]]
    subprocess.run([*pip, *built], check=True, env=found)
    if not (folder / "cache").exists():
        place_vocabulary(python, folder / "cache")
    variables = {**os.environ, "TIKTOKEN_CACHE_DIR": str(folder / "cache")}
    subprocess.run([python, HERE, "--inside"], env=variables, check=True)


def conversation(tokens):
    """A coding agent's conversation of about so many tokens: files read, commands run, words between them."""
    messages = [{"role": "user", "content": "Make every test of the project pass."}]
    counted, number = 0, 0
    while counted < tokens:
        number += 1
        lines = 20 + number * 37 % 160
        result = "\n".join(f"{line:4}  value_{number}_{line} = compute({number * 7919 + line}, {line % 17})" for line in range(lines))
        tool = ("read_file", "bash", "grep")[number % 3]
        arguments = {"path": f"src/part_{number % 90}.py"} if tool == "read_file" else {"command": f"run {number}"}
        call = {"id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": f"Looking at part {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
        counted += 18 * lines + 50
    return messages


def best(rounds, prepare, work):
    times = []
    for _ in range(rounds):
        prepare()
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def inside():
    import tiktoken
    import trimtab
    from langchain_core.messages import convert_to_messages, trim_messages
    from langchain_core.messages.utils import count_tokens_approximately

    encoding = tiktoken.get_encoding("o200k_base")

    def exact(messages):
        texts = (str(message.content) + str(getattr(message, "tool_calls", "")) for message in messages)
        return sum(len(encoding.encode_ordinary(text)) for text in texts)

    for size in SIZES:
        messages = conversation(size)
        tokens = trimtab.count(messages, model="gpt-5")
        budget = tokens // 2
        print(f"{tokens:,} tokens in {len(messages):,} messages, into {budget:,}:")
        ours = {}
        for policy in POLICIES:
            session = trimtab.Session(model="gpt-5", budget=budget, policy=policy)
            took, fitted = best(
                ROUNDS["trimtab"],
                lambda: session.fit(messages[:-2], now=1),
                lambda: session.fit(messages, now=2),
            )
            shares = []
            for _ in range(ROUNDS["trimtab"]):
                session.fit(messages[:-2], now=1)
                start = time.perf_counter()
                again = session.fit(messages, now=2)
                whole = time.perf_counter() - start
                shares.append(1 - again.seconds / whole)
            share = sorted(shares)[len(shares) // 2]
            ours[policy] = took
            kept = f"{len(fitted.messages):,} messages, {fitted.tokens:,} tokens"
            print(f"  trimtab {policy}: {took * 1e3:.2f} ms ({kept}); {share:.0%} of it at the border to Python")
        theirs = convert_to_messages(messages)
        for name, counter in (("approximate", count_tokens_approximately), ("exact", exact)):
            took, kept = best(
                ROUNDS[name],
                lambda: None,
                lambda: trim_messages(
                    theirs, max_tokens=budget, token_counter=counter, strategy="last", include_system=True
                ),
            )
            ratios = ", ".join(f"{policy} {took / mine:,.0f} times faster" for policy, mine in ours.items())
            print(f"  LangChain trim_messages, {name}: {took * 1e3:,.1f} ms ({len(kept):,} messages): {ratios}")


if __name__ == "__main__":
    main()
