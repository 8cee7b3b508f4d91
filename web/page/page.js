// The page: takes a dropped file, has a worker examine it, and shows the answers. Nothing leaves the machine.
import { headOf, showModel } from "./app.js";
import { element, hex, size } from "./dom.js";
import { unpackLzma } from "./lzma.js";
import { unitsOf, withWholeFile } from "./model.js";
import { openSearch } from "./search.js";

/** Returns a part that `web/build` puts into the page: the compressed rules and WebAssembly, or the worker. */
const part = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id)).textContent;
const main = /** @type {any} */ (document.querySelector("main"));

/** @type {Promise<{module: WebAssembly.Module, rules: any, results: any}> | null} */
let parts = null;
/** The number of the newest opening. An older one that still runs must not change the page. */
let newest = 0;
/** The reader of the opened file. @type {ReturnType<typeof startReader> | null} */
let reader = null;
/** Ends the listeners of the shown file. */
let opening = new AbortController();
/** The files that were opened last, for the buttons Back and Forward. @type {{files: File[], first: File} | null} */
let last = null;
/** Shows the place of the address in the shown file. @type {(() => void) | null} */
let showPlace = null;

/** Unpacks the parts once, for the readers of all files. */
function unpackedParts() {
  parts ??= (async () => {
    const bytes = /** @type {Uint8Array<ArrayBuffer>} */ (unpackLzma(Uint8Array.from(atob(part("packed").trim()), (letter) => letter.charCodeAt(0))));
    const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const { rules, results } = JSON.parse(new TextDecoder().decode(bytes.subarray(4, end)));
    return { rules, results, module: await WebAssembly.compile(bytes.subarray(end)) };
  })();
  return parts;
}

/** Starts a worker for one file. `stop` frees its memory, which holds the file. */
function startReader() {
  /** @type {Map<number, {done: (value: any) => void, failed: (error: Error) => void, progress?: (done: number) => void}>} */
  const waiting = new Map();
  let next = 0;
  const address = URL.createObjectURL(new Blob([part("worker")], { type: "text/javascript" }));
  const worker = new Worker(address);
  worker.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    if (data.done !== undefined) { asked?.progress?.(data.done); return; }
    waiting.delete(data.id);
    if (data.failed !== undefined) asked?.failed(new Error(data.failed));
    else asked?.done(data.reply);
  };
  worker.onerror = (event) => failAll(event.message || "the worker failed");
  /** @param {string} message */
  function failAll(message) {
    for (const { failed } of waiting.values()) failed(new Error(message));
    waiting.clear();
  }
  return {
    /** @param {any} message @param {(done: number) => void} [progress] @returns {Promise<any>} */
    send(message, progress) {
      next += 1;
      const id = next;
      return new Promise((done, failed) => {
        waiting.set(id, { done, failed, progress });
        worker.postMessage({ ...message, id });
      });
    },
    stop() {
      worker.terminate();
      URL.revokeObjectURL(address);
      failAll("stopped");
    },
  };
}

/** The sides of a connection, by the end of the file name, with the other side. */
const OTHER_SIDE = /** @type {Record<string, string>} */ ({ client: "server", server: "client", c2s: "s2c", s2c: "c2s" });
const SIDE = /(?:^|\.)(c2s|s2c|client|server)\.bin$/;

/**
 * Finds the file that belongs to `first`: the other side of a connection, or the side file of a device module. The command line finds
 * them by the same names.
 * @param {File[]} files @param {File} first
 */
function pairOf(files, first) {
  const named = (/** @type {string} */ name) => files.find((file) => file.name === name);
  const speaker = SIDE.exec(first.name)?.[1] ?? "";
  const other = speaker && named(first.name.replace(`${speaker}.bin`, `${OTHER_SIDE[speaker]}.bin`));
  if (other) {
    const [file, side] = /^c/.test(speaker) ? [first, other] : [other, first];
    return { file, side, isConnection: true };
  }
  const stem = (/** @type {File} */ file) => file.name.replace(/(\.tvm_meta\.json|\.[^.]*)$/, "");
  const isMeta = (/** @type {File} */ file) => file.name.endsWith(".tvm_meta.json");
  const code = isMeta(first) ? files.find((file) => !isMeta(file) && stem(file) === stem(first)) : first;
  return { file: code ?? first, side: code && named(`${stem(code)}.tvm_meta.json`), isConnection: false };
}

/** Chooses the file to show. An index of a tensor cache is more than its shards. @param {File[]} files */
function firstOf(files) {
  return files.find((file) => /(tensor|ndarray)-cache(-b16)?\.json$/.test(file.name)) ?? files[0];
}

/** Ends what runs or is shown, and returns a test whether the caller is still the newest opening. */
function beginOpening() {
  newest += 1;
  const run = newest;
  reader?.stop();
  reader = null;
  opening.abort();
  opening = new AbortController();
  showPlace = null;
  return () => run === newest;
}

/** @param {string} [hash] */
function hashOf(hash = location.hash) {
  return new URLSearchParams(hash.slice(1));
}

