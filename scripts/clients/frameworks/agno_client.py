"""An agent of Agno. Takes the wire: `chat`, `responses` or `messages`. Prints the last answer."""

import sys

from agno.agent import Agent
from shared import QUESTION, read_file

if sys.argv[1] == "chat":
    from agno.models.openai import OpenAIChat

    model = OpenAIChat(id="gpt-4.1")
elif sys.argv[1] == "responses":
    from agno.models.openai import OpenAIResponses

    model = OpenAIResponses(id="gpt-4.1")
else:
    from agno.models.anthropic import Claude

    model = Claude(id="claude-opus-5")
print(Agent(model=model, tools=[read_file], telemetry=False).run(QUESTION).content)
