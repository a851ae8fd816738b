"use strict";

const { models, items } = JSON.parse(document.getElementById("items").textContent);
const controls = document.getElementById("controls");
const pairs = document.getElementById("pairs");
const viewer = document.getElementById("viewer");
const symbols = { OK: "✓", REVIEW: "?", NG: "✕" };
const page = 24;
let chosen = []; // items that pass the filters, the widest gap first
let drawn = 0; // how many of them are in the page
let open = 0; // position in `chosen` of the item in the viewer

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Long paths are cut at their front: the end tells images apart. The text runs backwards only to be cut there.
function path(name) {
  const made = element("span", "path");
  made.title = name;
  made.append(element("bdi", "", name));
  return made;
}

function view(file, label, judged) {
  const made = element("span", "view");
  const image = made.appendChild(element("img"));
  image.loading = "lazy";
  image.decoding = "async";
  image.alt = judged ? label + ": " + judged.verdict : label;
  image.src = file;
  const whose = made.appendChild(element("span", "whose"));
  if (judged) whose.append(element("span", "symbol " + judged.verdict.toLowerCase(), symbols[judged.verdict]));
  if (judged) whose.append(element("b", "", judged.verdict));
  whose.append(element("span", "", label));
  if (judged) whose.append(element("span", "words", judged.words));
  return made;
}

function views(item, withInput) {
  const shown = item.models.map((judged, index) => view(judged.file, models[index], judged));
  return withInput ? [view(item.input, "image"), ...shown] : shown;
}

function card(item, position) {
  const made = element("button", "pair");
  made.type = "button";
  made.dataset.position = position;
  const title = made.appendChild(element("span", "line1"));
  title.append(path(item.name), element("em", "", item.kind));
  const strip = made.appendChild(element("span", "views"));
  strip.append(...views(item, false));
  return made;
}

function more() {
  const end = Math.min(drawn + page, chosen.length);
  for (; drawn < end; drawn++) pairs.append(card(chosen[drawn], drawn));
}

// The observer fires on change only; observing anew asks again whether the end is near.
const sentinel = document.getElementById("more");
const watcher = new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting) && drawn < chosen.length) {
    more();
    watch();
  }
}, { rootMargin: "800px" });

function watch() {
  watcher.unobserve(sentinel);
  watcher.observe(sentinel);
}

function choose() {
  const { which, kind } = controls.elements;
  chosen = items.filter((item) => (!which.value || item.changed) && (!kind.value || "=" + item.kind === kind.value));
  chosen.sort((a, b) => b.changed - a.changed || b.gap - a.gap);
  document.getElementById("shown").textContent = chosen.length.toLocaleString("en") + " of " + items.length.toLocaleString("en") + " images";
  document.getElementById("none").hidden = items.some((item) => item.changed);
  pairs.replaceChildren();
  drawn = 0;
  more();
  watch();
}

function show(position) {
  if (position < 0 || position >= chosen.length) return;
  open = position;
  const item = chosen[open];
  viewer.querySelector("h3").textContent = item.name;
  viewer.querySelector("header p").textContent = [item.kind, item.changed ? "the verdicts differ" : "all agree"].filter(Boolean).join("  ·  ");
  viewer.querySelector(".views").replaceChildren(...views(item, true));
  if (!viewer.open) viewer.showModal();
}

for (const kind of [...new Set(items.map((item) => item.kind))].sort()) {
  const made = controls.elements.kind.appendChild(element("option", "", kind || "no type"));
  made.value = "=" + kind;
}
controls.elements.kind.parentElement.hidden = controls.elements.kind.options.length < 3; // a choice of one is none
if (!items.some((item) => item.changed)) controls.elements.which.value = "";
document.body.style.setProperty("--models", models.length);
document.body.style.setProperty("--all", models.length + 1);

controls.addEventListener("change", choose);
controls.addEventListener("submit", (event) => event.preventDefault());
pairs.addEventListener("click", (event) => {
  const item = event.target.closest(".pair");
  if (item) show(Number(item.dataset.position));
});
viewer.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (event.target === viewer || (button && "close" in button.dataset)) viewer.close();
  else if (button) show(open + Number(button.dataset.step));
});
viewer.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") show(open - 1);
  if (event.key === "ArrowRight") show(open + 1);
});
choose();
