// Examines a file without running it, in a browser or in Node, with the WebAssembly module built from lib.rs.
//
//   import { load } from "./tvmspec.mjs";
//   const examine = await load(bytesOfTheModule);
//   const { code, text } = examine("verify --strict", "model.so", bytes);
//
// `code` is the exit code of the command line. `text` is JSON, or a message for code 2. Bytes are an ArrayBuffer, a typed array or a
// Buffer. The module is also bytes, or a compiled WebAssembly.Module.

const asBytes = (bytes) => {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes);
  throw new TypeError("the file is an ArrayBuffer or a view of one");
};

export async function load(module) {
  const made = await WebAssembly.instantiate(module, {});
  const instance = made.instance ?? made;
  const { memory, reserve, free, answer } = instance.exports;
  const put = (bytes) => {
    // An address is unsigned, and null if there is no memory.
    const start = reserve(bytes.length) >>> 0;
    if (start === 0) throw new RangeError(`no memory for ${bytes.length} bytes`);
    new Uint8Array(memory.buffer, start, bytes.length).set(bytes);
    return [start, bytes.length];
  };
  return (command, name, bytes) => {
    const encoder = new TextEncoder();
    const inputs = [encoder.encode(command), encoder.encode(name), asBytes(bytes)].map(put);
    const [at_answer, size] = put(new Uint8Array(12));
    // No side file.
    answer(...inputs.flat(), 0, 0, at_answer);
    // The memory may have grown and moved.
    const view = new DataView(memory.buffer);
    const [code, start, length] = [0, 4, 8].map((offset) => view.getUint32(at_answer + offset, true));
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, start, length));
    for (const [at, bytes] of [...inputs, [at_answer, size], [start, length]]) free(at, bytes);
    return { code, text };
  };
}
