// The AI SDK of Vercel. Takes a provider, and `streamed` where the answers stream. Prints the last answer.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { QUESTION, readFile } from "./shared.mjs";

const { OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL } = process.env;
const openai = createOpenAI({ baseURL: OPENAI_BASE_URL, apiKey: "none" });
const models = {
  responses: () => openai.responses("gpt-5"),
  chat: () => openai.chat("gpt-5"),
  messages: () => createAnthropic({ baseURL: `${ANTHROPIC_BASE_URL}/v1`, apiKey: "none" })("claude-opus-5"),
  gemini: () => createGoogleGenerativeAI({ baseURL: `${GOOGLE_GEMINI_BASE_URL}/v1beta`, apiKey: "none" })("gemini-2.5-pro"),
};
const [wire, streamed] = process.argv.slice(2);
const read_file = tool({
  description: "Reads a file",
  inputSchema: z.object({ path: z.string() }),
  execute: async (input) => readFile(input),
});
const asked = { model: models[wire](), prompt: QUESTION, tools: { read_file }, stopWhen: stepCountIs(20), maxRetries: 0 };
console.log(await (streamed ? streamText(asked) : await generateText(asked)).text);
