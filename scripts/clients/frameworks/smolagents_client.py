"""A tool-calling agent of smolagents, which ends by calling `final_answer`. Prints the last answer."""

from shared import QUESTION, read_file
from smolagents import OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel("gpt-4.1")
print(ToolCallingAgent([tool(read_file)], model, max_steps=20, verbosity_level=0).run(QUESTION))
