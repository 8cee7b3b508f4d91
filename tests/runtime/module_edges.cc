// C++ modules whose exceptions `golden/module/foreign.cc` does not have, and a handler around a function that lets an exception through.

#include "../../golden/module/foreign.cc"

#include <unwind.h>

struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

// An exception of a language other than C++.
static _Unwind_Exception other;

struct Edge : Module {
  Ref function(const Value& name) override {
    std::string text = text_of(name);
    if (text == "silent") throw Silent();
    if (text == "other") {
      memcpy(&other.exception_class, "OTHRLANG", 8);
      _Unwind_RaiseException(&other);
    }
    return Module::function(name);
  }
};

// edge(none): a module without functions, which returns the array `none` as its imports.
FUNCTION(edge) {
  Edge* module = new Edge();
  module->header = {(1ull << 32) | 1, kModule, 0, delete_module};
  module->shown = object_at(args, count, 0);
  module->cache = module->found = module->formats = module->imports = nullptr;
  module->empty = object_at(args, count, 0);
  ++alive;
  result->type_index = kModule, result->size = 0, result->p = &module->header;
  return 0;
}

// Returns whether an exception of any language leaves `body`.
EXPORT int lets_through(void (*body)(void*), void* data) {
  try {
    body(data);
  } catch (...) {
    return 1;
  }
  return 0;
}
