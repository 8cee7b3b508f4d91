// A library of C++ whose modules are of a class of its own, and who calls the virtual functions of any module: what a
// runtime makes of both, and of what they throw. Written by hand from spec/module.md and the object layout of spec/value.md, for
// 0.22 to 0.27; open.sh compiles it; the classes of its exceptions are in thrown.h.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

enum Index : int32_t { kNone = 0, kInt = 1, kBool = 2, kRaw = 8, kSmallStr = 11, kSmallBytes = 12, kStr = 65, kError = 67, kModule = 73 };

struct Header {
  uint64_t counts;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void*, int);
};

static void retain(void* object) {
  if (object) __atomic_fetch_add(&static_cast<Header*>(object)->counts, 1, __ATOMIC_SEQ_CST);
}

static void release(void* object) {
  if (!object) return;
  Header* header = static_cast<Header*>(object);
  uint64_t before = __atomic_fetch_sub(&header->counts, 1, __ATOMIC_SEQ_CST);
  if ((before & 0xffffffff) == 1 && header->deleter) header->deleter(object, 3);
}

// A reference that owns, as a result in C++ travels.
struct Ref {
  void* object;
  explicit Ref(void* object = nullptr) : object(object) {}
  Ref(const Ref& other) : object(other.object) { retain(object); }
  ~Ref() { release(object); }
};

struct Cell {
  int32_t type_index;
  uint32_t size;
  union {
    int64_t i;
    void* p;
    char text[8];
  };
};

struct Value : Cell {
  Value() { type_index = kNone, size = 0, i = 0; }
  Value(const Value& other) : Cell(other) {
    if (type_index >= 64) retain(p);
  }
  ~Value() {
    if (type_index >= 64) release(p);
  }
};

// Up to seven characters.
static Value small(const char* text, int32_t index = kSmallStr) {
  Value value;
  value.type_index = index;
  value.size = strlen(text);
  memcpy(value.text, text, value.size);
  return value;
}

static std::string text_of(const Cell& cell) {
  if (cell.type_index == kSmallStr) return std::string(cell.text, cell.size);
  if (cell.type_index == kRaw) return static_cast<const char*>(cell.p);
  if (cell.type_index != kStr) return "";
  struct Text {
    Header header;
    const char* data;
    size_t size;
  };
  Text* text = static_cast<Text*>(cell.p);
  return std::string(text->data, text->size);
}

// What is thrown.

struct Bytes {
  const char* data;
  size_t size;
};

struct ErrorObject {
  Header header;
  Bytes kind, message, backtrace;
  void (*update)(void*, const Bytes*, int);
  void* cause;
  void* context;
};

static void never(void*, int) {}
static void unchanged(void*, const Bytes*, int) {}

static ErrorObject* error_object(const char* kind, const char* message) {
  // They live for ever, as the counts say.
  return new ErrorObject{{(1ull << 32) | 1000000, kError, 0, never}, {kind, strlen(kind)}, {message, strlen(message)}, {"", 0}, unchanged, nullptr, nullptr};
}

namespace tvm {
namespace ffi {
class ObjectRef {
 public:
  void* data;
};
class Error : public ObjectRef, public std::exception {
 public:
  explicit Error(void* object) { data = object; }
  Error(const Error& other) : ObjectRef(other), std::exception(other) { retain(data); }
  ~Error() override { release(data); }
  const char* what() const noexcept override { return "an error object"; }
};
}  // namespace ffi
}  // namespace tvm

struct OwnError : tvm::ffi::Error {
  OwnError() : tvm::ffi::Error(error_object("KeyError", "own says so")) {}
};

// Here and not on top: the order of the classes is that of their names in the library.
#include "thrown.h"

static void throw_named(const std::string& what) {
  if (what == "error") throw tvm::ffi::Error(error_object("ValueError", "error says so"));
  if (what == "own") throw OwnError();
  if (what == "runtime") throw std::runtime_error("runtime says so");
  if (what == "derived") throw Derived("");
  if (what == "behind") throw Behind();
  if (what == "virtual") throw Virtual();
  if (what == "again") {
    std::exception_ptr kept;
    try {
      throw std::runtime_error("again says so");
    } catch (...) {
      kept = std::current_exception();
    }
    std::rethrow_exception(kept);
  }
  if (what == "string") throw std::string("x");
  if (what == "pair") throw std::make_pair(1, 2);
  if (what == "int") throw 1;
  if (what == "text") throw "x";
  if (what == "pointer") throw static_cast<std::exception*>(nullptr);
}

// A module: the table of virtual functions, then the object.

static int64_t alive;
static std::string written;

struct Module {
  virtual const char* kind() const { return "foreign"; }
  virtual int property_mask() const { return 5; }
  virtual Ref function(const Value& name) {
    std::string text = text_of(name);
    throw_named(text);
    if (text == "none") return Ref();
    if (text == "array") {
      retain(formats);
      return Ref(formats);
    }
    retain(found);
    return Ref(found);
  }
  virtual bool implements(const Value& name) {
    throw_named(text_of(name));
    return text_of(name) == "f";
  }
  virtual Value doc(const Value& name) {
    throw_named(text_of(name));
    return text_of(name) == "f" ? small("doc") : Value();
  }
  virtual Value metadata(const Value& name) {
    throw_named(text_of(name));
    return text_of(name) == "f" ? small("meta") : Value();
  }
  virtual void write_to_file(const Value& path, const Value& format) {
    throw_named(text_of(format));
    written = text_of(path) + " as " + text_of(format);
  }
  virtual Ref write_formats() const {
    retain(formats);
    return Ref(formats);
  }
  virtual Value save_to_bytes() const {
    if (!formats) throw_named("error");
    return small("saved", kSmallBytes);
  }
  virtual Value inspect_source(const Value& format) const {
    throw_named(text_of(format));
    return text_of(format).empty() ? small("source") : small("");
  }
  virtual void import_module(const Ref& other) {
    if (!imports) throw_named("error");
    release(shown);
    shown = imports;
    retain(shown);
  }
  virtual void clear_imports() {
    if (!imports) throw_named("error");
    release(shown);
    shown = empty;
    retain(shown);
  }

