"""An agent of the OpenAI Agents SDK. Takes the wire, `chat` or `responses`, and prints the last answer.

`streamed` streams the answers; `held` leaves the history with the server.
"""

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from shared import QUESTION, read_file

set_tracing_disabled(True)
kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[sys.argv[1]]
model = kind("gpt-5", AsyncOpenAI(max_retries=0))
agent = Agent("adder", model=model, tools=[function_tool(read_file)])


async def main():
    if "streamed" not in sys.argv:
        return await Runner.run(agent, QUESTION, max_turns=20, auto_previous_response_id="held" in sys.argv)
    result = Runner.run_streamed(agent, QUESTION, max_turns=20)
    async for _ in result.stream_events():
        pass
    return result


print(asyncio.run(main()).final_output)
