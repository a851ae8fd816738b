// The page: images come in, the server judges them, one is shown and all are listed.

import * as api from "./api.js";
import { element, find, notice, percent, plural, say } from "./elements.js";
import * as history from "./history.js";
import * as intake from "./intake.js";
import * as threshold from "./threshold.js";
import * as viewer from "./viewer.js";

const AT_ONCE = 3;
const waiting = []; // items to be sent
let sending = 0;
let batch = { done: 0, all: 0 }; // since the last pause
let stopping = new AbortController();
let current = null; // the item shown
let model = null;

function refresh() {
  viewer.show(current);
  history.list(current, open);
  threshold.update(history.answers());
  const at = history.items.indexOf(current);
  find("previous").disabled = at <= 0;
  find("next").disabled = at < 0 || at >= history.items.length - 1;
  find("progress").hidden = !batch.all;
  find("bar").max = batch.all || 1;
  find("bar").value = batch.done;
  const { warning } = history.latest() ?? {};
  find("caution").hidden = !warning;
  if (warning !== find("caution").textContent) find("caution").textContent = warning ?? "";
  find("count").textContent = `${batch.done} of ${plural(batch.all, "image")}`;
}

function open(item) {
  current = item;
  refresh();
  const { top } = find("work").getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) find("work").scrollIntoView();
}

function step(by) {
  const item = history.items[history.items.indexOf(current) + by];
  if (current && item) open(item);
}

function take(images) {
  const items = images.map(({ file, name }) => history.add(name, file));
  current = items[0];
  judge(items);
}

function judge(items) {
  waiting.push(...items);
  batch.all += items.length;
  refresh();
  while (sending < AT_ONCE && waiting.length) send();
}

async function send() {
  sending += 1;
  while (waiting.length) {
    const item = waiting.shift();
    const asked = model;
    try {
      history.settle(item, await api.predict(asked, item.file, stopping.signal));
    } catch (error) {
      history.fail(item, error.name === "AbortError" ? "Stopped before the server answered." : error.message);
    }
    if (asked !== model && history.items.includes(item)) {
      history.reset(item); // another model was chosen meanwhile
      waiting.push(item);
      continue;
    }
    batch.done += 1;
    const all = batch.done === batch.all ? batch.all : 0;
    if (all) batch = { done: 0, all: 0 };
    refresh();
    if (all === 1) say(item.answer ? viewer.sentence(item.answer) : item.problem);
    else if (all) say(`${plural(all, "image")}: ${find("tally").textContent}`);
  }
  sending -= 1;
}

function stop() {
  stopping.abort();
  stopping = new AbortController();
  for (const item of waiting.splice(0)) {
    history.fail(item, "Stopped before it was sent.");
    batch.done += 1;
  }
  if (batch.done >= batch.all) batch = { done: 0, all: 0 };
  refresh();
}

function clear() {
  stop();
  history.clear();
  current = null;
  refresh();
}

function download() {
  const url = URL.createObjectURL(new Blob(["\ufeff" + history.csv()], { type: "text/csv" }));
  const link = element("a", { href: url, download: `fcdd-${model}-${new Date().toISOString().slice(0, 10)}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function use(name) {
  const detail = await api.model(name);
  model = name;
  document.title = `${name} · fcdd`;
  find("title").textContent = name;
  find("lead").textContent = detail.guarantee
    ? `Calibrated on ${plural(detail.calibration_images, "good part")}; on average at most ${percent(detail.reject_level)} of good parts are rejected.`
    : `Calibrated on ${plural(detail.calibration_images, "good part")}; the reject threshold was set from known defects.`;
  threshold.use(detail);
  // Images that another model has judged are judged again; those on their way notice it when their answer comes.
  const others = history.items.filter((item) => item.answer || item.problem);
  others.forEach(history.reset);
  judge(others);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, dialog[open]")) return;
  const toggle = () => {
    find("opacity").value = Number(find("opacity").value) ? 0 : 75;
    viewer.redraw();
  };
  const actions = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), h: toggle, r: () => find("outline").click() };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function wire() {
  const on = (id, kind, action) => find(id).addEventListener(kind, action);
  on("previous", "click", () => step(-1));
  on("next", "click", () => step(1));
  on("opacity", "input", viewer.redraw);
  on("outline", "change", viewer.redraw);
  on("threshold", "input", () => threshold.move(Number(find("threshold").value)));
  on("reset", "click", threshold.reset);
  on("csv", "click", download);
  on("clear", "click", clear);
  on("stop", "click", stop);
  on("more", "click", () => {
    history.more();
    refresh();
  });
  on("model", "change", () => use(find("model").value).catch((error) => notice(error.message)));
  addEventListener("keydown", keys);
}

async function start() {
  const offered = await api.models();
  find("model").replaceChildren(...offered.map(({ name }) => element("option", { value: name }, name)));
  find("models").hidden = offered.length < 2;
  await use(offered[0].name);
  wire();
  intake.watch(take);
  document.body.dataset.ready = "yes";
}

start().catch((error) => notice(error.message));
