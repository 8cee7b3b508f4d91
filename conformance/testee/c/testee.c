/* A testee for `tvmspec check` in one C file without dependencies.
 *
 *     cc -O1 -Wall -Wextra -o testee conformance/testee/c/testee.c
 *     tvmspec check --impl "exec:./testee"
 *
 * It is a minimal testee: import_tree.decode, and blob.decode for the layouts 0.7 and 0.22. Payloads stay opaque. Layout
 * 0.7 does not frame them, so the testee finds only the end of device modules and answers "unsupported" to others. It was
 * written from the text in spec/. `tvmspec check --help-exec` explains the protocol.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- growable text --------------------------------------------------------------------------------------------- */

typedef struct {
  char *text;
  size_t length, room;
} Text;

static void put(Text *out, const char *bytes, size_t count) {
  if (out->length + count + 1 > out->room) {
    out->room = (out->length + count + 1) * 2;
    out->text = realloc(out->text, out->room);
    if (!out->text) abort();
  }
  memcpy(out->text + out->length, bytes, count);
  out->length += count;
  out->text[out->length] = 0;
}

static void puts_to(Text *out, const char *text) { put(out, text, strlen(text)); }

static void printf_to(Text *out, const char *form, ...) {
  char line[256];
  va_list rest;
  va_start(rest, form);
  vsnprintf(line, sizeof line, form, rest);
  va_end(rest);
  puts_to(out, line);
}

static void put_string(Text *out, const uint8_t *bytes, size_t count) {
  puts_to(out, "\"");
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] == '"' || bytes[i] == '\\')
      printf_to(out, "\\%c", bytes[i]);
    else if (bytes[i] < 0x20)
      printf_to(out, "\\u%04x", bytes[i]);
    else
      put(out, (const char *)bytes + i, 1);
  }
  puts_to(out, "\"");
}

/* --- base64 ---------------------------------------------------------------------------------------------------- */

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(Text *out, const uint8_t *bytes, size_t count) {
  puts_to(out, "\"");
  for (size_t i = 0; i < count; i += 3) {
    size_t have = count - i < 3 ? count - i : 3;
    uint32_t word = (uint32_t)bytes[i] << 16;
    if (have > 1) word |= (uint32_t)bytes[i + 1] << 8;
    if (have > 2) word |= bytes[i + 2];
    char four[4];
    for (size_t k = 0; k < 4; k++)
      four[k] = k <= have ? DIGITS[(word >> (18 - 6 * k)) & 63] : '=';
    put(out, four, 4);
  }
  puts_to(out, "\"");
}

static uint8_t *base64_bytes(const char *text, size_t length, size_t *count) {
  uint8_t *bytes = malloc(length / 4 * 3 + 3);
  uint32_t word = 0;
  unsigned bits = 0;
  *count = 0;
  for (size_t i = 0; bytes && i < length && text[i] != '='; i++) {
    const char *digit = strchr(DIGITS, text[i]);
    if (!digit) break;
    word = word << 6 | (uint32_t)(digit - DIGITS);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[(*count)++] = (uint8_t)(word >> bits);
    }
  }
  return bytes;
}

/* --- as much JSON as requests need ------------------------------------------------------------------------------- */

static const char *blank(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
  return at;
}

/* Returns the position after the value that starts at `at`. */
static const char *behind(const char *at) {
  int depth = 0;
  do {
    if (*at == '"') {
      for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    } else if (*at == '{' || *at == '[') {
      depth++;
    } else if (*at == '}' || *at == ']') {
      depth--;
    } else if (depth == 0) {
      while (*at && !strchr(",}] \t\r\n", *at)) at++;
      return at;
    }
    if (*at) at++;
  } while (*at && depth > 0);
  return at;
}

/* Returns the value of `key` in the object at `at`, or NULL. */
static const char *member(const char *at, const char *key) {
  at = blank(at);
  if (*at++ != '{') return NULL;
  for (at = blank(at); *at == '"'; at = blank(at)) {
    const char *end = behind(at);
    int found = (size_t)(end - at) == strlen(key) + 2 && !strncmp(at + 1, key, strlen(key));
    at = blank(end);
    if (*at == ':') at = blank(at + 1);
    if (found) return at;
    at = blank(behind(at));
    if (*at == ',') at++;
  }
  return NULL;
}

/* Returns whether the value is the string `text`. */
static int is(const char *value, const char *text) {
  return value && *value == '"' && !strncmp(value + 1, text, strlen(text)) && value[1 + strlen(text)] == '"';
}

