// Keeps the page fresh: it is loaded again every two seconds and what differs is put into the one that is shown, so that
// scrolling, focus, selections and opened details stay. Without scripts the page reloads itself.
"use strict";

const EVERY = 2000;
const LIVE = ["running", "as-of", "jobs"];
const pause = document.getElementById("pause");
const lost = document.getElementById("lost");
let paused = false;
let seen = Date.now();

// Makes `old` like `fresh`, touching only what differs. Whether details are open is up to the reader.
function become(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !(name === "open" && old.localName === "details")) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  }
  const children = [...fresh.childNodes];
  children.forEach((child, at) => {
    const there = old.childNodes[at];
    if (!there) old.append(child);
    else if (alike(there, child)) become(there, child);
    else there.replaceWith(child);
  });
  while (old.childNodes.length > children.length) old.lastChild.remove();
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.id === other.id;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

async function refresh() {
  const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(10 * EVERY) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = fresh.title;
  for (const id of LIVE) become(document.getElementById(id), fresh.getElementById(id));
  seen = Date.now();
  say(lost, "");
}

async function keepFresh() {
  if (!paused && !document.hidden) {
    try {
      await refresh();
    } catch {
      const ago = Math.round((Date.now() - seen) / 1000);
      say(lost, `The service has not answered for ${ago} s; what is shown is as old as that.`);
    }
  }
  setTimeout(keepFresh, EVERY);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused) refresh().catch(() => {});
});
setTimeout(keepFresh, EVERY);
