// One image with its heat, regions and verdict.

import { element, find, number, percent, plural, shape, symbol } from "./elements.js";

const meanings = { OK: "Pass", REVIEW: "Have a look", NG: "Reject" };

export function show(item) {
  const empty = !item;
  find("empty").hidden = !empty;
  find("shown").hidden = empty;
  if (empty) {
    find("verdict").replaceChildren(element("p", { class: "soft none" }, "No image yet."));
    return;
  }
  find("name").textContent = item.name;
  find("name").title = item.name;
  showImage(item);
  find("verdict").replaceChildren(...(item.answer ? judged(item.answer) : unjudged(item)));
}

function showImage(item) {
  const image = find("image");
  const seen = (can) => {
    image.hidden = !can;
    find("unseen").hidden = can || !item.answer;
  };
  image.onload = () => seen(true);
  image.onerror = () => seen(false);
  image.alt = item.answer ? `${item.name}, ${item.answer.verdict}` : item.name;
  image.src = item.url;
  find("heat").hidden = !item.heat;
  if (item.heat) find("heat").src = item.heat;
  const { width, height } = item.answer ?? { width: 4, height: 3 };
  find("frame").style.aspectRatio = `${width} / ${height}`;
  find("frame").style.setProperty("--ratio", width / height);
  find("boxes").setAttribute("viewBox", `0 0 ${width} ${height}`);
  find("boxes").replaceChildren(
    ...(item.answer?.regions ?? []).map(({ x, y, width: w, height: h }) => shape("rect", { x, y, width: w, height: h })),
  );
  redraw();
}

// What the controls below the image say.
export function redraw() {
  find("heat").style.opacity = find("opacity").value / 100;
  find("boxes").classList.toggle("off", !find("outline").checked);
}

export function sentence({ verdict, p_value: p }) {
  return `${meanings[verdict]}: good parts score this high in at most ${percent(p)} of cases.`;
}

function judged(answer) {
  const { verdict, score, p_value: p, regions } = answer;
  const head = element("div", { class: "head " + verdict.toLowerCase() }, symbol(verdict));
  head.append(element("div", {}, element("b", {}, verdict), element("p", {}, sentence(answer))));
  const facts = element("dl", { class: "facts" });
  for (const [name, value] of [["Score", number(score)], ["p-value", number(p)], ["Regions", String(regions.length)]]) {
    facts.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
  return [head, facts, ...(regions.length ? [table(regions)] : [])];
}

function table(regions) {
  const shown = regions.slice(0, 5);
  const rows = shown.map(({ x, y, width, height, peak, share }, index) => {
    const cells = [`${x}, ${y}`, `${width} × ${height}`, number(peak), percent(share)];
    return element("tr", {}, element("th", { scope: "row" }, String(index + 1)), ...cells.map((cell) => element("td", { class: "number" }, cell)));
  });
  const heads = ["", "Place", "Size, px", "Peak", "Of heat"].map((head) => element("th", { scope: "col", class: "number" }, head));
  const left = regions.length - shown.length;
  const made = element("table", { class: "regions" }, element("caption", { class: "hear" }, "Regions, strongest first"));
  made.append(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  return element("div", {}, made, ...(left ? [element("p", { class: "soft small" }, `and ${plural(left, "weaker one")}`)] : []));
}

function unjudged(item) {
  const text = item.problem ?? "Waiting …";
  const head = element("div", { class: "head unjudged" }, symbol(null));
  head.append(element("div", {}, element("b", {}, item.problem ? "Not judged" : "Judging"), element("p", {}, text)));
  return [head];
}
