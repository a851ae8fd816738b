// What another threshold would do: to the good parts of the calibration and to the images of this session.

import { element, find, number, percent, plural, shape } from "./elements.js";

const STEPS = 1000;
const WIDTH = 360;
const HEIGHT = 118;
const INSET = 10; // half of the slider's thumb, so that it stands right below the line
const FLOOR = 86; // where the bars stand
const BINS = 34;

let model = null;
let scores = []; // of the session, with their verdicts
let chosen = 0; // the threshold
let low = 0; // both ends of the axis, logarithmic: defects score many times what good parts do
let high = 1;

export function use(detail) {
  model = detail;
  chosen = detail.reject_above;
  update([]);
}

// The session's answers changed.
export function update(answers) {
  scores = answers;
  const all = [...model.calibration_scores, ...answers.map(({ score }) => score), chosen, model.reject_above].filter((s) => s > 0);
  low = Math.min(...all) / 1.15;
  high = Math.max(...all) * 1.15;
  draw();
}

export function reset() {
  chosen = model.reject_above;
  draw();
}

export function move(position) {
  const value = low * (high / low) ** (position / STEPS);
  // The model's own threshold lies between two positions; near it the slider means it.
  chosen = Math.abs(place(value) - place(model.reject_above)) < 1 / STEPS ? model.reject_above : value;
  draw();
}

// In [0, 1] along the axis.
const place = (score) => Math.min(Math.max(Math.log(Math.max(score, low) / low) / Math.log(high / low), 0), 1);
const across = (score) => INSET + place(score) * (WIDTH - 2 * INSET);

// As the server compares: scores closer than this share of themselves count as equal.
const rejected = (score) => score * (1 - 1e-4) > chosen;

function draw() {
  const plot = find("plot");
  plot.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  plot.replaceChildren(...bars(), ...marks(), ...axis());
  const slider = find("threshold");
  slider.value = Math.round(STEPS * place(chosen));
  const good = model.calibration_scores;
  const lost = good.filter(rejected).length;
  const caught = scores.filter(({ score }) => rejected(score)).length;
  const parts = [`${lost} of ${plural(good.length, "good part")} (${percent(lost / good.length)})`];
  if (scores.length) parts.push(`${caught} of ${plural(scores.length, "image")} of this session`);
  find("effect").replaceChildren("Above ", element("b", {}, number(chosen)), ` it rejects ${parts.join(" and ")}.`);
  slider.setAttribute("aria-valuetext", `${number(chosen)}, rejects ${parts.join(" and ")}`);
  find("reset").hidden = chosen === model.reject_above;
}

function bars() {
  const counts = new Array(BINS).fill(0);
  const over = new Array(BINS).fill(0);
  for (const score of model.calibration_scores) {
    const bin = Math.min(Math.floor(place(score) * BINS), BINS - 1);
    counts[bin] += 1;
    over[bin] += rejected(score);
  }
  const step = (WIDTH - 2 * INSET) / BINS;
  const scale = (FLOOR - 24) / Math.max(...counts);
  const bar = (bin, from, count, kind) =>
    shape("rect", { class: kind, x: INSET + bin * step + 0.75, y: FLOOR - (from + count) * scale, width: step - 1.5, height: count * scale, rx: 1 });
  return counts.flatMap((count, bin) => [
    ...(count > over[bin] ? [bar(bin, 0, count - over[bin], "pass")] : []),
    ...(over[bin] ? [bar(bin, count - over[bin], over[bin], "fail")] : []),
  ]);
}

function marks() {
  // Marks that would cover each other are drawn once: a session may hold thousands of images.
  const seen = new Map(scores.map(({ score, verdict }) => [verdict + Math.round(across(score)), { x: across(score), verdict }]));
  const made = [...seen.values()].map(({ x, verdict }) =>
    shape("line", { class: "mark " + verdict.toLowerCase(), x1: x, x2: x, y1: FLOOR + 5, y2: FLOOR + 14 }));
  const x = across(chosen);
  made.push(shape("line", { class: "cut", x1: x, x2: x, y1: 16, y2: HEIGHT }));
  const label = shape("text", { class: "cut", x, y: 11, "text-anchor": place(chosen) > 0.5 ? "end" : "start" });
  label.textContent = chosen === model.reject_above ? "reject above" : "would reject above";
  return [...made, label];
}

function axis() {
  const made = [shape("line", { class: "axis", x1: INSET, x2: WIDTH - INSET, y1: FLOOR + 0.5, y2: FLOOR + 0.5 })];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  }
  let last = -100;
  for (const tick of ticks.filter((value) => value > low && value < high)) {
    const x = across(tick);
    if (x - last < 34 || x < INSET + 6 || x > WIDTH - INSET - 6) continue;
    last = x;
    const text = shape("text", { class: "tick", x, y: HEIGHT - 4, "text-anchor": "middle" });
    text.textContent = String(+tick.toPrecision(1));
    made.push(text);
  }
  return made;
}