/* --- bytes ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const uint8_t *bytes;
  uint64_t size, at;
  char wrong[512];  /* the answer if reading cannot continue */
  jmp_buf stop;
} Reader;

static void reject(Reader *in, const char *kind, uint64_t offset, const char *message) {
  snprintf(in->wrong, sizeof in->wrong, "\"reject\":{\"kind\":\"%s\",\"offset\":%" PRIu64 ",\"message\":\"%s\"}", kind,
           offset, message);
  longjmp(in->stop, 1);
}

static void unsupported(Reader *in, const char *message) {
  snprintf(in->wrong, sizeof in->wrong, "\"unsupported\":\"%s\"", message);
  longjmp(in->stop, 1);
}

static const uint8_t *take(Reader *in, uint64_t count) {
  if (count > in->size - in->at) reject(in, "truncated", in->at, "the field does not fit into the window");
  in->at += count;
  return in->bytes + in->at - count;
}

static uint64_t word_at(const uint8_t *bytes) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | bytes[i];
  return word;
}

static uint64_t u64(Reader *in) { return word_at(take(in, 8)); }

/* Reads a count of elements of at least `smallest` bytes. A count that exceeds the remaining bytes is the error itself. */
static uint64_t count_of(Reader *in, uint64_t smallest) {
  uint64_t start = in->at, count = u64(in);
  if (count > (in->size - in->at) / smallest) reject(in, "truncated", start, "the count promises too much");
  return count;
}

typedef struct {
  const uint8_t *bytes;
  uint64_t count;
} Run;

static Run string(Reader *in) {
  Run run = {NULL, u64(in)};
  run.bytes = take(in, run.count);
  return run;
}

static Run words(Reader *in) {
  Run run = {NULL, count_of(in, 8)};
  run.bytes = take(in, run.count * 8);
  return run;
}

static uint64_t word(Run run, uint64_t index) { return word_at(run.bytes + 8 * index); }

static int equals(Run run, const char *text) {
  return run.count == strlen(text) && !memcmp(run.bytes, text, run.count);
}

