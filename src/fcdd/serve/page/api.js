// The server, as this page uses it. A full queue is waited for; a missing token is asked for.

import { find } from "./elements.js";

const TOKEN = "fcdd-token";
const TRIES = 6;
let asked = null;

export class Refused extends Error {}

const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// One dialog, however many requests wait for it.
function askToken() {
  asked ??= new Promise((resolve) => {
    const door = find("door");
    door.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN, find("token").value);
      find("token").value = "";
      asked = null;
      resolve();
    }, { once: true });
    door.showModal();
  });
  return asked;
}

async function ask(path, options = {}) {
  for (let tries = 1; ; tries += 1) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: "Bearer " + token } : {}) };
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused("The server does not answer. Is it still running?");
    }
    if (response.ok) return response.json();
    if (response.status === 401) {
      await askToken();
    } else if (response.status === 503 && tries < TRIES) {
      await wait(Number(response.headers.get("Retry-After")) || 1);
    } else {
      const problem = await response.json().catch(() => ({ detail: response.statusText }));
      throw new Refused(problem.detail);
    }
  }
}

export const models = async () => (await ask("v1/models")).models;

export const model = (name) => ask("v1/models/" + encodeURIComponent(name));

export function predict(name, file, signal) {
  const kind = file.type.startsWith("image/") ? file.type : "application/octet-stream";
  const path = `v1/models/${encodeURIComponent(name)}/predict?heatmap=png`;
  return ask(path, { method: "POST", body: file, headers: { "Content-Type": kind }, signal });
}
