//! A device, a kind of target and a code generator of your own, end to end: build, export, load, run.
//!
//! Run: `cargo run --example foo`. The accelerator is made up: it has the memory of the host, and runs kernels that a C compiler makes of its code.
//! What TVM lowers for `ext_dev` comes from a file, `golden/target/kernels/0.27/`, in the place of a frontend.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tvmspec::blob::pack::{self, LinkOptions, SymbolNaming};
use tvmspec::blob::{Blob, StoredModule};
use tvmspec::device::{
    self, Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Space, Stream, cpu,
    manager,
};
use tvmspec::function::{Error, ErrorKind, Function, registry};
use tvmspec::import_tree::ImportTree;
use tvmspec::module::{self, Module, ModuleKind};
use tvmspec::payload::Payload;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::{Findings, Violation};
use tvmspec::target::{
    GeneratedCode, Generators, KernelInfo, LoweredModule, OptionType, Target, TargetKind, Targets,
};
use tvmspec::value::{AnyView, DLDataType, DLDevice, DLTensor};

/// Everything from the registration to the numbers.
///
/// # Errors
///
/// What any of the steps ends in; a machine without a C compiler among them.
pub(crate) fn main() -> Result<(), Error> {
    // The device: what is external to TVM has type 12, `ext_dev`.
    // SAFETY: its memory is that of the CPU device, which keeps the rules of memory.
    unsafe { manager::register("ext_dev", &FooDevice) }?;
    // The generator, where every frontend looks for it (TGT-80), and the loader of what it makes (TGT-86).
    registry::register_typed("target.build.foo", build_foo)?;
    module::register_loader("foo", |entry| {
        let text = String::from_utf8_lossy(entry.payload);
        Ok(Module::new(FooModule::new(&text)))
    });

    // Build: the compiler has split the function into host code and a kernel, and lowered both.
    let lowered = |part: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/target/kernels/0.27");
        fs::read_to_string(format!("{folder}/add1_ext.{part}.json")).map_err(failed)
    };
    let target = targets().read("c")?;
    let host =
        Generators::new().generate(&LoweredModule::read(lowered("host")?.as_bytes())?, &target)?;
    let build = registry::require("target.build.foo")?;
    let device = build.call_with([
        lowered("device")?.into(),
        r#"{"kind": "foo", "lanes": 8}"#.into(),
    ])?;
    let device = Module::try_from(&device)?;
    println!(
        "built {} with {:?}",
        device.kind(),
        device.function("add1_ext_kernel", false)?.is_some()
    );

    // Export: the host code is linked, what the device runs is stored, and the tree says that the one imports the other.
    let folder = std::env::temp_dir().join(format!("tvmspec-foo-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(failed)?;
    let library = export(&folder, host.source().unwrap_or_default(), &device);
    // Load.
    // SAFETY: code that was just made, and is called as it was compiled.
    let loaded = library.and_then(|library| unsafe { module::load(library) });
    fs::remove_dir_all(&folder).map_err(failed)?;
    let loaded = loaded?;
    println!(
        "loaded {}, which imports {}",
        loaded.kind(),
        loaded.imports()[0].kind()
    );

    // Run, on the device.
    let numbers = run(&loaded.require("add1_ext")?)?;
    println!("add1_ext(0 .. 15) = {numbers:?}");
    let expected: Vec<f32> = (1..=16_u8).map(f32::from).collect();
    assert_eq!(numbers, expected);
    Ok(())
}

/// The kinds of 0.27, and `foo`.
fn targets() -> Targets {
    let kind =
        TargetKind::new("foo", 12)
            .keys(["foo"])
            .option("lanes", OptionType::Int, Some(4.into()));
    let mut targets = Targets::new(Release::of(27));
    targets.register(kind);
    targets
}

/// `target.build.foo`: a module, as JSON, for a target, as text.
fn build_foo(module: String, target: String) -> Result<Module, Error> {
    let mut generators = Generators::new();
    generators.register("foo", Box::new(generate_foo));
    // What the generator returns is held to the contract: every kernel is found, described as it is, and can be stored.
    let code = generators.generate(
        &LoweredModule::read(module.as_bytes())?,
        &targets().read(&target)?,
    )?;
    let text = code.source().unwrap_or_default();
    Ok(Module::new(FooModule::new(text)))
}

/// The code of foo is that of OpenCL, with a function for each kernel that runs it for all threads, one after the other.
fn generate_foo(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let opencl = targets().read("opencl")?;
    let code = Generators::new().generate(module, &opencl)?;
    let kernels = code.kernels().to_vec();
    let runners: String = kernels.iter().map(runner).collect();
    let text = [PRELUDE, code.source().unwrap_or_default(), &runners].concat();
    let symbols: Vec<&str> = module.symbols().collect();
    let payload = Payload::Opaque {
        kind: "foo".into(),
        bytes: text.into_bytes().into(),
    };
    Ok(GeneratedCode::new(&symbols, payload).with_kernels(kernels))
}

/// What makes C of OpenCL C, and a library of it whose functions have the convention of 0.27 (MOD-06).
const PRELUDE: &str = "
#define uchar unsigned char
#define ushort unsigned short
#define uint unsigned int
#define ulong unsigned long
#define __kernel static
#define __global
static _Thread_local int foo_group[3], foo_local[3];
#define get_group_id(axis) foo_group[axis]
#define get_local_id(axis) foo_local[axis]
typedef struct { int type; unsigned zero; union { long v_int64; double v_float64; void* v_ptr; }; } foo_any;
void* __tvm_ffi__library_ctx;
";

/// A packed function that runs a kernel: parameters first, then how many groups and threads there are (PAY-02).
fn runner(kernel: &KernelInfo) -> String {
    let argument = |(at, dtype): (usize, &String)| match dtype.as_str() {
        "handle" => format!("args[{at}].v_ptr"),
        other if other.starts_with("float") => format!("args[{at}].v_float64"),
        _ => format!("args[{at}].v_int64"),
    };
    let arguments: Vec<String> = kernel.arg_types.iter().enumerate().map(argument).collect();
    let mut loops = String::new();
    for (at, tag) in kernel.launch_param_tags.iter().enumerate() {
        let at = at + kernel.arg_types.len();
        let (what, axis) = tag.split_once('.').unwrap_or((tag, "x"));
        let what = if what == "blockIdx" {
            "foo_group"
        } else {
            "foo_local"
        };
        let place = format!(
            "{what}[{}]",
            ["x", "y", "z"]
                .iter()
                .position(|name| *name == axis)
                .unwrap_or(0)
        );
        loops.push_str(&format!(
            "  for ({place} = 0; {place} < args[{at}].v_int64; ++{place})\n"
        ));
    }
    let name = &kernel.name;
    let arguments = arguments.join(", ");
    format!(
        "int __tvm_ffi_{name}(void* self, foo_any* args, int count, foo_any* result) {{\n{loops}    {name}({arguments});\n  return 0;\n}}\n"
    )
}

/// A module of kind `foo`: its text, and what the compiler made of it at the first lookup.
struct FooModule {
    text: String,
    compiled: OnceLock<Result<Module, String>>,
}

impl FooModule {
    fn new(text: &str) -> FooModule {
        FooModule {
            text: text.to_owned(),
            compiled: OnceLock::new(),
        }
    }

    fn compile(&self) -> Result<Module, Error> {
        let folder =
            std::env::temp_dir().join(format!("tvmspec-foo-{}-{:p}", std::process::id(), self));
        fs::create_dir_all(&folder).map_err(failed)?;
        let (source, library) = (folder.join("kernels.c"), folder.join("kernels.so"));
        fs::write(&source, &self.text).map_err(failed)?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .args([&library, &source])
            .output();
        let compiled = compiled.map_err(failed)?;
        let made = if compiled.status.success() {
            // SAFETY: code that was just made of kernels, and is called as they are described.
            unsafe { module::load(&library) }
        } else {
            Err(Error::new(ErrorKind::Runtime, &compiled.stderr))
        };
        fs::remove_dir_all(&folder).map_err(failed)?;
        made
    }
}

impl ModuleKind for FooModule {
    fn kind(&self) -> &str {
        "foo"
    }

    fn property_mask(&self) -> u32 {
        module::property::SERIALIZABLE | module::property::RUNNABLE
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        let compiled = self
            .compiled
            .get_or_init(|| self.compile().map_err(|error| error.message().to_owned()));
        match compiled {
            Ok(library) => library.function(name, false),
            Err(why) => Err(Error::new(ErrorKind::Runtime, why.clone())),
        }
    }

    fn source(&self, _: &str) -> Result<String, Error> {
        Ok(self.text.clone())
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.text.clone().into_bytes())
    }
}

