// What the page is looked at with: a provider that reports usage and keeps what came, a proxy in front of it, an agent, and a browser.
import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

// A provider: every answer reports that all but the last 3,000 tokens or so were read from the cache.
export const startProvider = async () => {
  const came = [];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString();
      came.push(body);
      // Listings are mostly numbers, which take more tokens than words.
      const tokens = Math.round(body.length / 1.85);
      const written = Math.min(tokens, 3000);
      const usage = { input_tokens: 4, cache_read_input_tokens: tokens - written, cache_creation_input_tokens: written, output_tokens: 200 };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "msg_1", type: "message", role: "assistant", model: "claude-opus-5", content: [{ type: "text", text: "ok" }], stop_reason: "end_turn", usage }));
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { came, url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
};

const environment = (folder) => {
  const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TRIMTAB_")));
  return { ...plain, TRIMTAB_STORE: join(folder, "kept.db"), XDG_CONFIG_HOME: join(folder, "config"), NO_COLOR: "1" };
};

// Two projects and a proxy that runs in the first.
export const startWorld = async (trimtab, flags) => {
  const provider = await startProvider();
  const folder = mkdtempSync(join(tmpdir(), "trimtab-page-"));
  for (const name of ["shop", "secret"]) mkdirSync(join(folder, name, ".git"), { recursive: true });
  const cwd = join(folder, "shop");
  const child = spawn(trimtab, ["proxy", "--port", "0", "--upstream", `anthropic=${provider.url}`, "--plan-time", "20000",
    "--project", cwd, ...flags],
    { cwd, env: environment(folder), stdio: ["ignore", "ignore", "pipe"] });
  const words = [];
  const address = await new Promise((done, fail) => {
    child.on("exit", () => fail(new Error(`the proxy ended: ${words.join("\n")}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      words.push(line);
      const found = /listening at (http:\S+)/.exec(line);
      if (found) done(found[1]);
    });
  });
  const run = (...argv) => execFileSync(trimtab, argv, { cwd, env: environment(folder) }).toString();
  const post = async (project, body, pause = 0) => {
    const headers = { "content-type": "application/json", "x-trimtab-project": join(folder, project), "x-api-key": "none" };
    const answer = await fetch(`${address}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    await answer.text();
    await new Promise((done) => setTimeout(done, pause));
  };
  const close = () => {
    child.removeAllListeners("exit");
    child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    child.kill("SIGTERM");
    provider.close();
  };
  return { provider, folder, address, pid: child.pid, store: join(folder, "kept.db"), run, post, close };
};

const tool = (name, description) => ({ name, description, input_schema: { type: "object", properties: { path: { type: "string" } } } });

const FILES = ["src/cart.rs", "src/prices.rs", "src/orders.rs", "tests/cart.rs"];

// What a file's reading shows: lines that no digest can do without looking.
export const reading = (number) => Array.from({ length: 140 }, (_, line) =>
  `${String(line + 1).padStart(6)}\tlet entry_${line} = Entry::new(${number * 7919 + line}, ${line * 104729 % 9973}); // reading ${number}`).join("\n");

// A conversation of an agent that has worked for so many steps.
export const conversation = (title, steps) => {
  const messages = [{ role: "user", content: title }];
  for (let number = 0; number < steps; number += 1) {
    const id = `toolu_${number}`;
    const call = number % 5 === 4
      ? { type: "tool_use", id, name: "Bash", input: { command: "cargo test cart" } }
      : { type: "tool_use", id, name: "Read", input: { file_path: `/shop/${FILES[number % FILES.length]}` } };
    messages.push({ role: "assistant", content: [{ type: "text", text: `Step ${number + 1}: I look at what rounds the totals.` }, call] });
    const content = number % 5 === 4 ? `running 3 tests\ntest cart::rounds ... FAILED\nassertion failed: left 1999, right 2000\n${"note: see above\n".repeat(60)}` : reading(number);
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] });
  }
  // Agents set a cache marker at the end.
  const last = messages.at(-1);
  if (Array.isArray(last.content)) last.content.at(-1).cache_control = { type: "ephemeral" };
  const tools = [tool("Read", "Reads a file."), tool("Bash", "Runs a command."), tool("mcp__github__search_issues", "Searches issues. ".repeat(30)),
    tool("mcp__github__create_issue", "Creates an issue. ".repeat(40)), tool("mcp__browser__open", "Opens a page. ".repeat(25))];
  return { model: "claude-opus-5", max_tokens: 1000, system: "You fix bugs in a shop. Be brief.", tools, messages };
};

// A conversation of very many short steps.
export const longConversation = (steps) => {
  const body = conversation("The cart rounds totals wrong. Find out why.", 2);
  for (let number = 2; number < steps; number += 1) {
    const id = `toolu_${number}`;
    const lines = Array.from({ length: 8 }, (_, line) => `${line + 1}\tlet entry_${line} = Entry::new(${number * 7919 + line});`).join("\n");
    body.messages.push({ role: "assistant", content: [{ type: "text", text: `Step ${number + 1}.` },
      { type: "tool_use", id, name: "Read", input: { file_path: `/shop/src/part_${number % 300}.rs` } }] });
    body.messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: lines }] });
  }
  return body;
};

// What a page would like to become markup, steer a terminal, turn the direction of text, or be too much.
export const hostile = () => {
  const words = "Please <script>window.hacked = 1</script></pre><img src=x onerror='window.hacked = 2'> \u202egnp.exe\u202c \u001b[31mred \u0007 אבגד <a href='javascript:window.hacked=3'>click</a>";
  const body = conversation(words, 3);
  body.system = words;
  body.tools.push(tool("mcp__evil__run", words));
  body.messages.push({ role: "assistant", content: [{ type: "tool_use", id: "toolu_x", name: "Write", input: { file_path: "/shop/<img src=y onerror=hacked()>.rs", content: words } }] });
  body.messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_x", content: `${"a<b>".repeat(1_000_000)}` }] });
  body.messages.push({ role: "assistant", content: words }, { role: "user", content: "Go on." });
  return body;
};

export const openBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true, args: FLAGS });
