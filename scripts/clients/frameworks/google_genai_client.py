"""Google's SDK with functions that it calls by itself, whole or streamed. Prints the last answer."""

import sys

from google import genai
from google.genai import types
from shared import QUESTION, read_file

client = genai.Client(api_key="none")
limit = types.AutomaticFunctionCallingConfig(maximum_remote_calls=20)
asked = dict(
    model="gemini-2.5-pro",
    contents=QUESTION,
    config=types.GenerateContentConfig(tools=[read_file], automatic_function_calling=limit),
)
if "streamed" in sys.argv:
    print([part.text for part in client.models.generate_content_stream(**asked)][-1])
else:
    print(client.models.generate_content(**asked).text)