/// A library with the host code and, in its library binary, the module of the device.
fn export(folder: &Path, host: &str, device: &Module) -> Result<std::path::PathBuf, Error> {
    let implementation = device
        .implementation()
        .ok_or_else(|| failed("no module of this program"))?;
    let stored = |kind: &str, payload: Option<Vec<u8>>| StoredModule {
        kind: kind.to_owned().into(),
        payload: payload.map(Cow::Owned),
        offset: 0,
    };
    let blob = Blob {
        layout: Layout::of(Release::of(27)),
        modules: vec![
            stored("_lib", None),
            stored(
                device.kind().as_ref(),
                Some(implementation.save_to_bytes()?),
            ),
        ],
        tree: Some(ImportTree::new(&[0, 1, 1], &[1], &mut Findings::default())?),
    };
    let source = folder.join("host.c");
    fs::write(&source, host).map_err(failed)?;
    let library = folder.join("add1.so");
    let mut with = LinkOptions::default();
    with.inputs = vec![source];
    with.options = vec!["-lm".into()];
    pack::shared(
        &blob.write()?,
        &SymbolNaming::library(Release::of(27)),
        &with,
        &library,
    )
    .map_err(failed)?;
    Ok(library)
}

/// Calls the function with memory of the device; what it left there.
fn run(add1: &Function) -> Result<Vec<f32>, Error> {
    let device = Device::ext_dev(0);
    let api = device::Manager::global().api(device.kind)?;
    let input: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let mut output = vec![0.0_f32; 16];
    let spaces = [
        api.alloc(device, 64, 64, Dtype::FLOAT32)?,
        api.alloc(device, 64, 64, Dtype::FLOAT32)?,
    ];
    let copy = |from: (Space, Device), to: (Space, Device)| CopyRequest {
        from: from.0,
        from_offset: 0,
        to: to.0,
        to_offset: 0,
        nbytes: 64,
        from_device: from.1,
        to_device: to.1,
        hint: Dtype::FLOAT32,
    };
    let there = copy(
        (Space::host(input.as_ptr()), Device::CPU),
        (spaces[0], device),
    );
    // SAFETY: both sides have 64 bytes.
    unsafe { api.copy(&there, Stream::DEFAULT) }?;
    let mut shape = [16_i64];
    let tensor = spaces.map(|space| DLTensor {
        data: space.0,
        device: DLDevice {
            device_type: 12,
            device_id: 0,
        },
        ndim: 1,
        dtype: DLDataType {
            code: 2,
            bits: 32,
            lanes: 1,
        },
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    });
    // SAFETY: both describe spaces of the device that outlive the call.
    let views = tensor
        .each_ref()
        .map(|tensor| unsafe { AnyView::dltensor(tensor) });
    add1.call(&views)?;
    let back = copy(
        (spaces[1], device),
        (Space(output.as_mut_ptr().cast()), Device::CPU),
    );
    // SAFETY: both sides have 64 bytes.
    unsafe { api.copy(&back, Stream::DEFAULT) }?;
    for space in spaces {
        // SAFETY: allocated above, and not used again.
        unsafe { api.free(device, space) }?;
    }
    Ok(output)
}

