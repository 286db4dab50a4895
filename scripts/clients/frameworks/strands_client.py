"""An agent of Strands, which streams. Takes the wire: `chat` or `messages`. Prints the last answer."""

import sys

from shared import QUESTION, read_file
from strands import Agent, tool

if sys.argv[1] == "chat":
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"max_retries": 0}, model_id="gpt-4.1")
else:
    from strands.models.anthropic import AnthropicModel

    model = AnthropicModel(client_args={"max_retries": 0}, model_id="claude-opus-5", max_tokens=1000)
print(Agent(model=model, tools=[tool(read_file)], callback_handler=None)(QUESTION))
