//! The requirements of device code on a device and its driver, as far as the code states them.
//!
//! | code | fields read |
//! |---|---|
//! | PTX | `.version`, `.target` |
//! | cubin, fatbin | architecture of each image |
//! | hsaco | processor |
//! | SPIR-V | version, capabilities |
//! | metallib | version of the Metal language |
//! | OpenCL, WGSL | enabled extensions |

use super::Payload;
use std::collections::BTreeSet;

/// A requirement of code, with its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CodeNeed {
    /// The version of PTX that the driver must support.
    PtxVersion(String),
    /// The target architecture of PTX: `sm_90a`. Later architectures run it too, unless the name ends with a letter.
    PtxTarget(String),
    /// The target architecture of CUDA binary code: `sm_90`.
    CudaBinary(String),
    /// The target processor of ROCm code: `gfx90a`.
    AmdProcessor(String),
    /// The version of SPIR-V.
    SpirvVersion(String),
    /// A capability of SPIR-V that not every device has.
    SpirvCapability(String),
    /// The version of the Metal language.
    MetalLanguage(String),
    /// An OpenCL extension that the source enables if the device has it.
    OpenClExtension(String),
    /// A feature of WebGPU.
    WgslFeature(String),
}

impl CodeNeed {
    /// Returns the name of the requirement for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            CodeNeed::PtxVersion(_) => "PTX version",
            CodeNeed::PtxTarget(_) => "PTX target",
            CodeNeed::CudaBinary(_) => "CUDA architecture",
            CodeNeed::AmdProcessor(_) => "AMD processor",
            CodeNeed::SpirvVersion(_) => "SPIR-V version",
            CodeNeed::SpirvCapability(_) => "SPIR-V capability",
            CodeNeed::MetalLanguage(_) => "Metal language",
            CodeNeed::OpenClExtension(_) => "OpenCL extension",
            CodeNeed::WgslFeature(_) => "WGSL feature",
        }
    }

    /// Returns the value.
    pub fn value(&self) -> &str {
        match self {
            CodeNeed::PtxVersion(value)
            | CodeNeed::PtxTarget(value)
            | CodeNeed::CudaBinary(value)
            | CodeNeed::AmdProcessor(value)
            | CodeNeed::SpirvVersion(value)
            | CodeNeed::SpirvCapability(value)
            | CodeNeed::MetalLanguage(value)
            | CodeNeed::OpenClExtension(value)
            | CodeNeed::WgslFeature(value) => value,
        }
    }
}

impl Payload<'_> {
    /// Returns the requirements of the device code in this payload, without repetition. Empty for other payloads, and for code that states
    /// none.
    pub fn code_needs(&self) -> BTreeSet<CodeNeed> {
        let mut needs = BTreeSet::new();
        // The first bytes show the type of the code. The format may be wrong, and one format may be used for several types.
        let codes = self
            .data()
            .into_iter()
            .chain(self.kernels().map(|(_, code)| code));
        for code in codes {
            match self.kind() {
                "cuda" => cuda(code, &mut needs),
                "hip" | "hsaco" => amd(code, &mut needs),
                "vulkan" | "opencl" if code.starts_with(&SPIRV) => spirv(code, &mut needs),
                "opencl" => opencl(code, &mut needs),
                "metal" => metal(code, &mut needs),
                "webgpu" => wgsl(code, &mut needs),
                _ => {}
            }
        }
        needs
    }
}

/// Number of bytes of text that are searched, because directives are at its beginning.
const HEAD: usize = 1 << 16;

