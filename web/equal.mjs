// Compares the answers of the page, in Chromium, with those of the command line for every golden.
//
//   web/build && (cd web && npm ci && node equal.mjs ../target/release/tvmspec [--page FILE] [--jobs N] [--only PART])
//
// Each of N jobs (by default one for each processor) has a browser and takes one file after the other; the commands of a file run side
// by side. A browser that is lost is started again, and its file is tried once more. PART is a part of the path of a file.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const golden = fileURLToPath(new URL("../golden", import.meta.url));
const [tvmspec] = process.argv.slice(2);
const option = (name, otherwise) => { const at = process.argv.indexOf(name); return at < 0 ? otherwise : process.argv[at + 1]; };
const page_file = resolve(option("--page", fileURLToPath(new URL("dist/tvmspec.html", import.meta.url))));
const COMMANDS = [["inspect"], ["inspect --code"], ["verify"], ["verify --strict"], ["explain", "--elsewhere"], ["dump"]];
/** The map of bytes shows the answer to this command. It also covers device modules with a side file, which `dump` refuses. */
const FIELDS = "fields";
/** A page is closed after this many files, to return the memory of its workers. */
const FILES_OF_A_PAGE = 100;

// Descriptions are not goldens. TEN-54: a page has no shards for an index.
const files = readdirSync(golden, { recursive: true, withFileTypes: true }).filter((each) => each.isFile()).map((each) => join(each.parentPath ?? each.path, each.name))
  .filter((path) => !/\.(txt|md)$|-cache(-b16)?\.json$/.test(path) && path.includes(option("--only", ""))).sort();

/** A browser with one page, both of which can be replaced. */
class Job {
  browser = null;
  page = null;
  opened = 0;

  /** Returns the page. Opens a new one if there is no page, or if it had enough files. */
  async fresh() {
    if (this.browser?.connected !== true) {
      this.page = null;
      this.browser = await puppeteer.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
        args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
      });
    }
    if (this.page && this.opened >= FILES_OF_A_PAGE) {
      await this.page.close();
      this.page = null;
    }
    if (!this.page) {
      this.opened = 0;
      this.page = await this.browser.newPage();
      this.page.on("pageerror", (error) => failed.push(`page: ${error.message}`));
      await this.page.goto(pathToFileURL(page_file).href);
    }
    this.opened += 1;
    return this.page;
  }

  /** Opens a file, with its side file if it has one, and returns the answers to all commands. */
  async answers(paths) {
    const page = await this.fresh();
    await page.evaluate(() => document.getElementById("another").click());
    const input = await page.waitForSelector("#file");
    await input.uploadFile(...paths);
    await page.waitForSelector("[role=tablist], [role=alert]", { timeout: 60_000 });
    // One text is transferred faster than the members of all answers.
    const text = await page.evaluate(async (commands) => {
      const answers = [];
      for (const command of commands) answers.push(await globalThis.ask(command));
      return JSON.stringify({ answers, alert: document.querySelector("[role=alert]")?.textContent });
    }, [...COMMANDS.map(([command]) => command), FIELDS]);
    return JSON.parse(text);
  }

  async close() {
    await this.browser?.close().catch(() => {});
    this.browser = null;
  }
}

/** Runs the program in the folder of the file, so that it and the page know the file by the same name. */
function run(file, [command, ...more]) {
  return new Promise((done) => {
    execFile(resolve(tvmspec), [...command.split(" "), "--json", ...more, basename(file)], { cwd: dirname(file), encoding: "utf8", maxBuffer: 1 << 28 },
      (error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }));
  });
}

/** Compares the messages of an RPC connection. `client` is the file of its client. */
async function compareConnection(job, client) {
  const server = client.replace(/client\.bin$/, "server.bin");
  const running = run(server, ["rpc-decode", basename(client)]);
  await job.answers([client, server]);
  const ours = await job.page.evaluate(() => globalThis.ask("rpc-decode"));
  const theirs = await running;
  try {
    assert.equal(ours.code, theirs.code);
    assert.deepEqual(ours.value, JSON.parse(theirs.stdout));
    equal += 1;
  } catch (error) {
    failed.push(`${client}: rpc-decode: ${error.message.slice(0, 300)}`);
  }
}

async function compare(job, file) {
  // PAY-23: the command line finds the side file of a device module in the same folder.
  const side = file.replace(/\.[^./]*$/, ".tvm_meta.json");
  const paths = [file, ...(side !== file && existsSync(side) ? [side] : [])];
  const running = Promise.all(COMMANDS.map((command) => run(file, command)));
  const ours = await job.answers(paths).catch(async (lost) => {
    console.log(`${file}: tried again, because ${lost.message}`);
    again += 1;
    await job.close();
    return job.answers(paths);
  });
  if (ours.alert) failed.push(`${file}: ${ours.alert}`);
  for (const [at, theirs] of (await running).entries()) {
    const { code, value, message } = ours.answers[at];
    try {
      // BLOB-06: the command line answers about an unknown kind, and exits with 2. The page shows it as a finding.
      const is_unknown = theirs.code === 2 && theirs.stdout !== "";
      if (!is_unknown) assert.equal(code, theirs.code);
      if (code === 2) assert.equal(`error: ${message}`, theirs.stderr.trimEnd());
      else assert.deepEqual(value, JSON.parse(theirs.stdout));
      equal += 1;
    } catch (error) {
      failed.push(`${file}: ${COMMANDS[at][0]}: ${error.message.slice(0, 300)}`);
    }
  }
  const [dump, fields] = ours.answers.slice(-2);
  if (dump.value !== null) {
    try { assert.deepEqual(fields.value, dump.value); } catch (error) { failed.push(`${file}: the fields: ${error.message.slice(0, 300)}`); }
  }
}

const began = Date.now();
const failed = [];
let [equal, again, next] = [0, 0, 0];
await Promise.all(Array.from({ length: Number(option("--jobs", availableParallelism())) }, async () => {
  const job = new Job();
  while (next < files.length) {
    const file = files[next];
    next += 1;
    if (next % 250 === 0) console.log(`${next} of ${files.length} goldens, ${((Date.now() - began) / 1000).toFixed(0)} s`);
    await compare(job, file).catch((error) => failed.push(`${file}: ${error.message}`));
    if (/\.client\.bin$/.test(file)) await compareConnection(job, file).catch((error) => failed.push(`${file}: ${error.message}`));
  }
  await job.close();
}));
const all = files.length * COMMANDS.length + files.filter((file) => /\.client\.bin$/.test(file)).length;
for (const each of failed) console.log(each);
console.log(`${equal} of ${all} answers about ${files.length} goldens are equal, ${((Date.now() - began) / 1000).toFixed(0)} s, ${again} tried again`);
process.exitCode = equal === all && failed.length === 0 ? 0 : 1;