fn failed(why: impl ToString) -> Error {
    Error::new(ErrorKind::Runtime, why.to_string())
}

/// The accelerator: for want of hardware it borrows the memory of the host.
struct FooDevice;

impl DeviceApi for FooDevice {
    fn set_device(&self, device: Device) -> device::Result<()> {
        if device.id == 0 {
            return Ok(());
        }
        Err(device::Error::new(
            device::ErrorKind::Runtime,
            "there is one foo",
        ))
    }
    fn attribute(&self, device: Device, attribute: Attribute) -> device::Result<AttributeValue> {
        Ok(match attribute {
            Attribute::Exist => AttributeValue::Int((device.id == 0).into()),
            Attribute::DeviceName => AttributeValue::Text("foo".into()),
            _ => AttributeValue::None,
        })
    }
    fn alloc(
        &self,
        _: Device,
        nbytes: usize,
        alignment: usize,
        hint: Dtype,
    ) -> device::Result<Space> {
        cpu::cpu().alloc(Device::CPU, nbytes, alignment, hint)
    }
    unsafe fn free(&self, _: Device, space: Space) -> device::Result<()> {
        // SAFETY: it came from `alloc`, by the contract of `free`, and so from the CPU.
        unsafe { cpu::cpu().free(Device::CPU, space) }
    }
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> device::Result<()> {
        // SAFETY: both sides have the bytes, by the contract of `copy`, and both are memory of the host.
        unsafe { cpu::cpu().copy(copy, stream) }
    }
    fn sync(&self, _: Device, _: Stream) -> device::Result<()> {
        Ok(())
    }
}
