//! The table of kinds: what each stores, in which releases, and who loads it.

use super::{Checked, FormSlot, device, executor, host, relax_vm, relay_vm, stackvm, vendor};
use crate::release::{Layout, Release, Releases};
use crate::rule::{Findings, Violation};

/// One module kind, through all releases.
#[derive(Debug)]
pub struct KindInfo {
    /// The name in the library binary: `type_key` up to 0.21, `kind` from 0.22.
    pub kind: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Its payload grammars, newest first.
    pub forms: &'static [PayloadForm],
    /// The releases in which a loader is registered; empty where none ever was.
    pub loaded: &'static [Releases],
    /// The property mask per range of releases: 1 binary serializable, 2 runnable, 4 exportable as object code.
    pub masks: &'static [(Releases, u8)],
    /// The kind that took its place, and the release in which it did.
    pub renamed: Option<(&'static str, Release)>,
}

/// One grammar of a kind.
#[derive(Debug)]
pub struct PayloadForm {
    /// The release that introduced it.
    pub name: &'static str,
    /// The releases that write it.
    pub releases: Releases,
    /// Its fields, in file order.
    pub slots: &'static [FormSlot],
    pub(super) check: Option<FormCheck>,
}

/// Holds a whole form to the rules that span several of its fields.
type FormCheck = fn(&Checked<'_, '_>, &mut Findings) -> Result<(), Violation>;

/// The form of no bytes.
pub(super) const NOTHING: PayloadForm = PayloadForm::new("0.9", Releases::between(9, 19), &[]);

impl PayloadForm {
    pub(super) const fn new(
        name: &'static str,
        releases: Releases,
        slots: &'static [FormSlot],
    ) -> PayloadForm {
        PayloadForm {
            name,
            releases,
            slots,
            check: None,
        }
    }

    pub(super) const fn checked(mut self, check: FormCheck) -> PayloadForm {
        self.check = Some(check);
        self
    }

    /// Whether some release that writes `layout` also writes this form.
    pub(crate) fn is_in(&self, layout: Layout) -> bool {
        let releases = layout.releases();
        self.releases.since <= releases.until && releases.since <= self.releases.until
    }

    /// Whether both have fields of the same names, in the same order, that hold values of the same type.
    pub(super) fn is_like(&self, other: &PayloadForm) -> bool {
        use super::FieldShape::{Functions, Networks, Shaders, SilentFunctions};
        let alike = |(a, b): (&FormSlot, &FormSlot)| {
            a.name == b.name
                && match (a.shape, b.shape) {
                    (Shaders { .. }, Shaders { .. }) => true,
                    (Functions | SilentFunctions, Functions | SilentFunctions) => true,
                    (Networks { .. }, _) => false,
                    (a, b) => a == b,
                }
        };
        self.slots.len() == other.slots.len() && self.slots.iter().zip(other.slots).all(alike)
    }
}

impl PartialEq for PayloadForm {
    fn eq(&self, other: &PayloadForm) -> bool {
        self.name == other.name && self.is_like(other)
    }
}

impl PartialEq for KindInfo {
    fn eq(&self, other: &KindInfo) -> bool {
        self.kind == other.kind
    }
}

impl KindInfo {
    /// The forms that `layout` can store, the preferred one (PAY-09) first.
    pub(crate) fn forms_in(
        &self,
        layout: Layout,
    ) -> impl Iterator<Item = &'static PayloadForm> + Clone + use<> {
        self.forms.iter().filter(move |form| form.is_in(layout))
    }

    /// The newest form that `release` writes; `None` where it stores no module of this kind (PAY-99).
    pub fn form_in(&self, release: Release) -> Option<&'static PayloadForm> {
        let mut forms = self.forms.iter();
        forms.find(|form| form.releases.contains(release))
    }

    /// The property mask in `release`; `None` before 0.12, and where the kind is not there (MOD-15).
    pub fn mask(&self, release: Release) -> Option<u8> {
        let mut masks = self.masks.iter();
        let of_release = masks.find(|(range, _)| range.contains(release))?;
        Some(of_release.1)
    }

    /// The global function that reads it in `release`; `None` where that release registers none (PAY-99).
    ///
    /// The prefix is `module.loadbinary_` up to 0.6, `runtime.module.loadbinary_` up to 0.21 and
    /// `ffi.Module.load_from_bytes.` from 0.22.
    pub fn loader(&self, release: Release) -> Option<String> {
        let loaded = self.loaded.iter().any(|range| range.contains(release));
        loaded.then(|| format!("{}{}", loader_prefix(release), self.kind))
    }
}

