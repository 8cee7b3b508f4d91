//! Loading of device modules: from the payload to kernels.

use crate::blob::pack::WrittenFile;
#[cfg(any(
    feature = "opencl",
    feature = "cuda",
    feature = "hip",
    feature = "vulkan"
))]
use crate::device::backend::code::BackendCode;
#[cfg(any(feature = "opencl", feature = "cuda", feature = "hip"))]
use crate::device::backend::code::{FormattedCode, KernelDriver};
use crate::device::error::reject;
use crate::device::launch::Arg;
use crate::device::module::{DeviceModule, KernelDescription, ModuleCode};
use crate::device::{DEV_53, DEV_54, Result};
use crate::function::{Error, ErrorKind, Function, registry};
use crate::module::{self, Module};
use crate::payload::file::{self, ModuleFile};
use crate::payload::{self, PAY_28, PAY_54, Payload, SecondForm};
use crate::release::{Layout, Release};
use crate::rule::{Findings, Kind, Strictness};
use crate::value::{Any, AnyView, cast, index};
use crate::wire::Cursor;
use std::sync::Arc;

/// The kinds of modules whose kernels this build can launch.
pub(crate) const KINDS: &[&str] = &[
    #[cfg(feature = "opencl")]
    "opencl",
    #[cfg(feature = "cuda")]
    "cuda",
    #[cfg(feature = "hip")]
    "hip",
    #[cfg(feature = "hip")]
    "hsaco",
    #[cfg(feature = "vulkan")]
    "vulkan",
];

/// The function of a device module that resets the barrier of all blocks (DEV-59). Host code calls it before it launches a kernel
/// with such a barrier.
const PREPARE_BARRIER: &str = "__tvm_prepare_global_barrier";

/// Loads the module of `kind` from `bytes`, which have the given layout. Checks the types and tags of its kernels, but does not load a
/// driver (DEV-54).
///
/// # Errors
///
/// Returns the errors of [`payload::read`]; DEV-53 for a kernel with an argument of another type; DEV-54 for a kind that this build
/// does not launch.
pub fn from_payload(kind: &str, layout: Layout, bytes: &[u8]) -> Result<Arc<DeviceModule>> {
    // The kernels run even if the payload breaks a SHOULD.
    let mut findings = Findings::new(Strictness::Lenient);
    let payload = payload::read(kind, layout, &mut Cursor::new(bytes), &mut findings)?;
    let code = code(kind, &payload)?;
    let mut kernels = Vec::new();
    for (name, info) in payload.functions() {
        // PAY-54: the launch requirements of the second form are unknown to this crate.
        if info
            .second
            .as_ref()
            .is_some_and(|second| *second != SecondForm::default())
        {
            return reject(
                PAY_54,
                Kind::Unsupported,
                format!("kernel `{name}` has launch fields or attributes of a TVM after 0.27"),
            );
        }
        kernels.push(KernelDescription::new(
            name,
            &info.arg_types,
            &info.launch_param_tags,
        )?);
    }
    Ok(DeviceModule::new(kind, code, kernels))
}

/// Returns the code of `payload`, for the driver that launches modules of `kind`.
fn code(kind: &str, payload: &Payload<'_>) -> Result<Box<dyn ModuleCode>> {
    match (kind, payload.data()) {
        #[cfg(feature = "opencl")]
        ("opencl", Some(data)) => Ok(formatted::<crate::device::opencl::OpenCl>(payload, data)),
        #[cfg(feature = "cuda")]
        ("cuda", Some(data)) => Ok(formatted::<crate::device::cuda::Cuda>(payload, data)),
        // A build without ROCm calls its modules `hsaco`; a build with ROCm reads both kinds.
        #[cfg(feature = "hip")]
        ("hip" | "hsaco", Some(data)) => Ok(formatted::<crate::device::hip::Hip>(payload, data)),
        #[cfg(feature = "vulkan")]
        // A payload of this kind has shaders instead of data.
        ("vulkan", _) => Ok(shaders(payload)),
        _ => reject(
            DEV_54,
            Kind::Unsupported,
            format!("this build launches no kernels of this `{kind}` module"),
        ),
    }
}