  Header header;
  void* shown;
  void* cache;
  // Behind what every runtime knows.
  void* found;
  void* formats;
  void* imports;
  void* empty;
};

static void delete_module(void* object, int flags) {
  Module* module = reinterpret_cast<Module*>(static_cast<char*>(object) - 8);
  if (flags & 1) {
    for (void* part : {module->shown, module->cache, module->found, module->formats, module->imports, module->empty}) release(part);
    --alive;
  }
  if (flags & 2) delete module;
}

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FUNCTION(name) EXPORT int __tvm_ffi_##name(void*, const Value* args, int32_t count, Cell* result)

// Without it no loader knows the release.
EXPORT void* __tvm_ffi__library_ctx;
void* __tvm_ffi__library_ctx;

static int give(Cell* result, const Value& value) {
  if (value.type_index >= 64) retain(value.p);
  *result = value;
  return 0;
}

static int give(Cell* result, int64_t number) {
  result->type_index = kInt, result->size = 0, result->i = number;
  return 0;
}

static void* object_at(const Value* args, int32_t count, int32_t at) {
  void* object = at < count && args[at].type_index >= 64 ? args[at].p : nullptr;
  retain(object);
  return object;
}

// make(function, formats, imports, none): a module whose lookups find the function, whose formats are the array, and which shows
// `imports` as its imports once it was asked to import something, and the empty array `none` otherwise.
FUNCTION(make) {
  Module* module = new Module();
  module->header = {(1ull << 32) | 1, kModule, 0, delete_module};
  module->shown = object_at(args, count, 3);
  module->cache = nullptr;
  module->found = object_at(args, count, 0);
  module->formats = object_at(args, count, 1);
  module->imports = object_at(args, count, 2);
  module->empty = object_at(args, count, 3);
  ++alive;
  result->type_index = kModule, result->size = 0, result->p = &module->header;
  return 0;
}

// How many such modules there are.
FUNCTION(alive) { return give(result, alive); }

// What was written last.
FUNCTION(written) {
  std::string text = written.substr(0, 7);
  return give(result, small(text.c_str()));
}

EXPORT int __tvm_ffi__doc_make(void*, const Value*, int32_t, Cell* result) { return give(result, small("makes")); }
EXPORT int __tvm_ffi__metadata_make(void*, const Value*, int32_t, Cell* result) { return give(result, small("{}")); }
EXPORT int __tvm_ffi__doc_alive(void*, const Value*, int32_t, Cell* result) { return give(result, 1); }

// What was caught last.
static std::string caught_text;


// virtual(module, what, text): calls a virtual function of any module. The result, or whether something was caught, in whose
// text `caught` searches.
FUNCTION(virtual) {
  Module* module = reinterpret_cast<Module*>(static_cast<char*>(args[0].p) - 8);
  std::string what = text_of(args[1]);
  Value text;
  if (count > 2) text = args[2], text.type_index >= 64 ? retain(text.p) : void();
  caught_text.clear();
  try {
    if (what == "kind") return give(result, small(std::string(module->kind()).substr(0, 7).c_str()));
    if (what == "mask") return give(result, module->property_mask());
    if (what == "func") {
      Ref found = module->function(text);
      return give(result, found.object != nullptr);
    }
    if (what == "has") return give(result, module->implements(text));
    if (what == "doc") return give(result, module->doc(text));
    if (what == "meta") return give(result, module->metadata(text));
    if (what == "write") module->write_to_file(text, text);
    if (what == "formats") {
      Ref formats = module->write_formats();
      Value value;
      value.type_index = formats.object ? static_cast<Header*>(formats.object)->type_index : 0;
      value.p = formats.object;
      retain(formats.object);
      return give(result, value);
    }
    if (what == "save") return give(result, module->save_to_bytes());
    if (what == "source") return give(result, module->inspect_source(text));
    if (what == "import") {
      Ref other(text.p);
      retain(text.p);
      module->import_module(other);
    }
    if (what == "clear") module->clear_imports();
    return give(result, Value());
  } catch (const tvm::ffi::Error& error) {
    ErrorObject* object = static_cast<ErrorObject*>(error.data);
    caught_text = std::string(object->kind.data, object->kind.size) + ": " + std::string(object->message.data, object->message.size);
  } catch (const std::exception& error) {
    caught_text = std::string("what: ") + error.what();
  }
  return give(result, static_cast<int64_t>(-1));
}

// The same, but what was caught is caught as what all exceptions are.
FUNCTION(standard) {
  Module* module = reinterpret_cast<Module*>(static_cast<char*>(args[0].p) - 8);
  caught_text.clear();
  try {
    module->save_to_bytes();
  } catch (const std::exception& error) {
    caught_text = error.what();
  }
  return give(result, static_cast<int64_t>(caught_text.size() > 0));
}

// Whether what was caught last holds this text.
FUNCTION(caught) { return give(result, static_cast<int64_t>(caught_text.find(text_of(args[0])) != std::string::npos)); }
