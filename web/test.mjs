// Opens the page in real browsers, drops files of each era, and checks the result.
//
//   web/build && (cd web && npm ci && node test.mjs [--page FILE] [--shots FOLDER] [--tvmspec PROGRAM])
//
// PROGRAM writes the page of `inspect --html`, by default TVMSPEC or target/debug/tvmspec. Without it that test is skipped with the reason.
// Browsers: CHROMIUM and FIREFOX, or chromium and firefox-esr of the PATH. If a browser is missing, its part is skipped with the reason.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { testViews } from "./views.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const option = (name) => { const at = process.argv.indexOf(name); return at < 0 ? undefined : process.argv[at + 1]; };
const page_file = option("--page") ?? join(root, "web/dist/tvmspec.html");
const shots = option("--shots");
const tvmspec = option("--tvmspec") ?? process.env.TVMSPEC ?? join(root, "target/debug/tvmspec");

/** The files, each with the expected texts of the page and their view. */
const FILES = [
  { file: "golden/blob/opencl-0.6.bin", tabs: { bytes: "nbytes", releases: "✓ 0.6", modules: "opencl" }, head: "library binary" },
  { file: "golden/blob/containers/tree3-0.8.so", tabs: { bytes: "nbytes", releases: "0.7 to 0.12", modules: "kernel void", rules: "Breaks no rule", parts: "TVMFuncCall" }, head: "ELF shared object" },
  { file: "golden/graph/models/v0.19/dtypes.so", tabs: { graph: "storage", modules: "GraphExecutorFactory" }, head: "ELF shared object" },
  { file: "golden/graph/dtypes-0.19.json", tabs: { graph: "storage" }, head: "graph JSON" },
  { file: "golden/vm/mlp.so", tabs: { graph: "relu", code: "vm.builtin.alloc_storage", tensors: "[8, 16]", releases: "0.23 and later" }, head: "ELF shared object" },
  { file: "golden/graph/models/v0.8/resnet8.params", tabs: { tensors: "smallest, mean, largest", bytes: "TEN-" }, head: "parameter file" },
  { file: "golden/graph/tvmc-package-0.19.tar", tabs: { releases: "silently wrong", bytes: "0x0" }, head: "it is a package of tvmc" },
  { file: "golden/blob/tree-twice.bin", tabs: { bytes: "[BLOB-07]", rules: "The import tree occurs once" }, head: "Breaks BLOB-07" },
  { file: "golden/object/map.json", tabs: { bytes: "0x0", parts: "ffi.Map" }, head: "saved objects" },
  { file: "golden/blob/unknown-kind.bin", tabs: { rules: "no release has kind" }, head: "? Has a module of an unknown kind" },
  { file: "golden/blob/containers/host_only-0.8.so", tabs: { rules: "Nothing to verify" }, head: "it imports no module" },
  { file: "golden/tensor/cache-0.27/tensor-cache.json", tabs: { parts: "params_shard_0.bin", tensors: "embed.weight" }, head: "The page has not read the shards" },
  { file: "golden/blob/containers/static.a", tabs: { releases: "member" }, head: "The file has 2 libraries" },
  { file: ["golden/payload/files/addone-0.16.cl", "golden/payload/files/addone-0.16.tvm_meta.json"], tabs: { bytes: "PAY-", modules: "__kernel" }, head: "device module" },
  { file: ["golden/rpc/full-0.27.client.bin", "golden/rpc/full-0.27.server.bin"], tabs: { messages: "Spoken as in tvm" }, head: "RPC connection" },
];

const found = (name, words) => process.env[name] ?? words.map((word) => { try { return execFileSync("sh", ["-c", `command -v ${word}`], { encoding: "utf8" }).trim(); } catch { return ""; } }).find(Boolean);
const browsers = [
  ["Chromium", found("CHROMIUM", ["chromium", "chromium-browser", "google-chrome"]), { args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] }],
  ["Firefox", found("FIREFOX", ["firefox-esr", "firefox"]), { browser: "firefox" }],
];

