// Looks at the live page in a browser. See scripts/clients/page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { conversation, hostile, longConversation, openBrowser, reading, startWorld } from "./page_world.mjs";

const [trimtab, root, what] = process.argv.slice(2);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = join(root, "target/page-shots");
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

// Opens a page that must not complain, ask another server for anything, or show a dialog.
const openPage = async (browser, world, options = {}) => {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(`${message.text()} ${message.location().url}`); });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(world.address)) faults.push(`asked for ${request.url()}`); });
  return { page, faults, go: (path) => page.goto(world.address + path, { waitUntil: "load" }) };
};

// What axe finds serious on a page.
const checkAccess = async (page, name) => {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter((fault) => ["serious", "critical"].includes(fault.impact));
  const told = serious.map((fault) => `${name}: ${fault.id}: ${fault.nodes.map((node) => node.html.slice(0, 200)).slice(0, 3).join(" | ")}`);
  assert.deepEqual(told, []);
};

const figure = (page, name) => page.locator(`[data-figure="${name}"]`).first().textContent();

const waitForFigure = async (page, name, wanted) => {
  await page.waitForFunction(([name, wanted]) => document.querySelector(`[data-figure="${name}"]`)?.textContent === wanted, [name, wanted], { timeout: 30_000 });
};

const dollars = (amount) => {
  const digits = Math.abs(amount) < 0.1 && amount !== 0 ? 4 : 2;
  return `${amount < 0 ? "−" : ""}$${Math.abs(amount).toFixed(digits)}`;
};

const say = (words) => console.log(`ok: ${words}`);

