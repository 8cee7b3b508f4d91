//! The rows of the table of kinds (PAY-99), ordered by family.

use super::kinds::{KindInfo, NOTHING, PayloadForm};
use super::{device, executor, host, relax_vm, relay_vm, stackvm, vendor};
use crate::release::{Release, Releases};

/// Creates a row from kind, description, forms (newest first), releases with a loader, and property masks by release.
const fn row(
    kind: &'static str,
    about: &'static str,
    forms: &'static [PayloadForm],
    loaded: &'static [Releases],
    masks: &'static [(Releases, u8)],
) -> KindInfo {
    KindInfo {
        kind,
        about,
        forms,
        loaded,
        masks,
        renamed: None,
    }
}

/// Marks the row of a kind that `to` replaced in release 0.`since`.
const fn renamed(mut info: KindInfo, to: &'static str, since: u8) -> KindInfo {
    info.renamed = Some((to, Release::of(since)));
    info
}

/// Returns the releases 0.`since` to 0.`until`, both included.
const fn range(since: u8, until: u8) -> Releases {
    Releases::between(since, until)
}

/// Mask of a kind that is runnable and serializable.
// MOD-15: modules have property masks since 0.12.
const RUNNABLE: &[(Releases, u8)] = &[(Releases::from(12), 3)];
/// Mask of a kind that is only serializable.
const STORED: &[(Releases, u8)] = &[(Releases::from(12), 1)];
/// Mask of a kind that is exportable as object code, and serializable from 0.14 on.
// MOD-15, PAY-30: up to 0.13, host code was only linked into the library, so it was not serializable.
const OBJECT_CODE: &[(Releases, u8)] = &[(range(12, 13), 4), (Releases::from(14), 5)];

/// Mask of a kind that is runnable and serializable, in those of `releases` that have masks.
const fn runnable(releases: Releases) -> (Releases, u8) {
    // MOD-15: modules have property masks since 0.12. The mask of a newer kind begins with the kind.
    let since = if releases.since.minor() < 12 {
        Release::of(12)
    } else {
        releases.since
    };
    (Releases { since, ..releases }, 3)
}

/// Creates the row of a JSON runtime (PAY-45). These rows differ only in name and releases, in which the kind is written and loaded.
macro_rules! json_runtime {
    ($kind:literal, $form:literal, $releases:expr) => {
        row(
            $kind,
            "a subgraph for a vendor library",
            &[PayloadForm::new($form, $releases, vendor::JSON_RUNTIME)],
            &[$releases],
            &[runnable($releases)],
        )
    };
}

