"""Tool-calling turns with the official Python SDKs, streamed and not, at the addresses that the variables name.

Takes the interfaces to use: `messages`, `chat`, `responses`; all where none is named. Fails where a turn does not
come to its end, and prints the last answer.
"""

import json
import sys

import anthropic
import openai

DONE = "The values add up."
QUESTION = "Add up the values in all files."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def read_file(path):
    number = int("".join(filter(str.isdigit, path)))
    return "\n".join(f"{path} line {line}: the value is {number * 7919 + line * 104729}" for line in range(120))


def messages(stream):
    client = anthropic.Anthropic(api_key="none", max_retries=0)
    tools = [{"name": "read_file", "description": "Reads a file", "input_schema": SCHEMA}]
    history = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        asked = dict(model="claude-opus-5", max_tokens=1000, tools=tools, messages=history)
        if stream:
            with client.messages.stream(**asked) as events:
                for _ in events:
                    pass
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
        if answer.stop_reason != "tool_use":
            usage = answer.usage
            assert usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens > 0
            return answer.content[0].text
        history.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": read_file(**block.input)}
            for block in answer.content
            if block.type == "tool_use"
        ]
        history.append({"role": "user", "content": results})
    return "no end"


def count(_):
    client = anthropic.Anthropic(api_key="none", max_retries=0)
    asked = [{"role": "user", "content": QUESTION}]
    counted = client.messages.count_tokens(model="claude-opus-5", messages=asked)
    return DONE if counted.input_tokens > 0 else "nothing counted"


def chat(stream):
    client = openai.OpenAI(api_key="none", max_retries=0)
    tools = [{"type": "function", "function": {"name": "read_file", "description": "Reads a file", "parameters": SCHEMA}}]
    history = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        asked = dict(model="gpt-5", tools=tools, messages=history)
        if stream:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                for _ in events:
                    pass
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
        if not message.tool_calls:
            return message.content
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in message.tool_calls
        ]
        history.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call in message.tool_calls:
            result = read_file(**json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "no end"


def responses(stream):
    client = openai.OpenAI(api_key="none", max_retries=0)
    tools = [{"type": "function", "name": "read_file", "description": "Reads a file", "parameters": SCHEMA, "strict": False}]
    history = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        asked = dict(model="gpt-5", tools=tools, input=history, store=False)
        if stream:
            with client.responses.stream(**asked) as events:
                for _ in events:
                    pass
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**asked)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        for call in calls:
            history.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
            output = read_file(**json.loads(call.arguments))
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    return "no end"


TURNS = {"messages": [(messages, (False, True)), (count, (False,))], "chat": [(chat, (False, True))], "responses": [(responses, (False, True))]}
for turn, ways in [turn for name in sys.argv[1:] or TURNS for turn in TURNS[name]]:
    for stream in ways:
        said = turn(stream)
        assert said == DONE, f"{turn.__name__}, stream={stream}: {said!r}"
        print(f"python {turn.__name__}{' streamed' if stream else ''}: {said}")
