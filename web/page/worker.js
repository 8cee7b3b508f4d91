// Runs in a worker: holds the bytes of one file in the memory of the WebAssembly, and answers commands about it.

/** The size of a slice in bytes. A file is copied slice by slice, to avoid a second copy of it in memory. */
const SLICE = 8 << 20;

/** @type {any} */
let wasm = null;
/** The opened file: address and length of its name, its bytes and its side file. @type {{name: [number, number], bytes: [number, number], side: [number, number]} | null} */
let opened = null;

/** @param {MessageEvent} event */
async function received({ data }) {
  try {
    const reply = await handle(data);
    // The bytes of a unit are moved, not copied.
    const moved = reply instanceof Uint8Array ? [reply.buffer] : [];
    /** @type {any} */ (self).postMessage({ id: data.id, reply }, moved);
  } catch (error) {
    /** @type {any} */ (self).postMessage({ id: data.id, failed: error instanceof Error ? error.message : String(error) });
  }
}

/** @param {any} data */
async function handle(data) {
  if (data.start) {
    // For a compiled module, the result is the instance itself.
    wasm = (await WebAssembly.instantiate(/** @type {WebAssembly.Module} */ (data.start), {})).exports;
    return null;
  }
  if (data.file) {
    const side = data.side ? await stored(data.side, () => {}) : /** @type {[number, number]} */ ([0, 0]);
    opened = { name: storedBytes(new TextEncoder().encode(data.name)), bytes: await stored(data.file, (done) => self.postMessage({ id: data.id, done })), side };
    return null;
  }
  return asked(data.command, data.raw);
}

/** Copies a file into the memory. @param {Blob} file @param {(done: number) => void} progress @returns {Promise<[number, number]>} */
async function stored(file, progress) {
  const start = reserved(file.size);
  for (let at = 0; at < file.size; at += SLICE) {
    const slice = new Uint8Array(await file.slice(at, at + SLICE).arrayBuffer());
    new Uint8Array(wasm.memory.buffer, start + at, slice.length).set(slice);
    progress(at + slice.length);
  }
  return [start, file.size];
}

/** @param {number} length */
function reserved(length) {
  // WebAssembly addresses memory with 32 bits, and a single allocation can be at most half of it.
  if (length >= 2 ** 31) throw new Error(`The file has ${length} bytes. WebAssembly takes files below 2 GiB. The command line, tvmspec, has no such limit.`);
  const start = wasm.reserve(length) >>> 0;
  if (start === 0) throw new Error(`The file has ${length} bytes, for which the browser has no memory now. The command line, tvmspec, needs less.`);
  return start;
}

/** @param {Uint8Array} bytes @returns {[number, number]} */
function storedBytes(bytes) {
  const start = reserved(bytes.length);
  new Uint8Array(wasm.memory.buffer, start, bytes.length).set(bytes);
  return [start, bytes.length];
}

/** Runs a command. @param {string} command @param {boolean} raw whether the answer is bytes */
function asked(command, raw) {
  if (!opened) throw new Error("no file is open");
  const words = storedBytes(new TextEncoder().encode(command));
  const place = reserved(12);
  try {
    wasm.answer(...words, ...opened.name, ...opened.bytes, ...opened.side, place);
  } catch (error) {
    // A trap has a name such as `unreachable`, which says nothing to a reader. Nearly always the memory was exhausted.
    throw new Error(`\`${command}\` ended early (${error instanceof Error ? error.message : error}), probably because the browser has too little memory for this file. The command line, tvmspec, has this answer.`);
  }
  // The memory may have grown and moved.
  const view = new DataView(wasm.memory.buffer);
  const [code, start, length] = [0, 4, 8].map((offset) => view.getUint32(place + offset, true));
  const bytes = new Uint8Array(wasm.memory.buffer, start, length);
  const content = raw && code === 0 ? bytes.slice() : new TextDecoder().decode(bytes);
  for (const [at, count] of [words, [place, 12], [start, length]]) wasm.free(at, count);
  if (raw) {
    if (code === 2) throw new Error(/** @type {string} */ (content));
    return content;
  }
  return { code, value: code === 2 ? null : JSON.parse(/** @type {string} */ (content)), message: code === 2 ? content : null };
}

self.onmessage = received;
