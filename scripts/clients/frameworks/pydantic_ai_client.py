"""An agent of Pydantic AI. Takes a provider and model as `provider:model`. Prints the last answer."""

import os
import sys

from pydantic_ai import Agent
from shared import QUESTION, read_file

name = sys.argv[1]
if name.startswith("google"):
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key="none", base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
    model = GoogleModel("gemini-2.5-pro", provider=provider)
else:
    model = name
print(Agent(model, tools=[read_file]).run_sync(QUESTION).output)
