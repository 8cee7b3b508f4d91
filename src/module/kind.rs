//! The interface of a kind of module, and the properties of each known kind.

use super::Module;
use crate::function::{Error, ErrorKind, Function};
use crate::release::Release;

/// Bits of the property mask (MOD-15).
pub mod property {
    /// The payload can be saved and read back.
    pub const SERIALIZABLE: u32 = 1;
    /// The functions can be called.
    pub const RUNNABLE: u32 = 2;
    /// The module is exported into a library as code, not as bytes.
    pub const EXPORTABLE: u32 = 4;
}

/// The behaviour of a kind of module. Implement it to add a kind:
///
/// ```
/// use tvmspec::function::{Error, Function};
/// use tvmspec::module::{Module, ModuleKind};
///
/// struct Doubler;
///
/// impl ModuleKind for Doubler {
///     fn kind(&self) -> &str {
///         "doubler"
///     }
///
///     fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>, Error> {
///         Ok((name == "double").then(|| Function::from_typed(|x: i64| x * 2)))
///     }
/// }
///
/// let module = Module::new(Doubler);
/// let double = module.require("double").unwrap();
/// assert_eq!(double.call_as::<i64>((21,)).unwrap(), 42);
/// ```
///
/// A returned function must keep `module` alive if it uses anything of it: move a clone of the handle into it (MOD-12).
pub trait ModuleKind: std::any::Any + Send + Sync {
    /// Returns the name of the kind: `library`, `cuda`, ... (`type_key` up to 0.21).
    fn kind(&self) -> &str;

    /// Returns bits of [`property`].
    fn property_mask(&self) -> u32 {
        // MOD-15: an implemented kind can run; a kind without a runtime is an `Opaque`, which has its own mask.
        property_mask(self.kind(), Release::LAST, true)
    }

    /// Returns the module's own function `name`, or `None` if it has no such function. An error ends the whole lookup.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind, such as code that does not load.
    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error>;

    /// Returns the names of the module's own functions; `None` if the kind cannot list them.
    fn functions(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns whether a function `name` exists. Override it if the answer is known without creating the function.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ModuleKind::function`], because the default implementation calls it.
    fn implements(&self, module: &Module, name: &str) -> Result<bool, Error> {
        Ok(self.function(module, name)?.is_some())
    }

    /// Returns the source text in `format`, or in the default format if `format` is empty. Returns an empty text if there is no source.
    ///
    /// # Errors
    ///
    /// The default implementation returns no error. A kind may reject a format.
    fn source(&self, _format: &str) -> Result<String, Error> {
        Ok(String::new())
    }

    /// Returns the payload that a loader of this kind reads back.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError from the default implementation: the kind cannot be saved.
    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Err(cannot(self.kind(), "does not support SaveToBytes"))
    }

    /// Writes the module to a file in `format`.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError from the default implementation: the kind cannot be written. A kind also returns the system's errors for
    /// the path.
    fn write_to_file(&self, _path: &str, _format: &str) -> Result<(), Error> {
        Err(cannot(self.kind(), "does not support WriteToFile"))
    }

    /// Returns the formats that [`ModuleKind::write_to_file`] supports.
    fn write_formats(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns JSON metadata of the function `name` (libraries of 0.22 on).
    ///
    /// # Errors
    ///
    /// The default implementation returns no error.
    fn metadata(&self, _module: &Module, _name: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Returns the documentation of the function `name` (libraries of 0.22 on).
    ///
    /// # Errors
    ///
    /// The default implementation returns no error.
    fn doc(&self, _module: &Module, _name: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Explains, for diagnostics, why this module cannot run; `None` if it can.
    fn why_not_runnable(&self) -> Option<String> {
        None
    }
}

fn cannot(kind: &str, what: &str) -> Error {
    Error::new(ErrorKind::Runtime, format!("Module[{kind}] {what}"))
}

/// Returns the property mask of `kind` in `release`; 0 for unlisted kinds (MOD-15).
///
/// `runs` states whether the kind's runtime is available. Without it, device modules can be saved but not called.
pub fn property_mask(kind: &str, release: Release, runs: bool) -> u32 {
    use property::{EXPORTABLE, RUNNABLE, SERIALIZABLE};
    // MOD-15: a compiler without the runtime of a kind can still save its code.
    let device = SERIALIZABLE | if runs { RUNNABLE } else { 0 };
    match kind {
        // MOD-15: 0.12 and 0.13 kept the default mask, although they save and run it.
        "hip" if release < Release::of(14) => 0,
        "hsaco" | "hex" | "nki" => SERIALIZABLE,
        // MOD-15: as in the releases, although none of them can save a library.
        "library" => SERIALIZABLE | RUNNABLE,
        "llvm" => RUNNABLE | EXPORTABLE,
        // MOD-15: 0.12 and 0.13 promise no payload for these; PAY-32 begins with 0.14.
        "c" | "static_library" if release < Release::of(14) => EXPORTABLE,
        "c" | "static_library" => SERIALIZABLE | EXPORTABLE,
        // MOD-15: from 0.12 to 0.23 its code was merged into the code of the library.
        "hexagon" if release < Release::of(24) => SERIALIZABLE | RUNNABLE | EXPORTABLE,
        "cuda" | "opencl" | "sdaccel" | "aocl" | "metal" | "hip" | "vulkan" | "hexagon"
        | "coreml" | "torch" | "dnnl_json" | "arm_compute_lib" | "tensorrt" | "bnns_json"
        | "clml" | "verilator" | "cublas_json" | "cudnn_json" | "msc_tensorrt" | "nnapi"
        | "hipblas_json" | "example_npu_json" | "mrvl_sim" | "mrvl_hw" | "VitisAIRuntime"
        | "ethos-n" => device,
        "webgpu"
        | "const_loader"
        | "metadata"
        | "metadata_module"
        | "GraphExecutorFactory"
        | "GraphRuntimeFactory"
        | "AotExecutorFactory"
        | "VMExecutable"
        | "relax.Executable"
        | "relax.VMExecutable" => SERIALIZABLE,
        "GraphExecutor" | "AotExecutor" | "rpc" | "onnx" | "TFLiteRuntime" => RUNNABLE,
        // MOD-15: includes `stackvm` and `relax.VirtualMachine`, which have no mask in any release.
        _ => 0,
    }
}
