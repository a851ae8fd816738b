const { models, items } = JSON.parse(document.getElementById("items").textContent);
const pairs = document.getElementById("pairs");

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

function card(item) {
  const made = element("button", "pair");
  const title = made.appendChild(element("span", "line1"));
  title.append(path(item.name), element("em", "", item.kind));
  const strip = made.appendChild(element("span", "views"));
  strip.append(...views(item, false));
  return made;
}

function choose() {
  const { which, kind } = controls.elements;
  const chosen = items.filter((item) => (!which.value || item.changed) && (!kind.value || "=" + item.kind === kind.value));
  chosen.sort((a, b) => b.changed - a.changed || b.gap - a.gap);
  document.getElementById("none").hidden = items.some((item) => item.changed);
  draw(chosen);
}

function enlarge(item) {
  viewer.querySelector("h3").textContent = item.name;
  viewer.querySelector("header p").textContent = [item.kind, item.changed ? "the verdicts differ" : "all agree"].filter(Boolean).join("  ·  ");
  viewer.querySelector(".views").replaceChildren(...views(item, true));
}

options(controls.elements.kind, [...new Set(items.map((item) => item.kind))].sort(), "=");
controls.elements.kind.parentElement.hidden = controls.elements.kind.options.length < 3; // a choice of one is none
if (!items.some((item) => item.changed)) controls.elements.which.value = "";
document.body.style.setProperty("--models", models.length);
document.body.style.setProperty("--all", models.length + 1);

const draw = galleryIn(pairs, items.length, card, enlarge);
controls.addEventListener("change", choose);
choose();