const numbersWhileAnAgentWorks = async (browser, world) => {
  const { page, faults, go } = await openPage(browser, world);
  await go("/");
  await page.waitForFunction(() => document.querySelector("[data-live]")?.textContent === "live");
  for (const steps of [2, 6, 12, 18, 24, 30]) await world.post("shop", conversation("The cart rounds totals wrong. Find out why.", steps), 300);
  await waitForFigure(page, "conversations", "6");
  // The last answer's report is stored a moment after the answer.
  let stats;
  for (let round = 0; round < 100; round += 1) {
    stats = JSON.parse(world.run("stats", "--json"));
    if (stats.reported.requests === 6) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  await waitForFigure(page, "dollars_spent", dollars(stats.reported.dollars_spent));
  await waitForFigure(page, "dollars_saved", dollars(stats.reported.dollars_saved));
  assert.equal(await figure(page, "requests_dearer"), String(stats.reported.requests_dearer));
  const input = stats.reported.uncached + stats.reported.cache_read + stats.reported.cache_write;
  assert.equal((await figure(page, "reported_input")).replaceAll(",", ""), String(input));
  const sessions = JSON.parse(world.run("sessions", "--json"));
  await go("/trimtab/sessions");
  assert.equal(await page.locator("tbody tr").count(), sessions.length);
  await go(`/trimtab/sessions/${sessions[0].id}`);
  assert.equal(await figure(page, "requests"), String(sessions[0].requests));
  assert.deepEqual(faults, []);
  await page.context().close();
  say("an open page follows the agent, and its figures are those of stats --json");
};

const hideOpenPinUndo = async (browser, world) => {
  const { page, faults, go } = await openPage(browser, world);
  await go("/trimtab/sessions/s1");
  await page.locator("tbody tr th a").first().click();
  await page.waitForSelector("ol.blocks");
  const request = page.url();
  const last = () => JSON.stringify(JSON.parse(world.provider.came.at(-1)).messages);
  const whole = (number) => last().includes(JSON.stringify(reading(number)).slice(1, -1));
  const hidden = await page.locator("li[data-hidden]").count();
  assert.ok(hidden > 2, `${hidden} blocks are hidden`);
  const [first, second] = [page.locator("li[data-hidden]").nth(0), page.locator("li[data-hidden]").nth(1)];
  const numberOf = async (row) => Number(/\/\/ reading (\d+)/.exec(await row.locator("details pre").first().textContent())[1]);
  const [one, other] = [await numberOf(first), await numberOf(second)];
  assert.ok(!whole(one) && !whole(other), "they were not sent");
  assert.ok(await first.locator("pre[data-sent]").first().isVisible(), "the note is in the block's place");
  assert.ok(!(await first.locator("details pre").first().isVisible()), "the original is folded");
  await first.locator("summary").click();
  assert.ok(await first.locator("details pre").first().isVisible(), "the original opens");
  const handle = await first.getAttribute("data-handle");
  await first.getByRole("button", { name: /^Pin/ }).click();
  assert.equal(await page.locator("[data-command]").textContent(), `trimtab pin ${handle} --session s1`);
  await page.getByRole("link", { name: "Back to the request" }).click();
  assert.equal(page.url(), request);
  const undone = await second.getAttribute("data-handle");
  await second.getByRole("button", { name: /^Undo now/ }).click();
  assert.equal(await page.locator("[data-command]").textContent(), `trimtab undo --now ${undone} --session s1`);
  await world.post("shop", conversation("The cart rounds totals wrong. Find out why.", 31));
  assert.ok(whole(one), "what was pinned is sent whole");
  assert.ok(whole(other), "what was undone is sent whole");
  assert.deepEqual(faults, []);
  await page.context().close();
  say("a block is hidden, opened, pinned and undone, and the next request has it");
};

const otherProjectsStayAway = async (browser, world) => {
  await world.post("secret", conversation("The wombat plan of another project.", 3));
  const { page, faults, go } = await openPage(browser, world);
  for (const path of ["/", "/trimtab/sessions", "/trimtab/sessions?q=wombat"]) {
    await go(path);
    const text = await page.locator("main").textContent();
    assert.ok(!text.includes("wombat plan"), path);
  }
  const answer = await page.request.get(`${world.address}/trimtab/sessions/s2`);
  assert.equal(answer.status(), 404);
  assert.deepEqual(faults, []);
  await page.context().close();
  say("another project is not seen");
};

const pagesOf = async (world, session) => {
  const rows = JSON.parse(world.run("sessions", "--json"));
  assert.ok(rows.some((row) => row.id === session), `${session} is listed`);
  const base = `/trimtab/sessions/${session}`;
  const text = await (await fetch(`${world.address}${base}`)).text();
  const request = /href="([^"]+\/requests\/\d+)"/.exec(text)[1];
  const file = /href="([^"]+\/files\?path=[^"]+)"/.exec(await (await fetch(`${world.address}${base}/files`)).text())[1];
  return { now: "/", sessions: "/trimtab/sessions", settings: "/trimtab/settings", session: base, request, block: `${request}/blocks/2`,
    files: `${base}/files`, file, head: `${base}/head`, "what-if": `${base}/what-if` };
};

const hostileWordsStayWords = async (browser, world) => {
  await world.post("shop", hostile());
  const newest = JSON.parse(world.run("sessions", "--json"))[0].id;
  const pages = await pagesOf(world, newest);
  const { page, faults, go } = await openPage(browser, world);
  for (const [name, path] of Object.entries(pages)) {
    const began = Date.now();
    await go(path);
    assert.equal(await page.evaluate(() => window.hacked), undefined, name);
    assert.equal(await page.locator("main img, main script, main iframe, main a[href^='javascript']").count(), 0, name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `${name} is ${wide} px too wide`);
    assert.ok(Date.now() - began < 20_000, `${name} took ${Date.now() - began} ms`);
  }
  assert.deepEqual(faults, []);
  await page.context().close();
  say("hostile words, a line of 4 MB and right-to-left text break nothing");
};