/// What stands before a kind in the name of its loader.
pub(super) fn loader_prefix(release: Release) -> &'static str {
    match release.minor() {
        ..=6 => "module.loadbinary_",
        7..=21 => "runtime.module.loadbinary_",
        22.. => "ffi.Module.load_from_bytes.",
    }
}

/// Every kind that a release ever stored, in the order of the families.
pub fn kinds() -> &'static [KindInfo] {
    KINDS
}

/// The row of `kind`.
pub fn kind_info(kind: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|info| info.kind == kind)
}

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

const fn renamed(mut info: KindInfo, to: &'static str, since: u8) -> KindInfo {
    info.renamed = Some((to, Release::of(since)));
    info
}

const fn range(since: u8, until: u8) -> Releases {
    Releases::between(since, until)
}

/// Runnable and serializable.
const RUNNABLE: &[(Releases, u8)] = &[(Releases::from(12), 3)];
/// Serializable only.
const STORED: &[(Releases, u8)] = &[(Releases::from(12), 1)];
/// Exported as object code at first, serializable from 0.14 on.
const OBJECT_CODE: &[(Releases, u8)] = &[(range(12, 13), 4), (Releases::from(14), 5)];

const KINDS: &[KindInfo] = &[
    row(
        "cuda",
        "CUDA kernels",
        device::CUDA,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
        "opencl",
        "OpenCL kernels",
        device::OPENCL,
        &[Releases::ALL],
        RUNNABLE,
    ),
    row(
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
        &[Releases::from(3)],
        &[(range(12, 13), 0), (Releases::from(14), 3)],
    ),
    row(
        "hsaco",
        "ROCm kernels of a compiler without ROCm",
        device::HSACO,
        &[Releases::ALL],
        &[(range(12, 23), 1)],
    ),
    row(
        "vulkan",
        "SPIR-V shaders",
        device::VULKAN,
        &[Releases::from(3)],
        RUNNABLE,
    ),
    row(
        "webgpu",
        "WGSL kernels",
        device::WEBGPU,
        &[Releases::from(12)],
        STORED,
    ),
    row(
        "opengl",
        "OpenGL shaders",
        device::OPENGL,
        &[range(2, 6)],
        &[],
    ),
    row(
        "hexagon",
        "Hexagon object code",
        device::HEXAGON,
        &[Releases::from(24)],
        &[(range(12, 23), 7), (Releases::from(24), 3)],
    ),
    row(
        "hex",
        "Hexagon object code of a compiler without Hexagon",
        device::HEX,
        &[],
        &[(range(12, 23), 1)],
    ),
    row(
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
        "const_loader",
        "named constants",
        host::CONST_LOADER,
        &[Releases::from(9)],
        STORED,
    ),
    row(
        "metadata_module",
        "AOT metadata, of which nothing is stored",
        &[NOTHING],
        &[range(9, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
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
        "VMExecutable",
        "Relay VM code",
        relay_vm::FORMS,
        &[range(8, 19)],
        &[(range(12, 19), 1)],
    ),
    renamed(
        row(
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
        "stackvm",
        "StackVM functions, in a file of their own",
        stackvm::FORMS,
        &[],
        &[(range(12, 19), 0)],
    ),
    json_runtime("dnnl_json", vendor::JSON_7, &[Releases::from(7)], RUNNABLE),
    json_runtime(
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
        "verilator",
        "a subgraph for a simulated circuit",
        vendor::JSON_8_19,
        &[],
        &[(range(12, 19), 3)],
    ),
    json_runtime("clml", vendor::JSON_9, &[Releases::from(9)], RUNNABLE),
    json_runtime(
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
        "mrvl_sim",
        "a model for the Marvell simulator",
        vendor::MRVL_SIM,
        &[range(16, 23)],
        &[(range(16, 23), 3)],
    ),
    row(
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn loader_names_follow_the_release() {
        let cuda = kind_info("cuda").unwrap();
        let name = |minor| cuda.loader(Release::of(minor)).unwrap();
        assert_eq!(name(6), "module.loadbinary_cuda");
        assert_eq!(name(7), "runtime.module.loadbinary_cuda");
        assert_eq!(name(22), "ffi.Module.load_from_bytes.cuda");
        assert_eq!(kind_info("sdaccel").unwrap().loader(Release::of(8)), None);
        assert_eq!(
            kind_info("const_loader").unwrap().loader(Release::of(8)),
            None
        );
    }

    #[test]
    fn kinds_are_there_once_and_forms_newest_first() {
        for (index, info) in KINDS.iter().enumerate() {
            assert!(
                KINDS[..index].iter().all(|other| other.kind != info.kind),
                "{}",
                info.kind
            );
            for form in info.forms {
                let name: Release = form.name.parse().unwrap();
                assert!(form.releases.contains(name), "{} {}", info.kind, form.name);
            }
        }
    }
}
