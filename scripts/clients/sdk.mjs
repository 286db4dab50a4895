// Tool-calling turns with the official Node SDKs, streamed and not, at the addresses that the variables name.
// Takes the interfaces to use: `messages`, `chat`, `responses`; all where none is named. Fails where a turn does
// not come to its end, and prints the last answer.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const DONE = "The values add up.";
const QUESTION = "Add up the values in all files.";
const SCHEMA = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

function readFile({ path }) {
  const number = Number(path.replace(/\D/g, ""));
  const line = (_, index) => `${path} line ${index}: the value is ${number * 7919 + index * 104729}`;
  return Array.from({ length: 120 }, line).join("\n");
}

async function messages(stream) {
  const client = new Anthropic({ apiKey: "none", maxRetries: 0 });
  const tools = [{ name: "read_file", description: "Reads a file", input_schema: SCHEMA }];
  const history = [{ role: "user", content: QUESTION }];
  for (let turn = 0; turn < 20; turn++) {
    const asked = { model: "claude-opus-5", max_tokens: 1000, tools, messages: history };
    const answer = stream ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
    if (answer.stop_reason !== "tool_use") return answer.content[0].text;
    history.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter((block) => block.type === "tool_use");
    const content = calls.map((block) => ({ type: "tool_result", tool_use_id: block.id, content: readFile(block.input) }));
    history.push({ role: "user", content });
  }
  return "no end";
}

async function chat(stream) {
  const client = new OpenAI({ apiKey: "none", maxRetries: 0 });
  const tools = [{ type: "function", function: { name: "read_file", description: "Reads a file", parameters: SCHEMA } }];
  const history = [{ role: "user", content: QUESTION }];
  for (let turn = 0; turn < 20; turn++) {
    const asked = { model: "gpt-5", tools, messages: history };
    const answer = stream
      ? await client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(asked);
    const message = answer.choices[0].message;
    if (!message.tool_calls?.length) return message.content;
    const calls = message.tool_calls.map(({ id, function: { name, arguments: words } }) => ({
      id,
      type: "function",
      function: { name, arguments: words },
    }));
    history.push({ role: "assistant", content: null, tool_calls: calls });
    for (const call of calls) {
      history.push({ role: "tool", tool_call_id: call.id, content: readFile(JSON.parse(call.function.arguments)) });
    }
  }
  return "no end";
}

async function responses(stream) {
  const client = new OpenAI({ apiKey: "none", maxRetries: 0 });
  const tools = [{ type: "function", name: "read_file", description: "Reads a file", parameters: SCHEMA, strict: false }];
  const history = [{ role: "user", content: QUESTION }];
  for (let turn = 0; turn < 20; turn++) {
    const asked = { model: "gpt-5", tools, input: history, store: false };
    const answer = stream ? await client.responses.stream(asked).finalResponse() : await client.responses.create(asked);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (!calls.length) return answer.output.find((item) => item.type === "message").content[0].text;
    for (const { call_id, name, arguments: words } of calls) {
      history.push({ type: "function_call", call_id, name, arguments: words });
      history.push({ type: "function_call_output", call_id, output: readFile(JSON.parse(words)) });
    }
  }
  return "no end";
}

const TURNS = { messages, chat, responses };
const wanted = process.argv.slice(2);
for (const turn of wanted.length ? wanted.map((name) => TURNS[name]) : Object.values(TURNS)) {
  for (const stream of [false, true]) {
    const said = await turn(stream);
    if (said !== DONE) throw new Error(`${turn.name}, stream=${stream}: ${said}`);
    console.log(`node ${turn.name}${stream ? " streamed" : ""}: ${said}`);
  }
}
