"""Fits a recording with a store, then asks for what was hidden through the official client.

Fails where an answer is not what the recording holds. Usage: mcp_client.py TRIMTAB
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client

TRIMTAB = sys.argv[1]
RECORDING = str(Path(__file__).resolve().parents[2] / "fixtures" / "recordings" / "claude-code.jsonl")
# Nothing of whoever runs this: neither settings nor a store.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}


def run(*arguments):
    done = subprocess.run([TRIMTAB, *arguments], env=PLAIN, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def texts(result):
    return [block.text for block in result.content]


async def with_server(arguments, ask):
    server = StdioServerParameters(command=TRIMTAB, args=["mcp", *arguments], env=PLAIN)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        began = await session.initialize()
        assert began.server_info.name == "trimtab", began
        assert "recall" in began.instructions, began
        await ask(session)


async def fails(session, tool, arguments, words):
    result = await session.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result)
    assert words in texts(result)[0], texts(result)


def asking(handles, source):
    """Returns what is asked of a server, whatever it reads from; `source` is how the command line reads the same."""

    async def ask(session):
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        writing = {"pin", "unpin", "undo"}
        assert sorted(set(listed) - writing) == ["changelog", "file_at", "files", "recall", "search_history"], listed
        assert all(tool.description for tool in listed.values())
        assert all(tool.annotations.read_only_hint == (name not in writing) for name, tool in listed.items()), listed
        assert listed["recall"].input_schema["required"] == ["handle"]

        for handle in handles:
            result = await session.call_tool("recall", {"handle": handle})
            original = run("recall", handle, "--raw", *source)
            assert not result.is_error, handle
            if result.content[0].type == "image":
                assert result.content[0].data in original.decode(), handle
            else:
                assert texts(result) == [original.decode()], handle
        lines = await session.call_tool("recall", {"handle": handles[0], "lines": "2-3"})
        assert texts(lines)[0].encode() == run("recall", handles[0], "--lines", "2-3", *source)

        hidden = run("recall", handles[0], "--raw", *source).decode()
        word = max(re.findall(r"[a-z]{4,}", hidden), key=len)
        found = texts(await session.call_tool("search_history", {"text": word.upper(), "limit": 4}))[0].splitlines()
        assert 1 <= len(found) <= 4, (word, found)
        whole = texts(await session.call_tool("recall", {"handle": found[0].split()[0]}))[0]
        assert word in whole.lower(), word

        changes = texts(await session.call_tool("changelog", {}))[0]
        path = changes.splitlines()[0]
        file, about = texts(await session.call_tool("file_at", {"path": path}))
        assert path in about and re.match(r"1\t|\[", file), (about, file)
        earlier = await session.call_tool("file_at", {"path": path, "step": 1})
        assert earlier.is_error or "after step 1 " in texts(earlier)[-1], earlier

        await fails(session, "recall", {"handle": "0123456789ab"}, "no block has the handle 0123456789ab")
        await fails(session, "recall", {"handel": "x"}, "handel")
        await fails(session, "recall", {"handle": handles[0], "lines": "9-2"}, "40-80")
        await fails(session, "file_at", {"path": "no/such/file"}, "is not known")
        await fails(session, "changelog", {"session": "x99"}, "x99")
        try:
            await session.call_tool("forget", {})
            raise AssertionError("there is no such tool")
        except MCPError as error:
            assert "there is no tool forget" in str(error), error

    return ask


def ends_with_its_input(store):
    """The server ends when nobody can ask any more, and writes nothing but the protocol."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }
    for said in ("", json.dumps(hello) + "\n"):
        done = subprocess.run([TRIMTAB, "mcp", "--store", store], env=PLAIN, input=said.encode(), capture_output=True, timeout=20)
        assert done.returncode == 0, done
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["id"] for answer in answers] == ([1] if said else []), answers


with tempfile.TemporaryDirectory() as folder:
    store = str(Path(folder) / "trimtab.db")
    fitted = run("fit", RECORDING, "--policy", "recent", "--budget", "6000", "--store", store).decode()
    handles = sorted(set(re.findall(r"trimtab recall (?:--store \S+ )?([0-9a-f]{12})", fitted)))
    assert handles, "nothing was hidden"
    asyncio.run(with_server(["--store", store], asking(handles, ["--store", store])))
    asyncio.run(with_server(["--in", RECORDING], asking(handles, ["--in", RECORDING])))
    ends_with_its_input(store)
    print(f"the official client recalled {len(handles)} originals from a store and from a recording, byte for byte")
