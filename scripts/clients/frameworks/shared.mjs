// The question and the tool that all Node clients have in common.

export const QUESTION = "Add up the values in all files.";

export function readFile({ path }) {
  const number = Number(path.replace(/\D/g, ""));
  const line = (_, index) => `${path} line ${index}: the value is ${number * 7919 + index * 104729}`;
  return Array.from({ length: 120 }, line).join("\n");
}
