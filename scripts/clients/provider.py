"""A provider on loopback that speaks three interfaces from a script.

Takes requests of Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, streamed or not; asks for
a tool until it has seen enough results, then says so. Refuses with 400 what a real provider would: calls
without results, results without calls. Keeps the size of every request that came.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# After this many calls the scripted model is satisfied.
CALLS = 12
DONE = "The values add up."


def messages_pairs(request):
    """Gives the ids of calls and results in an Anthropic request, in order."""
    for message in request["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        for block in content:
            if block["type"] == "tool_use":
                yield "call", block["id"]
            elif block["type"] == "tool_result":
                yield "result", block["tool_use_id"]


def chat_pairs(request):
    for message in request["messages"]:
        for call in message.get("tool_calls") or []:
            yield "call", call["id"]
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]


def responses_pairs(request):
    items = request["input"] if isinstance(request["input"], list) else []
    for item in items:
        if item.get("type") == "function_call":
            yield "call", item["call_id"]
        elif item.get("type") == "function_call_output":
            yield "result", item["call_id"]


def fault(pairs):
    """Says what a provider would refuse."""
    open_calls, seen = set(), set()
    for kind, name in pairs:
        if kind == "call":
            if name in seen:
                return f"call {name} comes twice"
            open_calls.add(name)
            seen.add(name)
        elif name not in open_calls:
            return f"result {name} has no call before it"
        else:
            open_calls.remove(name)
    return f"calls without results: {sorted(open_calls)}" if open_calls else None


def anthropic_answer(number, done, usage):
    block = {"type": "text", "text": DONE} if done else call_block(number)
    reason = "end_turn" if done else "tool_use"
    report = {"input_tokens": usage, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 9}
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [block],
             "stop_reason": reason, "stop_sequence": None, "usage": report}
    start = whole | {"content": [], "stop_reason": None}
    if done:
        empty, delta = block | {"text": ""}, {"type": "text_delta", "text": DONE}
    else:
        empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def call_block(number):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {"path": f"src/{number}.txt"}}


def chat_answer(number, done, usage):
    call = {"id": f"call_{number}", "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": f"src/{number}.txt"})}}
    message = {"role": "assistant", "content": DONE} if done else {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if done else "tool_calls"
    report = {"prompt_tokens": usage, "completion_tokens": 9, "total_tokens": usage + 9}
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": "scripted"}
    whole = head | {"object": "chat.completion", "usage": report,
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    delta = message | ({} if done else {"tool_calls": [{"index": 0} | call]})
    chunk = head | {"object": "chat.completion.chunk"}
    events = [
        chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        chunk | {"choices": [], "usage": report},
    ]
    return whole, [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]


def responses_answer(number, done, usage):
    if done:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": DONE, "annotations": []}]}
    else:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read_file",
                "arguments": json.dumps({"path": f"src/{number}.txt"}), "status": "completed"}
    report = {"input_tokens": usage, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": usage + 9}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": "scripted",
             "output": [item], "usage": report, "error": None, "incomplete_details": None, "instructions": None,
             "metadata": {}, "parallel_tool_calls": True, "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1}
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    numbered = [event | {"sequence_number": index} for index, event in enumerate(events)]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered]


INTERFACES = {
    "/v1/messages": (messages_pairs, anthropic_answer),
    "/v1/chat/completions": (chat_pairs, chat_answer),
    "/v1/responses": (responses_pairs, responses_answer),
}


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
        pairs, answer = INTERFACES[path]
        wrong = fault(pairs(request))
        self.server.came.append((path, len(body), wrong))
        if wrong:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": wrong}}
            return self.answer(400, "application/json", json.dumps(error))
        # What was hidden does not count here: the script asks for the next file until the last.
        number = 1 + max((int(name.rsplit("_", 1)[1]) for _, name in pairs(request)), default=0)
        whole, events = answer(number, number > CALLS, len(body) // 4)
        if request.get("stream"):
            return self.answer(200, "text/event-stream", "".join(events))
        self.answer(200, "application/json", json.dumps(whole))

    def answer(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve():
    """Starts the provider on a free loopback port and returns it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.came = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
