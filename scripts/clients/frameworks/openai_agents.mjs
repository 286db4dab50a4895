// The OpenAI Agents SDK for Node. Takes the wire: `chat` or `responses`. Prints the last answer.

import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { QUESTION, readFile } from "./shared.mjs";

setTracingDisabled(true);
const kinds = { chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel };
const model = new kinds[process.argv[2]](new OpenAI({ apiKey: "none", maxRetries: 0 }), "gpt-5");
const read_file = tool({
  name: "read_file",
  description: "Reads a file",
  parameters: z.object({ path: z.string() }),
  execute: async (input) => readFile(input),
});
console.log((await run(new Agent({ name: "adder", model, tools: [read_file] }), QUESTION, { maxTurns: 20 })).finalOutput);