const whatIf = async (browser, world) => {
  const { page, faults, go } = await openPage(browser, world);
  await go("/trimtab/sessions/s1/what-if");
  await page.getByRole("button", { name: "Replay" }).click();
  await page.waitForSelector("[data-done]", { timeout: 120_000 });
  assert.equal(await page.locator("tbody tr").count(), 4);
  await checkAccess(page, "what-if with results");
  await page.screenshot({ path: join(SHOTS, "what-if-results.png"), fullPage: true });
  assert.deepEqual(faults, []);
  await page.context().close();
  say("a session is replayed in the background");
};

const everybodyCanReadIt = async (browser, world) => {
  const pages = await pagesOf(world, "s1");
  const looks = [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["phone", { viewport: PHONE, colorScheme: "light" }],
    ["phone-dark", { viewport: PHONE, colorScheme: "dark" }]];
  for (const [look, options] of looks) {
    const { page, faults, go } = await openPage(browser, world, options);
    for (const [name, path] of Object.entries(pages)) {
      await go(path);
      if (name === "request") await page.locator("li[data-hidden] summary").first().click();
      if (look !== "phone-dark") await checkAccess(page, `${name}, ${look}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 1, `${name}, ${look}: ${wide} px too wide`);
      await page.screenshot({ path: join(SHOTS, `${name}-${look}.png`) });
    }
    assert.deepEqual(faults, []);
    await page.context().close();
  }
  const { page, faults, go } = await openPage(browser, world, { javaScriptEnabled: false });
  for (const path of Object.values(pages)) {
    await go(path);
    assert.ok((await page.locator("h1").count()) === 1 && (await page.locator("main").textContent()).length > 50, path);
  }
  await go("/trimtab/sessions");
  await page.locator("input[type=search]").fill("rounds the totals");
  await page.getByRole("button", { name: "Search" }).click();
  assert.ok((await page.locator("tbody tr").count()) > 0, "search works without a script");
  assert.deepEqual(faults, []);
  await page.context().close();
  say("axe finds nothing serious in light, dark and on a phone, and everything works without a script");
};

const reportCanBeRead = async (browser) => {
  const report = join(SHOTS, "report.html");
  execFileSync(trimtab, ["replay", "--html", report, join(root, "fixtures/recordings/claude-code.jsonl")], { stdio: "ignore" });
  for (const [look, options] of [["light", { viewport: DESKTOP }], ["dark", { viewport: DESKTOP, colorScheme: "dark" }], ["phone", { viewport: PHONE }]]) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    await page.goto(pathToFileURL(report).href);
    await checkAccess(page, `the report, ${look}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `the report, ${look}: ${wide} px too wide`);
    await page.screenshot({ path: join(SHOTS, `report-${look}.png`), fullPage: true });
    await context.close();
  }
  say("the page of a replay can be read, light, dark and on a phone");
};

const keyboard = async (browser, world) => {
  const { page, go } = await openPage(browser, world);
  await go("/");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Sessions");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/trimtab/sessions");
  await page.context().close();
  say("the keyboard gets everywhere");
};

