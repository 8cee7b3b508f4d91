// Tests of the drawings, the tensors, the objects, the sources and the page of a profile. test.mjs runs them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const shots = process.argv.includes("--shots") ? process.argv[process.argv.indexOf("--shots") + 1] : undefined;

/** Runs all tests on an open page. @param {string} name the name of the browser */
export async function testViews(page, name) {
  const folder = mkdtempSync(join(tmpdir(), "tvmspec-views-"));
  try {
    await keys(page);
    await largeGraph(page, folder, name);
    await outputs(page, folder);
    await values(page, folder, name);
    await manyTensors(page, folder);
    await objects(page, name);
    await cache(page);
    await sources(page, folder);
    await profile(page, folder, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function open(page, path) {
  await page.evaluate(() => document.getElementById("another").click());
  await (await page.waitForSelector("#file")).uploadFile(path);
  await page.waitForSelector("[role=tablist], [role=alert]", { timeout: 30_000 });
}

function text(page, place) {
  return page.$eval(place, (node) => node.textContent);
}

async function shot(page, title, name) {
  if (!shots) return;
  for (const width of [1280, 390]) {
    await page.setViewport({ width, height: 850 });
    for (const theme of ["light", "dark"]) {
      await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; }, theme);
      await page.screenshot({ path: join(shots, `views-${title}-${width}-${theme}-${name}.png`) });
    }
  }
  await page.evaluate(() => { delete document.documentElement.dataset.theme; });
  await page.setViewport({ width: 1280, height: 850 });
}

/** Tests the keys of a drawing: one node is reached by Tab, the arrow keys reach all others, and Escape ends a choice. */
async function keys(page) {
  await open(page, join(root, "golden/graph/models/v0.19/dtypes.so"));
  await page.click("#tab-graph");
  await page.waitForSelector("#panel-graph .node");
  const reached = () => page.$$eval("#panel-graph .node[tabindex='0']", (all) => all.map((each) => each.getAttribute("aria-label")));
  assert.equal((await reached()).length, 1);
  const seen = new Set();
  await page.$eval("#panel-graph .node[tabindex='0']", (node) => node.focus());
  await page.keyboard.press("Home");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  for (let at = 0; at < 11; at += 1) { seen.add(await focused()); await page.keyboard.press("ArrowRight"); }
  assert.equal(seen.size, 11);
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(), /cast/);
  await page.keyboard.press("ArrowUp");
  assert.match(await focused(), /^x,/);
  await page.keyboard.press("Enter");
  assert.ok(await page.$("#panel-graph .node.dim"));
  for (const theme of ["light", "dark"]) {
    await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; }, theme);
    assert.deepEqual(await page.evaluate(poorDrawing), [], theme);
  }
  await page.keyboard.press("Escape");
  assert.equal(await page.$("#panel-graph .node.dim"), null);
  for (const theme of ["light", "dark"]) {
    await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; }, theme);
    assert.deepEqual(await page.evaluate(poorDrawing), [], theme);
  }
  await page.evaluate(() => { delete document.documentElement.dataset.theme; });
}

/** Finds nodes whose border has a contrast below 3 to a side of it, or whose text has one below 4.5. Runs in the page. */
function poorDrawing() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const back = getComputedStyle(document.querySelector("#panel-graph .drawing")).backgroundColor;
  return [...document.querySelectorAll("#panel-graph .node")].flatMap((node) => {
    const { fill, stroke } = getComputedStyle(node.querySelector("rect"));
    return [ratio(stroke, fill) < 3, ratio(stroke, back) < 3, ...[...node.querySelectorAll("text")].map((each) => ratio(getComputedStyle(each).fill, fill) < 4.5)].includes(true) ? [`${node.getAttribute("aria-label")}: ${fill} ${stroke}`] : [];
  });
}

