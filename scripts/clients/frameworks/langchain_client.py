"""An agent of LangChain. Takes a model as `provider:model`. Prints the last answer."""

import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from shared import QUESTION, read_file

agent = create_agent(init_chat_model(sys.argv[1], max_retries=0), tools=[read_file])
asked = {"messages": [{"role": "user", "content": QUESTION}]}
print(agent.invoke(asked, {"recursion_limit": 60})["messages"][-1].text)
