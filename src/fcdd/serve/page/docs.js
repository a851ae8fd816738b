// The API's operations, from the server's own schema.

import { element, find } from "./elements.js";

const schema = await (await fetch("openapi.json")).json();
const base = new URL(".", location.href).href.replace(/\/$/, "");

function example(path, method, operation) {
  const address = base + path.replace("{name}", "MODEL");
  const token = operation.security ? " -H 'Authorization: Bearer TOKEN'" : "";
  const form = Object.keys(operation.requestBody?.content ?? {})[0] === "multipart/form-data";
  return `curl${method === "post" && form ? " -F image=@part.png" : ""}${token} '${address}'`;
}

const pointed = (part) => part?.$ref?.split("/").pop();

function section(path, method, operation) {
  const made = element("section", { class: "panel" });
  made.append(element("h2", {}, element("code", {}, `${method.toUpperCase()} ${path}`)), element("p", {}, (operation.description ?? operation.summary).replaceAll("`", "")));
  const facts = element("dl", { class: "facts-list" });
  const fact = (name, value) => facts.append(element("dt", {}, name), element("dd", {}, value));
  for (const { name, schema: kind } of operation.parameters?.filter(({ in: where }) => where === "query") ?? []) {
    const values = schema.components.schemas[pointed(kind)]?.enum ?? [];
    fact(`?${name}=`, values.join(", "));
  }
  if (operation.requestBody) fact("Body", Object.keys(operation.requestBody.content).join(", "));
  const answer = pointed(operation.responses["200"]?.content?.["application/json"]?.schema);
  if (answer) fact("Answer", Object.keys(schema.components.schemas[answer].properties).join(", "));
  const refusals = Object.keys(operation.responses).filter((status) => /^[45]/.test(status));
  if (refusals.length) fact("Refusals", refusals.join(", "));
  made.append(facts, element("pre", { tabindex: "0" }, element("code", {}, example(path, method, operation))));
  return made;
}

for (const [path, operations] of Object.entries(schema.paths)) {
  for (const [method, operation] of Object.entries(operations)) find("operations").append(section(path, method, operation));
}
