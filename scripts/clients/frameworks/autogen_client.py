"""An assistant of AutoGen AgentChat. Prints the last answer."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from shared import QUESTION, read_file


async def main():
    client = OpenAIChatCompletionClient(model="gpt-4.1", max_retries=0)
    agent = AssistantAgent("adder", client, tools=[read_file], max_tool_iterations=20)
    return (await agent.run(task=QUESTION)).messages[-1].content


print(asyncio.run(main()))