/** Tests a graph of 1,000 nodes: it is drawn in seconds, a parameter is next to its user, and no two nodes overlap. */
async function largeGraph(page, folder, name) {
  const nodes = [{ op: "null", name: "x", inputs: [] }, { op: "null", name: "mask", inputs: [] }];
  let [last, skip] = [0, 0];
  for (let layer = 1; nodes.length < 1000; layer += 1) {
    const weight = nodes.push({ op: "null", name: `p${layer}`, inputs: [] }) - 1;
    const inputs = [[last, 0, 0], [weight, 0, 0], ...(layer % 3 === 0 ? [[skip, 0, 0]] : []), ...(layer % 10 === 0 ? [[1, 0, 0]] : [])];
    last = nodes.push({ op: "tvm_op", name: `conv${layer}`, attrs: { func_name: "conv", num_inputs: String(inputs.length), num_outputs: "1", flatten_data: "0" }, inputs }) - 1;
    if (layer % 3 === 0) skip = last;
  }
  const count = nodes.length;
  const list = (type, value) => [type, nodes.map(value)];
  writeFileSync(join(folder, "large.json"), JSON.stringify({
    nodes, arg_nodes: nodes.flatMap((node, at) => (node.op === "null" ? [at] : [])), heads: [[last, 0, 0]], node_row_ptr: Array.from({ length: count + 1 }, (_, at) => at),
    attrs: { shape: list("list_shape", () => [1, 64, 56, 56]), dltype: list("list_str", () => "float32"), storage_id: list("list_int", (_, at) => at) },
  }));
  await open(page, join(folder, "large.json"));
  const began = Date.now();
  await page.click("#tab-graph");
  await page.waitForSelector("#panel-graph .node");
  const took = Date.now() - began;
  assert.ok(took < 5000, `${took} ms`);
  const boxes = await page.$$eval("#panel-graph .node", (all) => all.map((each) => {
    const [x, y] = /translate\(([-\d.]+) ([-\d.]+)\)/.exec(each.getAttribute("transform")).slice(1).map(Number);
    const rect = each.querySelector("rect");
    return { name: each.querySelector("text").textContent, x, y, width: Number(rect.getAttribute("width")), height: Number(rect.getAttribute("height")) };
  }));
  assert.equal(boxes.length, count);
  for (const [at, box] of boxes.entries()) {
    for (const other of boxes.slice(at + 1, at + 30)) {
      assert.ok(box.x + box.width <= other.x || other.x + other.width <= box.x || box.y + box.height <= other.y || other.y + other.height <= box.y, `${box.name} overlaps ${other.name}`);
    }
  }
  const named = new Map(boxes.map((box) => [box.name, box]));
  for (const layer of [1, 100, 400]) {
    const [weight, call] = [named.get(`p${layer}`), named.get(`conv${layer}`)];
    assert.ok(call.y - weight.y > 0 && call.y - weight.y < 150 && Math.abs(call.x - weight.x) < 600, `p${layer}: ${JSON.stringify([weight, call])}`);
  }
  const width = Math.max(...boxes.map((box) => box.x + box.width));
  assert.ok(width < 2000, `${width} pixels wide`);
  await shot(page, "large", name);
}

/** Tests nodes with several outputs, and a graph of which only a part is drawn. */
async function outputs(page, folder) {
  await open(page, join(root, "golden/graph/models/v0.19/multi_out.so"));
  await page.click("#tab-graph");
  await page.waitForSelector("#panel-graph .node");
  const graph = JSON.parse(readFileSync(join(root, "golden/graph/multi-out-0.19.json"), "utf8"));
  const several = graph.nodes.findIndex((_, at) => graph.node_row_ptr[at + 1] - graph.node_row_ptr[at] > 1);
  assert.ok(several >= 0);
  await page.$$eval("#panel-graph .node", (all) => all.map((each) => each.getAttribute("aria-label"))).then((labels) => assert.ok(labels.some((label) => /\].*\].*storage \d+, \d+/.test(label)), labels.join("; ")));
  // A call with 200,000 inputs, of which most nodes do not exist.
  const inputs = Array.from({ length: 200_000 }, (_, at) => [at % 5000, 0, 0]);
  const nodes = [...Array.from({ length: 4000 }, (_, at) => ({ op: "null", name: `x${at}`, inputs: [] })), { op: "tvm_op", name: "f", attrs: {}, inputs }];
  writeFileSync(join(folder, "hostile.json"), JSON.stringify({ nodes: [nodes[4000], ...nodes.slice(0, 4000)], arg_nodes: [], heads: [[0, 0, 0]], attrs: {}, node_row_ptr: [] }));
  await open(page, join(folder, "hostile.json"));
  await page.click("#tab-graph");
  await page.waitForFunction(() => /The first 3,000 of 4,001 nodes are drawn/.test(document.querySelector("#panel-graph").textContent));
}

