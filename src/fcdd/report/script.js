const source = document.getElementById("items");
const items = JSON.parse(source.textContent);
const chunk = Number(source.dataset.chunk);
const gallery = document.getElementById("gallery");
const offered = source.dataset.views.split(" ").filter(Boolean); // the kinds of thumbnails that any item has

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

function number(value) {
  return value === 0 ? "0" : Math.abs(value) < 0.001 || value >= 1e5 ? value.toExponential(2) : String(+value.toPrecision(3));
}

function facts(item) {
  return [item.kind, item.words || "score " + number(item.score)].filter(Boolean).join("  ·  ");
}

function card(index) {
  const item = items[index];
  const images = thumbnails(index);
  const made = element("button", "item");
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

function choose() {
  const { sort, kind, verdict, view } = controls.elements;
  const chosen = [...items.keys()].filter(
    (i) => (!kind.value || "=" + items[i].kind === kind.value) && (!verdict.value || [items[i].verdict, items[i].mistake].includes(verdict.value)),
  );
  if (sort.value === "low") chosen.reverse();
  if (sort.value === "error") chosen.sort((a, b) => items[b].error - items[a].error);
  gallery.classList.toggle("single", view.value !== "" || offered.length === 1);
  gallery.style.setProperty("--views", view.value ? 1 : Math.max(offered.length, 1));
  draw(chosen);
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

function enlarge(index) {
  const item = items[index];
  viewer.querySelector("h3").textContent = item.name;
  viewer.querySelector("header p").textContent = [item.verdict, item.mistake, facts(item)].filter(Boolean).join("  ·  ");
  viewer.querySelector(".shown").replaceChildren(...large(index));
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
}

function row(table, cell, values) {
  const made = table.appendChild(element("tr"));
  values.forEach((value) => made.append(element(cell, "", value)));
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

const draw = galleryIn(gallery, items.length, card, enlarge);
controls.addEventListener("change", choose);
choose();
