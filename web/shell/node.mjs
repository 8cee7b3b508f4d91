// node web/shell/node.mjs "verify --strict" FILE... prints a line of JSON for each file, and ends with the largest exit code.

import { readFile } from "node:fs/promises";
import { load } from "./tvmspec.mjs";

const built = process.env.TVMSPEC_WASM ?? new URL("target/wasm32-unknown-unknown/release/tvmspec_web.wasm", import.meta.url);
const examine = await load(await readFile(built));
const [command, ...files] = process.argv.slice(2);
for (const file of files) {
  const { code, text } = examine(command, file, await readFile(file));
  console.log(JSON.stringify({ file, code, answer: code === 2 ? text : JSON.parse(text) }));
  process.exitCode = Math.max(process.exitCode ?? 0, code);
}
