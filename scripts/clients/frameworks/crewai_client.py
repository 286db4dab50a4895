"""A crew of one agent of CrewAI. Prints the last answer."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from shared import QUESTION, read_file

agent = Agent(
    role="adder", goal="Add up", backstory="You add up.", llm=LLM("openai/gpt-4.1"), tools=[tool("read_file")(read_file)]
)
task = Task(description=QUESTION, expected_output="A sentence", agent=agent)
print(Crew(agents=[agent], tasks=[task]).kickoff())