/* Returns the offset of the first character that is not UTF-8, or the length if all are valid. */
static uint64_t not_utf8(Run run) {
  for (uint64_t i = 0; i < run.count;) {
    uint64_t start = i;
    uint8_t lead = run.bytes[i++];
    uint32_t code = lead, least = 0;
    int more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : -1;
    if (more < 0) return start;
    if (more) code = lead & (0x3f >> more), least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    for (; more > 0; more--) {
      if (i == run.count || run.bytes[i] >> 6 != 2) return start;
      code = code << 6 | (run.bytes[i++] & 0x3f);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return start;
  }
  return run.count;
}

/* --- import_tree ----------------------------------------------------------------------------------------------- */

typedef struct {
  Run indptr, indices;
} Tree;

/* Returns the offset of a word of a run. */
static uint64_t place(Reader *in, Run run, uint64_t index) { return (uint64_t)(run.bytes - in->bytes) + 8 * index; }

/* Returns the offset of the count of a run. */
static uint64_t start_of(Reader *in, Run run) { return (uint64_t)(run.bytes - in->bytes) - 8; }

/* Returns the first import that closes a cycle, in a depth-first search from module 0, or the number of imports if none does. */
static uint64_t closes_a_cycle(Tree tree, uint64_t modules) {
  enum { NEW, ON_THE_WAY, DONE };
  uint8_t *state = calloc(modules, 1);
  uint64_t *way = calloc(modules, 8), *next = calloc(modules, 8), found = tree.indices.count;
  if (!state || !way || !next) abort();
  for (uint64_t root = 0; root < modules && found == tree.indices.count; root++) {
    uint64_t depth = 0;
    if (state[root] != NEW) continue;
    state[way[depth++] = root] = ON_THE_WAY;
    next[root] = word(tree.indptr, root);
    while (depth && found == tree.indices.count) {
      uint64_t module = way[depth - 1];
      if (next[module] == word(tree.indptr, module + 1)) {
        state[module] = DONE;
        depth--;
        continue;
      }
      uint64_t at = next[module]++, child = word(tree.indices, at);
      if (state[child] == ON_THE_WAY) found = at;
      if (state[child] == NEW) {
        state[way[depth++] = child] = ON_THE_WAY;
        next[child] = word(tree.indptr, child);
      }
    }
  }
  free(state);
  free(way);
  free(next);
  return found;
}

static void check_tree(Reader *in, Tree tree) {
  if (tree.indptr.count < 2) reject(in, "malformed", start_of(in, tree.indptr), "there is no module");
  uint64_t modules = tree.indptr.count - 1;
  for (uint64_t i = 0; i < modules; i++)
    if (word(tree.indptr, i) > word(tree.indptr, i + 1))
      reject(in, "malformed", place(in, tree.indptr, i + 1), "a row runs backwards");
  for (uint64_t i = 1; i <= modules; i++)
    if (word(tree.indptr, i) > tree.indices.count)
      reject(in, "malformed", place(in, tree.indptr, i), "a row ends after the last child");
  for (uint64_t i = 0; i < tree.indices.count; i++)
    if (word(tree.indices, i) >= modules) reject(in, "malformed", place(in, tree.indices, i), "a child is no module");
  for (uint64_t i = 0; i < modules; i++)
    for (uint64_t at = word(tree.indptr, i); at < word(tree.indptr, i + 1); at++)
      if (word(tree.indices, at) == i) reject(in, "cycle", place(in, tree.indices, at), "a module imports itself");
  uint64_t closing = closes_a_cycle(tree, modules);
  if (closing < tree.indices.count) reject(in, "cycle", place(in, tree.indices, closing), "modules import each other");
}

static Tree read_tree(Reader *in) {
  Tree tree;
  tree.indptr = words(in);
  tree.indices = words(in);
  return tree;
}

static void put_words(Text *out, Run run) {
  puts_to(out, "[");
  for (uint64_t i = 0; i < run.count; i++) printf_to(out, "%s%" PRIu64, i ? "," : "", word(run, i));
  puts_to(out, "]");
}

static void put_tree(Text *out, Tree tree) {
  puts_to(out, "{\"indptr\":");
  put_words(out, tree.indptr);
  puts_to(out, ",\"indices\":");
  put_words(out, tree.indices);
  puts_to(out, "}");
}

static void import_tree_decode(Reader *in, const char *args, Text *out) {
  Tree tree = read_tree(in);
  const char *modules = member(args, "modules");
  check_tree(in, tree);
  if (modules && strtoull(modules, NULL, 10) != tree.indptr.count - 1)
    reject(in, "malformed", start_of(in, tree.indptr), "not a row for every module");
  puts_to(out, "\"ok\":");
  put_tree(out, tree);
}

/* --- blob ------------------------------------------------------------------------------------------------------ */

/* Reads the payload of a device module: format, functions, code. */
static void skip_device_payload(Reader *in) {
  string(in);
  for (uint64_t functions = count_of(in, 32); functions; functions--) {
    string(in);
    string(in);
    take(in, count_of(in, 4) * 4);
    for (uint64_t tags = count_of(in, 8); tags; tags--) string(in);
  }
  string(in);
}

/* Reads the kind of a module. `libraries` counts the host libraries, of which there must be one. */
static Run kind_of(Reader *in, unsigned *libraries) {
  Run kind = string(in);
  uint64_t start = start_of(in, kind), odd = not_utf8(kind);
  if (odd < kind.count) reject(in, "malformed", start + 8 + odd, "a kind is not UTF-8");
  if (!kind.count || memchr(kind.bytes, 0, kind.count)) reject(in, "malformed", start, "a kind is empty or has a NUL in it");
  if (equals(kind, "_lib") && (*libraries)++) reject(in, "duplicate", start, "there are two host libraries");
  return kind;
}

static void put_module(Text *out, Run kind, const Run *payload) {
  puts_to(out, out->text && out->text[out->length - 1] == '[' ? "{\"kind\":" : ",{\"kind\":");
  put_string(out, kind.bytes, kind.count);
  if (payload) {
    puts_to(out, ",\"payload\":");
    put_base64(out, payload->bytes, payload->count);
  }
  puts_to(out, "}");
}

static void blob_0_22(Reader *in, Text *out) {
  unsigned libraries = 0;
  Tree tree = read_tree(in);
  check_tree(in, tree);
  puts_to(out, "\"ok\":{\"layout\":\"0.22\",\"modules\":[");
  for (uint64_t left = tree.indptr.count - 1; left; left--) {
    Run kind = kind_of(in, &libraries);
    if (equals(kind, "_lib")) {
      put_module(out, kind, NULL);
    } else {
      Run payload = string(in);
      put_module(out, kind, &payload);
    }
  }
  puts_to(out, "],\"import_tree\":");
  put_tree(out, tree);
  puts_to(out, "}");
}

static void blob_0_7(Reader *in, Text *out) {
  static const char *const DEVICES[] = {"cuda", "opencl", "metal", "hip", "hsaco", "sdaccel", "aocl", NULL};
  Tree tree;
  uint64_t modules = 0;
  unsigned libraries = 0;
  int has_tree = 0;
  puts_to(out, "\"ok\":{\"layout\":\"0.7\",\"modules\":[");
  uint64_t tree_key = 0;
  for (uint64_t left = count_of(in, 8); left; left--) {
    if (in->at == in->size) reject(in, "truncated", in->at, "an entry is missing");
    Run kind = kind_of(in, &libraries);
    if (has_tree && equals(kind, "_import_tree"))
      reject(in, "duplicate", start_of(in, kind), "there are two import trees");
    if (has_tree) reject(in, "malformed", tree_key, "an entry follows the import tree");
    if (equals(kind, "_import_tree")) {
      tree_key = start_of(in, kind);
      tree = read_tree(in);
      has_tree = 1;
    } else if (equals(kind, "_lib")) {
      put_module(out, kind, NULL);
      modules++;
    } else {
      const char *const *known = DEVICES;
      while (*known && !equals(kind, *known)) known++;
      if (!*known) unsupported(in, "a payload whose end we do not know");
      Run payload = {in->bytes + in->at, in->at};
      skip_device_payload(in);
      payload.count = in->at - payload.count;
      put_module(out, kind, &payload);
      modules++;
    }
  }
  puts_to(out, "],\"import_tree\":");
  if (has_tree) {
    check_tree(in, tree);
    if (tree.indptr.count - 1 != modules)
      reject(in, "malformed", start_of(in, tree.indptr), "not a row for every module");
    put_tree(out, tree);
  } else {
    if (modules) reject(in, "missing", 8, "entries without an import tree");
    puts_to(out, "null");
  }
  puts_to(out, "}");
}

static void blob_decode(Reader *in, const char *args, Text *out) {
  const char *layout = member(args, "layout");
  uint64_t size = u64(in);
  if (size > in->size - 8) reject(in, "truncated", 0, "the header promises more than there is");
  in->size = 8 + size;
  if (is(layout, "0.22"))
    blob_0_22(in, out);
  else if (is(layout, "0.7"))
    blob_0_7(in, out);
  else
    unsupported(in, "we know the layouts 0.7 and 0.22, when they are named");
}

/* --- the protocol ---------------------------------------------------------------------------------------------- */

static void answer(const char *line, Text *out) {
  const char *id = member(line, "id"), *op = member(line, "op"), *args = member(line, "args");
  printf_to(out, "{\"id\":%" PRIu64 ",", id ? strtoull(id, NULL, 10) : 0);
  if (is(op, "hello")) {
    puts_to(out,
            "\"ok\":{\"name\":\"tvmspec-c-testee\",\"version\":\"1\",\"ops\":[\"import_tree.decode\",\"blob.decode\"]}}\n");
    return;
  }
  const char *data = args ? member(args, "data") : NULL;
  void (*decode)(Reader *, const char *, Text *) = is(op, "import_tree.decode") ? import_tree_decode
                                                   : is(op, "blob.decode")      ? blob_decode
                                                                                : NULL;
  if (!decode || !data || *data != '"') {
    puts_to(out, "\"unsupported\":\"import_tree.decode and blob.decode are all that we do\"}\n");
    return;
  }
  static Reader in; /* not on the stack: its fields must survive longjmp */
  size_t size = 0, start = out->length;
  uint8_t *volatile bytes = base64_bytes(data + 1, (size_t)(behind(data) - data) - 2, &size);
  in.bytes = bytes;
  in.size = size;
  in.at = 0;
  if (setjmp(in.stop) == 0) {
    decode(&in, args, out);
  } else {
    out->length = start;
    puts_to(out, in.wrong);
  }
  puts_to(out, "}\n");
  free(bytes);
}

/* Reads one line of any length, without its end. Returns 0 at the end of the input. */
static int read_line(Text *line) {
  char block[4096];
  line->length = 0;
  while (fgets(block, sizeof block, stdin)) {
    size_t length = strcspn(block, "\n");
    put(line, block, length);
    if (block[length] == '\n') return 1;
  }
  return line->length > 0;
}

int main(void) {
  Text line = {0}, out = {0};
  while (read_line(&line)) {
    out.length = 0;
    answer(line.text, &out);
    fwrite(out.text, 1, out.length, stdout);
    fflush(stdout);
  }
  free(line.text);
  free(out.text);
  return 0;
}
