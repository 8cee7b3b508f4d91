// A library of 0.2 to 0.6 with its own type: the expansion of TVM_REGISTER_EXT_TYPE for a class, and functions that take and return it.
#include <cstring>

#include "tvm_c_runtime_api.h"

namespace tvm {
namespace runtime {
// Declared as in those releases.
class ExtTypeVTable {
 public:
  void (*destroy)(void* handle);
  void* (*clone)(void* handle);
  static ExtTypeVTable* Get(int type_code);
  static ExtTypeVTable* RegisterInternal(int type_code, const ExtTypeVTable& table);
};
}  // namespace runtime
}  // namespace tvm

using tvm::runtime::ExtTypeVTable;

namespace {
const int kCode = 17;
int alive = 0, clones = 0;

struct Graph {
  int nodes;
  explicit Graph(int nodes) : nodes(nodes) { alive++; }
  Graph(const Graph& other) : nodes(other.nodes) { alive++; clones++; }
  ~Graph() { alive--; }
};

void destroy(void* handle) { delete static_cast<Graph*>(handle); }
void* clone(void* handle) { return new Graph(*static_cast<Graph*>(handle)); }

// Adds a node to its argument in place, because callers and callees share the handle.
int grow(TVMValue* args, int* codes, int count, TVMRetValueHandle ret, void*) {
  if (count != 1 || codes[0] != kCode) return -1;
  TVMValue nodes;
  int code = 0;
  nodes.v_int64 = ++static_cast<Graph*>(args[0].v_handle)->nodes;
  return TVMCFuncSetReturn(ret, &nodes, &code, 1);
}

// Returns a copy of its argument, because a result is always a copy.
int same(TVMValue* args, int* codes, int, TVMRetValueHandle ret, void*) { return TVMCFuncSetReturn(ret, args, codes, 1); }

// Takes ownership of its argument and destroys it.
int own(TVMValue* args, int* codes, int, TVMRetValueHandle ret, void*) {
  if (TVMCbArgToReturn(args, codes) != 0 || codes[0] != kCode) return -1;
  if (TVMExtTypeFree(args[0].v_handle, codes[0]) != 0) return -1;
  TVMValue nothing;
  int code = 4;
  return TVMCFuncSetReturn(ret, &nothing, &code, 1);
}

int expect(bool holds, int line) { return holds ? 0 : line; }
}  // namespace

#define EXPECT(...) if (int failed = expect(__VA_ARGS__, __LINE__)) return failed

// Runs through the whole life of some values. Returns the line of a failed check, or 0.
extern "C" int extension_types_from_cxx() {
  // Nothing is registered, so an argument is rejected, and a value cannot be destroyed.
  EXPECT(ExtTypeVTable::Get(kCode) == nullptr);
  EXPECT(TVMExtTypeFree(nullptr, kCode) == -1);
  EXPECT(std::strstr(TVMGetLastError(), "Extension type not registered") != nullptr);

  ExtTypeVTable table;
  table.destroy = destroy;
  table.clone = clone;
  EXPECT(ExtTypeVTable::RegisterInternal(15, table) == nullptr);
  EXPECT(ExtTypeVTable::RegisterInternal(128, table) == nullptr);
  ExtTypeVTable* known = ExtTypeVTable::RegisterInternal(kCode, table);
  EXPECT(known != nullptr && known == ExtTypeVTable::Get(kCode));
  EXPECT(known->destroy == destroy && known->clone == clone);

  TVMFunctionHandle grows, returns, owns;
  EXPECT(TVMFuncCreateFromCFunc(grow, nullptr, nullptr, &grows) == 0);
  EXPECT(TVMFuncCreateFromCFunc(same, nullptr, nullptr, &returns) == 0);
  EXPECT(TVMFuncCreateFromCFunc(own, nullptr, nullptr, &owns) == 0);
  EXPECT(TVMFuncRegisterGlobal("test.extension.same", returns, 1) == 0);

  Graph graph(3);
  TVMValue value, result;
  int code = kCode, result_code = -1;
  value.v_handle = &graph;
  // An argument is not copied.
  EXPECT(TVMFuncCall(grows, &value, &code, 1, &result, &result_code) == 0);
  EXPECT(result_code == 0 && result.v_int64 == 4 && graph.nodes == 4);
  EXPECT(alive == 1 && clones == 0);
  // A result is copied once, and the caller owns it.
  EXPECT(TVMFuncCall(returns, &value, &code, 1, &result, &result_code) == 0);
  EXPECT(result_code == kCode && result.v_handle != &graph && alive == 2 && clones == 1);
  EXPECT(static_cast<Graph*>(result.v_handle)->nodes == 4);
  EXPECT(TVMExtTypeFree(result.v_handle, result_code) == 0);
  EXPECT(alive == 1);
  // A callback destroys an argument that it takes ownership of.
  EXPECT(TVMFuncCall(owns, &value, &code, 1, &result, &result_code) == 0);
  EXPECT(result_code == 4 && alive == 1 && clones == 2);
  // An unregistered code is rejected.
  int unknown = 18;
  EXPECT(TVMFuncCall(grows, &value, &unknown, 1, &result, &result_code) == -1);
  EXPECT(std::strstr(TVMGetLastError(), "no value has type code 18") != nullptr);
  EXPECT(TVMFuncFree(grows) == 0 && TVMFuncFree(returns) == 0 && TVMFuncFree(owns) == 0);
  return 0;
}

// The number of values that exist, and the number of copies.
extern "C" int extension_types_alive() { return alive; }
extern "C" int extension_types_cloned() { return clones; }
