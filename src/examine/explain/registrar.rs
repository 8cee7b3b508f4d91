//! The parts of TVM that register the loader of each kind.

/// Returns the part of TVM that must be present for a module of `kind` to load.
///
/// The text follows the words "registered by". For an unknown kind, it says where a loader must come from.
pub(crate) fn registering_part(kind: &str) -> &'static str {
    match kind {
        "cuda" => {
            "a runtime built with USE_CUDA; in the wheels of 0.27 the library libtvm_runtime_cuda.so, which needs a driver"
        }
        "opencl" => "a runtime built with USE_OPENCL (the wheels of 0.27 are not)",
        "metal" => "a runtime built with USE_METAL, on macOS or iOS",
        "vulkan" => "a runtime built with USE_VULKAN (the wheels of 0.27 are not)",
        "hip" | "hsaco" => "a runtime built with USE_ROCM (the wheels of 0.27 are not)",
        "webgpu" => "the WebAssembly runtime, tvmjs; no native runtime",
        "opengl" => "a runtime built with USE_OPENGL",
        "hexagon" => "a runtime built with USE_HEXAGON",
        // PAY-99: stored up to 0.19 under kinds for which no release registers a loader.
        "sdaccel" | "aocl" => {
            "nothing: its writer names a kind that no release loads. Build for the target again and load the files of the device tools instead"
        }
        // These cannot be excluded by a build option: every build of a release that has the kind loads it.
        "c" | "static_library" | "const_loader" | "metadata" | "metadata_module" => {
            "every runtime of those releases"
        }
        "GraphRuntimeFactory" | "GraphExecutorFactory" => {
            "a runtime built with USE_GRAPH_EXECUTOR (the default)"
        }
        "AotExecutorFactory" => "a runtime built with USE_AOT_EXECUTOR (the default)",
        "VMExecutable" | "relax.Executable" | "relax.VMExecutable" => {
            "every runtime of those releases"
        }
        // PAY-55: libraries do not contain it, so that there is no loader for payloads.
        "stackvm" => "nothing: a StackVM module is loaded from a file of its own",
        "tensorrt" => "a runtime built with USE_TENSORRT_RUNTIME",
        "dnnl_json" => "a runtime built with USE_DNNL",
        "arm_compute_lib" => "a runtime built with USE_ARM_COMPUTE_LIB_GRAPH_EXECUTOR",
        "bnns_json" => "a runtime built with USE_BNNS, on macOS or iOS",
        "clml" => "a runtime built with USE_CLML_GRAPH_EXECUTOR",
        "cublas_json" => "a runtime built with USE_CUBLAS",
        "cudnn_json" => "a runtime built with USE_CUDNN",
        "hipblas_json" => "a runtime built with USE_HIPBLAS",
        "nnapi" => "a runtime built with USE_NNAPI_RUNTIME, on Android",
        "msc_tensorrt" => "a runtime built with USE_MSC and TensorRT",
        "coreml" => "a runtime built with USE_COREML, on macOS or iOS",
        "ethos-n" => "a runtime built with USE_ETHOSN",
        "VitisAIRuntime" => "a runtime built with USE_VITIS_AI",
        "torch" => "a runtime built with USE_LIBTORCH",
        // PAY-10: written by a compiler without Hexagon, or for Trainium.
        "hex" | "nki" => "nothing: no release loads what this compiler stores",
        // PAY-45: the only JSON runtime without a loader.
        "verilator" => "nothing: its runtime registers no loader",
        "mrvl_sim" | "mrvl_hw" => "a runtime built with USE_MRVL",
        // MOD-11: any global function with the right name is a loader, so users can add kinds.
        _ => {
            "the library that brings the kind: it has to register a global function of that name before this one is opened"
        }
    }
}
