// The images of this session: kept in the page, listed, and written as CSV.

import { element, find, number, symbol } from "./elements.js";

const PAGE = 100;
let drawn = PAGE;

export const items = []; // oldest first

export function add(name, file) {
  const item = { name, file, url: URL.createObjectURL(file), heat: null, answer: null, problem: null, row: null, stale: false, time: null };
  items.push(item);
  return item;
}

export function settle(item, answer) {
  const bytes = Uint8Array.from(atob(answer.heatmap.png), (character) => character.charCodeAt(0));
  item.heat = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
  item.answer = { ...answer, heatmap: null };
  item.time = new Date();
  item.stale = true;
}

export function fail(item, problem) {
  item.problem = problem;
  item.time = new Date();
  item.stale = true;
}

// As it was before it was judged.
export function reset(item) {
  if (item.heat) URL.revokeObjectURL(item.heat);
  Object.assign(item, { heat: null, answer: null, problem: null, time: null, stale: true });
}

export function clear() {
  for (const item of items.splice(0)) {
    URL.revokeObjectURL(item.url);
    if (item.heat) URL.revokeObjectURL(item.heat);
  }
  drawn = PAGE;
}

export const answers = () => items.filter((item) => item.answer).map((item) => item.answer);

// The answer that came last: it knows how the images of late look.
export function latest() {
  const judged = items.filter((item) => item.answer);
  return judged.reduce((last, item) => (last && last.time > item.time ? last : item), null)?.answer;
}

export function list(current, open) {
  const newest = [...items].reverse().slice(0, drawn);
  const focused = newest.find((item) => item.row?.contains(document.activeElement));
  for (const item of newest) {
    if (!item.row || item.stale) item.row = row(item, open);
    item.stale = false;
    if (item === current) item.row.setAttribute("aria-current", "true");
    else item.row.removeAttribute("aria-current");
  }
  find("rows").replaceChildren(...newest.map((item) => item.row));
  focused?.row.querySelector("button").focus({ preventScroll: true });
  find("list").hidden = !items.length;
  find("none").hidden = items.length > 0;
  find("more").hidden = items.length <= drawn;
  find("csv").disabled = find("clear").disabled = !items.length;
  const counts = { OK: 0, REVIEW: 0, NG: 0 };
  for (const { verdict } of answers()) counts[verdict] += 1;
  const failed = items.filter((item) => item.problem).length;
  const waiting = items.filter((item) => !item.problem && !item.answer).length;
  const told = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict}`);
  if (failed) told.push(`${failed} not judged`);
  if (waiting) told.push(`${waiting} waiting`);
  find("tally").textContent = items.length ? told.join(", ") : "";
}

export function more() {
  drawn += PAGE;
}

function row(item, open) {
  const button = element("button", { type: "button", class: "open" });
  button.append(element("img", { src: item.url, alt: "", loading: "lazy", decoding: "async" }), element("span", {}, item.name));
  button.addEventListener("click", () => open(item));
  const { verdict, score, p_value: p, regions } = item.answer ?? {};
  const state = verdict ?? (item.problem ? "not judged" : "waiting");
  const judgement = element("td", {}, symbol(verdict), element("span", { class: "word" }, state));
  const figures = item.answer ? [number(score), number(p), String(regions.length)] : ["", "", ""];
  const made = element("tr", {}, element("th", { scope: "row" }, button), judgement);
  made.append(...figures.map((text) => element("td", { class: "number" }, text)));
  return made;
}

// A name that starts like a formula must not become one in a spreadsheet.
function field(value) {
  const text = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? "'" + value : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv() {
  const head = ["file", "model", "verdict", "score", "p_value", "regions", "width", "height", "time", "problem"];
  const rows = items.map(({ name, answer, problem, time }) => {
    const { model, verdict, score, p_value: p, regions, width, height } = answer ?? {};
    return [name, model, verdict, score, p, regions?.length, width, height, time?.toISOString(), problem].map((value) => field(String(value ?? "")));
  });
  return [head, ...rows].map((cells) => cells.join(",") + "\r\n").join("");
}
