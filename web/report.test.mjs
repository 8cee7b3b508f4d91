// Writes HTML reports of `tvmspec check`, opens them in real browsers, and uses them by keyboard.
//
//   cargo build && cd web && npm ci && node report.test.mjs ../target/debug/tvmspec [--shots FOLDER]
//
// Browsers: CHROMIUM and FIREFOX, or chromium and firefox-esr of the PATH. If a browser is missing, its part is skipped with the reason.
// The same holds for the reports of a testee in Python if there is no python3.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const root = fileURLToPath(new URL("..", import.meta.url));
const program = process.argv[2];
if (!program || !existsSync(program)) {
  console.error("report.test.mjs: name the program, which `cargo build` writes to target/debug/tvmspec");
  process.exit(2);
}
const at = process.argv.indexOf("--shots");
const shots = at < 0 ? undefined : process.argv[at + 1];
if (shots) mkdirSync(shots, { recursive: true });

const found = (name, words) => process.env[name] ?? words.map((word) => { try { return execFileSync("sh", ["-c", `command -v ${word}`], { encoding: "utf8" }).trim(); } catch { return ""; } }).find(Boolean);
const skip = (reason) => {
  console.log(reason);
  if (process.env.TVMSPEC_SKIPS === "fail") process.exitCode = 1;
};
const browsers = [
  ["Chromium", found("CHROMIUM", ["chromium", "chromium-browser", "google-chrome"]), { args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] }],
  ["Firefox", found("FIREFOX", ["firefox-esr", "firefox"]), { browser: "firefox" }],
];

