//! The rows of the table of kinds (PAY-99), in the order of the families.

use super::kinds::{KindInfo, NOTHING, PayloadForm};
use super::{device, executor, host, relax_vm, relay_vm, stackvm, vendor};
use crate::release::{Release, Releases};

/// A row: kind, description, forms newest first, releases with a loader, property mask by release.
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

/// The row of a kind that `to` replaced in release 0.`since`.
const fn renamed(mut info: KindInfo, to: &'static str, since: u8) -> KindInfo {
    info.renamed = Some((to, Release::of(since)));
    info
}

/// Releases 0.`since` to 0.`until`, both included.
const fn range(since: u8, until: u8) -> Releases {
    Releases::between(since, until)
}

/// Runnable and serializable.
// MOD-15: modules have property masks since 0.12.
const RUNNABLE: &[(Releases, u8)] = &[(Releases::from(12), 3)];
/// Serializable only.
const STORED: &[(Releases, u8)] = &[(Releases::from(12), 1)];
/// Exported as object code at first, serializable from 0.14 on.
// MOD-15, PAY-30: until 0.13 code of the host went into the library and nowhere else, so that it was not serializable.
const OBJECT_CODE: &[(Releases, u8)] = &[(range(12, 13), 4), (Releases::from(14), 5)];

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
        // PAY-13: form 0.13 was written for ten releases, and no loader of `opencl` ever took it: the loader is that of form 0.2.
        "opencl",
        "OpenCL kernels",
        device::OPENCL,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
        // PAY-99: two kinds that are written and have no loader: a library with one does not load again.
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
        // PAY-16: form 0.13 needs a compiler with Metal. Others wrote form 0.2 all the while, under the same kind and loader.
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
        // PAY-99: 0.2 stores `hip` and registers the loader of `hsaco` alone.
        &[Releases::from(3)],
        // MOD-15: 0.12 and 0.13 have masks, and this module did not yet set its own.
        &[(range(12, 13), 0), (Releases::from(14), 3)],
    ),
    row(
        // PAY-99: loaded in every release, written from 0.3 to 0.23.
        "hsaco",
        "ROCm kernels of a compiler without ROCm",
        device::HSACO,
        &[Releases::ALL],
        &[(range(12, 23), 1)],
    ),
    row(
        // PAY-99: of 0.7 to 0.11 the loader was also in the browser, where WebGPU ran SPIR-V. Then `webgpu` took WGSL.
        "vulkan",
        "SPIR-V shaders",
        device::VULKAN,
        &[Releases::from(3)],
        RUNNABLE,
    ),
    row(
        // PAY-99: the loader is registered in the browser alone: no runtime elsewhere loads it.
        "webgpu",
        "WGSL kernels",
        device::WEBGPU,
        &[Releases::from(12)],
        STORED,
    ),
    row(
        // MOD-15: gone with 0.6, before there were masks.
        "opengl",
        "OpenGL shaders",
        device::OPENGL,
        &[range(2, 6)],
        &[],
    ),
    row(
        // PAY-99: merged into `_lib` from 0.12 to 0.23 and stored beside it, without a loader; from 0.24 on it has one.
        "hexagon",
        "Hexagon object code",
        device::HEXAGON,
        &[Releases::from(24)],
        &[(range(12, 23), 7), (Releases::from(24), 3)],
    ),
    row(
        // PAY-99: as for `hsaco`: what a compiler without the runtime writes. Here no release loads it.
        "hex",
        "Hexagon object code of a compiler without Hexagon",
        device::HEX,
        &[],
        &[(range(12, 23), 1)],
    ),
    row(
        // PAY-99: written since 0.25, and no release registers a loader.
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
            // PAY-34: of two names for one format the older was loaded as long as the runtime had both, up to 0.19.
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
        // PAY-38: the bytes of `metadata`, and the check of its names is new.
        "const_loader",
        "named constants",
        host::CONST_LOADER,
        &[Releases::from(9)],
        STORED,
    ),
    row(
        // A key with nothing behind it; up to 0.19 a loader makes a module of that.
        "metadata_module",
        "AOT metadata, of which nothing is stored",
        &[NOTHING],
        &[range(9, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
            // PAY-99: as `metadata`: written for one release, and loaded up to 0.19.
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
        // PAY-40: the bytes of `GraphRuntimeFactory`. Both names are loaded up to 0.19.
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
        // PAY-60: 0.6 and 0.7 have the code (PAY-62) and no module to store it in.
        "VMExecutable",
        "Relay VM code",
        relay_vm::FORMS,
        &[range(8, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
            // PAY-81: renamed in 0.20, which has no loader of the old name: libraries of 0.16 to 0.19 load in those.
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
        // PAY-55: a file of its own, which is opened by its name; no loader of library binaries knows the kind.
        "stackvm",
        "StackVM functions, in a file of their own",
        stackvm::FORMS,
        &[],
        &[(range(12, 19), 0)],
    ),
    json_runtime("dnnl_json", vendor::JSON_7, &[Releases::from(7)], RUNNABLE),
    json_runtime(
        // PAY-99: loader and mask end with the kind, in 0.23.
        "arm_compute_lib",
        vendor::JSON_7_23,
        &[range(7, 23)],
        &[(range(12, 23), 3)],
    ),
    json_runtime("tensorrt", vendor::JSON_8, &[Releases::from(8)], RUNNABLE),
    json_runtime(
        "bnns_json",
        vendor::JSON_8_23,
        &[range(8, 23)],
        &[(range(12, 23), 3)],
    ),
    row(
        // PAY-99: written like every JSON runtime, and the only one without a loader.
        "verilator",
        "a subgraph for a simulated circuit",
        vendor::JSON_8_19,
        &[],
        &[(range(12, 19), 3)],
    ),
    json_runtime("clml", vendor::JSON_9, &[Releases::from(9)], RUNNABLE),
    json_runtime(
        // MOD-15: younger than masks, as the kinds of 0.16 and later are: the mask begins with the kind.
        "cublas_json",
        vendor::JSON_16,
        &[Releases::from(16)],
        &[(Releases::from(16), 3)],
    ),
    json_runtime(
        "cudnn_json",
        vendor::JSON_16,
        &[Releases::from(16)],
        &[(Releases::from(16), 3)],
    ),
    json_runtime(
        "msc_tensorrt",
        vendor::JSON_16_23,
        &[range(16, 23)],
        &[(range(16, 23), 3)],
    ),
    json_runtime(
        "nnapi",
        vendor::JSON_18,
        &[Releases::from(18)],
        &[(Releases::from(18), 3)],
    ),
    json_runtime(
        "hipblas_json",
        vendor::JSON_18,
        &[Releases::from(18)],
        &[(Releases::from(18), 3)],
    ),
    json_runtime(
        "example_npu_json",
        vendor::JSON_24,
        &[Releases::from(24)],
        &[(Releases::from(24), 3)],
    ),
    row(
        // PAY-46: the graph alone; the form of all other JSON runtimes came a release later (PAY-45).
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
        // PAY-48: the form changed in 0.10 under the same kind, and the loader of each release reads its own only.
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
        // PAY-53: a kind beside the simulator, with the binary as bytes and not as base64.
        "mrvl_hw",
        "a model for Marvell hardware",
        vendor::MRVL_HW,
        &[range(19, 23)],
        &[(range(19, 23), 3)],
    ),
];

/// A row of the JSON runtimes, which differ by name and releases only.
const fn json_runtime(
    kind: &'static str,
    forms: &'static [PayloadForm],
    loaded: &'static [Releases],
    masks: &'static [(Releases, u8)],
) -> KindInfo {
    row(
        kind,
        "a subgraph for a vendor library",
        forms,
        loaded,
        masks,
    )
}

/// Every kind that a release ever stored, in the order of the families.
pub fn kinds() -> &'static [KindInfo] {
    KINDS
}

/// The row of `kind`.
/// `None` for a kind that no release stored. A search from the front: there are some forty rows, and a library has few modules.
pub fn kind_info(kind: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|info| info.kind == kind)
}
