// A module whose `GetFunction` throws what its argument names, as modules of any provenance may; and a caller of the virtual
// functions of any module, which returns what it caught.

#include <stdexcept>
#include <string>
#include <utility>

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/registry.h>

#include "../../golden/module/thrown.h"

namespace ffi = tvm::ffi;

struct OwnError : ffi::Error {
  OwnError() : ffi::Error("KeyError", "own says so", "") {}
};

struct Throws : ffi::ModuleObj {
  const char* kind() const final { return "throws"; }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    std::string what = name;
    if (what == "error") throw ffi::Error("ValueError", "error says so", "");
    if (what == "own_error") throw OwnError();
    if (what == "runtime_error") throw std::runtime_error("runtime says so");
    if (what == "derived") throw Derived("");
    if (what == "behind") throw Behind();
    if (what == "virtual") throw Virtual();
    if (what == "string") throw std::string("x");
    if (what == "pair") throw std::make_pair(1, 2);
    if (what == "int") throw 1;
    if (what == "text") throw "x";
    if (what == "pointer") throw static_cast<std::exception*>(nullptr);
    return std::nullopt;
  }
};

ffi::String Caught(ffi::Module module, ffi::String function, bool as_standard) {
  std::string name = function;
  auto call = [&] {
    if (name == "GetFunction") module->GetFunction("f");
    if (name == "ImplementsFunction") module->ImplementsFunction("f");
    if (name == "GetFunctionDoc") module->GetFunctionDoc("f");
    if (name == "GetFunctionMetadata") module->GetFunctionMetadata("f");
    if (name == "WriteToFile") module->WriteToFile("path", "format");
    if (name == "SaveToBytes") module->SaveToBytes();
    if (name == "InspectSource") module->InspectSource("format");
    if (name == "ImportModule") module->ImportModule(module);
    if (name == "ClearImports") module->ClearImports();
  };
  try {
    call();
  } catch (const ffi::Error& error) {
    if (!as_standard) return error.kind() + ": " + error.message();
    try {
      throw;
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  return "nothing";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tvmspec.test.throws", [] { return ffi::Module(ffi::make_object<Throws>()); })
      .def("tvmspec.test.caught", Caught);
}
