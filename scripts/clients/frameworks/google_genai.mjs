// Google's SDK for Node, streamed. Prints the last answer.

import { GoogleGenAI } from "@google/genai";
import { QUESTION, readFile } from "./shared.mjs";

const client = new GoogleGenAI({ apiKey: "none" });
const parameters = { type: "OBJECT", properties: { path: { type: "STRING" } }, required: ["path"] };
const config = { tools: [{ functionDeclarations: [{ name: "read_file", description: "Reads a file", parameters }] }] };
const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
for (let turn = 0; turn < 20; turn++) {
  const parts = [];
  for await (const chunk of await client.models.generateContentStream({ model: "gemini-2.5-pro", contents, config })) {
    parts.push(...(chunk.candidates?.[0].content?.parts ?? []));
  }
  const calls = parts.filter((part) => part.functionCall);
  if (!calls.length) {
    console.log(parts.map((part) => part.text).join(""));
    break;
  }
  contents.push({ role: "model", parts });
  const answer = ({ functionCall: { name, args } }) => ({ functionResponse: { name, response: { output: readFile(args) } } });
  contents.push({ role: "user", parts: calls.map(answer) });
}
