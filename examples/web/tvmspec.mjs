// Says what can be said about a file, in a browser or in Node, with the WebAssembly module that lib.rs is.
//
//   import { load } from "./tvmspec.mjs";
//   const examine = await load(bytesOfTheModule);
//   const { code, text } = examine("verify --strict", "model.so", bytes);
//
// `code` is the command line's exit code; `text` is JSON, or for 2 a message.

export async function load(module) {
  const { instance } = await WebAssembly.instantiate(module, {});
  const { memory, reserve, free, answer } = instance.exports;
  const put = (bytes) => {
    const start = reserve(bytes.length);
    new Uint8Array(memory.buffer, start, bytes.length).set(bytes);
    return [start, bytes.length];
  };
  return (command, name, bytes) => {
    const encoder = new TextEncoder();
    const inputs = [encoder.encode(command), encoder.encode(name), bytes].map(put);
    const [said, size] = put(new Uint8Array(12));
    answer(...inputs.flat(), said);
    // The memory may have grown, and moved.
    const view = new DataView(memory.buffer);
    const [code, start, length] = [0, 4, 8].map((offset) => view.getUint32(said + offset, true));
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, start, length));
    for (const [at, bytes] of [...inputs, [said, size], [start, length]]) free(at, bytes);
    return { code, text };
  };
}

// node examples/web/tvmspec.mjs "verify --strict" FILE...: a line of JSON for each file, and the largest exit code.
if (globalThis.process?.argv[1] === (await import("node:url").catch(() => null))?.fileURLToPath(import.meta.url)) {
  const { readFile } = await import("node:fs/promises");
  const built = process.env.TVMSPEC_WASM ?? new URL("target/wasm32-unknown-unknown/release/tvmspec_web.wasm", import.meta.url);
  const examine = await load(await readFile(built));
  const [command, ...files] = process.argv.slice(2);
  for (const file of files) {
    const { code, text } = examine(command, file, await readFile(file));
    console.log(JSON.stringify({ file, code, answer: code === 2 ? text : JSON.parse(text) }));
    process.exitCode = Math.max(process.exitCode ?? 0, code);
  }
}
