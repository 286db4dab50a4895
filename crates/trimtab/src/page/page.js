// Keeps an open page up to date: when the server says that something is new, the page is asked for again and its main part takes the
// place of the old one. Everything on the page works without this file. Text is never made markup here: the server sends whole pages,
// and what it escapes stays escaped.
"use strict";

(() => {
  const status = document.querySelector("[data-live]");
  if (!window.EventSource || !document.querySelector("main[data-follow], [data-follow]")) return;

  let waiting = false;
  let failed = 0;

  // Whoever reads, writes or has opened something is not interrupted.
  const isBusy = () => {
    const active = document.activeElement;
    const writes = active && active.closest("form, select, input, textarea");
    const selection = window.getSelection();
    return Boolean(writes) || Boolean(selection && String(selection)) || Boolean(document.querySelector("main details[open]"));
  };

  const say = (words) => {
    if (status && status.isConnected) status.textContent = words;
    const shown = document.querySelector("[data-live]");
    if (shown) shown.textContent = words;
  };

  const refresh = async () => {
    if (waiting || document.hidden) return;
    if (isBusy()) {
      say("something is new: it is shown when you close what is open, or load the page again");
      return;
    }
    waiting = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      const main = document.querySelector("main");
      if (!next || !main || isBusy()) return;
      const before = new Map([...main.querySelectorAll("[data-figure]")].map((item) => [item.dataset.figure, item.textContent]));
      const scrolled = [...main.querySelectorAll(".scroll, .chart")].map((item) => item.scrollLeft);
      main.replaceChildren(...next.childNodes);
      main.querySelectorAll(".scroll, .chart").forEach((item, index) => { item.scrollLeft = scrolled[index] || 0; });
      for (const item of main.querySelectorAll("[data-figure]")) {
        if (before.get(item.dataset.figure) !== item.textContent) item.classList.add("changed");
      }
      say("live");
    } catch {
      say("the server does not answer");
    } finally {
      waiting = false;
    }
  };

  const events = new EventSource("/trimtab/events");
  events.addEventListener("open", () => {
    if (failed > 0) refresh();
    failed = 0;
    say("live");
  });
  events.addEventListener("news", refresh);
  events.addEventListener("error", () => {
    failed += 1;
    say("the server does not answer; trying again");
  });
  document.addEventListener("visibilitychange", refresh);
})();