/** Returns a parameter file. @param {[string, [number, number], number[], number[]][]} tensors name, code and bits, shape, bytes */
function params(tensors) {
  const parts = [];
  const put = (bytes, write) => { const part = Buffer.alloc(bytes); write(part); parts.push(part); };
  const long = (value) => put(8, (part) => part.writeBigUInt64LE(BigInt(value)));
  const int = (value) => put(4, (part) => part.writeInt32LE(value));
  for (const value of ["0xF7E58D4F05049CB7", 0, tensors.length]) long(value);
  for (const [name] of tensors) { long(name.length); parts.push(Buffer.from(name)); }
  long(tensors.length);
  for (const [, [code, bits], shape, data] of tensors) {
    for (const value of ["0xDD5E40F096B4A13F", 0]) long(value);
    for (const value of [1, 0, shape.length]) int(value);
    parts.push(Buffer.from([code, bits, 1, 0]));
    for (const extent of shape) long(extent);
    long(data.length);
    parts.push(Buffer.from(data));
  }
  return Buffer.concat(parts);
}

/** Tests the values of small and half floats, of packed integers, and of the wide types. */
async function values(page, folder, name) {
  const cases = [
    ["four", [0, 4], [6], [0x01, 0x02, 0x07, 0xf8, 0xff, 0x00], /values6; each element in a byte.*-8, 0\.16667, 7/s],
    ["packed", [0, 4], [4], [0x21, 0x8f, 0, 0], /values4; packed, 4 bits.*-8, -1\.5, 2/s],
    ["unsigned", [1, 4], [2], [15, 1], /1, 8, 15/],
    ["e4m3fn", [10, 8], [4], [0x38, 0x7f, 0xff, 0x7e], /values4.*1, 224\.5, 448.*NaN, infinite2, 0/s],
    ["e5m2", [12, 8], [5], [0x3c, 0x7c, 0xfc, 0x7e, 0xbc], /-1, 0, 1.*NaN, infinite1, 2/s],
    ["e8m0", [14, 8], [3], [127, 128, 255], /1, 1\.5, 2.*NaN, infinite1, 0/s],
    ["bfloat16", [4, 16], [3], [0x80, 0x3f, 0xc0, 0x7f, 0x80, 0xff], /1, 1, 1.*NaN, infinite1, 1/s],
    ["float16", [2, 16], [4], [0x00, 0x3c, 0x00, 0x7e, 0x00, 0x7c, 0x00, 0xfc], /1, 1, 1.*NaN, infinite1, 2/s],
    ["long", [0, 64], [1], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], /-2, -2, -2/],
  ];
  writeFileSync(join(folder, "values.params"), params(cases));
  await open(page, join(folder, "values.params"));
  await page.click("#tab-tensors");
  for (const [title, , , , wanted] of cases) {
    await page.$$eval("#panel-tensors button.link", (all, title) => all.find((each) => each.textContent === title).click(), title);
    await page.waitForFunction((title) => document.querySelector("#panel-tensors h2").textContent === title && document.querySelector("#panel-tensors .pairs"), {}, title);
    assert.match(await text(page, "#panel-tensors section"), wanted, title);
    assert.ok(await page.$("#panel-tensors .histogram rect"), title);
  }
  await page.$eval("#panel-tensors button.link", (each) => each.click());
  await shot(page, "values", name);
}

/** Tests that every tensor of a long list is reached, by pages and by the filter. */
async function manyTensors(page, folder) {
  writeFileSync(join(folder, "many.params"), params(Array.from({ length: 5000 }, (_, at) => [`weight${at}`, [0, 8], [1], [at % 100]])));
  await open(page, join(folder, "many.params"));
  await page.click("#tab-tensors");
  const rows = () => page.$$eval("#panel-tensors tbody tr", (all) => all.map((each) => each.querySelector("td").textContent));
  assert.equal((await rows()).length, 200);
  await page.click("#panel-tensors [aria-label='next page']");
  assert.deepEqual((await rows())[0], "weight200");
  await page.type("#panel-tensors input[type=search]", "weight4999");
  assert.deepEqual(await rows(), ["weight4999"]);
  await page.click("#panel-tensors tbody button");
  await page.waitForFunction(() => document.querySelector("#panel-tensors h2").textContent === "weight4999" && /99, 99, 99/.test(document.querySelector("#panel-tensors section").textContent));
}

