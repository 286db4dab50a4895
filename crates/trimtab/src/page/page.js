// Keeps an open page up to date: when the server says that something is new, the page is asked for again and the part that follows takes
// the place of the old one. Everything on the page works without this file. Text is never made markup here: the server sends whole pages,
// and what it escapes stays escaped.
"use strict";

(() => {
  const FOLLOWS = "[data-follow]:not([data-done])";
  const first = document.querySelector(FOLLOWS);
  if (!window.EventSource || !first) return;

  let waiting = false;
  let missed = false;

  // Whoever reads, writes, has opened something, or is there with the keyboard is not interrupted.
  const isBusy = () => {
    const inside = document.activeElement && document.activeElement.closest("[data-follow] :focus-visible, [data-follow] form");
    const selection = window.getSelection();
    return Boolean(inside) || Boolean(selection && String(selection)) || Boolean(document.querySelector("[data-follow] details[open]"));
  };

  const say = (words) => {
    const shown = document.querySelector("[data-live]");
    if (shown) shown.textContent = words;
  };

  const refresh = async () => {
    missed = waiting || document.hidden || isBusy();
    if (missed) {
      if (!waiting) say("something is new: it is shown when you close or leave what you look at, or load the page again");
      return;
    }
    waiting = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-follow]");
      const part = document.querySelector("[data-follow]");
      missed = missed || isBusy();
      if (!next || !part || isBusy()) return;
      const before = new Map([...part.querySelectorAll("[data-figure]")].map((item) => [item.dataset.figure, item.textContent]));
      const scrolled = [...part.querySelectorAll(".scroll")].map((item) => item.scrollLeft);
      part.replaceWith(document.adoptNode(next));
      next.querySelectorAll(".scroll").forEach((item, index) => { item.scrollLeft = scrolled[index] || 0; });
      for (const item of next.querySelectorAll("[data-figure]")) {
        if (before.get(item.dataset.figure) !== item.textContent) item.classList.add("changed");
      }
      if (next.matches(FOLLOWS)) say("live");
      else events.close();
    } catch {
      say("the server does not answer");
    } finally {
      waiting = false;
    }
    catchUp();
  };

  const catchUp = () => { if (missed && !waiting) refresh(); };

  // The server compares what it has with what the page shows: nothing is missed between the two, nor while the server was away.
  const events = new EventSource(`/trimtab/events?shown=${encodeURIComponent(first.dataset.follow)}`);
  events.addEventListener("open", () => say("live"));
  events.addEventListener("news", refresh);
  events.addEventListener("error", () => say("the server does not answer; trying again"));
  for (const what of ["visibilitychange", "toggle", "focusout", "selectionchange"]) document.addEventListener(what, () => setTimeout(catchUp), true);
})();
