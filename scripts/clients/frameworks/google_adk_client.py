"""An agent of Google's Agent Development Kit. Prints the last answer."""

import asyncio

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types
from shared import QUESTION, read_file


async def main():
    agent = Agent(name="adder", model="gemini-2.5-pro", instruction="Add up.", tools=[read_file])
    runner = InMemoryRunner(agent, app_name="adder")
    session = await runner.session_service.create_session(app_name="adder", user_id="dev")
    said = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    async for event in runner.run_async(user_id="dev", session_id=session.id, new_message=said):
        if event.is_final_response():
            return event.content.parts[0].text


print(asyncio.run(main()))
