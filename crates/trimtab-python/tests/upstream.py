"""The project's scripted provider on loopback, for sixty turns, with every request judged."""

import contextlib
import threading
from http.server import ThreadingHTTPServer

import checker
import provider

#: Tool-calling turns of one agent loop.
TURNS = 60


@contextlib.contextmanager
def scripted():
    """Serve; give the address, and the requests as they come: path, size in bytes, faults."""
    before = provider.CALLS, provider.PAIR
    # One call in every answer: the tests count turns.
    provider.CALLS, provider.PAIR = TURNS, None
    server = ThreadingHTTPServer(("127.0.0.1", 0), provider.Handler)
    server.came, server.sent, server.histories = [], [], {}
    server.judge, server.end, server.cache = checker.judge(), None, provider.MarkedCache()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.came
    finally:
        server.shutdown()
        server.server_close()
        provider.CALLS, provider.PAIR = before


def read_file(path):
    """The tool of the scripted agents."""
    number = int("".join(filter(str.isdigit, path)))
    return "\n".join(f"{path} line {line}: the value is {number * 7919 + line * 104729}" for line in range(120))
