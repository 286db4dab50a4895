"""Runs a client with a listener between it and the proxy, and reports what the client got.

`trimtab wrap` starts this in the client's place. It finds the proxy's address in its own arguments,
variables and files, puts the listener's there instead, and writes for every answer: path, status, digest of the body, and
what the proxy says in headers. Answers are handed on whole.

Usage: tap.py REPORT PROGRAM [ARGUMENT]...
"""

import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROXY = re.compile(r"127\.0\.0\.1:\d+")
# The file in which `trimtab wrap` names the address to pi.
FILE = "trimtab.mjs"
# Of one connection, not of the message.
HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            body = self.read_chunks()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        connection = http.client.HTTPConnection(self.server.proxy, timeout=120)
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        said = {name.lower(): value for name, value in answer.getheaders() if name.lower().startswith("x-trimtab")}
        digest = hashlib.sha256(text).hexdigest()
        self.server.got.append({"path": self.path.split("?")[0], "status": answer.status, "digest": digest, "said": said})
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"date", "server"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = forward

    def read_chunks(self):
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole


def main():
    report, *command = sys.argv[1:]
    files = {path: path.read_text() for path in map(Path, command) if path.name == FILE}
    proxy = next(filter(None, map(PROXY.search, [*os.environ.values(), *command, *files.values()])))[0]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.proxy, server.got = proxy, []
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def instead(text):
        return text.replace(proxy, f"127.0.0.1:{server.server_port}")

    for path, text in files.items():
        path.write_text(instead(text))
    variables = {name: instead(value) for name, value in os.environ.items()}
    code = subprocess.run(list(map(instead, command)), env=variables).returncode
    Path(report).write_text(json.dumps(server.got))
    return code


sys.exit(main())
