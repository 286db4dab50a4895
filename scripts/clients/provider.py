"""A provider on loopback that speaks four interfaces from a script.

Takes requests of Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini, streamed or not;
asks for a tool until it has seen enough results, then says so. Every request is judged by a checker that
knows the providers' rules and nothing of trimtab; what it finds is refused with 400. Keeps path, size and
faults of every request, and the digest of every answer.

What the model calls is found in the request's own tools: `read_file` where the client has it, else the
client's shell. A request without tools is one on the side (a title, a summary) and gets words. How far the
script is stands in the request: every call names a file or a range by its number.
"""

import hashlib
import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# After this many calls the scripted model is satisfied.
CALLS = 13
# The call that is made together with the next one, in one answer.
PAIR = 5
# The requests of a whole conversation: the pair takes one, the last words take another.
REQUESTS = CALLS
DONE = "The values add up."
# How agents call the tool that runs commands, with the arguments that it needs.
SHELLS = {
    "bash": lambda command: {"command": command, "description": "Add up"},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "run_shell_command": lambda command: {"command": command, "description": "Add up", "is_background": False},
    "run_commands": lambda command: {"commands": [command]},
}
# How clients that do not take words for an end are told that the work is done.
ENDS = {"final_answer": {"answer": DONE}}


# Anthropic's cache: the most markers of a request, how many blocks each looks back, and what reads and writes cost of the plain price.
MARKERS, LOOK_BACK = 4, 20
READ, WRITE = 0.1, 1.25


class MarkedCache:
    """What is in a cache that needs markers, and what the requests so far have cost in tokens at the plain price."""

    def __init__(self):
        self.entries, self.cost, self.lock = set(), 0.0, threading.Lock()

    def usage(self, request):
        """Gives plain, read and written tokens of a request of Anthropic's."""
        blocks, digest, total, ends = list(seen_blocks(request)), hashlib.sha256(), 0, []
        for words, _ in blocks:
            digest.update(words.encode())
            total += len(words) // 4
            ends.append((digest.hexdigest(), total))
        marked = [place for place, (_, marker) in enumerate(blocks) if marker]
        assert len(marked) <= MARKERS, f"{len(marked)} cache markers"
        with self.lock:
            near = (place for end in marked for place in range(max(0, end + 1 - LOOK_BACK), end + 1))
            read = max((ends[place][1] for place in near if ends[place][0] in self.entries), default=0)
            written = max((ends[place][1] for place in marked), default=0) - read if marked else 0
            self.entries.update(ends[place][0] for place in marked)
            self.cost += READ * read + WRITE * written + (total - read - written)
        return total - read - written, read, written


def seen_blocks(request):
    """Lists what a request says with whether it is marked, in the provider's order: a text is a list of one block."""
    contents = [("tools", request.get("tools") or []), ("system", request.get("system") or [])]
    for role, content in contents + [(message["role"], message["content"]) for message in request["messages"]]:
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            plain = {name: value for name, value in block.items() if name != "cache_control"}
            yield f"{role} {json.dumps(plain, sort_keys=True)}", bool(block.get("cache_control"))


class Judge:
    """The checker, as a process that reads a request per line and answers with a list of faults."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def faults(self, interface, request):
        with self.lock:
            self.process.stdin.write(json.dumps({"format": interface, "request": request}) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())


def call_for(number, request):
    """Gives name and arguments of the next call; nothing where the client has no tool that is known."""
    names = set(tool_names(request))
    if "read_file" in names and not names & set(SHELLS):
        return "read_file", {"path": f"values/{number}.txt"}
    return shell_call(names, f"seq {number * 1000} {number * 1000 + 400} | sed 's/^/value of file {number}: /'")


def last_call(request, command):
    """Gives the call that ends the work where words do not: the client's own for that, or `command`."""
    names = set(tool_names(request))
    end = next((name for name in ENDS if name in names), None)
    if end:
        return end, ENDS[end]
    return shell_call(names, command) if command else None


def shell_call(names, command):
    shell = next((name for name in SHELLS if name in names), None)
    return (shell, SHELLS[shell](command)) if shell else None


def tool_names(request):
    for tool in request.get("tools") or []:
        declarations = tool.get("functionDeclarations") or tool.get("function_declarations")
        for declared in declarations or [tool.get("function") or tool]:
            if declared.get("name"):
                yield declared["name"]


def next_number(request):
    """Gives the number of the next call: one more than the highest that the request names."""
    said = re.findall(r"seq (\d+)000 |values/(\d+)\.txt", json.dumps(request))
    return 1 + max((int(first or second) for first, second in said), default=0)


def with_history(request, histories):
    """Gives a request of Responses with the history that the server keeps, if it names one."""
    if "previous_response_id" not in request:
        return request
    kept = histories.get(request["previous_response_id"], [])
    return {name: value for name, value in request.items() if name != "previous_response_id"} | {"input": kept + as_items(request)}


def as_items(request):
    said = request["input"]
    return said if isinstance(said, list) else [{"role": "user", "content": said}]