/** Opens `first`, with the file that belongs to it. The others can be chosen on the page. @param {File[]} files */
async function openFiles(files, first = firstOf(files)) {
  const isNewest = beginOpening();
  const { file, side, isConnection } = pairOf(files, first);
  const rest = files.filter((each) => each !== file && each !== side);
  const began = performance.now();
  // The address may name a place in this file. A place in another file has no meaning.
  const address = hashOf();
  if (address.get("file") !== file.name) {
    const isPlace = !address.has("file") && address.has("offset") && last === null;
    const next = isPlace ? address : new URLSearchParams();
    next.set("file", file.name);
    pushAddress(`#${next}`);
  }
  last = { files, first: file };
  const bar = element("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": "reading" });
  const text = element("p", {}, `Reading ${file.name}, ${size(file.size)}`);
  const progress = element("div", { class: "drop", role: "status" }, text, bar,
    element("p", {}, element("button", { type: "button", onclick: () => { beginOpening(); clearAddress(); showWelcome(""); } }, "Stop")));
  main.replaceChildren(progress);
  const started = startReader();
  reader = started;
  try {
    const { module } = await unpackedParts();
    if (!isNewest()) return;
    await started.send({ start: module });
    await started.send({ file, side, name: file.name }, (done) => { bar.value = done; });
    bar.removeAttribute("value");
    const model = await examined(started, file, side, isConnection, (model, step) => {
      text.textContent = step;
      // The verdict is shown before the other answers are known.
      if (isNewest() && model.verify) main.replaceChildren(...headOf(model), progress);
    });
    if (!isNewest()) return;
    showPlace = showModel(main, model, opening.signal);
    if (rest.length > 0) main.querySelector(".head").append(otherFiles(rest, files));
    document.title = `${file.name}: tvmspec`;
    main.dataset.milliseconds = String(Math.round(performance.now() - began));
    main.querySelector("h1")?.focus({ preventScroll: true });
  } catch (error) {
    if (!isNewest()) return;
    clearAddress();
    showWelcome(`${file.name}: ${error instanceof Error ? error.message : error}`);
  }
}

/** Creates buttons for files that were dropped together with the shown one. @param {File[]} rest @param {File[]} files */
function otherFiles(rest, files) {
  const most = 30;
  return element("p", { class: "row others" }, "Also chosen: ",
    rest.slice(0, most).map((file) => element("button", { type: "button", onclick: () => void openFiles(files, file) }, file.name)),
    rest.length > most ? `and ${rest.length - most} more` : null);
}

/** @param {string} address */
function pushAddress(address) {
  try { history.pushState(null, "", address); } catch { /* The browser limits how often a page may do so. */ }
}

/** Leaves a place that nothing shows. */
function clearAddress() {
  try { history.replaceState(null, "", "#"); } catch { /* As above. */ }
}

/**
 * Asks for all answers. `step` is called before each with the answers so far.
 * @param {ReturnType<typeof startReader>} from @param {File} file @param {File | undefined} side @param {boolean} isConnection
 * @param {(model: import("./model.js").Model, text: string) => void} step
 */
async function examined(from, file, side, isConnection, step) {
  const { rules, results } = await unpackedParts();
  /** @type {Map<number, Promise<Uint8Array>>} */
  const unpackedUnits = new Map();
  /** @type {import("./model.js").Model} */
  const model = { name: file.name, size: file.size, inspect: null, verify: null, explain: null, units: [], refused: null, rules, results, releases: [], read, failed: [] };
  /** A command that ends early must not take the other answers with it. @param {string} command */
  async function ask(command) {
    try {
      return await from.send({ command });
    } catch (error) {
      model.failed?.push(error instanceof Error ? error.message : String(error));
      return { value: null, message: null };
    }
  }
  /** @param {Blob} content @param {number} start @param {number} end */
  async function sliceOf(content, start, end) {
    try {
      return new Uint8Array(await content.slice(start, end).arrayBuffer());
    } catch {
      throw new Error("The file has changed on disk. Open it again.");
    }
  }
  /** @param {number} unit @param {number} start @param {number} end */
  async function read(unit, start, end) {
    if (isConnection) return sliceOf(unit === 0 ? file : /** @type {File} */ (side), start, end);
    const { offset } = model.units[unit];
    if (typeof offset === "number") return sliceOf(file, offset + start, offset + end);
    // The file does not contain these bytes unchanged: they are unpacked from an archive, or joined from two files.
    if (!unpackedUnits.has(unit)) unpackedUnits.set(unit, from.send({ command: `unit ${unit}`, raw: true }));
    return /** @type {Uint8Array} */ (await unpackedUnits.get(unit)).slice(start, end);
  }
  model.releases = (await ask("releases")).value ?? [];
  if (isConnection) {
    model.connection = (await ask("rpc-decode")).value;
    model.inspect = { form: "rpc" };
    model.units = connectionUnits(model.connection, file, /** @type {File} */ (side));
    return model;
  }
  step(model, "Checking the rules");
  const verify = await ask("verify");
  [model.verify, model.refused] = [verify.value, verify.message];
  step(model, "Listing the content");
  const inspect = await ask("inspect --code");
  model.inspect = inspect.value;
  model.refused = model.refused && (inspect.message ?? null);
  if (model.refused && SIDE.test(file.name)) model.refused += ". If it is one side of an RPC connection, choose the files of both sides together.";
  step(model, "Comparing with every release");
  model.explain = (await ask("explain")).value;
  step(model, "Finding the field of every byte");
  const [places, fields] = [(await ask("units")).value ?? [], (await ask("fields")).value];
  model.units = withWholeFile(file.name, file.size, unitsOf(places, fields), model.verify, fields);
  return model;
}

