// What a page can do beyond its links: keys, light or dark, blame without leaving the page, times in the reader's own zone.
"use strict";
const root = document.documentElement;
const $ = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];

// Words for a moment are dear: only those that a page shows are made before it is painted.
const words = (time) => {
  const moment = new Date(time.dateTime);
  return isNaN(moment) ? time.textContent : moment.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
};
for (const time of all("time[data-full]")) time.textContent = words(time);
document.addEventListener("pointerover", ({ target }) => {
  const time = target.closest?.("time[datetime]");
  if (time && !time.title) time.title = words(time);
});

$("#theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  // A cookie: so the next page comes in its colours, and needs no script before it is painted.
  document.cookie = `theme=${root.dataset.theme}; path=${new URL($(".mark").href).pathname}; max-age=31536000; samesite=strict`;
});

const keys = $("#keys");
$("#help").addEventListener("click", () => {
  const list = keys.querySelector("dl");
  list.replaceChildren();
  const rows = all("[data-key]").filter((one) => one.offsetParent !== null).map((one) => [one.dataset.key, one.dataset.does]);
  if ($("[data-row]")) rows.push(["j", "Next in the list"], ["k", "Previous in the list"]);
  for (const [key, does] of rows) {
    const term = document.createElement("dt"), what = document.createElement("dd"), cap = document.createElement("kbd");
    cap.textContent = key; what.textContent = does; term.append(cap); list.append(term, what);
  }
  keys.showModal();
});

const panel = $("#panel");
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.blame");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  try {
    const answer = await fetch(`${link.href}&part=1`, { credentials: "same-origin" });
    panel.querySelector(".panel-body").innerHTML = await answer.text(); // made by the same templates, which escape
    for (const time of panel.querySelectorAll("time[data-full]")) time.textContent = words(time);
    if (!panel.open) panel.showModal();
  } catch { location.href = link.href; }
});
for (const dialog of [keys, panel]) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

document.addEventListener("click", (event) => {
  const fill = event.target.closest("[data-fill]"), copy = event.target.closest("[data-copy]");
  if (fill && $("#text")) { $("#text").value = fill.dataset.fill; $("#text").focus(); }
  if (copy && navigator.clipboard) navigator.clipboard.writeText(copy.dataset.copy).then(() => {
    const code = copy.querySelector("code"), text = code.textContent;
    code.textContent = "copied"; setTimeout(() => { code.textContent = text; }, 900);
  });
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

for (const form of all("form[data-auto]")) form.addEventListener("change", () => form.requestSubmit());
for (const form of all("form[method=post]")) form.addEventListener("submit", (event) => {
  const button = form.querySelector("button");
  if (button.dataset.ask && !confirm(button.dataset.ask)) { event.preventDefault(); return; }
  button.disabled = true;
});
addEventListener("pageshow", () => { for (const button of all("form button[disabled]")) button.disabled = false; });

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (typing && event.key === "Enter" && typing.matches(".compose textarea") && !event.shiftKey && !event.isComposing) {
    event.preventDefault(); typing.form.requestSubmit();
  }
  if (typing && event.key === "Escape") typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "j" || event.key === "k") {
    const rows = all("[data-row]"), at = rows.indexOf(document.activeElement);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
    if (next) { next.focus(); event.preventDefault(); }
    return;
  }
  const target = all("[data-key]").find((one) => one.dataset.key === event.key);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input, textarea")) { target.focus(); target.select(); } else target.click();
});

const rail = $(".rail"), current = $(".rail .current"), tab = $(".tabs [aria-current]");
if (rail && current) {
  if (matchMedia("(max-width: 900px)").matches) rail.querySelector("details").open = false;
  rail.scrollTop = Math.max(0, current.offsetTop - rail.offsetTop - rail.clientHeight / 2);
}
if (tab) {
  const strip = tab.parentElement;
  strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
}
if ($("#text") && $(".question")) $("#text").focus({ preventScroll: true });