/// Returns code that consists of one sequence of bytes and the name of its format.
#[cfg(any(feature = "opencl", feature = "cuda", feature = "hip"))]
fn formatted<D: KernelDriver<Code = FormattedCode>>(
    payload: &Payload<'_>,
    data: &[u8],
) -> Box<dyn ModuleCode> {
    let format = payload.format().unwrap_or_default().to_owned();
    let data = data.to_vec();
    Box::new(BackendCode::<D>(FormattedCode { format, data }))
}

/// Returns the shaders of a payload. SPIR-V is stored as little-endian words; the driver takes numbers in host order.
#[cfg(feature = "vulkan")]
fn shaders(payload: &Payload<'_>) -> Box<dyn ModuleCode> {
    use crate::device::vulkan::{SpirvShader, Vulkan};
    let shader = |shader: &payload::Shader<'_>| {
        let (words, _) = shader.spirv.as_chunks();
        SpirvShader {
            name: shader.name.clone().into_owned(),
            flags: shader.flags,
            words: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        }
    };
    let shaders = payload.fields().iter().find_map(|field| match field {
        payload::Field::Shaders(list) => Some(list.iter().map(shader).collect()),
        _ => None,
    });
    Box::new(BackendCode::<Vulkan>(shaders.unwrap_or_default()))
}

/// A device module, as the module chapter sees it.
struct DeviceKind {
    /// The kernels of the module.
    module: Arc<DeviceModule>,
    /// The payload that the module was read from, byte for byte. Saving returns these bytes.
    payload: Vec<u8>,
    /// The layout of the payload.
    layout: Layout,
}

impl module::ModuleKind for DeviceKind {
    fn kind(&self) -> &str {
        self.module.kind()
    }

    fn functions(&self) -> Option<Vec<String>> {
        Some(self.module.names().map(str::to_owned).collect())
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>> {
        // DEV-59: all layouts are accepted. 0.22 and 0.23 have the function, but they write the layout of 0.24 and later, which
        // lack it.
        if name == PREPARE_BARRIER && self.module.has_barrier() {
            let (code, keep) = (self.module.clone(), module.clone());
            return Ok(Some(Function::from_packed(move |_| {
                let _module_stays = &keep;
                code.reset_barrier().map(|()| Any::none())
            })));
        }
        // DEV-56: an unknown name is not an error, because the lookup continues in other modules.
        let Some(kernel) = self.module.kernel(name) else {
            return Ok(None);
        };
        let keep = module.clone();
        Ok(Some(Function::from_packed(move |args| {
            // MOD-12: a function keeps its module loaded, as upstream.
            let _module_stays = &keep;
            let types = &kernel.info().arg_types;
            let args: Vec<Arg> = args.iter().map(argument).collect::<Result<_>>()?;
            if args.len() != kernel.arity() {
                let message = format!(
                    "kernel `{}` takes {} arguments and {} launch parameters, the call has {} values",
                    kernel.info().name,
                    types.len(),
                    kernel.arity() - types.len(),
                    args.len()
                );
                return reject(DEV_53, Kind::Type, message);
            }
            // SAFETY: the kernel is called as it was compiled, by the third and fourth clause of `module::load`: only a
            // library's loader makes this module.
            unsafe { kernel.call(&args) }?;
            Ok(Any::none())
        })))
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.payload.clone())
    }

    fn write_to_file(&self, path: &str, format: &str) -> Result<()> {
        let payload = self.decoded()?;
        // PAY-28: the last release with this layout that saves device modules. The layouts before 0.21 have no argument tags.
        let release = match self.layout {
            Layout::V0_2 => Release::of(6),
            Layout::V0_7 => Release::of(20),
            Layout::V0_21 | Layout::V0_22 => Release::of(23),
        };
        let (code, side) = file::write(&payload, path, format, release)?;
        // The side file is written first, because code without it is rejected. The two files belong to different modules only for a
        // moment.
        let side_path = file::side_file_name(path);
        write_both([(&side_path, side.as_bytes()), (path, &code)])
    }

    fn write_formats(&self) -> Vec<String> {
        let payload = self.decoded().ok();
        let format = payload.as_ref().and_then(Payload::format);
        let known = format.filter(|format| file::file_format(format).is_some());
        known.map(str::to_owned).into_iter().collect()
    }
}

impl DeviceKind {
    /// Decodes the payload, which was already read when the module was loaded.
    fn decoded(&self) -> Result<Payload<'_>> {
        let mut findings = Findings::new(Strictness::Lenient);
        let mut cursor = Cursor::new(&self.payload);
        Ok(payload::read(
            self.module.kind(),
            self.layout,
            &mut cursor,
            &mut findings,
        )?)
    }
}

