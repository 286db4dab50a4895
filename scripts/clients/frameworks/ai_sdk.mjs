// The AI SDK of Vercel. Takes the wire, and `streamed` where the answers stream. Prints the last answer.
// `bare` uses the address as the variable names it; Anthropic's is read as one that ends in the version.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { QUESTION, readFile } from "./shared.mjs";

const { ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL } = process.env;
const [wire, ...ways] = process.argv.slice(2);
const version = ways.includes("bare") ? "" : "/v1";
const models = {
  responses: () => openai.responses("gpt-5"),
  chat: () => openai.chat("gpt-5"),
  messages: () => createAnthropic({ baseURL: ANTHROPIC_BASE_URL + version })("claude-opus-5"),
  gemini: () => createGoogleGenerativeAI({ baseURL: `${GOOGLE_GEMINI_BASE_URL}/v1beta` })("gemini-2.5-pro"),
};
const read_file = tool({
  description: "Reads a file",
  inputSchema: z.object({ path: z.string() }),
  execute: async (input) => readFile(input),
});
const asked = { model: models[wire](), prompt: QUESTION, tools: { read_file }, stopWhen: stepCountIs(20), maxRetries: 0 };
console.log(await (ways.includes("streamed") ? streamText(asked) : await generateText(asked)).text);
