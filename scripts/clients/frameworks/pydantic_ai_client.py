"""An agent of Pydantic AI. Takes a model as `provider:model`. Prints the last answer."""

import sys

from pydantic_ai import Agent
from shared import QUESTION, read_file

print(Agent(sys.argv[1], tools=[read_file]).run_sync(QUESTION).output)