/// Writes both files of a module, or neither. Each is first written to a temporary file next to its target, so that a full disk leaves
/// the old files intact.
fn write_both(files: [(&str, &[u8]); 2]) -> Result<()> {
    let mut written = Vec::new();
    for (path, bytes) in files {
        let failed =
            |error: std::io::Error| Error::new(ErrorKind::Runtime, format!("{path}: {error}"));
        written.push((
            path,
            WrittenFile::write_beside(path.as_ref(), bytes).map_err(failed)?,
        ));
    }
    for (path, file) in written {
        let failed =
            |error: std::io::Error| Error::new(ErrorKind::Runtime, format!("{path}: {error}"));
        file.rename(path.as_ref()).map_err(failed)?;
    }
    Ok(())
}

/// Loads a module from a file; arguments: `(path, format)` (PAY-23, PAY-28).
fn from_file(args: &[AnyView<'_>]) -> Result<Any> {
    let [path, rest @ ..] = args else {
        return reject(
            PAY_28,
            Kind::Type,
            "a loader of files takes a path and a format",
        );
    };
    let path = cast::<String>(*path)?;
    let format = rest
        .first()
        .map_or(Ok(String::new()), |format| cast::<String>(*format))?;
    let read = |path: &str| {
        let failed =
            |error: std::io::Error| Error::new(ErrorKind::Runtime, format!("{path}: {error}"));
        std::fs::read(path).map_err(failed)
    };
    let code = read(&path)?;
    // PAY-23: the rule rejects a missing side file. If the file cannot be read, the system's message is returned.
    let side_path = file::side_file_name(&path);
    let side = if std::path::Path::new(&side_path).exists() {
        Some(read(&side_path)?)
    } else {
        None
    };
    let mut findings = Findings::new(Strictness::Lenient);
    let of_files = ModuleFile::read(&path, &format, &code, side.as_deref(), &mut findings)?;
    let payload = of_files.payload.to_bytes(of_files.layout)?;
    let module = from_payload(of_files.format.kind, of_files.layout, &payload)?;
    let layout = of_files.layout;
    Ok(Module::new(DeviceKind {
        module,
        payload,
        layout,
    })
    .into())
}

/// Converts a value to a kernel argument: numbers, pointers, and tensors as their memory (without their byte offset).
fn argument(view: &AnyView<'_>) -> Result<Arg> {
    let raw = view.as_raw();
    match view.type_index() {
        index::INT | index::BOOL => Ok(Arg::Int(raw.int())),
        index::FLOAT => Ok(Arg::Float(raw.float())),
        // DEV-53: None is the null handle.
        index::NONE => Ok(Arg::Handle(std::ptr::null_mut())),
        index::OPAQUE => Ok(Arg::Handle(raw.ptr())),
        index::DLTENSOR_PTR | index::TENSOR => {
            let tensor =
                <*mut crate::value::DLTensor as crate::value::Argument>::try_from_view(*view);
            let tensor = tensor.and_then(|tensor| {
                // SAFETY: an argument of this type points to a description that lives as long as the view.
                unsafe { tensor.as_ref() }
            });
            Ok(Arg::Handle(
                tensor.map(|tensor| tensor.data).unwrap_or_default(),
            ))
        }
        other => reject(
            DEV_53,
            Kind::Type,
            format!("a value of type index {other} cannot be an argument of a kernel"),
        ),
    }
}

/// Makes the module chapter know the kinds of this build.
pub(super) fn provide() {
    for kind in KINDS {
        module::provide_loader(kind, |entry| {
            let module = from_payload(entry.kind, entry.layout, entry.payload)?;
            let payload = entry.payload.to_vec();
            let layout = entry.layout;
            Ok(Module::new(DeviceKind {
                module,
                payload,
                layout,
            }))
        });
    }
    // A build without drivers does not carry the readers of files.
    if KINDS.is_empty() {
        return;
    }
    // PAY-28: formats that no release loads, such as source, are not meant for a driver.
    let loaded = |format: &&file::FileFormat| !format.loaded.is_empty();
    for format in file::file_formats()
        .filter(|format| KINDS.contains(&format.kind))
        .filter(loaded)
    {
        let name = format!("ffi.Module.load_from_file.{}", format.extension);
        registry::provide(&name, Function::from_packed(from_file));
    }
}
