// Small helpers: find, make and write things on the page.

export const find = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function number(value) {
  if (value === 0) return "0";
  if (Math.abs(value) < 0.001 || value >= 1e5) return value.toExponential(2);
  return value < 1000 ? value.toPrecision(3) : String(Math.round(value));
}

export const percent = (share) => +(100 * share).toPrecision(2) + "\u00a0%";

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export const symbols = { OK: "✓", REVIEW: "?", NG: "✕" };

export function symbol(verdict) {
  const kind = verdict ? verdict.toLowerCase() : "unjudged";
  return element("span", { class: "symbol " + kind, "aria-hidden": "true" }, symbols[verdict] ?? "!");
}

// For screen readers: a polite note of what has just happened.
export function say(text) {
  find("said").textContent = text;
}

export function notice(text) {
  find("notice").textContent = text;
  find("notice").hidden = !text;
}
