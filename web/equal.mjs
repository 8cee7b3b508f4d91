// Compares the answers of the page, in Chromium, with those of the command line for every golden.
//
//   web/build && (cd web && npm ci && node equal.mjs ../target/release/tvmspec [--page FILE])

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const golden = fileURLToPath(new URL("../golden", import.meta.url));
const [tvmspec, , page_file = fileURLToPath(new URL("dist/tvmspec.html", import.meta.url))] = process.argv.slice(2);
const COMMANDS = [["inspect"], ["inspect --code"], ["verify"], ["verify --strict"], ["explain", "--elsewhere"], ["dump"]];

// Descriptions are not goldens. TEN-54: a page has no shards for an index.
const files = readdirSync(golden, { recursive: true, withFileTypes: true }).filter((each) => each.isFile()).map((each) => join(each.parentPath ?? each.path, each.name))
  .filter((path) => !/\.(txt|md)$|-cache(-b16)?\.json$/.test(path)).sort();

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
const failed = [];
page.on("pageerror", (error) => failed.push(`page: ${error.message}`));
await page.goto(pathToFileURL(resolve(page_file)).href);
let equal = 0;
let all = 0;
for (const file of files) {
  const name = basename(file);
  await page.evaluate(() => document.getElementById("another").click());
  const input = await page.waitForSelector("#file");
  // PAY-23: the command line finds the side file of a device module in the same folder.
  const side = file.replace(/\.[^./]*$/, ".tvm_meta.json");
  await input.uploadFile(file, ...(side !== file && existsSync(side) ? [side] : []));
  await page.waitForSelector("[role=tablist], [role=alert]", { timeout: 60_000 });
  for (const [command, ...more] of COMMANDS) {
    all += 1;
    const ours = await page.evaluate((command) => globalThis.ask(command), command);
    // In the folder of the file, so that both know it by the same name.
    const theirs = spawnSync(resolve(tvmspec), [...command.split(" "), "--json", ...more, name], { cwd: dirname(file), encoding: "utf8", maxBuffer: 1 << 28 });
    try {
      assert.equal(ours.code, theirs.status);
      if (ours.code === 2) assert.equal(`error: ${ours.message}`, theirs.stderr.trimEnd());
      else assert.deepEqual(ours.value, JSON.parse(theirs.stdout));
      equal += 1;
    } catch (error) {
      failed.push(`${file}: ${command}: ${error.message.slice(0, 300)}`);
    }
  }
}
await browser.close();
for (const each of failed) console.log(each);
console.log(`${equal} of ${all} answers about ${files.length} goldens are equal`);
process.exitCode = equal === all && failed.length === 0 ? 0 : 1;