/// Returns the lines at the beginning of source text.
fn lines(code: &[u8]) -> impl Iterator<Item = &str> {
    let head = code.get(..HEAD).unwrap_or(code);
    let lines = head.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Some(std::str::from_utf8(line).ok()?.trim()))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(two.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn cuda(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    if code.starts_with(b"\x7fELF") {
        needs.extend(cubin(code).map(CodeNeed::CudaBinary));
    } else if word(code, 0) == Some(FATBIN) {
        fatbin(code, needs);
    } else {
        ptx(code, needs);
    }
}

fn ptx(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    // The directives stand in this order before everything else. `.target` may have options after a comma.
    for line in lines(code) {
        if let Some(version) = line.strip_prefix(".version") {
            needs.insert(CodeNeed::PtxVersion(version.trim().to_owned()));
        }
        if let Some(target) = line.strip_prefix(".target") {
            let target = target.split(',').next().unwrap_or_default();
            needs.insert(CodeNeed::PtxTarget(target.trim().to_owned()));
            return;
        }
    }
}

/// Returns the architecture in the ELF header of CUDA binary code.
fn cubin(elf: &[u8]) -> Option<String> {
    const EM_CUDA: u16 = 190;
    /// The byte of the header that decides which bits of the flags contain the architecture.
    const ABI_VERSION: usize = 8;
    if half(elf, 18) != Some(EM_CUDA) {
        return None;
    }
    let flags = word(elf, 48)?;
    // CUDA 13 moved the architecture by one byte, and the letter to another bit.
    let (number, exact) = match elf.get(ABI_VERSION)? {
        8.. => ((flags >> 8) & 0xff, flags & 0x8 != 0),
        _ => (flags & 0xff, flags & 0x800 != 0),
    };
    let letter = if exact { "a" } else { "" };
    Some(format!("sm_{number}{letter}"))
}

/// The first word of a fatbin.
const FATBIN: u32 = 0xba55_ed50;

/// Reads the images of a fatbin: a header of 16 bytes, then images, each with its kind, header length and size at its start.
fn fatbin(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    const PTX: u16 = 1;
    const ELF: u16 = 2;
    let mut at = usize::from(half(code, 6).unwrap_or(16));
    while let (Some(kind), Some(header), Some(size), Some(arch)) = (
        half(code, at),
        word(code, at.saturating_add(4)),
        word(code, at.saturating_add(8)),
        word(code, at.saturating_add(28)),
    ) {
        let [header, size] =
            [header, size].map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let image = code.get(at.saturating_add(header)..);
        match kind {
            PTX => needs.insert(CodeNeed::PtxTarget(format!("sm_{arch}"))),
            // The header of an image does not contain the letter, so the image itself is read if it is not compressed.
            ELF => {
                let own = image
                    .filter(|image| image.starts_with(b"\x7fELF"))
                    .and_then(cubin);
                let name = own.unwrap_or_else(|| format!("sm_{arch}"));
                needs.insert(CodeNeed::CudaBinary(name))
            }
            _ => return,
        };
        // A header length of 0 would cause an endless loop.
        if header == 0 {
            return;
        }
        at = at.saturating_add(header).saturating_add(size);
    }
}

fn amd(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    const EM_AMDGPU: u16 = 224;
    if !code.starts_with(b"\x7fELF") || half(code, 18) != Some(EM_AMDGPU) {
        return;
    }
    let machine = word(code, 48).map(|flags| flags & 0xff);
    let found = PROCESSORS
        .iter()
        .find(|(number, _)| Some(*number) == machine);
    let name = match (found, machine) {
        (Some((_, name)), _) => (*name).to_owned(),
        (None, Some(machine)) => format!("number {machine:#x}"),
        (None, None) => return,
    };
    needs.insert(CodeNeed::AmdProcessor(name));
}

/// Names of processors, by the lowest byte of the ELF flags.
const PROCESSORS: [(u32, &str); 30] = [
    (0x22, "gfx701"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x41, "gfx1100"),
    (0x44, "gfx1103"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x4a, "gfx1151"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
];

/// The first word of a SPIR-V module.
const SPIRV: [u8; 4] = [0x03, 0x02, 0x23, 0x07];

/// The capabilities that TVM's code generator uses and that not every device has.
const CAPABILITIES: [(u32, &str); 14] = [
    (9, "Float16"),
    (10, "Float64"),
    (11, "Int64"),
    (22, "Int16"),
    (39, "Int8"),
    (61, "GroupNonUniform"),
    (65, "GroupNonUniformShuffle"),
    (4433, "StorageBuffer16BitAccess"),
    (4434, "UniformAndStorageBuffer16BitAccess"),
    (4448, "StorageBuffer8BitAccess"),
    (4449, "UniformAndStorageBuffer8BitAccess"),
    (5345, "VulkanMemoryModel"),
    (5357, "CooperativeMatrixNV"),
    (6022, "CooperativeMatrixKHR"),
];

fn spirv(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    /// The opcode of the instruction that declares a capability.
    const OP_CAPABILITY: u32 = 17;
    if let Some([_, minor, major, _]) = word(code, 4).map(u32::to_le_bytes) {
        needs.insert(CodeNeed::SpirvVersion(format!("{major}.{minor}")));
    }
    // Capabilities come first, after a header of five words.
    let mut at = 20_usize;
    while let Some(instruction) = word(code, at) {
        if instruction & 0xffff != OP_CAPABILITY {
            return;
        }
        let number = word(code, at.saturating_add(4));
        let known = CAPABILITIES
            .iter()
            .find(|(known, _)| Some(*known) == number);
        if let Some((_, name)) = known {
            needs.insert(CodeNeed::SpirvCapability((*name).to_owned()));
        }
        at = at.saturating_add(8);
    }
}

fn opencl(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    for line in lines(code) {
        let Some(extension) = line.strip_prefix("#pragma OPENCL EXTENSION") else {
            continue;
        };
        let name = extension.split(':').next().unwrap_or_default().trim();
        needs.insert(CodeNeed::OpenClExtension(name.to_owned()));
    }
}

/// The tag in a Metal library for the versions of its intermediate code and its language, with the length of 8 bytes.
const METAL_VERSION: &[u8] = b"VERS\x08\x00";

fn metal(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    if !code.starts_with(b"MTLB") {
        return;
    }
    let head = code.get(..HEAD).unwrap_or(code);
    let found = head
        .windows(METAL_VERSION.len())
        .position(|bytes| bytes == METAL_VERSION);
    let versions = found.and_then(|at| {
        let language = at.checked_add(METAL_VERSION.len())?.checked_add(4)?;
        Some((half(code, language)?, half(code, language.checked_add(2)?)?))
    });
    if let Some((major, minor)) = versions {
        needs.insert(CodeNeed::MetalLanguage(format!("{major}.{minor}")));
    }
}

fn wgsl(code: &[u8], needs: &mut BTreeSet<CodeNeed>) {
    for line in lines(code) {
        let enabled = line
            .strip_prefix("enable ")
            .or_else(|| line.strip_prefix("requires "));
        let names = enabled.and_then(|names| names.strip_suffix(';'));
        for name in names.into_iter().flat_map(|names| names.split(',')) {
            needs.insert(CodeNeed::WgslFeature(name.trim().to_owned()));
        }
    }
}
