"use strict";

const source = document.getElementById("items");
const items = JSON.parse(source.textContent);
const chunk = Number(source.dataset.chunk);
const controls = document.getElementById("controls");
const gallery = document.getElementById("gallery");
const viewer = document.getElementById("viewer");
const symbols = { OK: "✓", REVIEW: "?", NG: "✕" };
const offered = source.dataset.views.split(" ").filter(Boolean); // the kinds of thumbnails that any item has
const page = 24;
let chosen = []; // indices of the items that pass the filters, in order
let drawn = 0; // how many of them are in the page
let open = 0; // position in `chosen` of the item in the viewer

// A block is parsed when one of its items is first drawn; blocks follow the order of scores.
const blocks = new Map();
function thumbnails(index) {
  if (items[index].file) return { overlay: items[index].file }; // beside the page, at full size
  const number = Math.floor(index / chunk);
  if (!blocks.has(number)) {
    blocks.set(number, JSON.parse(document.getElementById("block-" + number).textContent));
  }
  return blocks.get(number)[index % chunk];
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function number(value) {
  return value === 0 ? "0" : Math.abs(value) < 0.001 || value >= 1e5 ? value.toExponential(2) : String(+value.toPrecision(3));
}

function facts(item) {
  return [item.kind, item.words || "score " + number(item.score)].filter(Boolean).join("  ·  ");
}

// Long paths are cut at their front: the end tells images apart. The text runs backwards only to be cut there.
function path(name) {
  const made = element("span", "path");
  made.title = name;
  made.append(element("bdi", "", name));
  return made;
}

function card(index, position) {
  const item = items[index];
  const images = thumbnails(index);
  const made = element("button", "item");
  made.type = "button";
  made.dataset.position = position;
  const strip = made.appendChild(element("span", "strip"));
  const view = controls.elements.view.value;
  for (const name of offered) {
    if (!images[name] || (view && view !== name)) continue;
    const image = strip.appendChild(element("img"));
    image.alt = name + " of " + item.name;
    image.title = name;
    image.decoding = "async";
    image.loading = "lazy";
    image.src = images[name];
  }
  const title = made.appendChild(element("span", "line1"));
  if (item.verdict) {
    const badge = title.appendChild(element("span", "symbol " + item.verdict.toLowerCase(), symbols[item.verdict]));
    badge.title = item.verdict;
  }
  title.append(path(item.name));
  const line = made.appendChild(element("span", "line2"));
  if (item.mistake) line.append(element("em", "", item.mistake), "  ·  ");
  line.append(facts(item));
  return made;
}

function more() {
  const batch = document.createDocumentFragment();
  for (const end = Math.min(drawn + page, chosen.length); drawn < end; drawn++) {
    batch.append(card(chosen[drawn], drawn));
  }
  gallery.append(batch);
}

// The observer fires on change only; observing anew asks again whether the end of the gallery is near.
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
  const { sort, kind, verdict, view } = controls.elements;
  chosen = [...items.keys()].filter(
    (i) => (!kind.value || "=" + items[i].kind === kind.value) && (!verdict.value || [items[i].verdict, items[i].mistake].includes(verdict.value)),
  );
  if (sort.value === "low") chosen.reverse();
  if (sort.value === "error") chosen.sort((a, b) => items[b].error - items[a].error);
  document.getElementById("shown").textContent = chosen.length.toLocaleString("en") + " of " + items.length.toLocaleString("en") + " images";
  gallery.classList.toggle("single", view.value !== "" || offered.length === 1);
  gallery.style.setProperty("--views", view.value ? 1 : Math.max(offered.length, 1));
  gallery.replaceChildren();
  drawn = 0;
  more();
  watch();
}

function large(index) {
  const item = items[index];
  return Object.entries(thumbnails(index)).map(([name, uri]) => {
    const figure = element("figure");
    const frame = figure.appendChild(element("div", "frame"));
    const image = frame.appendChild(element("img"));
    image.src = uri;
    image.alt = name;
    if (item.file) {
      const link = figure.appendChild(element("a", "", "Open the image in full size"));
      link.href = uri;
      link.target = "_blank";
      return figure;
    }
    if (name === "input" && item.regions.length) frame.append(boxes(item));
    figure.append(element("figcaption", "", name));
    return figure;
  });
}

function boxes(item) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 " + item.size.join(" "));
  for (const region of item.regions) {
    const box = drawing.appendChild(document.createElementNS(space, "rect"));
    for (const side of ["x", "y", "width", "height"]) box.setAttribute(side, region[side]);
  }
  return drawing;
}

function show(position) {
  if (position < 0 || position >= chosen.length) return;
  open = position;
  const item = items[chosen[open]];
  viewer.querySelector("h3").textContent = item.name;
  viewer.querySelector("header p").textContent = [item.verdict, item.mistake, facts(item)].filter(Boolean).join("  ·  ");
  viewer.querySelector(".shown").replaceChildren(...large(chosen[open]));
  const known = ["score " + number(item.score)];
  if (item.p !== null) known.push("p-value " + number(item.p));
  viewer.querySelector(".numbers").textContent = known.join("  ·  ");
  const table = viewer.querySelector("table");
  table.replaceChildren();
  if (item.regions.length) {
    row(table, "th", ["Region", "Position", "Size", "Area", "Peak", "Share of score"]);
    item.regions.forEach((r, i) =>
      row(table, "td", [i + 1, r.x + ", " + r.y, r.width + " × " + r.height, r.area, number(r.peak), (100 * r.share).toFixed(1) + " %"]),
    );
  }
  if (!viewer.open) viewer.showModal();
}

function row(table, cell, values) {
  const made = table.appendChild(element("tr"));
  values.forEach((value) => made.append(element(cell, "", value)));
}

function options(select, values, prefix) {
  for (const value of values) {
    const made = select.appendChild(element("option", "", value || "no type"));
    made.value = prefix + value;
  }
}

options(controls.elements.kind, [...new Set(items.map((item) => item.kind))].sort(), "=");
options(controls.elements.verdict, Object.keys(symbols).filter((v) => items.some((item) => item.verdict === v)), "");
options(controls.elements.verdict, ["defect passed", "good part rejected"].filter((m) => items.some((item) => item.mistake === m)), "");
options(controls.elements.view, offered, "");

const beside = items.some((item) => item.file); // images are files beside the page, not thumbnails in it
gallery.classList.toggle("files", beside);
viewer.classList.toggle("files-view", beside);
// A choice of one is none.
for (const name of ["kind", "view"]) controls.elements[name].parentElement.hidden = controls.elements[name].options.length < 3;

controls.addEventListener("change", choose);
controls.addEventListener("submit", (event) => event.preventDefault());
gallery.addEventListener("click", (event) => {
  const item = event.target.closest(".item");
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
