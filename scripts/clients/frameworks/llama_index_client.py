"""A function agent of LlamaIndex, which streams. Prints the last answer."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from shared import QUESTION, read_file


async def main():
    agent = FunctionAgent(tools=[read_file], llm=OpenAI(model="gpt-4.1", max_retries=0))
    return await agent.run(QUESTION, max_iterations=30)


print(asyncio.run(main()))
