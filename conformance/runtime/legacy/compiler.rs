//! A compiler with the C interface of 0.20 and before.
//!
//! It has the operations of `runtime/ffi/compiler.rs`, with the names of 0.7 to 0.20: nodes for objects, a type key for the kind,
//! and bools that are passed as integers (as in RPC-43).

use super::{LegacyApi, LegacyValue, c_text, int_arg, null_arg, text_arg};
use crate::conformance::adapter::legacy::{modules, tensors};
use crate::conformance::reply::Reply;
use crate::conformance::runtime::Runtime;
use crate::conformance::runtime::ffi::compiler::stored_bytes;
use crate::conformance::target::compiler::{Compiler, CompilerArgument, CompilerNames};
use crate::release::Layout;
use crate::value::legacy::code;
use std::ffi::CString;

impl Compiler for &'static LegacyApi {
    type Value = LegacyValue;

    const NAMES: CompilerNames = CompilerNames {
        graph: "node.LoadJSON",
        kind: "runtime.ModuleGetTypeKey",
        source: "runtime.ModuleGetSource",
        implements: "runtime.ModuleImplementsFunction",
        pack: "runtime.ModulePackImportsToNDArray",
        layout: Layout::V0_7,
    };

    fn runtime(&self) -> &'static dyn Runtime {
        self.runtime
    }

    fn has(&self, name: &str) -> Result<bool, Reply> {
        Ok(self.global(name)?.is_some())
    }

    /// Passes a flag as an integer: up to 0.17 a bool has no code, and all releases accept an integer.
    fn call(
        &self,
        name: &str,
        args: &[CompilerArgument<'_, LegacyValue>],
    ) -> Result<LegacyValue, Reply> {
        let texts: Vec<CString> = args
            .iter()
            .map(|arg| match arg {
                CompilerArgument::Text(text) => c_text(text),
                _ => CString::default(),
            })
            .collect();
        let cells = args.iter().zip(&texts).map(|(arg, text)| match arg {
            CompilerArgument::Text(_) => text_arg(text),
            CompilerArgument::Returned(value) => value.arg(),
            CompilerArgument::Flag(flag) => int_arg(i64::from(*flag)),
            CompilerArgument::None => null_arg(),
        });
        self.call_global(name, &cells.collect::<Vec<_>>())
    }

    fn import(&self, into: &LegacyValue, module: &LegacyValue) -> Result<(), Reply> {
        LegacyApi::import(self, into, module)
    }

    /// Loads with the loader of the kind (MOD-11). Its argument is a C++ stream, which C cannot create, so a library with one
    /// payload is loaded.
    fn load(&self, kind: &str, payload: &[u8]) -> Result<Option<LegacyValue>, Reply> {
        match self.global(&modules::loader_of(kind))? {
            Some(_) => modules::stored(self, kind, payload).map(Some),
            None => Ok(None),
        }
    }

    /// Returns a text, which is an object if a function of the compiler returns it (VAL-19).
    fn text(&self, value: &LegacyValue) -> Result<String, Reply> {
        if value.code == code::OBJECT {
            // Only this function reads a text that is an object.
            return self
                .call_global("runtime.GetFFIString", &[value.arg()])?
                .text();
        }
        value.text()
    }

    fn int(&self, value: &LegacyValue) -> i64 {
        value.int()
    }

    fn tensor(&self, value: &LegacyValue) -> Result<Vec<u8>, Reply> {
        stored_bytes(&tensors::shown(value)?)
    }
}