/** Tests the tree of saved objects of both eras. */
async function objects(page, name) {
  await open(page, join(root, "golden/object/map.json"));
  await page.click("#tab-parts");
  await page.waitForSelector("#panel-parts .tree");
  assert.match(await text(page, "#panel-parts .tree"), /root: ffi\.Map #4, 2 children.*"b": int 1.*"a": ffi\.String "x"/s);
  await open(page, join(root, "golden/object/ir-0.16.json"));
  await page.click("#tab-parts");
  await page.waitForSelector("#panel-parts .tree");
  await page.$$eval("#panel-parts .tree .tree summary", (all) => all.find((each) => each.textContent.startsWith("functions")).click());
  await page.waitForFunction(() => /functions: 2 → Map, 2 children.*key 0: GlobalVar #3.*value 0: tir\.PrimFunc/s.test(document.querySelector("#panel-parts .tree").textContent));
  assert.match(await text(page, "#panel-parts table"), /Array27runtime\.String13/);
  await shot(page, "objects", name);
}

/** Tests that the tensors of a tensor cache name their shards. */
async function cache(page) {
  await open(page, join(root, "golden/tensor/cache-0.27/tensor-cache.json"));
  await page.click("#tab-tensors");
  await page.$$eval("#panel-tensors button.link", (all) => all.find((each) => each.textContent === "empty").click());
  await page.waitForFunction(() => /float32 \[0, 2\].*params_shard_2\.bin/s.test(document.querySelector("#panel-tensors section").textContent));
}

/** Tests that a source with CR LF has no codes of control characters, and that its button copies it. */
async function sources(page, folder) {
  const bytes = readFileSync(join(root, "golden/blob/opencl-0.8.bin"));
  // Two letters of the first two lines become CR LF, so that no length changes.
  const start = bytes.indexOf("kernel");
  const end = bytes.indexOf(";\n", start);
  assert.ok(start > 0 && end > start);
  bytes.write("\r\n", end, "latin1");
  writeFileSync(join(folder, "crlf.bin"), bytes);
  await open(page, join(folder, "crlf.bin"));
  await page.click("#tab-modules");
  await page.waitForSelector("#panel-modules .source");
  const source = await text(page, "#panel-modules .source");
  assert.ok(!source.includes("\\u{d}") && !source.includes("\r"), source);
  await page.evaluate(() => { globalThis.taken = ""; Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => { globalThis.taken = text; } } }); });
  await page.$$eval("#panel-modules button", (all) => all.find((each) => each.textContent === "Copy").click());
  await page.waitForFunction(() => globalThis.taken.includes("\r\n"));
  await page.waitForFunction(() => /Copied\./.test(document.querySelector("#panel-modules").textContent));
}

/** Tests the page of `run --trace`, whose operators have hostile names. The model is for x86_64. */
async function profile(page, folder, name) {
  const program = [process.env.TVMSPEC, join(root, "target/debug/tvmspec"), join(root, "target/release/tvmspec")].find((path) => path && existsSync(path));
  if (!program || process.arch !== "x64" || process.platform !== "linux") {
    console.log("profile: skipped, because it needs tvmspec (TVMSPEC or target/) on Linux and x86_64");
    if (process.env.TVMSPEC_SKIPS === "fail") process.exitCode = 1;
    return;
  }
  const graph = JSON.parse(readFileSync(join(root, "golden/graph/resnet8.json"), "utf8"));
  const bad = "<img src=x onerror=alert(1)>\"'&\u202e</a></title><script>1</script> ";
  for (const node of graph.nodes) if (node.op !== "null") node.name = bad + node.name;
  writeFileSync(join(folder, "hostile.json"), JSON.stringify(graph));
  const models = join(root, "golden/graph/models/v0.8");
  const run = (trace) => execFileSync(program, ["run", "--graph", join(folder, "hostile.json"), "--lib", join(models, "resnet8.kernels.so"), "--params", join(models, "resnet8.params"), "--trace", join(folder, trace)]);
  run("trace.json");
  const { traceEvents } = JSON.parse(readFileSync(join(folder, "trace.json"), "utf8"));
  assert.equal(traceEvents.filter((event) => event.ph === "X" && event.name.startsWith("<img") && event.ts >= 0 && event.dur >= 0).length, 15);
  run("trace.html");
  const back = page.url();
  await page.goto(pathToFileURL(join(folder, "trace.html")).href);
  assert.equal(await page.$$eval("img, script", (all) => all.length), 0);
  const names = await page.$$eval("td.name", (all) => all.map((each) => each.textContent));
  assert.equal(names.length, 15);
  assert.ok(names.every((each) => each.startsWith("<img src=x onerror=alert(1)>\"'&\\u{202e}</a>")), names[0]);
  for (const width of [1280, 390]) {
    await page.setViewport({ width, height: 850 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
  }
  await page.setViewport({ width: 1280, height: 850 });
  // The first part of the first bar, by keyboard, leads to the first row.
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement.title), /: [\d.]+ us, [\d.]+ %/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("tr:target")?.id === "o0");
  await shot(page, "profile", name);
  await page.goto(back);
}
