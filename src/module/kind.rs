//! What a kind of module does, and what each known kind promises.

use super::Module;
use crate::function::{Error, ErrorKind, Function};
use crate::release::Release;

/// Bits of the property mask (MOD-15).
pub mod property {
    /// Its bytes can be saved and read back.
    pub const SERIALIZABLE: u32 = 1;
    /// Its functions can be called.
    pub const RUNNABLE: u32 = 2;
    /// It goes into a library as code, not as bytes.
    pub const EXPORTABLE: u32 = 4;
}

/// What a kind of module does. Implement it to bring a kind of your own:
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
/// let double = module.function("double", false).unwrap().unwrap();
/// assert_eq!(i64::try_from(&double.call(&[21i64.into()]).unwrap()).unwrap(), 42);
/// ```
///
/// A function that is returned must keep `module` alive if it needs anything of it: clone the handle into it (MOD-12).
pub trait ModuleKind: std::any::Any + Send + Sync {
    /// The name of the kind: `library`, `cuda`, ... (`type_key` up to 0.21).
    fn kind(&self) -> &str;

    /// Bits of [`property`].
    fn property_mask(&self) -> u32 {
        // MOD-15: what implements a kind runs it; a kind without a runtime is an `Opaque`, which has a mask of its own.
        property_mask(self.kind(), Release::LAST, true)
    }

    /// The module's own function `name`; `None` when it has none. An error ends the whole lookup.
    ///
    /// # Errors
    ///
    /// What the kind finds wrong, such as code that does not load.
    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error>;

    /// Whether there is a function `name`, where that is known without making it.
    ///
    /// # Errors
    ///
    /// As [`ModuleKind::function`], which the default calls.
    fn implements(&self, module: &Module, name: &str) -> Result<bool, Error> {
        Ok(self.function(module, name)?.is_some())
    }

    /// Source text in `format`, the default format when empty; empty when there is none.
    ///
    /// # Errors
    ///
    /// None from the default. A kind may reject a format.
    fn source(&self, _format: &str) -> Result<String, Error> {
        Ok(String::new())
    }

    /// The payload that a loader of this kind reads back.
    ///
    /// # Errors
    ///
    /// A RuntimeError from the default: the kind cannot be saved.
    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Err(cannot(self.kind(), "does not support SaveToBytes"))
    }

    /// Writes to a file in `format`.
    ///
    /// # Errors
    ///
    /// A RuntimeError from the default: the kind cannot be written. What the system answers for the path.
    fn write_to_file(&self, _path: &str, _format: &str) -> Result<(), Error> {
        Err(cannot(self.kind(), "does not support WriteToFile"))
    }

    /// The formats that [`ModuleKind::write_to_file`] knows.
    fn write_formats(&self) -> Vec<String> {
        Vec::new()
    }

    /// JSON metadata of the function `name` (libraries of 0.22 on).
    ///
    /// # Errors
    ///
    /// None from the default.
    fn metadata(&self, _module: &Module, _name: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Documentation of the function `name` (libraries of 0.22 on).
    ///
    /// # Errors
    ///
    /// None from the default.
    fn doc(&self, _module: &Module, _name: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// For diagnostics: what stands in the way of running this module, if anything.
    fn hindrance(&self) -> Option<String> {
        None
    }
}

fn cannot(kind: &str, what: &str) -> Error {
    Error::new(ErrorKind::Runtime, format!("Module[{kind}] {what}"))
}

/// The property mask of `kind` as `release` defines it; 0 for kinds that are not listed (MOD-15).
///
/// `runs` is whether its runtime is there: device modules without one can be saved, and not called.
pub fn property_mask(kind: &str, release: Release, runs: bool) -> u32 {
    use property::{EXPORTABLE, RUNNABLE, SERIALIZABLE};
    // MOD-15: a compiler that was built without the runtime of a kind saves its code all the same.
    let device = SERIALIZABLE | if runs { RUNNABLE } else { 0 };
    match kind {
        // MOD-15: 0.12 and 0.13 left it at the default, though they save and run it.
        "hip" if release < Release::of(14) => 0,
        "hsaco" | "hex" | "nki" => SERIALIZABLE,
        // MOD-15: as in the releases, none of which can save a library.
        "library" => SERIALIZABLE | RUNNABLE,
        "llvm" => RUNNABLE | EXPORTABLE,
        // MOD-15: 0.12 and 0.13 promise no payload of these; PAY-32 begins with 0.14.
        "c" | "static_library" if release < Release::of(14) => EXPORTABLE,
        "c" | "static_library" => SERIALIZABLE | EXPORTABLE,
        // MOD-15: from 0.12 to 0.23 its code was merged into that of the library.
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
        // MOD-15: `stackvm` and `relax.VirtualMachine` among them, which have no mask in any release.
        _ => 0,
    }
}