/** @param {any} connection @param {File} client @param {File} server */
function connectionUnits(connection, client, server) {
  return [["client", client, connection?.client], ["server", server, connection?.server]].map(([speaker, file, written]) => ({
    name: file.name, format: `bytes of the ${speaker}`, offset: 0, bytes: file.size, findings: [], broken: written?.broken ?? null,
    fields: (written?.fields ?? []).map((/** @type {any[]} */ [start, end, field, rule, value]) => ({ start, end, field, rule, value: String(value) })),
  }));
}

/** Shows the place to drop a file. @param {string} message an error, or empty */
function showWelcome(message) {
  document.title = "tvmspec: look into a TVM file";
  const input = element("input", { type: "file", multiple: true, hidden: true, id: "file", onchange: () => { if (input.files.length > 0) void openFiles([...input.files]); } });
  const address = hashOf();
  const [wanted, offset] = [address.get("file"), Number(address.get("offset") ?? NaN)];
  const place = wanted === null ? null : element("div", { class: "note" }, "The address names the file ", element("strong", {}, wanted),
    `. Choose it to see ${Number.isInteger(offset) ? `byte ${hex(offset)}` : "it"}.`);
  const drop = element("div", { class: "drop" },
    element("h1", {}, "Drop a file that TVM wrote"),
    element("p", {}, "or ", element("button", { type: "button", class: "primary", onclick: () => input.click() }, "Choose a file"), input),
    element("p", { class: "faint" }, "A library (.so, .dylib, .dll, .o, .tar, .wasm), a library binary, parameters, a graph, a VM executable, or saved objects. Choose both files of an RPC connection, or a device module with its side file, together."),
    element("p", { class: "faint" }, "The file stays on this machine: the page makes no request, and works offline."));
  const examples = [...document.querySelectorAll("script[data-example]")].map((/** @type {any} */ each) => element("button", {
    type: "button", onclick: () => void openFiles([new File([Uint8Array.from(atob(each.textContent.trim()), (letter) => letter.charCodeAt(0))], each.dataset.example)]),
  }, each.dataset.title));
  main.replaceChildren(...(message ? [element("div", { class: "note bad", role: "alert" }, message)] : []), ...(place ? [place] : []), drop,
    element("p", { class: "row" }, "Examples: ", ...examples),
    element("h2", {}, "What it shows"),
    element("ul", {}, ["the rules that a file breaks, and the byte of each", "the releases of TVM that load it, from 0.2 to 0.27, and why another does not", "every byte with its field and its rule", "modules with their source code, the graph of a model, VM code, and tensors with a histogram"].map((each) => element("li", {}, each))),
    element("p", {}, element("button", { type: "button", class: "link", onclick: search }, "Find a rule"), " to read its text, and which implementations break it."));
}

function search() {
  void openSearch(unpackedParts);
}

/** Opens the files of a drop. A folder has no bytes. @param {DataTransfer} dropped */
function openDropped(dropped) {
  const items = [...dropped.items].filter((item) => item.kind === "file");
  const folders = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
  const isFolder = (/** @type {File} */ file) => folders.some((folder) => folder?.name === file.name);
  const files = [...dropped.files].filter((file) => !isFolder(file));
  if (files.length > 0) void openFiles(files);
  else if (folders.length > 0) { beginOpening(); clearAddress(); showWelcome(`${folders[0]?.name}: this is a folder. Drop the files in it.`); }
}

/** Shows what the address names, after it was edited, or after Back or Forward. */
function followAddress() {
  const wanted = hashOf().get("file");
  const isOpen = last !== null && last.first.name === wanted;
  if (showPlace && (isOpen || (wanted === null && hashOf().has("offset")))) showPlace();
  else if (last && isOpen) void openFiles(last.files, last.first);
  else { beginOpening(); showWelcome(""); }
}

for (const kind of ["dragover", "dragenter"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); document.querySelector(".drop")?.classList.add("over"); });
}
document.addEventListener("dragleave", () => document.querySelector(".drop")?.classList.remove("over"));
document.addEventListener("drop", (/** @type {any} */ event) => {
  event.preventDefault();
  openDropped(event.dataTransfer);
});
addEventListener("hashchange", followAddress);
document.getElementById("another")?.addEventListener("click", () => { beginOpening(); pushAddress("#"); showWelcome(""); });
document.getElementById("find")?.addEventListener("click", search);
/** @type {any} */ (globalThis).ask = (/** @type {string} */ command) => reader?.send({ command });
showWelcome("");
// Before a file is chosen, and after the page is shown.
setTimeout(() => { void unpackedParts(); }, 50);
