// Opens the site of book/build in real browsers, and uses it by keyboard alone.
//
//   cd web && npm ci && node site.test.mjs SITE_FOLDER [--shots FOLDER]
//
// Browsers: CHROMIUM and FIREFOX, or chromium and firefox-esr of the PATH. If a browser is missing, its part is skipped with the reason.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, extname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const site = process.argv[2];
if (!site || !existsSync(join(site, "matrix.html"))) {
  console.error("site.test.mjs: name the folder of a site, which `book/build FOLDER` writes");
  process.exit(2);
}
const at = process.argv.indexOf("--shots");
const shots = at < 0 ? undefined : process.argv[at + 1];
if (shots) mkdirSync(shots, { recursive: true });

/** The pages that are opened at both widths and in both schemes, each with a text that it must have. */
const PAGES = {
  "index.html": "The TVM runtime, specified",
  "blob.html": "BLOB-07",
  "rules/BLOB-07.html": "golden/blob/tree-twice.bin",
  "rules/WIRE-01.html": "Example",
  "rules/GRF-01.html": "Cases",
  "rules/TGT-88.html": "Code",
  "matrix.html": "BLOB-07",
  "results/tvm-0.27.html": "Failed cases",
  "results/builtin.html": "No case fails",
  "spec-index.html": "VM-01",
  "global-functions.html": "release",
  "bytes/payload.html": "golden/",
  "src/blob/streamed.rs.html": "BLOB-07",
};

/** The results from which the site was built, by the id of the implementation. */
const folder = fileURLToPath(new URL("../book/results/", import.meta.url));
const ids = readdirSync(folder).map((file) => basename(file, ".json")).filter((id) => existsSync(join(site, "results", `${id}.html`)));
const results = Object.fromEntries(ids.map((id) => [id, JSON.parse(readFileSync(join(folder, `${id}.json`), "utf8"))]));
const breaking = (rule) => Object.entries(results).filter(([, result]) => result.rules[rule]?.[1]).map(([id]) => id).sort();

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
  const profile = mkdtempSync(join(tmpdir(), "tvmspec-site-"));
  const browser = await puppeteer.launch({ executablePath: path, headless: true, userDataDir: profile, ...options });
  const version = await browser.version();
  try {
    await fromDisk(name, browser);
    if (name === "Chromium") {
      await withoutScripts(browser);
      await printed(browser);
      await fromServer(browser);
    }
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
  console.log(`${version}: good, ${((Date.now() - began) / 1000).toFixed(0)} s`);
}

function address(page) {
  return pathToFileURL(resolve(site)).href + "/" + page;
}

