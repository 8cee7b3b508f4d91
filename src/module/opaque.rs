//! A module whose kind has no runtime here. It keeps its bytes and the names of its functions, and a call fails with the missing runtime
//! (MOD-11). Releases reject the whole library instead.

use super::{MOD_11, Module, ModuleKind, property_mask};
use crate::function::{Error, Function};
use crate::release::{Layout, Release};
use crate::rule;

/// An entry of a library that no loader here can read, as it was stored.
pub struct Opaque {
    kind: String,
    payload: Vec<u8>,
    functions: Vec<String>,
    loader: String,
    layout: Layout,
}

debug_fields!(Opaque: kind, functions, layout);

impl Opaque {
    /// Creates the module of an entry of `kind` with its `payload`; `loader` is the missing global function.
    pub fn new(
        kind: &str,
        payload: &[u8],
        functions: Vec<String>,
        loader: String,
        layout: Layout,
    ) -> Opaque {
        Opaque {
            kind: kind.to_owned(),
            // Copied, because the payload is in the library, which this module does not keep mapped.
            payload: payload.to_vec(),
            functions,
            loader,
            layout,
        }
    }

    /// Explains how to run the module: the runtime that it needs, and the name of the missing loader (MOD-11).
    fn reason(&self) -> String {
        let made_by = match self.kind.as_str() {
            "cuda" => "a runtime with CUDA",
            "opencl" => "a runtime with OpenCL",
            "vulkan" => "a runtime with Vulkan",
            "metal" => "a runtime with Metal, on a Mac or an iPhone",
            "hip" | "hsaco" => "a runtime with ROCm",
            "webgpu" => "the runtime of a web page",
            "hexagon" => "a runtime with Hexagon",
            _ => "a runtime that knows this kind",
        };
        format!(
            "module kind `{}` has no runtime in this process: it needs {made_by}, which registers `{}`",
            self.kind, self.loader
        )
    }
}

impl ModuleKind for Opaque {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn property_mask(&self) -> u32 {
        // MOD-15: the mask of a kind whose runtime is missing.
        property_mask(&self.kind, Release::LAST, false)
    }

    fn functions(&self) -> Option<Vec<String>> {
        Some(self.functions.clone())
    }

    fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>, Error> {
        // MOD-11: only the names in the payload, so that an import after this one can provide any other.
        if !self.functions.iter().any(|known| known == name) {
            return Ok(None);
        }
        let text = format!("cannot call `{name}`: {}", self.reason());
        Ok(Some(Function::from_packed(move |_| {
            Err(MOD_11
                .rejected(rule::Kind::Unsupported, text.clone())
                .into())
        })))
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        // MOD-11: returns the loaded bytes, so that a tree that contains this module can be exported again.
        Ok(self.payload.clone())
    }

    fn why_not_runnable(&self) -> Option<String> {
        Some(format!("{} (layout {})", self.reason(), self.layout))
    }
}