/// Every kind, by family: device code, host code, executors, VMs, StackVM, vendors. [`kind_info`] finds a row by its name.
pub(super) const KINDS: &[KindInfo] = &[
    row(
        "cuda",
        "CUDA kernels",
        device::CUDA,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
        // PAY-13: ten releases wrote form 0.13, but the loader of `opencl` only ever read form 0.2.
        "opencl",
        "OpenCL kernels",
        device::OPENCL,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
        // PAY-99: these two kinds are written but have no loader, so a library with one cannot be loaded.
        "sdaccel",
        "OpenCL kernels for Xilinx boards",
        device::FPGA,
        &[],
        &[(range(12, 19), 3)],
    ),
    row(
        "aocl",
        "OpenCL kernels for Intel boards",
        device::FPGA,
        &[],
        &[(range(12, 19), 3)],
    ),
    row(
        // PAY-16: only a compiler with Metal writes form 0.13. Others wrote form 0.2 in the same releases, under the same kind and loader.
        "metal",
        "Metal kernels",
        device::METAL,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
        "hip",
        "ROCm kernels",
        device::HIP,
        // PAY-99: 0.2 stores `hip` but only registers the loader of `hsaco`.
        &[Releases::from(3)],
        // MOD-15: masks exist in 0.12 and 0.13, but this module did not set its own yet.
        &[(range(12, 13), 0), (Releases::from(14), 3)],
    ),
    row(
        // PAY-99: every release loads it; 0.3 to 0.23 write it.
        "hsaco",
        "ROCm kernels of a compiler without ROCm",
        device::HSACO,
        &[Releases::ALL],
        &[(range(12, 23), 1)],
    ),
    row(
        // PAY-99: in 0.7 to 0.11 the browser also had this loader, because WebGPU ran SPIR-V there. Later `webgpu` used WGSL.
        "vulkan",
        "SPIR-V shaders",
        device::VULKAN,
        &[Releases::from(3)],
        RUNNABLE,
    ),
    row(
        // PAY-99: only the browser's runtime registers this loader.
        "webgpu",
        "WGSL kernels",
        device::WEBGPU,
        &[Releases::from(12)],
        STORED,
    ),
    row(
        // MOD-15: it was removed after 0.6, before masks existed.
        "opengl",
        "OpenGL shaders",
        device::OPENGL,
        &[range(2, 6)],
        &[],
    ),
    row(
        // PAY-99: from 0.12 to 0.23 a library normally has it in `_lib` instead (TREE-20); from 0.24 on it has a loader.
        "hexagon",
        "Hexagon object code",
        device::HEXAGON,
        &[Releases::from(24)],
        &[(range(12, 23), 7), (Releases::from(24), 3)],
    ),
    row(
        // PAY-99: like `hsaco`, a compiler without the runtime writes it. No release loads it.
        "hex",
        "Hexagon object code of a compiler without Hexagon",
        device::HEX,
        &[],
        &[(range(12, 23), 1)],
    ),
    row(
        // PAY-99: it is written since 0.25, but no release registers a loader.
        "nki",
        "kernels for AWS Trainium",
        device::NKI,
        &[],
        &[(Releases::from(25), 1)],
    ),
    row("c", "C source", host::C, &[Releases::from(14)], OBJECT_CODE),
    row(
        "static_library",
        "an object file",
        host::STATIC_LIBRARY,
        &[Releases::from(14)],
        OBJECT_CODE,
    ),
    renamed(
        row(
            // PAY-34: the older of two names for one format was loaded as long as runtimes had both, up to 0.19.
            "metadata",
            "named constants",
            host::METADATA,
            &[range(7, 19)],
            &[],
        ),
        "const_loader",
        9,
    ),
    row(
        // PAY-38: the bytes are the same as for `metadata`, but its names are checked.
        "const_loader",
        "named constants",
        host::CONST_LOADER,
        &[Releases::from(9)],
        STORED,
    ),
    row(
        // It is only a key without a payload; up to 0.19 a loader creates a module from it.
        "metadata_module",
        "AOT metadata, of which nothing is stored",
        &[NOTHING],
        &[range(9, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
            // PAY-99: like `metadata`, one release wrote it, and runtimes load it up to 0.19.
            "GraphRuntimeFactory",
            "a graph and its parameters",
            executor::GRAPH_RUNTIME,
            &[range(7, 19)],
            &[],
        ),
        "GraphExecutorFactory",
        8,
    ),
    row(
        // PAY-40: the bytes are the same as for `GraphRuntimeFactory`. Both names are loaded up to 0.19.
        "GraphExecutorFactory",
        "a graph and its parameters",
        executor::GRAPH_EXECUTOR,
        &[range(8, 19)],
        &[(range(12, 19), 1)],
    ),
    row(
        "AotExecutorFactory",
        "parameters of an AOT program",
        executor::AOT,
        &[range(9, 19)],
        &[(range(12, 19), 1)],
    ),
    row(
        // PAY-60: 0.6 and 0.7 have the code (PAY-62), but no module to store it in.
        "VMExecutable",
        "Relay VM code",
        relay_vm::FORMS,
        &[range(8, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
            // PAY-81: 0.20 renamed it and has no loader for the old name, so only 0.16 to 0.19 load such libraries.
            "relax.Executable",
            "Relax VM code",
            relax_vm::OLD_FORMS,
            &[range(16, 19)],
            &[(range(16, 19), 1)],
        ),
        "relax.VMExecutable",
        20,
    ),
    row(
        "relax.VMExecutable",
        "Relax VM code",
        relax_vm::FORMS,
        &[Releases::from(20)],
        &[(Releases::from(20), 1)],
    ),
    row(
        // PAY-55: it is a separate file, which is opened by its name; no loader of library binaries knows the kind.
        "stackvm",
        "StackVM functions, in a file of their own",
        stackvm::FORMS,
        &[],
        &[(range(12, 19), 0)],
    ),
    json_runtime!("dnnl_json", "0.7", Releases::from(7)),
    // PAY-99: loader and mask end with the kind, in 0.23.
    json_runtime!("arm_compute_lib", "0.7", range(7, 23)),
    json_runtime!("tensorrt", "0.8", Releases::from(8)),
    json_runtime!("bnns_json", "0.8", range(8, 23)),
    row(
        // PAY-99: it is written like every JSON runtime, but is the only one without a loader.
        "verilator",
        "a subgraph for a simulated circuit",
        &[PayloadForm::new("0.8", range(8, 19), vendor::JSON_RUNTIME)],
        &[],
        &[(range(12, 19), 3)],
    ),
    json_runtime!("clml", "0.9", Releases::from(9)),
    json_runtime!("cublas_json", "0.16", Releases::from(16)),
    json_runtime!("cudnn_json", "0.16", Releases::from(16)),
    json_runtime!("msc_tensorrt", "0.16", range(16, 23)),
    json_runtime!("nnapi", "0.18", Releases::from(18)),
    json_runtime!("hipblas_json", "0.18", Releases::from(18)),
    json_runtime!("example_npu_json", "0.24", Releases::from(24)),
    row(
        // PAY-46: it stores only the graph; the form of all other JSON runtimes came one release later (PAY-45).
        "examplejson",
        "the example of a JSON runtime",
        vendor::EXAMPLE_JSON,
        &[range(6, 6)],
        &[],
    ),
    row(
        "coreml",
        "a Core ML model",
        vendor::COREML,
        &[Releases::from(7)],
        RUNNABLE,
    ),
    row(
        // PAY-48: the form changed in 0.10 under the same kind, and the loader of each release reads only its own form.
        "ethos-n",
        "networks for Ethos-N",
        vendor::ETHOS_N,
        &[range(7, 18)],
        &[(range(12, 18), 3)],
    ),
    row(
        "VitisAIRuntime",
        "a model for Vitis AI",
        vendor::VITIS_AI,
        &[range(8, 19)],
        &[(range(12, 19), 3)],
    ),
    row(
        "torch",
        "a TorchScript module",
        vendor::TORCH,
        &[range(9, 19)],
        &[(range(12, 19), 3)],
    ),
    row(
        // PAY-52: 0.16 wrote two strings, later releases a third, under the same kind and loader.
        "mrvl_sim",
        "a model for the Marvell simulator",
        vendor::MRVL_SIM,
        &[range(16, 23)],
        &[(range(16, 23), 3)],
    ),
    row(
        // PAY-53: a separate kind from the simulator, with the binary as bytes instead of base64.
        "mrvl_hw",
        "a model for Marvell hardware",
        vendor::MRVL_HW,
        &[range(19, 23)],
        &[(range(19, 23), 3)],
    ),
];

/// Returns every kind that a release ever stored, ordered by family.
pub fn kinds() -> &'static [KindInfo] {
    KINDS
}

/// Returns the row of `kind`; `None` for a kind that no release stored. The search is linear, because there are about forty rows and a
/// library has few modules.
pub fn kind_info(kind: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|info| info.kind == kind)
}