async function fromDisk(name, browser) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => { if (["error", "warn", "warning"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => { if (!/^(file|data|about):/.test(request.url())) wrong.push(`request ${request.url()}`); });
  for (const [path, wanted] of Object.entries(PAGES)) {
    await page.goto(address(path));
    assert.ok((await text(page, "main")).includes(wanted), `${path}: no \`${wanted}\``);
    for (const theme of ["light", "dark"]) {
      if (await page.evaluate(() => shown()) !== theme) await page.click("#theme");
      assert.deepEqual(await page.evaluate(poorContrast), [], `${path}, ${theme}`);
      for (const width of [1280, 390]) {
        await page.setViewport({ width, height: 850 });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${path}: ${over} pixels wider than ${width}`);
        if (shots) await page.screenshot({ path: join(shots, `${path.replaceAll("/", "-")}-${theme}-${width}-${name}.png`) });
      }
    }
  }
  await page.setViewport({ width: 1280, height: 850 });
  for (const part of [skipLink, storedTheme, searched, answeredBySearch, answeredByTable, compared, permalinks, implementation]) {
    await part(page, name);
    assert.deepEqual(wrong, [], part.name);
  }
  await page.close();
}

function text(page, place) {
  return page.$eval(place, (node) => node.textContent);
}

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

/** Presses Tab until the focused element matches, and returns the number of presses. */
async function tabTo(page, selector, most = 60) {
  for (let presses = 1; presses <= most; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return presses;
  }
  assert.fail(`${selector}: not reached by ${most} presses of Tab`);
}

async function shot(page, name, browser) {
  if (shots) await page.screenshot({ path: join(shots, `${name}-${browser}.png`) });
}

/** The first stop of the Tab key leads to the content. */
async function skipLink(page) {
  await page.goto(address("rules/BLOB-07.html"));
  await tabTo(page, ".skip", 1);
  await press(page, "Enter");
  await tabTo(page, "main a", 1);
}

/** The stored colours are set before the body is there. */
async function storedTheme(page) {
  await page.goto(address("index.html"));
  if (await page.evaluate(() => shown()) !== "dark") await page.click("#theme");
  assert.ok(await page.evaluate(() => [...document.head.querySelectorAll("script")].some((script) => script.textContent.includes("dataset.theme"))));
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.click("#theme");
}

/** Types into the search after `/`, and returns the texts of the hits. */
async function search(page, words) {
  await page.evaluate(() => document.activeElement.blur());
  await press(page, "/");
  await press(page, "Backspace");
  await page.keyboard.type(words);
  await page.waitForFunction((words) => document.getElementById("search").value === words && !document.getElementById("hits").hidden && document.getElementById("found").textContent, {}, words)
    .catch(async () => assert.fail(`${words}: ${await page.evaluate(() => [document.activeElement.id, document.getElementById("search").value, document.getElementById("found").textContent].join(", "))}`));
  // The answer to the last letter, not to the one before it.
  await page.evaluate(() => search());
  return page.$$eval("#hits li", (all) => all.map((each) => each.textContent));
}

async function searched(page, browser) {
  await page.goto(address("vm.html"));
  for (const words of ["blob7", "blob 07", "blob-7", "BLOB-07", "BLOB07"]) {
    assert.match((await search(page, words))[0], /^BLOB-07 The import tree occurs once/, words);
  }
  assert.ok((await search(page, "kinds")).some((hit) => hit.startsWith("Module kinds") || /^kinds/i.test(hit)));
  assert.match((await search(page, "tree-twice")).join("\n"), /blob\/streams\/tree-twice-at-once.*BLOB-07/);
  // Words of Upstream alone.
  assert.match((await search(page, "readers use the last one")).join("\n"), /^BLOB-07/m);
  assert.deepEqual(await search(page, "no such words at all"), ["nothing found"]);
  assert.equal(await text(page, "#found"), "nothing found");
  const many = await search(page, "module");
  assert.match(many.at(-1), /^\d+ more$/);
  await shot(page, "search", browser);
  await press(page, ...Array(21).fill("ArrowDown"), "Enter");
  await page.waitForFunction(() => document.querySelectorAll("#hits a").length > 20 && document.activeElement === document.querySelectorAll("#hits a")[20]);
  // Escape returns to the box, and a second visit shows the hits again.
  await press(page, "Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  assert.ok(await page.$eval("#hits", (hits) => hits.hidden));
  await press(page, "ArrowDown");
  await page.waitForSelector("#hits:not([hidden])");
  await page.mouse.click(20, 600);
  assert.ok(await page.$eval("#hits", (hits) => hits.hidden));
  await press(page, "/");
  await page.waitForSelector("#hits:not([hidden])");
}

/** Which implementations get BLOB-07 wrong? By the search. */
async function answeredBySearch(page, browser) {
  await page.goto(address("index.html"));
  await search(page, "blob7");
  await Promise.all([page.waitForNavigation(), press(page, "Enter")]);
  assert.match(page.url(), /rules\/BLOB-07\.html$/);
  // The line above the norm leads to the implementations that fail, and each of these to its failed case.
  await tabTo(page, ".badge a");
  await press(page, "Enter");
  const failing = await page.$$eval("#results ~ .scroll tr[id]", (rows) => rows.map((row) => row.id).sort());
  assert.deepEqual(failing, breaking("BLOB-07"));
  await shot(page, "answer", browser);
  await tabTo(page, "tr[id] a[href*='#blob/']");
  await Promise.all([page.waitForNavigation(), press(page, "Enter")]);
  assert.ok(await page.$eval("details[open]", (failure) => /BLOB-07.*expected.*actual/s.test(failure.textContent)));
}

/** Which implementations get BLOB-07 wrong? By the table. */
async function answeredByTable(page, browser) {
  await page.goto(address("matrix.html"));
  await tabTo(page, "#filter [name=words]");
  await page.keyboard.type("blob7");
  await page.waitForFunction(() => document.querySelectorAll("#matrix tbody tr").length === 1);
  assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("words"), "blob7");
  await tabTo(page, "#matrix a", 10);
  const failing = [];
  for (;;) {
    await press(page, "ArrowRight");
    const label = await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? "");
    if (/fails?\b/.test(label)) failing.push(await page.evaluate(() => document.activeElement.getAttribute("href").split("#")[1]));
    if (await page.evaluate(() => !document.activeElement.closest("td, th").nextElementSibling)) break;
  }
  assert.deepEqual(failing.sort(), breaking("BLOB-07"));
  await shot(page, "table-filtered", browser);
  await press(page, "Home");
  while (!await page.evaluate(() => document.activeElement.matches(".bad a"))) await press(page, "ArrowRight");
  await Promise.all([page.waitForNavigation(), press(page, "Enter")]);
  assert.match(page.url(), /rules\/BLOB-07\.html#/);
  // The table is one stop, and the head never covers a focused cell.
  await page.goto(address("matrix.html"));
  await tabTo(page, "#matrix a", 60);
  await press(page, "ArrowDown", "ArrowDown", "End", "PageDown");
  const [top, head] = await page.evaluate(() => [document.activeElement.getBoundingClientRect().top, document.querySelector("#matrix thead").getBoundingClientRect().bottom]);
  assert.ok(top >= head - 1, "the head covers the focused cell");
  await page.keyboard.down("Shift");
  await press(page, "Tab");
  await page.keyboard.up("Shift");
  assert.ok(!await page.evaluate(() => document.activeElement.closest("#matrix")));
}

/** Two implementations side by side, chosen by keyboard, and the order and the verdicts of rows. */
async function compared(page, browser) {
  await page.goto(address("matrix.html"));
  const ids = ["tvm-0.27", "tvm-0.25"];
  await tabTo(page, "#implementations summary");
  await press(page, " ");
  await page.waitForSelector("#implementations[open]");
  await shot(page, "implementations", browser);
  for (const id of ids) {
    await page.focus(`[name=impl][value="${id}"]`);
    await press(page, " ");
  }
  await page.waitForFunction(() => document.querySelectorAll("#matrix thead th").length === 4);
  await page.select("[name=verdict]", "differ");
  await page.waitForFunction(() => location.hash.includes("differ"));
  const differing = Object.keys(results[ids[0]].rules).filter((rule) => {
    const kinds = ids.map((id) => results[id].rules[rule] ?? [0, 0]).filter(([passed, bad]) => passed + bad).map(([, bad]) => bad > 0);
    return new Set(kinds).size > 1;
  });
  assert.deepEqual(await rulesOf(page), differing.sort());
  await shot(page, "compared", browser);
  await page.goto(address("matrix.html#sort=failures"));
  await page.reload();
  const sums = await page.$$eval("#matrix td.sum", (cells) => cells.map((cell) => Number(cell.textContent)));
  assert.deepEqual(sums, [...sums].sort((a, b) => b - a));
  await page.select("[name=verdict]", "lost");
  await page.waitForFunction(() => [...document.querySelectorAll("#matrix tbody tr")].every((row) => row.textContent.includes("!")));
  await page.click("#filter button[type=reset]");
  await page.waitForFunction(() => !location.hash);
  assert.equal(await page.$eval("[name=verdict]", (field) => field.value), "bad");
  // A group chooses its members.
  await page.click("#implementations summary");
  await page.$$eval(".group", (groups) => groups.find((group) => group.closest("label").textContent.trim() === "tvm-ffi").click());
  await page.waitForFunction(() => /^\d+ of \d+$/.test(document.getElementById("chosen").textContent));
  const members = Object.keys(results).filter((id) => id.startsWith("tvm-ffi"));
  assert.equal(Number((await text(page, "#chosen")).split(" ")[0]), members.length);
}

function rulesOf(page) {
  return page.$$eval("#matrix tbody th a", (links) => links.map((link) => link.textContent).sort());
}

/** Addresses with a filter, at first and later, and addresses that are not of this site. */
async function permalinks(page) {
  await page.goto(address("matrix.html#impl=tvm-0.9&chapter=blob&words=tree+once"));
  await page.reload();
  assert.deepEqual(await rulesOf(page), ["BLOB-07"]);
  assert.match(await text(page, "#matrix thead"), /TVM 0\.9/);
  await page.evaluate(() => { location.hash = "words=wire-01&verdict="; });
  await page.waitForFunction(() => document.querySelector("#matrix tbody a").textContent === "WIRE-01");
  assert.equal(await page.$eval("[name=chapter]", (field) => field.value), "");
  for (const broken of ["#%", "#verdict=nonsense", "#implementation=3", "#impl=none"]) {
    await page.goto(address("matrix.html") + broken);
    await page.reload();
    assert.ok((await rulesOf(page)).length > 50, broken);
  }
  await page.goto(address("matrix.html#words=no+such+rule"));
  await page.reload();
  assert.equal(await text(page, "#count"), "No rule matches the filter.");
  await page.goto(address("matrix.html#verdict="));
  await page.reload();
  assert.match(await text(page, "#count"), new RegExp(`^${(await rulesOf(page)).length} of `));
}

/** The page of an implementation: its filter, and the link of one case. */
async function implementation(page, browser) {
  const id = "tvm-0.27", { failures } = results[id];
  const [first, { rules }] = Object.entries(failures).find(([, failure]) => failure.verdict !== "fail");
  await page.goto(address(`results/${id}.html#${first}`));
  await page.reload();
  assert.equal(await page.$eval("details[open]", (failure) => failure.id), first);
  await shot(page, "failure", browser);
  await page.goto(address(`results/${id}.html#words=${rules[0]}`));
  await page.reload();
  const wanted = Object.values(failures).filter((failure) => failure.rules.includes(rules[0])).length;
  const visible = () => page.$$eval("details[data-verdict]:not([hidden])", (all) => all.filter((each) => each.checkVisibility()).length);
  assert.ok(await visible() >= wanted && await visible() < Object.keys(failures).length);
  await page.select("[name=verdict]", "crash");
  const crashes = Object.values(failures).filter((failure) => failure.verdict === "crash").length;
  await page.$eval("[name=words]", (field) => { field.value = ""; field.dispatchEvent(new Event("input", { bubbles: true })); });
  await page.waitForFunction((crashes) => document.getElementById("count").textContent.startsWith(`${crashes} of `), {}, crashes);
  await shot(page, "failures", browser);
}

/** Runs in the page: the texts whose contrast is below 4.5. */
function poorContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgb = (color) => {
    if (!known.has(color)) { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); known.set(color, canvas.getImageData(0, 0, 1, 1).data); }
    return known.get(color);
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const back = (node) => { for (let at = node; at; at = at.parentElement) { const color = getComputedStyle(at).backgroundColor; if (rgb(color)[3] === 255) return color; } return getComputedStyle(document.body).backgroundColor; };
  const poor = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("script, noscript")) continue;
    const [front, below] = [light(rgb(getComputedStyle(node).color)), light(rgb(back(node)))];
    const ratio = (Math.max(front, below) + 0.05) / (Math.min(front, below) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${node.outerHTML.slice(0, 120)}`);
  }
  return poor.slice(0, 5);
}

/** Without JavaScript the results are there, and nothing that does not work. */
async function withoutScripts(browser) {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.goto(address("matrix.html"));
  const row = await page.$$eval("noscript tr", (rows) => rows.find((each) => each.textContent.includes("BLOB-07"))?.textContent ?? "");
  for (const id of breaking("BLOB-07")) assert.ok(row.includes(results[id].name), row);
  for (const place of ["#search", "#theme", "#filter"]) assert.equal(await page.$eval(place, (node) => node.checkVisibility()), false, place);
  await page.close();
}

/** On paper, the text is dark, the whole table is there, and failures are open. */
async function printed(browser) {
  const page = await browser.newPage();
  await page.goto(address("matrix.html"));
  await page.evaluate(() => { document.documentElement.dataset.theme = "dark"; });
  await page.emulateMediaType("print");
  assert.deepEqual(await page.evaluate(poorContrast), []);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.ok(await page.$eval("#table", (table) => table.clientHeight >= table.scrollHeight));
  await page.goto(address("results/tvm-0.27.html"));
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.$eval("details", (failure) => failure.open), true);
  await page.close();
}

/** The same site over HTTP: every request is for a file of the site. */
async function fromServer(browser) {
  const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };
  const missing = [];
  const server = createServer((request, response) => {
    const path = join(resolve(site), decodeURIComponent(new URL(request.url, "http://site").pathname));
    if (!existsSync(path)) { missing.push(request.url); response.writeHead(404).end(); return; }
    response.setHeader("content-type", types[extname(path)] ?? "text/plain");
    response.end(readFileSync(path));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const page = await browser.newPage();
  const base = `http://127.0.0.1:${server.address().port}/`;
  page.on("request", (request) => { if (!request.url().startsWith(base) && !request.url().startsWith("data:")) missing.push(request.url()); });
  for (const path of ["index.html", "matrix.html", "rules/BLOB-07.html"]) await page.goto(base + path);
  assert.match((await search(page, "blob7"))[0], /^BLOB-07/);
  assert.deepEqual(missing, []);
  server.close();
  await page.close();
}
