// The page: takes a dropped file, has a worker examine it, and shows the answers. Nothing leaves the machine.
import { showModel } from "./app.js";
import { element, size } from "./dom.js";
import { unpackLzma } from "./lzma.js";
import { unitsOf } from "./model.js";

/** Returns a part that `web/build` puts into the page: the compressed WebAssembly, the compressed texts of the rules, or the worker. */
const part = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id)).textContent;
const main = /** @type {any} */ (document.querySelector("main"));

/** @type {Promise<{module: WebAssembly.Module, rules: any}> | null} */
let parts = null;
/** @type {Worker | null} */
let worker = null;
/** @type {Map<number, {done: (value: any) => void, failed: (error: Error) => void, progress?: (done: number) => void}>} */
const waiting = new Map();
let next = 0;

/** @param {string} base64 */
function unpacked(base64) {
  return unpackLzma(Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0)));
}

async function unpackParts() {
  // Compiled once, for the workers of all files.
  return { module: await WebAssembly.compile(/** @type {Uint8Array<ArrayBuffer>} */ (unpacked(part("wasm")))), rules: JSON.parse(new TextDecoder().decode(unpacked(part("rules")))) };
}

/** Starts a new worker. The memory of the last file is freed together with its worker. */
async function start() {
  parts ??= unpackParts();
  worker?.terminate();
  for (const { failed } of waiting.values()) failed(new Error("stopped"));
  waiting.clear();
  const address = URL.createObjectURL(new Blob([part("worker")], { type: "text/javascript" }));
  const started = new Worker(address);
  worker = started;
  started.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    if (data.done !== undefined) { asked?.progress?.(data.done); return; }
    waiting.delete(data.id);
    if (data.failed !== undefined) asked?.failed(new Error(data.failed));
    else asked?.done(data.reply);
  };
  // The WebAssembly has trapped, or memory is exhausted.
  started.onerror = (event) => { for (const { failed } of waiting.values()) failed(new Error(event.message || "the worker failed")); };
  await send({ start: (await parts).module });
}

/** @param {any} message @param {(done: number) => void} [progress] @returns {Promise<any>} */
function send(message, progress) {
  next += 1;
  const id = next;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed, progress });
    worker?.postMessage({ ...message, id });
  });
}

/** Finds two files that belong together: both sides of a connection, or a device module and its side file. @param {File[]} files */
function paired(files) {
  const client = files.find((file) => /\.(c2s|client)\.bin$/.test(file.name));
  const server = files.find((file) => /\.(s2c|server)\.bin$/.test(file.name));
  if (client && server) return { file: client, side: server, isConnection: true };
  const side = files.length > 1 ? files.find((file) => /\.tvm_meta\.json$/.test(file.name)) : undefined;
  return { file: files.find((file) => file !== side) ?? files[0], side, isConnection: false };
}