for (const [name, path, options] of browsers) {
  if (!path || !existsSync(path)) {
    console.log(`${name}: skipped, because it is not installed`);
    if (process.env.TVMSPEC_SKIPS === "fail") process.exitCode = 1;
    continue;
  }
  const began = Date.now();
  const profile = mkdtempSync(join(tmpdir(), "tvmspec-web-"));
  const browser = await puppeteer.launch({ executablePath: path, headless: true, userDataDir: profile, ...options });
  const version = await browser.version();
  try {
    await fromDisk(name, browser);
    if (name === "Chromium") await fromServer(browser);
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
  console.log(`${version}: good, ${((Date.now() - began) / 1000).toFixed(0)} s`);
}

/** Opens every file, at two widths, from a copy on disk. */
async function fromDisk(name, browser) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => { if (["error", "warn", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => { if (!/^(file|blob|data|about):/.test(request.url())) wrong.push(`request ${request.url()}`); });
  await page.goto(pathToFileURL(page_file).href);
  for (const { file, tabs, head } of FILES) {
    await open(page, [file].flat());
    const heading = await text(page, "main");
    assert.ok(heading.includes(head), `${file}: no \`${head}\` in ${heading.slice(0, 300)}`);
    for (const width of [1280, 390]) {
      await page.setViewport({ width, height: 850 });
      for (const [tab, wanted] of Object.entries(tabs)) {
        await page.click(`#tab-${tab}`);
        await page.waitForFunction((tab, wanted) => document.getElementById(`panel-${tab}`).textContent.includes(wanted), { timeout: 10_000 }, tab, wanted)
          .catch(async () => assert.fail(`${file}: view ${tab} has no \`${wanted}\`: ${(await text(page, `#panel-${tab}`)).slice(0, 300)}`));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${file}, ${tab}: ${over} pixels wider than ${width}`);
        if (shots) await page.screenshot({ path: join(shots, `${[file].flat()[0].split("/").pop()}-${tab}-${width}-${name}.png`) });
      }
    }
  }
  await page.setViewport({ width: 1280, height: 850 });
  await drop(page);
  await pointer(page);
  await linked(page);
  await ruleSearch(page, name);
  await several(page);
  await hostile(page);
  await odd(page);
  await concurrent(page);
  if (name === "Chromium") await changedOnDisk(page);
  await models(page);
  await large(page);
  await keyboard(page);
  await permalink(page);
  await address(page);
  await contrast(page);
  await testViews(page, name);
  await report(page, name);
  assert.deepEqual(wrong, []);
  await page.close();
}

async function open(page, files) {
  await page.evaluate(() => document.getElementById("another").click());
  const input = await page.waitForSelector("#file");
  await input.uploadFile(...files.map((file) => join(root, file)));
  await page.waitForSelector("[role=tablist], [role=alert]", { timeout: 30_000 });
}

function text(page, place) {
  return page.$eval(place, (node) => node.textContent);
}

/** Drops files, each a name with its bytes in base64, anywhere on the page. */
function dropped(page, files) {
  return page.evaluate((files) => {
    const dataTransfer = new DataTransfer();
    for (const [name, bytes] of files) dataTransfer.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], name));
    for (const kind of ["dragenter", "dragover", "drop"]) document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  }, files);
}

function base64(file) {
  return readFileSync(join(root, file)).toString("base64");
}

/** Drops a file on the page. */
async function drop(page) {
  await page.click("#another");
  await dropped(page, [["dropped.bin", base64("golden/blob/opencl-0.8.bin")]]);
  await page.waitForSelector("[role=tablist]");
  assert.equal(await text(page, "h1"), "dropped.bin");
}

/** Searches for a rule by its id and by words, and reads which implementations break it. */
async function ruleSearch(page, name) {
  await page.click("#another");
  await page.click("#find");
  await page.waitForSelector("dialog.search details");
  // Titles have code too.
  assert.doesNotMatch(await text(page, "dialog.search .found"), /`/);
  await page.type("dialog.search input", "blob-07");
  await page.waitForFunction(() => document.querySelectorAll("dialog.search details").length === 1);
  const rule = await text(page, "dialog.search details[open]");
  assert.match(rule, /BLOB-07.*A second tree is rejected/s);
  const results = readdirSync(join(root, "book/results")).filter((file) => file.endsWith(".json") && file !== "builtin.json").map((file) => JSON.parse(readFileSync(join(root, "book/results", file), "utf8")));
  const judged = results.filter(({ rules }) => rules["BLOB-07"]?.[0] + rules["BLOB-07"]?.[1] > 0);
  const failing = judged.filter(({ rules }) => rules["BLOB-07"][1] > 0);
  assert.ok(rule.includes(`${failing.length} of ${judged.length} judged implementations break it:`), rule);
  for (const { name } of failing) assert.ok(rule.includes(`${name}: `), `${name} is not in ${rule}`);
  for (const width of [1280, 390]) {
    await page.setViewport({ width, height: 850 });
    const over = await page.$eval("dialog.search", (dialog) => dialog.scrollWidth - dialog.clientWidth);
    assert.ok(over <= 0, `the search is ${over} pixels wider than its dialog at ${width}`);
    if (shots) await page.screenshot({ path: join(shots, `search-${width}-${name}.png`) });
  }
  await page.setViewport({ width: 1280, height: 850 });
  await page.$eval("dialog.search input", (input) => { input.value = "import second tree"; input.dispatchEvent(new Event("input")); });
  assert.match(await text(page, "dialog.search .found"), /BLOB-07/);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog"));
}

/** Opens one of several files; the others can be chosen. */
async function several(page) {
  await open(page, ["golden/blob/opencl-0.8.bin", "golden/blob/tree-twice.bin", "golden/rpc/full-0.27.client.bin", "golden/rpc/full-0.27.server.bin"]);
  assert.equal(await text(page, "h1"), "opencl-0.8.bin");
  const buttons = await page.$$eval(".others button", (all) => all.map((each) => each.textContent));
  assert.deepEqual(buttons, ["tree-twice.bin", "full-0.27.client.bin", "full-0.27.server.bin"]);
  await page.click(".others button:nth-of-type(3)");
  await page.waitForSelector("#tab-messages");
  await page.click(".others button:nth-of-type(2)");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "tree-twice.bin" && document.querySelector("[role=tablist]"));
  // One side of a connection says what is missing.
  await open(page, ["golden/rpc/full-0.27.client.bin"]);
  assert.match(await text(page, "main"), /choose the files of both sides together/);
}

/** Names with markup, in the name of the file and in the file, stay text. */
async function hostile(page) {
  const bytes = readFileSync(join(root, "golden/blob/opencl-0.8.bin"));
  const at = bytes.indexOf("opencl");
  bytes.write("<b id=", at);
  await page.click("#another");
  const name = '<img src=x onerror="globalThis.hit=1">\u202etxt.bin';
  await dropped(page, [[name, bytes.toString("base64")]]);
  await page.waitForSelector("[role=tablist]");
  assert.equal(await text(page, "h1"), name.replace("\u202e", "\\u{202e}"));
  assert.match(await text(page, "main"), /<b id=/);
  for (const tab of await page.$$("[role=tab]")) await tab.click();
  assert.equal(await page.$("main img, main b"), null);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
}

/** An empty file and a folder are refused with a reason. A file that is not read to its end is not called valid. */
async function odd(page) {
  const unread = readFileSync(join(root, "golden/blob/unknown-kind-0.8.bin"));
  // Two modules instead of one: the end of the first is then unknown (BLOB-06).
  unread[8] = 2;
  await page.click("#another");
  await dropped(page, [["unread.bin", unread.toString("base64")]]);
  await page.waitForSelector("[role=tablist]");
  assert.match(await text(page, ".answers"), /\? Not read to the end.*its end cannot be found/s);
  assert.doesNotMatch(await text(page, ".answers"), /Breaks/);
  assert.match(await text(page, ".field"), /^Byte 0x0/);
  await page.click("#tab-rules");
  await page.click("#panel-rules article button");
  await page.waitForSelector(".hex .unread.pin");
  assert.match(await text(page, ".field"), /Reading ended at this byte/);
  await page.click("#another");
  await dropped(page, [["empty.bin", ""]]);
  await page.waitForSelector("[role=tablist]");
  assert.match(await text(page, "main"), /Not a file that TVM wrote.*it is empty/s);
  await page.evaluate(() => {
    const drop = new Event("drop", { bubbles: true, cancelable: true });
    const items = [{ kind: "file", webkitGetAsEntry: () => ({ isDirectory: true, name: "models" }) }];
    document.body.dispatchEvent(Object.assign(drop, { dataTransfer: { items, files: [new File([], "models")] } }));
  });
  assert.match(await text(page, "[role=alert]"), /models: this is a folder/);
}

/** Of two files that are dropped at once, the second is shown, also before the WebAssembly is compiled. */
async function concurrent(page) {
  const both = [["golden/blob/containers/tree3-0.8.so", "first.so"], ["golden/blob/tree-twice.bin", "second.bin"]].map(([file, name]) => [name, base64(file)]);
  const dropBoth = (files) => page.evaluate((files) => {
    for (const [name, bytes] of files) {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], name));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }
  }, files);
  await page.goto("about:blank");
  await page.goto(pathToFileURL(page_file).href);
  for (const files of [both, [...both].reverse()]) {
    await dropBoth(files);
    await page.waitForSelector("[role=tablist]");
    await new Promise((done) => setTimeout(done, 300));
    assert.equal(await text(page, "h1"), files[1][0]);
    assert.equal(await page.$("[role=alert]"), null);
    assert.equal(/BLOB-07/.test(await text(page, ".answers")), files[1][0] === "second.bin");
  }
  // A second file while the first is still read: the first must not show its end over the second.
  await page.evaluate(() => {
    globalThis.alerts = [];
    new MutationObserver(() => { const alert = document.querySelector("[role=alert]"); if (alert) globalThis.alerts.push(alert.textContent); }).observe(document.querySelector("main"), { childList: true });
    globalThis.dropLarge = (name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([new Uint8Array(100 << 20)], name));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    };
    globalThis.dropLarge("first.bin");
  });
  await page.waitForFunction(() => document.querySelector("progress")?.value > 0);
  await page.evaluate(() => globalThis.dropLarge("second.bin"));
  await page.waitForSelector("[role=tablist]", { timeout: 60_000 });
  assert.equal(await text(page, "h1"), "second.bin");
  assert.deepEqual(await page.evaluate(() => globalThis.alerts), []);
  // The place to drop a file while the first is still read.
  await dropped(page, [both[0]]);
  await page.click("#another");
  await new Promise((done) => setTimeout(done, 300));
  assert.match(await text(page, "h1"), /Drop a file/);
  assert.equal(await page.$("[role=alert]"), null);
}

/** A file that another program changes after it was opened. */
async function changedOnDisk(page) {
  const folder = mkdtempSync(join(tmpdir(), "tvmspec-web-"));
  try {
    const path = join(folder, "changed.bin");
    writeFileSync(path, readFileSync(join(root, "golden/blob/opencl-0.8.bin")));
    await page.click("#another");
    await (await page.waitForSelector("#file")).uploadFile(path);
    await page.waitForSelector(".hex [data-at]");
    writeFileSync(path, "other");
    await page.focus(".hex");
    await page.keyboard.press("End");
    await page.waitForFunction(() => /changed on disk/.test(document.querySelector(".hex").textContent), { timeout: 5000 });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The strip and the hex view under a mouse: hovering shows a field, a click pins it. */
async function pointer(page) {
  await page.click("#tab-bytes");
  const strip = await (await page.$("#panel-bytes [role=slider]")).boundingBox();
  await page.mouse.move(strip.x + 3, strip.y + 30);
  await page.waitForSelector(".tip:not([hidden])");
  assert.match(await text(page, ".tip"), /nbytes = 485.*BLOB-01/s);
  await page.mouse.click(strip.x + strip.width / 2, strip.y + 30);
  assert.match(await text(page, ".field"), /Byte 0x.*PAY-/s);
  await page.waitForSelector(".hex .pin");
  await page.click(".hex [data-at]");
  const pin = await page.$eval(".hex .pin", (each) => Number(each.dataset.at));
  await hasAddress(page, "offset", `0x${pin.toString(16)}`);
  await page.mouse.move(0, 0);
  assert.ok(await page.$eval(".tip", (each) => each.hidden));
  // The colors of the map follow the switch between light and dark.
  const painted = () => document.querySelector("#panel-bytes [role=slider] canvas").toDataURL();
  const before = await page.evaluate(painted);
  await page.click("#theme");
  await page.waitForFunction(`(${painted})() !== ${JSON.stringify(before)}`);
  await page.click("#theme");
}

/** A verdict has its reason, and a broken rule leads to its byte. */
async function linked(page) {
  await open(page, ["golden/blob/tree-twice.bin"]);
  await page.click("#tab-releases");
  for (const [release, reason] of [["0.6", /0\.6 fails: it knows neither tree/], ["0.8", /0\.8 silently wrong: .*BLOB-07/], ["0.27", /0\.27 fails: the bytes are of layout 0\.7/]]) {
    await page.click(`#panel-releases [data-release="${release}"]`);
    assert.match(await text(page, "#panel-releases .note"), reason);
  }
  await page.click("#tab-rules");
  assert.match(await text(page, "#panel-rules details[open]"), /BLOB-07.*A second tree is rejected/s);
  await page.click("#panel-rules button");
  await hasAddress(page, "offset", "0x1ed");
  assert.equal(await page.$eval("#panel-bytes", (panel) => panel.hidden), false);
  await page.waitForSelector(".hex .broken.pin");
}

/** The drawings: a module of the import tree by keyboard with its colored source, a node of a graph, and another tensor. */
async function models(page) {
  await open(page, ["golden/blob/containers/tree3-0.8.so"]);
  await page.click("#tab-modules");
  assert.ok(await page.$$eval("#panel-modules .edge", (edges) => edges.length) >= 2);
  await page.$eval("#panel-modules .node", (node) => node.focus());
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#panel-modules .node.chosen:focus");
  await page.waitForSelector("#panel-modules .source .k");
  await open(page, ["golden/vm/mlp.so"]);
  await page.click("#tab-graph");
  const colors = await page.$$eval("#panel-graph .node rect", (all) => new Set(all.map((each) => getComputedStyle(each).fill)).size);
  assert.ok(colors > 3, `${colors} colors`);
  await page.$eval("#panel-graph .node[aria-label^=matmul]", (node) => node.focus());
  await page.keyboard.press("Enter");
  assert.match(await text(page, "#panel-graph section section"), /matmul.*storage/s);
  await page.click("#tab-tensors");
  await page.waitForSelector("#panel-tensors .histogram rect");
  await page.click("#panel-tensors tr:nth-child(2) button");
  await page.waitForFunction(() => /constants\[5\]/.test(document.querySelector("#panel-tensors h2").textContent));
}

/** A large file is read by slices, with a bar, while the page still answers. */
async function large(page) {
  const folder = mkdtempSync(join(tmpdir(), "tvmspec-web-"));
  try {
    const path = join(folder, "large.bin");
    writeFileSync(path, "");
    truncateSync(path, 200 << 20);
    await page.click("#another");
    await page.evaluate(() => {
      globalThis.seen = new Set();
      const look = () => { const bar = document.querySelector("progress"); if (bar?.hasAttribute("value")) globalThis.seen.add(bar.value); if (!document.querySelector("[role=tablist]")) requestAnimationFrame(look); };
      look();
    });
    await (await page.waitForSelector("#file")).uploadFile(path);
    await page.waitForSelector("[role=tablist]", { timeout: 120_000 });
    const seen = await page.evaluate(() => globalThis.seen.size);
    assert.ok(seen >= 3, `the bar stood at ${seen} places`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Waits until the address has the value: it is written after a pause. */
function hasAddress(page, name, value) {
  return page.waitForFunction((name, value) => new URLSearchParams(location.hash.slice(1)).get(name) === value, { timeout: 3000 }, name, value)
    .catch(async () => assert.fail(`the address ${await page.evaluate(() => location.hash)} has no ${name}=${value}`));
}

/** Tests the keyboard: from the first tab to the verdict of 0.26, and through the fields of the map. */
async function keyboard(page) {
  await open(page, ["golden/blob/tree-twice.bin"]);
  await page.focus("#tab-bytes");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-releases");
  await page.keyboard.press("Tab");
  for (let at = 0; at < 24; at += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.match(await text(page, "#panel-releases .note"), /tvm 0\.26/);
  await page.focus("#tab-releases");
  await page.keyboard.press("ArrowLeft");
  await page.focus("#panel-bytes [role=slider]");
  await page.keyboard.press("Home");
  await hasAddress(page, "offset", "0x0");
  await page.keyboard.press("ArrowRight");
  await hasAddress(page, "offset", "0x8");
  await page.keyboard.down("Shift");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.up("Shift");
  await hasAddress(page, "offset", "0x9");
}

/** An address with an offset opens the file at that byte. */
async function permalink(page) {
  await page.goto(`${pathToFileURL(page_file).href}#offset=0x18&tab=bytes`);
  await page.reload();
  const input = await page.waitForSelector("#file");
  await input.uploadFile(join(root, "golden/blob/opencl-0.8.bin"));
  await page.waitForSelector(".hex .pin");
  assert.match(await text(page, ".field"), /Byte 0x18.*entry\[0\]\.key/s);
}

/** An edited address moves the pin. Back shows the place to drop a file, and Forward the file. An address from elsewhere names its file. */
async function address(page) {
  await open(page, ["golden/blob/opencl-0.8.bin"]);
  await hasAddress(page, "file", "opencl-0.8.bin");
  await page.evaluate(() => { location.hash = "#file=opencl-0.8.bin&tab=bytes&offset=0x20"; });
  await page.waitForFunction(() => /Byte 0x20/.test(document.querySelector(".field").textContent));
  await page.evaluate(() => history.go(-2));
  await page.waitForSelector(".drop #file");
  await page.evaluate(() => history.forward());
  await page.waitForSelector("[role=tablist]");
  assert.equal(await text(page, "h1"), "opencl-0.8.bin");
  await page.goto("about:blank");
  await page.goto(`${pathToFileURL(page_file).href}#file=opencl-0.8.bin&tab=bytes&offset=0x18`);
  assert.match(await text(page, "main .note"), /names the file opencl-0\.8\.bin.*see byte 0x18/);
  const choose = async (file) => (await page.waitForSelector("#file")).uploadFile(join(root, file));
  await choose("golden/blob/opencl-0.8.bin");
  await page.waitForSelector(".hex .pin");
  assert.match(await text(page, ".field"), /Byte 0x18/);
  // Another file is not shown at the place of this one.
  await page.goto("about:blank");
  await page.goto(`${pathToFileURL(page_file).href}#file=opencl-0.8.bin&tab=bytes&offset=0x18`);
  await choose("golden/blob/opencl-0.6.bin");
  await page.waitForSelector(".hex .pin");
  assert.match(await text(page, ".field"), /Byte 0x0/);
}

/** Opens the page of `inspect --html`: its answers are those of the command line, and it needs nothing but itself. */
async function report(page, name) {
  if (!existsSync(tvmspec)) {
    console.log(`${name}: the page of \`inspect --html\` is skipped, because there is no ${tvmspec}`);
    if (process.env.TVMSPEC_SKIPS === "fail") process.exitCode = 1;
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "tvmspec-web-"));
  try {
    const made = (file) => {
      const path = join(folder, "report.html");
      // A file that breaks a rule ends with another status.
      try { execFileSync(tvmspec, ["inspect", join(root, file), "--html", path], { stdio: "ignore" }); } catch { /* See above. */ }
      return pathToFileURL(path).href;
    };
    await page.goto(made("golden/blob/tree-twice.bin"));
    assert.match(await text(page, ".answers"), /Breaks BLOB-07/);
    await page.waitForSelector(".hex .broken.pin");
    await page.goto(made("golden/vm/mlp.so"));
    for (const tab of await page.$$eval("[role=tab]", (all) => all.map((each) => each.id))) {
      await page.click(`#${tab}`);
      assert.ok((await text(page, `#${tab.replace("tab", "panel")}`)).length > 0, tab);
    }
    await page.waitForSelector("#panel-graph .node");
    await page.waitForSelector("#panel-tensors .histogram rect");
    // The bytes of the whole file follow those of the library binary.
    await page.click("#tab-bytes");
    await page.select("#panel-bytes select", "1");
    await page.waitForFunction(() => /^\.ELF/.test(document.querySelector(".hex .text").textContent));
    if (shots) await page.screenshot({ path: join(shots, `report-${name}.png`) });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Tests that every text has a contrast of at least 4.5 to its background, in both schemes (WCAG AA). */
async function contrast(page) {
  for (const file of [["golden/blob/tree-twice.bin"], ["golden/vm/mlp.so"], ["golden/rpc/full-0.27.client.bin", "golden/rpc/full-0.27.server.bin"]]) {
    await open(page, file);
    for (const theme of ["light", "dark"]) {
      await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; }, theme);
      for (const tab of await page.$$eval("[role=tab]", (all) => all.map((each) => each.id))) {
        await page.click(`#${tab}`);
        await page.$$eval("#panel-json details", (all) => all.forEach((each) => { each.open = true; }));
        assert.deepEqual(await page.evaluate(poorContrast), [], `${theme}, ${file}, ${tab}`);
      }
    }
  }
  await page.evaluate(() => { delete document.documentElement.dataset.theme; });
}

/** Finds the texts whose contrast is below 4.5. Runs in the page. */
function poorContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => { for (let at = node; at; at = at.parentElement) { const color = getComputedStyle(at).backgroundColor; if (rgb(color)[3] === 255) return color; } return getComputedStyle(document.body).backgroundColor; };
  const poor = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("script, svg")) continue;
    const [front, back] = [light(rgb(getComputedStyle(node).color)), light(rgb(behind(node)))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${node.outerHTML.slice(0, 120)}`);
  }
  return poor.slice(0, 5);
}

/** Opens a file on the page from a server, which gets no other request. */
async function fromServer(browser) {
  const content = await readFile(page_file);
  const asked = [];
  const server = createServer((request, response) => { asked.push(request.url); response.setHeader("content-type", "text/html"); response.end(content); });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await open(page, ["golden/blob/opencl-0.8.bin"]);
  assert.match(await text(page, "main"), /Breaks no rule/);
  assert.deepEqual(asked, ["/"]);
  server.close();
  await page.close();
}