// 20,000 sessions and a session of 2,000 requests: the browser's own time of the first paint, the best of three, and the proxy's memory.
const manyAreShownQuickly = async (browser) => {
  const world = await startWorld(trimtab, ["--policy", "steady", "--log", "quiet"]);
  try {
    await world.post("shop", conversation("The cart rounds totals wrong. Find out why.", 2), 500);
    await world.post("shop", longConversation(2000), 1500);
    const script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=30).executescript(open(sys.argv[2]).read())";
    execFileSync("python3", ["-c", script, world.store, join(root, "crates/trimtab/tests/page/many.sql")]);
    const memory = (name) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${world.pid}/status`, "utf8"))[1]) / 1024);
    const before = memory("VmRSS");
    // Of the proxy alone, in hundredths of a second: on a busy machine, the clock says more about the others.
    const worked = () => readFileSync(`/proc/${world.pid}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13).reduce((sum, ticks) => sum + Number(ticks), 0) * 10;
    const base = "/trimtab/sessions/s1";
    const pages = { now: "/", sessions: "/trimtab/sessions", "last sessions": "/trimtab/sessions?page=400", session: base, "session, oldest": `${base}?page=20`,
      request: `${base}/requests/2`, files: `${base}/files`, head: `${base}/head`, "what-if": `${base}/what-if` };
    const slow = [];
    for (const [name, path] of Object.entries(pages)) {
      const [times, work] = [[], []];
      for (let round = 0; round < 3; round += 1) {
        const { page, faults, go } = await openPage(browser, world);
        const began = worked();
        await go(path);
        work.push(worked() - began);
        times.push(await page.evaluate(() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime))
          .observe({ type: "paint", buffered: true }))));
        assert.deepEqual(faults, []);
        await page.context().close();
      }
      console.log(`   ${name.padEnd(16)} first paint after ${times.map((time) => Math.round(time)).join(", ")} ms; the proxy worked ${work.join(", ")} ms`);
      if (Math.min(...times) > 1000) slow.push(name);
    }
    console.log(`   memory ${before} MB before, ${memory("VmRSS")} MB after, ${memory("VmHWM")} MB at most`);
    assert.ok(memory("VmHWM") - before < 300, "the pages take no more memory than their sessions");
    assert.deepEqual(slow, [], "painted within a second");
    say("20,000 sessions and a session of 2,000 requests are painted within a second");
  } finally {
    world.close();
  }
};

const pictures = async (browser, world) => {
  for (const steps of [2, 6, 10, 14, 18, 22, 26, 30]) await world.post("shop", conversation("The cart rounds totals wrong. Find out why.", steps), 200);
  await new Promise((done) => setTimeout(done, 1500));
  const folder = join(root, "docs/images");
  mkdirSync(folder, { recursive: true });
  const { page, go } = await openPage(browser, world, { viewport: { width: 960, height: 760 }, colorScheme: "light" });
  const pages = await pagesOf(world, "s1");
  // Paths of this machine are written as those of an installation: a picture is no place for them.
  const usualPaths = () => page.evaluate(([program, place]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      text.data = text.data.replaceAll(` --store ${place}/kept.db`, "").replaceAll(program, "trimtab").replaceAll(place, "/home/dev");
    }
  }, [trimtab, world.folder]);
  // Takes the page from one element to the end of another.
  const picture = async (name, first, last) => {
    await usualPaths();
    const clip = await page.evaluate(([first, last]) => {
      const [from, to] = [first ? document.querySelector(first).getBoundingClientRect().top + scrollY : 0, document.querySelector(last).getBoundingClientRect().bottom + scrollY];
      return { x: 0, y: from, width: document.documentElement.clientWidth, height: to - from + 12 };
    }, [first, last]);
    await page.screenshot({ path: join(folder, `page-${name}.png`), fullPage: true, clip });
  };
  await go(pages.now);
  await picture("now", null, "main .scroll");
  await go(pages.session);
  await picture("session", null, "figure");
  await go(`${pages.request}?show=hidden`);
  const row = page.locator("li[data-hidden]").first();
  await row.locator("summary").click();
  await row.locator("pre").evaluateAll((texts) => texts.forEach((text) => { text.style.maxHeight = "9rem"; }));
  await picture("request", "ol.blocks", "ol.blocks > li");
  say(`pictures are in ${folder}`);
};

mkdirSync(SHOTS, { recursive: true });
const browser = await openBrowser();
const world = await startWorld(trimtab, ["--policy", "steady", "--budget", "40000", "--log", "quiet"]);
try {
  if (what === "pictures") {
    await pictures(browser, world);
  } else {
    await numbersWhileAnAgentWorks(browser, world);
    await hideOpenPinUndo(browser, world);
    await otherProjectsStayAway(browser, world);
    await keyboard(browser, world);
    await whatIf(browser, world);
    await everybodyCanReadIt(browser, world);
    await hostileWordsStayWords(browser, world);
    await reportCanBeRead(browser);
    if (what === "all") await manyAreShownQuickly(browser);
  }
} finally {
  await browser.close();
  world.close();
}