const folder = mkdtempSync(join(tmpdir(), "tvmspec-report-"));
try {
  const reports = writeReports();
  for (const [name, path, options] of browsers) {
    if (!path || !existsSync(path)) {
      skip(`${name}: skipped, because it is not installed`);
      continue;
    }
    const began = Date.now();
    const profile = mkdtempSync(join(tmpdir(), "tvmspec-report-profile-"));
    const browser = await puppeteer.launch({ executablePath: path, headless: true, userDataDir: profile, ...options });
    const version = await browser.version();
    try {
      await openReports(name, browser, reports);
    } finally {
      await browser.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
    console.log(`${version}: good, ${((Date.now() - began) / 1000).toFixed(0)} s`);
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** Writes the reports, and returns the path of each by its name. */
function writeReports() {
  const reports = {};
  const write = (name, exit, ...options) => {
    reports[name] = join(folder, `${name}.html`);
    const { status, stderr } = spawnSync(resolve(program), ["check", "-o", reports[name], ...options], { cwd: root, encoding: "utf8" });
    assert.equal(status, exit, `${name}: ${stderr}`);
  };
  write("builtin", 0, "--chapter", "import_tree", "--chapter", "wire");
  write("liar", 1, "--impl", "liar:constant", "--chapter", "wire", "--chapter", "tensor", "--chapter", "import_tree");
  if (spawnSync("python3", ["--version"]).status !== 0) {
    skip("testee: skipped, because there is no python3");
    return reports;
  }
  // A testee that accepts rows that run backwards and modules that import themselves, and whose name is markup.
  const sample = readFileSync(join(root, "conformance/testee/python/testee.py"), "utf8");
  const faulty = sample.replace('return {"reject"', 'return {"ok": None} if "backwards" in str(broken) or "itself" in str(broken) else {"reject"').replace("tvmspec-python-testee", "<img src=x onerror=alert(1)>&amp;");
  const testee = join(folder, "testee.py");
  writeFileSync(testee, faulty);
  const known = join(folder, "known.toml");
  writeFileSync(known, '[[known]]\ncase = "import_tree/row-runs-backwards"\nverdict = "fail"\nreason = "a *known* `reason` <b>"\n');
  write("testee", 1, "--impl", `exec:python3 ${testee}`, "--chapter", "import_tree", "--chapter", "wire", "--known", known);
  write("complete", 1, "--impl", `exec:python3 ${testee}`, "--chapter", "wire", "--complete");
  return reports;
}

/** Opens each report at two widths and in both schemes, and then uses it. */
async function openReports(name, browser, reports) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => { if (["error", "warn", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", async (dialog) => { wrong.push(dialog.message()); await dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|blob|data|about):/.test(request.url())) wrong.push(`request ${request.url()}`); });
  for (const [report, path] of Object.entries(reports)) {
    await open(page, path);
    for (const theme of ["light", "dark"]) {
      if ((await scheme(page)) !== theme) await page.click("#theme");
      for (const width of [1280, 390]) {
        await page.setViewport({ width, height: 850 });
        for (const part of ["", "details.failure summary", "details.more summary", "#rules summary"]) {
          // The first such list is opened.
          await page.evaluate((part) => { const list = part && document.querySelector(part)?.parentElement; if (list) { list.open = true; list.scrollIntoView(); } else scrollTo(0, 0); }, part);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(over <= 0, `${report}, ${part}: ${over} pixels wider than ${width}`);
          if (shots) await page.screenshot({ path: join(shots, `${report}-${part.replace(/\W+/g, "-")}${width}-${theme}-${name}.png`) });
        }
      }
      assert.deepEqual(await page.evaluate(poorContrast), [], `${report}, ${theme}`);
    }
    await page.setViewport({ width: 1280, height: 850 });
  }
  await themeIsKept(page, reports.builtin);
  await addresses(page, reports.builtin);
  await listedFailures(page, reports.liar);
  if (reports.testee) {
    await failuresFirst(page, reports.testee);
    await filterByKeyboard(page, reports.testee, browser);
    await completeRun(page, reports.complete);
  }
  await print(name, page, reports.liar);
  assert.deepEqual(wrong, []);
  await page.close();
  if (name === "Chromium") {
    await systemTheme(browser, reports.builtin);
    await withoutScripts(browser, reports.liar);
    await fromServer(browser, reports.liar);
  }
}

/** Opens a report, and waits until its script has built the filter. */
async function open(page, path, hash = "") {
  await page.goto("about:blank");
  await page.goto(pathToFileURL(path).href + hash);
  await page.waitForSelector("form.filter:not([hidden])");
}

function text(page, place) {
  return page.$eval(place, (node) => node.textContent);
}

function isOpen(page, id) {
  return page.evaluate((id) => document.getElementById(id)?.open, id);
}

/** Waits until the line below the filter matches, and returns it. */
async function counted(page, pattern) {
  await page.waitForFunction((source) => new RegExp(source).test(document.getElementById("count").textContent), { timeout: 5_000 }, pattern.source)
    .catch(async () => assert.fail(`no ${pattern} in \`${await text(page, "#count")}\``));
}

/** Sets the fragment of the address, as a reader does in the bar of the browser. */
function address(page, hash) {
  return page.evaluate((hash) => { location.hash = hash; }, hash);
}

/** Returns whether the page is light or dark. */
function scheme(page) {
  return page.evaluate(() => getComputedStyle(document.body).color === "rgb(231, 234, 239)" ? "dark" : "light");
}

/** The choice between light and dark holds after a reload. */
async function themeIsKept(page, path) {
  await open(page, path);
  const before = await scheme(page);
  await page.click("#theme");
  const after = await scheme(page);
  assert.notEqual(after, before);
  await open(page, path);
  assert.equal(await scheme(page), after);
}

/** The page follows the scheme of the system until the reader chooses. */
async function systemTheme(browser, path) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  for (const value of ["dark", "light"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await open(page, path);
    assert.equal(await scheme(page), value);
  }
  await context.close();
}

/** Addresses of a rule, of a case that passes, of a filter, and of nothing. */
async function addresses(page, path) {
  await open(page, path, "#TREE-03");
  assert.equal(await isOpen(page, "TREE-03"), true);
  assert.match(await text(page, "#TREE-03"), /\d+ pass TREE-03 Rows never run backwards.*show these cases/s);
  await address(page, "#import_tree/row-runs-backwards");
  await page.waitForFunction(() => document.getElementById("import_tree/row-runs-backwards")?.open);
  const row = await page.evaluate(() => document.getElementById("import_tree/row-runs-backwards").textContent);
  assert.match(row, /TREE-03.*why.*origin.*releases.*tvmspec check --impl builtin --case import_tree\/row-runs-backwards$/s);
  await address(page, "#verdict=pass&words=backwards+tree-03");
  await counted(page, /^\d+ of \d+ cases, 0 of them fail$/);
  // An address inside the filtered page ends the filter.
  await address(page, "#wire");
  await page.waitForFunction(() => !document.getElementById("whole").hidden);
  for (const nothing of ["#%", "#no/such/case", "#verdict=none", "#=", "#%E0%A4%A"]) await address(page, nothing);
  // The list of a chapter, and one of its cases, by mouse.
  await open(page, path);
  await page.click("#wire > summary");
  await page.waitForSelector("#wire details.case");
  await page.click("#wire details.case > summary");
  await page.waitForSelector("#wire details.case[open] dl");
}

/** New failures precede known ones, and both precede the chapters. A short title names the implementation, its path is a detail. */
async function failuresFirst(page, path) {
  await open(page, path);
  const order = await page.$$eval("h2", (all) => all.map((each) => each.textContent.replace(/:.*/, "")));
  assert.deepEqual(order, ["Failures", "Known failures", "Cases that do not fail", "Rules"]);
  assert.equal(await text(page, "h1"), "<img src=x onerror=alert(1)>&amp; 1");
  assert.equal(await page.$("img"), null);
  assert.match(await page.title(), /: \d+ failures$/);
  assert.match(await text(page, "#known"), /: 1$/);
  assert.match(await page.evaluate(() => document.getElementById("import_tree/row-runs-backwards").textContent), /known\s*a known reason <b>/);
  // The number of failures in the table leads to them.
  await page.click(".chapters a.bad");
  assert.equal(await page.evaluate(() => location.hash), "#failures-import_tree");
}

/** Reaches each field by the tabulator, and opens the filtered page again by its address. */
async function filterByKeyboard(page, path, browser) {
  await open(page, path);
  const all = Number((await text(page, "#failures")).match(/\d+/)[0]);
  assert.ok(all > 1, `${all} failures`);
  for (let presses = 0; presses < 60 && await page.evaluate(() => document.activeElement.name) !== "words"; presses += 1) await page.keyboard.press("Tab");
  // Two words of a rule's title, and a part of the name of a case.
  await page.keyboard.type("never BACKWARDS row");
  await counted(page, /^\d+ of \d+ cases, \d+ of them fail$/);
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => location.hash.includes("verdict=failures"));
  await page.keyboard.press("Tab");
  await page.keyboard.press("End");
  await page.waitForFunction(() => /^#words=never\+BACKWARDS\+row&verdict=failures&release=0\.\d+$/.test(location.hash));
  await counted(page, /^[1-9]\d* of \d+ cases, [1-9]\d* of them fail$/);
  const [line, shown] = [await text(page, "#count"), await page.$$eval("details.failure", (entries) => entries.filter((entry) => entry.checkVisibility()).map((entry) => entry.id))];
  assert.equal(shown.length, Number(line.match(/\d+/)[0]));
  assert.match(await text(page, "#failures"), new RegExp(`${shown.length} of ${all}$`));
  // The same in another window, and after a reload.
  const other = await browser.newPage();
  for (let opened = 0; opened < 2; opened += 1) {
    await open(other, path, new URL(page.url()).hash);
    await counted(other, new RegExp(`^${line}$`));
    if (!opened) await other.reload();
  }
  await other.close();
  await page.bringToFront();
  // A folded failure opens by keyboard, after the button that clears the filter.
  await page.evaluate(() => { for (const entry of document.querySelectorAll("details.failure")) entry.open = false; });
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "clear");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await isOpen(page, shown[0]), true);
  await page.keyboard.down("Shift");
  await page.keyboard.press("Tab");
  await page.keyboard.up("Shift");
  await page.keyboard.press("Enter");
  await counted(page, /^$/);
  assert.equal(await page.evaluate(() => document.activeElement.name), "words");
  assert.match(await text(page, "#failures"), new RegExp(` ${all}$`));
}

/** Failures without a description: lists by reason, whose rows open, and which the filter finds. */
async function listedFailures(page, path) {
  await open(page, path);
  const lists = await page.$$eval("details.more", (all) => all.length);
  assert.ok(lists >= 1, `${lists} lists`);
  const described = await page.$$eval("details.failure", (all) => all.length);
  const items = await page.$$eval("details.more li", (all) => all.map((each) => each.textContent));
  assert.equal(described + items.length, Number((await text(page, "#failures")).match(/\d+/)[0]));
  // Each chapter has described ones.
  const chapters = await page.$$eval("details.failure", (all) => [...new Set(all.map((each) => each.id.split("/")[0]))]);
  assert.deepEqual(chapters, ["wire", "tensor", "import_tree"]);
  await address(page, `#${items.at(-1)}`);
  await page.waitForFunction((id) => document.getElementById(id)?.open, {}, items.at(-1));
  assert.match(await page.evaluate((id) => document.getElementById(id).textContent, items.at(-1)), /reason\s*expected .*why/s);
  await address(page, `#words=${items.at(-1)}`);
  await counted(page, /^\d+ of \d+ cases, [1-9]\d* of them fail$/);
  assert.ok(await page.$$eval(".more + .rows summary", (rows, id) => rows.some((row) => row.textContent.includes(id) && / expected .*, got /.test(row.textContent)), items.at(-1)));
}

/** With --complete an unsupported case is a failure, also in the lists of rules. */
async function completeRun(page, path) {
  await open(page, path, "#WIRE-01");
  assert.match(await text(page, "#WIRE-01 summary"), /^(\d+) of \1 fail/);
  assert.match(await text(page, "#failures-wire"), /^wire: \d+$/);
}

/** On paper every failure is open and dark on white, and the fields are left out. On the screen they are folded again. */
async function print(name, page, path) {
  await open(page, path);
  const folded = await page.$$eval("details:not([open])", (all) => all.length);
  if ((await scheme(page)) !== "dark") await page.click("#theme");
  if (name === "Chromium") {
    await page.emulateMediaType("print");
    assert.equal(await scheme(page), "light");
    const hidden = await page.$$eval("details.failure > dl, details.failure > pre, details.more li", (all) => all.filter((each) => !each.checkVisibility()).length);
    assert.equal(hidden, 0);
    assert.deepEqual(await page.evaluate(poorContrast), []);
    if (shots) await page.screenshot({ path: join(shots, `print-${name}.png`) });
    await page.emulateMediaType();
    assert.ok((await page.pdf()).length > 100_000);
  } else {
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.$("details.failure:not([open]), details.more:not([open])"), null);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  }
  assert.equal(await page.$$eval("details:not([open])", (all) => all.length), folded);
}

/** Without scripts the failures are readable, and nothing is shown that does not work. */
async function withoutScripts(browser, path) {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(path).href);
  assert.equal(await page.$$eval("form, #theme", (all) => all.filter((each) => each.checkVisibility()).length), 0);
  await page.click("details.failure > summary");
  assert.ok(await page.$eval("details.failure > dl", (each) => each.checkVisibility()));
  await page.click("details.more > summary");
  assert.ok(await page.$eval("details.more li", (each) => each.checkVisibility()));
  await page.click("#wire > summary");
  assert.match(await text(page, "#wire"), /This list needs JavaScript/);
  await page.close();
}

/** Over HTTP the page makes no request but its own. */
async function fromServer(browser, path) {
  const content = readFileSync(path);
  const asked = [];
  const server = createServer((request, response) => { asked.push(request.url); response.setHeader("content-type", "text/html"); response.end(content); });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForSelector("form.filter:not([hidden])");
  assert.deepEqual(asked, ["/"]);
  server.close();
  await page.close();
}

/** Runs in the page: the texts whose contrast is below 4.5 (WCAG AA). */
function poorContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ratios = new Map();
  const ratio = (front, back) => {
    const key = `${front} ${back}`;
    if (!ratios.has(key)) {
      const [one, other] = [light(rgb(front)), light(rgb(back))];
      ratios.set(key, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
    }
    return ratios.get(key);
  };
  const under = (node) => { for (let at = node; at; at = at.parentElement) { const color = getComputedStyle(at).backgroundColor; if (!/^rgba.*, 0\)$|transparent/.test(color)) return color; } return "white"; };
  const poor = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("script")) continue;
    const found = ratio(getComputedStyle(node).color, under(node));
    if (found < 4.5) poor.push(`${found.toFixed(2)} ${node.outerHTML.slice(0, 120)}`);
  }
  return poor.slice(0, 5);
}
