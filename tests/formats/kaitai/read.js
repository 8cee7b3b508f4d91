// Compiles the descriptions of spec/ksy and reads bytes by them.
//
//   NODE_PATH=.../node_modules node read.js spec/ksy OUT <REQUESTS >ANSWERS
//
// A request is a line of JSON: {"type": ["TvmTensor", "Dtype"], "prefix": "dtype", "tries": [[..], ..], "whole": bool,
// "bytes": base64}. The parameters of the first try that reads count; where "whole" is true, of the first that leaves nothing
// over, if one does. The answer is {"fields": [[path, start, end, "number" | "float" | "bytes", value], ..]} or {"error": text}.

'use strict';
const fs = require('fs');
const path = require('path');
const compiler = require('kaitai-struct-compiler');
const KaitaiStream = require('kaitai-struct/KaitaiStream');
const YAML = require('yaml');

// The runtime's own has the high half wrong where the low half of a negative number is below 2^31.
KaitaiStream.prototype.readS8le = function () {
  const low = this.readU4le();
  const high = this.readS4le();
  return high * 0x100000000 + low;
};

// The runtime's own takes a length beyond 2^31 modulo 2^32.
const readBytes = KaitaiStream.prototype.readBytes;
KaitaiStream.prototype.readBytes = function (length) {
  if (!(length >= 0 && length <= this.size - this.pos)) throw new Error(`${length} bytes, ${this.size - this.pos} are left`);
  return readBytes.call(this, length);
};

async function compiled(from, to) {
  const load = (name) => YAML.parse(fs.readFileSync(path.join(from, path.basename(name) + '.ksy'), 'utf8'));
  const importer = { importYaml: (name) => Promise.resolve(load(name)) };
  for (const file of fs.readdirSync(from).filter((file) => file.endsWith('.ksy'))) {
    // With `debug` a reading keeps where each field stands.
    const sources = await compiler.compile('javascript', load(path.parse(file).name), importer, true);
    for (const name of Object.keys(sources)) fs.writeFileSync(path.join(to, name), sources[name]);
  }
}

// Parts of a value that have no name in the specification.
const UNNAMED = new Set(['num_bytes', 'content', 'num_items', 'items']);

function joined(place, id) {
  const name = id.replace(/[A-Z]/g, (letter) => '_' + letter.toLowerCase());
  if (UNNAMED.has(name) || name.startsWith('body')) return place;
  return place === '' ? name : place + '.' + name;
}

function leaves(object, place, base, found) {
  for (const [id, where] of Object.entries(object._debug)) {
    if (id.startsWith('_')) continue;
    const at = joined(place, id);
    if (where.arr) {
      object[id].forEach((value, index) => leaf(value, where.arr[index], `${at}[${index}]`, base, found));
    } else {
      leaf(object[id], where, at, base, found);
    }
  }
}

// Negative zero is a float: no integer has it.
const isInteger = (value) => Number.isSafeInteger(value) && !Object.is(value, -0);

function leaf(value, where, place, base, found) {
  if (value !== null && typeof value === 'object' && value._debug) return leaves(value, place, base, found);
  const start = where.start + where.ioOffset - base;
  const end = where.end + where.ioOffset - base;
  if (start === end) return;
  if (typeof value === 'number') {
    found.push([place, start, end, isInteger(value) ? 'number' : 'float', String(value)]);
  } else {
    found.push([place, start, end, 'bytes', Buffer.from(value).toString('hex')]);
  }
}

function attempt(request, args, types) {
  const bytes = Uint8Array.from(Buffer.from(request.bytes, 'base64'));
  const io = new KaitaiStream(bytes.buffer, 0);
  const Type = request.type.slice(1).reduce((type, name) => type[name], types(request.type[0]));
  const root = new Type(io, null, null, ...args);
  root._read();
  const fields = [];
  leaves(root, request.prefix || '', 0, fields);
  if (!io.isEof()) {
    const rest = Buffer.from(bytes.subarray(io.pos)).toString('hex');
    fields.push(['trailing', io.pos, bytes.length, 'bytes', rest]);
  }
  fields.sort((a, b) => a[1] - b[1]);
  return fields;
}

function answer(request, types) {
  let first = null;
  let error = null;
  for (const args of request.tries) {
    try {
      const fields = attempt(request, args, types);
      if (!request.whole || !fields.some((field) => field[0].endsWith('trailing'))) return { fields };
      first = first || fields;
    } catch (thrown) {
      error = error || String(thrown && thrown.message ? thrown.message : thrown);
    }
  }
  return first ? { fields: first } : { error };
}

async function main() {
  const [from, to] = process.argv.slice(2);
  await compiled(from, to);
  const loaded = new Map();
  const types = (name) => {
    if (!loaded.has(name)) loaded.set(name, require(path.resolve(to, name))[name]);
    return loaded.get(name);
  };
  const lines = fs.readFileSync(0, 'utf8').split('\n').filter((line) => line !== '');
  for (const line of lines) process.stdout.write(JSON.stringify(answer(JSON.parse(line), types)) + '\n');
}

main().catch((thrown) => {
  console.error(String(thrown));
  process.exit(1);
});
