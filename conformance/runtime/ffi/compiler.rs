//! A compiler with the tvm-ffi C interface.

use super::api::FfiApi;
use super::owned::{OwnedValue, bool_arg, bytes_arg, text_arg};
use super::tensors;
use super::{Reply, c_text, unsupported};
use crate::conformance::runtime::Runtime;
use crate::conformance::target::compiler::{Compiler, CompilerArgument, CompilerNames};
use crate::release::Layout;
use crate::value::{ByteArray, RawAny};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::ffi::CString;

// The names of 0.22 and later: `ffi.` for functions of tvm-ffi, `runtime.` for those that remained in the compiler.
impl Compiler for &'static FfiApi {
    type Value = OwnedValue;

    const NAMES: CompilerNames = CompilerNames {
        graph: "ffi.FromJSONGraphString",
        kind: "ffi.ModuleGetKind",
        source: "ffi.ModuleInspectSource",
        implements: "ffi.ModuleImplementsFunction",
        pack: "runtime.ModulePackImportsToTensor",
        layout: Layout::V0_22,
    };

    fn runtime(&self) -> &'static dyn Runtime {
        self.runtime
    }

    /// Returns whether the function exists. A compiler registers its functions when its library is loaded; a runtime alone has none
    /// of them.
    fn has(&self, name: &str) -> Result<bool, Reply> {
        Ok(self.global(name).is_some())
    }

    /// Passes texts as C strings, which the callee copies. The list keeps them alive for the call.
    fn call(
        &self,
        name: &str,
        args: &[CompilerArgument<'_, OwnedValue>],
    ) -> Result<OwnedValue, Reply> {
        let texts: Vec<CString> = args
            .iter()
            .map(|arg| match arg {
                CompilerArgument::Text(text) => c_text(text),
                _ => CString::default(),
            })
            .collect();
        let cells = args.iter().zip(&texts).map(|(arg, text)| match arg {
            CompilerArgument::Text(_) => text_arg(text),
            CompilerArgument::Returned(value) => value.raw,
            CompilerArgument::Flag(flag) => bool_arg(*flag),
            CompilerArgument::None => RawAny::NONE,
        });
        Ok(self.call_global(name, &cells.collect::<Vec<_>>())?)
    }

    fn import(&self, into: &OwnedValue, module: &OwnedValue) -> Result<(), Reply> {
        self.call_global("ffi.ModuleImportModule", &[into.raw, module.raw])?;
        Ok(())
    }

    /// Loads with the loader of the kind (MOD-11); `None` if this build has no such kind.
    fn load(&self, kind: &str, payload: &[u8]) -> Result<Option<OwnedValue>, Reply> {
        let Some(loader) = self.global(&format!("ffi.Module.load_from_bytes.{kind}")) else {
            return Ok(None);
        };
        let payload = ByteArray::of(payload);
        Ok(Some(FfiApi::call(self, &loader, &[bytes_arg(&payload)])?))
    }

    fn text(&self, value: &OwnedValue) -> Result<String, Reply> {
        let text = value.text();
        text.ok_or_else(|| unsupported("a result is not a text"))
    }

    fn int(&self, value: &OwnedValue) -> i64 {
        value.raw.int()
    }

    /// Returns the bytes of a tensor, the form in which a packed module is returned.
    fn tensor(&self, value: &OwnedValue) -> Result<Vec<u8>, Reply> {
        stored_bytes(&tensors::tensor_to_json(value)?)
    }
}

/// Returns the bytes of a tensor in its JSON form.
pub(in crate::conformance) fn stored_bytes(tensor: &Value) -> Result<Vec<u8>, Reply> {
    let data = tensor.get("data").and_then(Value::as_str);
    let bytes = data.and_then(|data| BASE64_STANDARD.decode(data).ok());
    bytes.ok_or_else(|| unsupported("a tensor has no bytes"))
}
