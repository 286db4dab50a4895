"""An OpenAI-compatible chat server that answers from a script.

Takes a function from the parsed request to a `Reply`; serves it on loopback as a stream of
chat.completion.chunk events, with usage that counts four bytes as one token and reports as cached
what the request shares with an earlier one. Never calls a model and never leaves loopback.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """What the scripted model says: prose, thoughts and calls as (tool name, arguments)."""

    text: str = ""
    reasoning: str = ""
    calls: list = field(default_factory=list)


BYTES_PER_TOKEN = 4
# Providers cache whole blocks of a prompt; this is the block size OpenAI documents, in tokens.
CACHE_BLOCK = 128


class PromptCache:
    """Remembers prompts and says how much of a new one was seen before."""

    def __init__(self):
        self.prompts = []
        self.lock = threading.Lock()

    def usage(self, request, answer):
        prompt = json.dumps([request.get("tools"), request["messages"]], sort_keys=True)
        with self.lock:
            shared = max((shared_prefix(prompt, old) for old in self.prompts), default=0)
            self.prompts.append(prompt)
        total = len(prompt) // BYTES_PER_TOKEN
        cached = shared // BYTES_PER_TOKEN // CACHE_BLOCK * CACHE_BLOCK
        completion = max(1, len(answer) // BYTES_PER_TOKEN)
        return {
            "prompt_tokens": total,
            "completion_tokens": completion,
            "total_tokens": total + completion,
            "prompt_tokens_details": {"cached_tokens": min(cached, total)},
        }


def shared_prefix(a, b):
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def chunks(reply, request, number, usage):
    """Gives the events of one streamed answer, the usage in the last one."""
    head = {
        "id": f"chatcmpl-{number:04d}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": request["model"],
    }

    def event(delta, finish=None):
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(reply.reasoning):
        yield event({"reasoning_content": piece})
    for piece in pieces(reply.text):
        yield event({"content": piece})
    for index, (name, arguments) in enumerate(reply.calls):
        call = {"index": index, "id": f"call_{number:04d}_{index}", "type": "function"}
        yield event({"tool_calls": [call | {"function": {"name": name, "arguments": ""}}]})
        for piece in pieces(json.dumps(arguments, ensure_ascii=False)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, "tool_calls" if reply.calls else "stop")
    yield head | {"choices": [], "usage": usage}


def pieces(text, size=200):
    return [text[start : start + size] for start in range(0, len(text), size)]


def serve(answer, log):
    """Starts the server on a free loopback port and returns it; `log` collects (request, reply)."""
    cache = PromptCache()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = answer(request)
            log.append((request, reply))
            spoken = reply.reasoning + reply.text + json.dumps(reply.calls)
            usage = cache.usage(request, spoken)
            lines = [json.dumps(c) for c in chunks(reply, request, len(log), usage)] + ["[DONE]"]
            body = "".join(f"data: {line}\n\n" for line in lines).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
