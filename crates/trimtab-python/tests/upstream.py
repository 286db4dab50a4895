"""The project's scripted provider, with every request judged and kept."""

import contextlib
import io
import json
import threading
from http.server import ThreadingHTTPServer

import checker
import provider

#: Tool-calling turns of one agent loop.
TURNS = 60
FORMATS = {"/v1/messages": "anthropic", "/v1/chat/completions": "chat", "/v1/responses": "responses"}
LISTS = {"anthropic": "messages", "chat": "messages", "responses": "input"}


class Handler(provider.Handler):
    """Judges a request, then answers it as the script says."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        format = FORMATS.get(self.path.split("?")[0])
        if format is not None:
            messages = json.loads(body)[LISTS[format]]
            faults = [] if isinstance(messages, str) else checker.faults(format, messages)
            self.server.judged.append((len(body), faults))
        whole, self.rfile = self.rfile, io.BytesIO(body)
        try:
            super().do_POST()
        finally:
            self.rfile = whole


@contextlib.contextmanager
def scripted():
    """Serve on loopback; give the address, and the requests as they come: size in bytes, and faults."""
    before, provider.CALLS = provider.CALLS, TURNS
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.came, server.judged = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.judged
    finally:
        server.shutdown()
        server.server_close()
        provider.CALLS = before
    assert not [fault for *_, fault in server.came if fault]


def read_file(path):
    """The tool of the scripted agents."""
    number = int("".join(filter(str.isdigit, path)))
    return "\n".join(f"{path} line {line}: the value is {number * 7919 + line * 104729}" for line in range(120))