def anthropic_answer(number, calls, usage):
    blocks = [
        {"type": "tool_use", "id": f"toolu_{number + index}", "name": name, "input": said} for index, (name, said) in enumerate(calls)
    ] or [{"type": "text", "text": DONE}]
    reason = "tool_use" if calls else "end_turn"
    plain, read, written = usage
    report = {"input_tokens": plain, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 9}
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": blocks,
             "stop_reason": reason, "stop_sequence": None, "usage": report}
    start = whole | {"content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        *(event for index, block in enumerate(blocks) for event in block_events(index, block)),
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def block_events(index, block):
    if block["type"] == "text":
        empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def chat_answer(number, calls, usage):
    calls = [
        {"id": f"call_{number + index}", "type": "function", "function": {"name": name, "arguments": json.dumps(said)}}
        for index, (name, said) in enumerate(calls)
    ]
    message = {"role": "assistant"} | ({"content": None, "tool_calls": calls} if calls else {"content": DONE})
    reason = "tool_calls" if calls else "stop"
    report = {"prompt_tokens": usage, "completion_tokens": 9, "total_tokens": usage + 9}
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": "scripted"}
    whole = head | {"object": "chat.completion", "usage": report,
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    # One call per event, as OpenAI does: LlamaIndex reads only the first of several.
    deltas = [{"role": "assistant", "tool_calls": [{"index": index} | call]} for index, call in enumerate(calls)] or [message]
    chunk = head | {"object": "chat.completion.chunk"}
    events = [
        *(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
        chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        chunk | {"choices": [], "usage": report},
    ]
    return whole, [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]


def responses_answer(number, calls, usage):
    items = [
        {"type": "function_call", "id": f"fc_{number + index}", "call_id": f"call_{number + index}", "name": name,
         "arguments": json.dumps(said), "status": "completed"}
        for index, (name, said) in enumerate(calls)
    ] or [
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": DONE, "annotations": []}]}
    ]
    report = {"input_tokens": usage, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": usage + 9}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": "scripted",
             "output": items, "usage": report, "error": None, "incomplete_details": None, "instructions": None,
             "metadata": {}, "parallel_tool_calls": True, "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1}
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        *(event for index, item in enumerate(items) for event in item_events(index, item)),
        {"type": "response.completed", "response": whole},
    ]
    numbered = [event | {"sequence_number": index} for index, event in enumerate(events)]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered]


def item_events(index, item):
    empty = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": item | empty | {"status": "in_progress"}}
    if item["type"] == "message":
        here = {"item_id": item["id"], "output_index": index, "content_index": 0}
        part = item["content"][0]
        yield {"type": "response.content_part.added", **here, "part": part | {"text": ""}}
        yield {"type": "response.output_text.delta", **here, "delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **here, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def gemini_answer(number, calls, usage):
    parts = [{"functionCall": {"name": name, "args": said}} for name, said in calls] or [{"text": DONE}]
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
             "usageMetadata": {"promptTokenCount": usage, "candidatesTokenCount": 9, "totalTokenCount": usage + 9},
             "modelVersion": "scripted", "responseId": f"r{number}"}
    return whole, [f"data: {json.dumps(whole)}\r\n\r\n"]


# Path, the checker's name for the format, how answers are spelt.
INTERFACES = [
    ("/v1/messages", "anthropic", anthropic_answer),
    ("/v1/chat/completions", "chat", chat_answer),
    ("/v1/responses", "responses", responses_answer),
    (":generateContent", "gemini", gemini_answer),
    (":streamGenerateContent", "gemini", gemini_answer),
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.split("?")[0]
        request = json.loads(body)
        if path == "/v1/messages/count_tokens":
            return self.answer(200, "application/json", json.dumps({"input_tokens": len(body) // 4}))
        if path.endswith(":countTokens"):
            return self.answer(200, "application/json", json.dumps({"totalTokens": len(body) // 4}))
        known = [row for row in INTERFACES if path.endswith(row[0])]
        if not known:
            self.server.came.append((path, len(body), ["no such interface"]))
            return self.answer(404, "application/json", "{}")
        _, interface, answer = known[0]
        if interface == "responses":
            request = with_history(request, self.server.histories)
        wrong = self.server.judge.faults(interface, request)
        self.server.came.append((path, len(body), wrong))
        if wrong:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "; ".join(wrong), "code": 400}}
            return self.answer(400, "application/json", json.dumps(error))
        number = next_number(request)
        if number > CALLS:
            calls = [last_call(request, self.server.end)]
        else:
            calls = [call_for(each, request) for each in ([number, number + 1] if number == PAIR else [number])]
        usage = self.server.cache.usage(request) if interface == "anthropic" else len(body) // 4
        whole, events = answer(number, [call for call in calls if call], usage)
        if interface == "responses":
            self.server.histories[whole["id"]] = as_items(request) + whole["output"]
        if request.get("stream") or "streamGenerateContent" in path:
            return self.answer(200, "text/event-stream", "".join(events))
        self.answer(200, "application/json", json.dumps(whole))

    def answer(self, status, kind, text):
        body = text.encode()
        self.server.sent.append(hashlib.sha256(body).hexdigest())
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(judge, end=None):
    """Starts the provider on a free loopback port and returns it. `judge` names the checker's program."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.came, server.sent, server.histories, server.judge, server.end = [], [], {}, Judge(judge), end
    server.cache = MarkedCache()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
