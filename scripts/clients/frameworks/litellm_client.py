"""Tool-calling turns with the SDK of LiteLLM. Takes a model as `provider/model`. Prints the last answer.

`bare` gives Gemini's address without a version.
"""

import json
import os
import sys

import litellm
from shared import QUESTION, read_file

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Reads a file", "parameters": SCHEMA}}]
gemini = {"api_base": os.environ["GOOGLE_GEMINI_BASE_URL"] + ("" if "bare" in sys.argv else "/v1beta")}
address = gemini if sys.argv[1].startswith("gemini/") else {}
history = [{"role": "user", "content": QUESTION}]
for _ in range(20):
    asked = dict(model=sys.argv[1], messages=history, tools=TOOLS, max_retries=0, **address)
    message = litellm.completion(**asked).choices[0].message
    history.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        print(message.content)
        break
    for call in message.tool_calls:
        result = read_file(**json.loads(call.function.arguments))
        history.append({"role": "tool", "tool_call_id": call.id, "content": result})
