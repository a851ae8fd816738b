"use strict";

// What pages with a gallery share: cards that are drawn as the end of the page comes near, and a large view of one.

const controls = document.getElementById("controls");
const viewer = document.getElementById("viewer");
const symbols = { OK: "✓", REVIEW: "?", NG: "✕" };

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

function options(select, values, prefix) {
  for (const value of values) {
    const made = select.appendChild(element("option", "", value || "no type"));
    made.value = prefix + value;
  }
}

// `card` makes the button of an entry, `enlarge` fills the large view with one; what is returned shows other entries.
function galleryIn(place, total, card, enlarge) {
  const page = 24;
  let chosen = []; // entries that pass the filters, in order
  let drawn = 0; // how many of them are in the page
  let open = 0; // position in `chosen` of the entry in the large view

  function more() {
    const batch = document.createDocumentFragment();
    for (const end = Math.min(drawn + page, chosen.length); drawn < end; drawn++) {
      const made = batch.appendChild(card(chosen[drawn]));
      made.type = "button";
      made.dataset.position = drawn;
    }
    place.append(batch);
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

  function show(position) {
    if (position < 0 || position >= chosen.length) return;
    open = position;
    enlarge(chosen[open]);
    if (!viewer.open) viewer.showModal();
  }

  place.addEventListener("click", (event) => {
    const made = event.target.closest("[data-position]");
    if (made) show(Number(made.dataset.position));
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
  controls.addEventListener("submit", (event) => event.preventDefault());

  return (entries) => {
    chosen = entries;
    document.getElementById("shown").textContent = chosen.length.toLocaleString("en") + " of " + total.toLocaleString("en") + " images";
    place.replaceChildren();
    drawn = 0;
    more();
    watch();
  };
}