/** @param {File[]} files */
async function openFiles(files) {
  const { file, side, isConnection } = paired(files);
  const began = performance.now();
  // The address still names a byte of the previous file.
  if (main.querySelector("[role=tablist]")) history.replaceState(null, "", "#");
  const bar = element("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": "reading" });
  const text = element("p", {}, `Reading ${file.name}, ${size(file.size)}`);
  main.replaceChildren(element("div", { class: "drop", role: "status" }, text, bar,
    element("p", {}, element("button", { type: "button", onclick: () => { stopped = true; worker?.terminate(); worker = null; welcome(""); } }, "Stop"))));
  let stopped = false;
  try {
    await start();
    await send({ file, side, name: file.name }, (done) => { bar.value = done; });
    bar.removeAttribute("value");
    const model = await examined(file, side, isConnection, (step) => { text.textContent = step; });
    if (stopped) return;
    await showModel(main, model);
    document.title = `${file.name}: tvmspec`;
    main.dataset.milliseconds = String(Math.round(performance.now() - began));
    main.querySelector("h1")?.focus({ preventScroll: true });
  } catch (error) {
    if (!stopped) welcome(`${file.name}: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {File} file @param {File | undefined} side @param {boolean} isConnection @param {(step: string) => void} step */
async function examined(file, side, isConnection, step) {
  const ask = (/** @type {string} */ command) => send({ command });
  const { rules } = /** @type {any} */ (await parts);
  const releases = (await ask("releases")).value;
  /** @type {Map<number, Promise<Uint8Array>>} */
  const unpackedUnits = new Map();
  /** @type {import("./model.js").Model} */
  const model = { name: file.name, size: file.size, inspect: null, verify: null, explain: null, units: [], refused: null, rules, releases, read };
  if (isConnection) {
    model.connection = (await ask("rpc-decode")).value;
    model.inspect = { form: "rpc" };
    model.units = connectionUnits(model.connection, file, /** @type {File} */ (side));
    model.read = async (unit, start, end) => new Uint8Array(await (unit === 0 ? file : /** @type {File} */ (side)).slice(start, end).arrayBuffer());
    return model;
  }
  /** @param {number} unit @param {number} start @param {number} end */
  async function read(unit, start, end) {
    const { offset } = model.units[unit];
    if (typeof offset === "number") return new Uint8Array(await file.slice(offset + start, offset + end).arrayBuffer());
    // The file does not contain these bytes unchanged: they are unpacked from an archive, or joined from two files.
    if (!unpackedUnits.has(unit)) unpackedUnits.set(unit, send({ command: `unit ${unit}`, raw: true }));
    return /** @type {Uint8Array} */ (await unpackedUnits.get(unit)).slice(start, end);
  }
  step("Judging it by the rules");
  const verify = await ask("verify");
  [model.verify, model.refused] = [verify.value, verify.message];
  step("Listing its content");
  const inspect = await ask("inspect --code");
  model.inspect = inspect.value;
  model.refused = model.refused && (inspect.message ?? null);
  step("Comparing it with every release");
  model.explain = (await ask("explain")).value;
  step("Finding the field of every byte");
  model.units = unitsOf(file.name, file.size, (await ask("units")).value, (await ask("dump")).value, model.verify);
  return model;
}

/** @param {any} connection @param {File} client @param {File} server */
function connectionUnits(connection, client, server) {
  return [["client", client, connection.client], ["server", server, connection.server]].map(([speaker, file, written]) => ({
    name: file.name, format: `bytes of the ${speaker}`, offset: 0, bytes: file.size, findings: [], broken: written.broken ?? null,
    fields: (written.fields ?? []).map((/** @type {any[]} */ [start, end, field, rule, value]) => ({ start, end, field, rule, value: String(value) })),
  }));
}

/** Shows the place to drop a file. @param {string} message an error, or empty */
function welcome(message) {
  document.title = "tvmspec: look into a TVM file";
  const input = element("input", { type: "file", multiple: true, hidden: true, id: "file", onchange: () => { if (input.files.length > 0) void openFiles([...input.files]); } });
  const drop = element("div", { class: "drop" },
    element("h1", {}, "Drop a file that TVM wrote"),
    element("p", {}, "or ", element("button", { type: "button", class: "primary", onclick: () => input.click() }, "Choose a file"), input),
    element("p", { class: "faint" }, "A library (.so, .dylib, .dll, .o, .tar, .wasm), a library binary, parameters, a graph, a VM executable, saved objects; of an RPC capture or a device module both files at once."),
    element("p", { class: "faint" }, "The file stays on this machine: the page makes no request, and works offline."));
  const examples = [...document.querySelectorAll("script[data-example]")].map((/** @type {any} */ each) => element("button", {
    type: "button", onclick: () => void openFiles([new File([Uint8Array.from(atob(each.textContent.trim()), (letter) => letter.charCodeAt(0))], each.dataset.example)]),
  }, each.dataset.title));
  main.replaceChildren(...(message ? [element("div", { class: "note bad", role: "alert" }, message)] : []), drop,
    element("p", { class: "row" }, "Examples: ", ...examples),
    element("h2", {}, "What it shows"),
    element("ul", {}, ["which rule of the specification a file breaks, and at which byte", "which releases of TVM load it, from 0.2 to 0.27, and why another does not", "every byte with its field and its rule", "modules with their source code, a model's graph, VM code, and tensors with a histogram"].map((each) => element("li", {}, each))));
}

for (const kind of ["dragover", "dragenter"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); document.querySelector(".drop")?.classList.add("over"); });
}
document.addEventListener("dragleave", () => document.querySelector(".drop")?.classList.remove("over"));
document.addEventListener("drop", (/** @type {any} */ event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length > 0) void openFiles([...event.dataTransfer.files]);
});
document.getElementById("another")?.addEventListener("click", () => { worker?.terminate(); worker = null; history.replaceState(null, "", "#"); welcome(""); });
/** @type {any} */ (globalThis).ask = (/** @type {string} */ command) => send({ command });
welcome("");
// Before a file is chosen, and after the page is shown.
setTimeout(() => { parts ??= unpackParts(); }, 50);
