//! Detection of the form of a file, by its first bytes.

use crate::blob::detect::word;
use std::fmt;

/// Defines the forms. The table has a description, the variant, its name, and its name for use in sentences.
macro_rules! forms {
    ($($(#[$doc:meta])* $form:ident $name:literal $title:literal,)*) => {
        /// The form of a file. [`FileForm::detect`] gives every file a form, [`FileForm::Unknown`] if no other fits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FileForm {
            $($(#[$doc])* $form,)*
        }

        impl FileForm {
            /// Every form.
            pub const ALL: [FileForm; 27] = [$(FileForm::$form),*];

            /// Returns the name: `elf-shared`, `c-text`, ...
            pub const fn name(self) -> &'static str {
                match self {
                    $(FileForm::$form => $name,)*
                }
            }

            /// Returns the name of the form for use in sentences.
            pub const fn title(self) -> &'static str {
                match self {
                    $(FileForm::$form => $title,)*
                }
            }
        }
    };
}

forms! {
    /// ELF shared object, or a position-independent executable.
    ElfShared "elf-shared" "ELF shared object",
    /// ELF executable at fixed addresses.
    ElfExecutable "elf-executable" "ELF executable",
    /// ELF relocatable object file.
    ElfObject "elf-object" "ELF object file",
    /// Mach-O dynamic library or bundle.
    MachOShared "macho-shared" "Mach-O dynamic library",
    /// Mach-O executable.
    MachOExecutable "macho-executable" "Mach-O executable",
    /// Mach-O object file.
    MachOObject "macho-object" "Mach-O object file",
    /// Mach-O files for several machines in one file.
    MachOFat "macho-fat" "Mach-O for several machines",
    /// PE dynamic library.
    PeShared "pe-shared" "PE dynamic library",
    /// PE executable.
    PeExecutable "pe-executable" "PE executable",
    /// COFF object file.
    CoffObject "coff-object" "COFF object file",
    /// WebAssembly object file.
    WasmObject "wasm-object" "WebAssembly object file",
    /// Linked WebAssembly module.
    WasmModule "wasm-module" "WebAssembly module",
    /// Static archive: `.a`, `.lib`.
    Archive "archive" "static archive",
    /// Tar archive.
    Tar "tar" "tar archive",
    /// Tar archive inside gzip, which `export_library` names `.tar`.
    GzipTar "gzip-tar" "tar archive under gzip",
    /// C or C++ source: `devc.c`, or the code of a C host.
    CText "c-text" "C text",
    /// A library binary without a container.
    RawBlob "raw-blob" "library binary",
    /// Parameter file: a list of named tensors.
    Params "params" "parameter file",
    /// One tensor.
    Tensor "tensor" "tensor file",
    /// Graph JSON of the graph executor.
    GraphJson "graph-json" "graph JSON",
    /// JSON graph of objects as `save_json` wrote it up to 0.21.
    ObjectJson "object-json" "object JSON of 0.21 and before",
    /// JSON graph of objects as tvm-ffi writes it, from 0.22 on.
    FfiJson "ffi-json" "object JSON of tvm-ffi",
    /// Index of a tensor cache: `tensor-cache.json`, `ndarray-cache.json`.
    TensorCache "tensor-cache" "tensor cache",
    /// Relax VM executable: `.vmexec` and the files of 0.16 to 0.21.
    RelaxVm "relax-vm" "Relax VM executable",
    /// Relay VM code.
    RelayVm "relay-vm" "Relay VM code",
    /// StackVM module.
    StackVm "stackvm" "StackVM module",
    /// None of these.
    Unknown "unknown" "unknown",
}

impl FileForm {
    /// Detects the form of a file with this content (BLOB-69). Reads the first 64 KiB, and for text also the last 64 KiB. JSON that
    /// does not show its form there is read completely.
    ///
    /// Forms with a magic are tried first. A raw blob has no magic. It is recognized by the length in its header, or by the shape of
    /// its first fields.
    pub fn detect(bytes: &[u8]) -> FileForm {
        magic(bytes)
            // BLOB-69: forms with a magic come first, because the header of a raw blob can look like anything.
            .or_else(|| raw_blob(bytes).then_some(FileForm::RawBlob))
            .or_else(|| coff(bytes).then_some(FileForm::CoffObject))
            .or_else(|| stack_vm(bytes).then_some(FileForm::StackVm))
            .or_else(|| super::text_form::text(bytes))
            .unwrap_or(FileForm::Unknown)
    }

    /// Number of bytes at the start, and of text also at the end, that decide the form.
    pub(super) const WINDOW: usize = 1 << 16;

    /// Returns whether a file of `size` bytes that starts with `head` may be of a known form. `head` holds [`FileForm::WINDOW`] bytes, or
    /// the whole file.
    pub(super) fn may_be(head: &[u8], size: u64) -> bool {
        // Text may name its form at its end, a PE header can be anywhere, and a raw blob may be recognized by its length.
        let text = !head.contains(&0);
        let counted = word(head, 0) == size.checked_sub(8);
        text || counted || head.starts_with(b"MZ") || FileForm::detect(head) != FileForm::Unknown
    }

    /// Returns whether the file contains other files.
    pub const fn is_archive(self) -> bool {
        matches!(
            self,
            FileForm::Archive | FileForm::Tar | FileForm::GzipTar | FileForm::MachOFat
        )
    }

    /// Returns whether the file has sections and symbols.
    pub const fn is_object(self) -> bool {
        matches!(
            self,
            FileForm::ElfShared
                | FileForm::ElfExecutable
                | FileForm::ElfObject
                | FileForm::MachOShared
                | FileForm::MachOExecutable
                | FileForm::MachOObject
                | FileForm::PeShared
                | FileForm::PeExecutable
                | FileForm::CoffObject
                | FileForm::WasmObject
                | FileForm::WasmModule
        )
    }
}

impl fmt::Display for FileForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first word of a parameter file.
const PARAMS: u64 = 0xF7E5_8D4F_0504_9CB7;
/// The first word of a tensor.
const TENSOR: u64 = 0xDD5E_40F0_96B4_A13F;
/// The magic of Relay VM code, and of Relax VM code up to 0.22 (PAY-61, PAY-82).
const VM: u64 = 0xD225_DE2F_4214_151D;

/// Detects the forms that begin with a magic, in the order of BLOB-69.
///
/// Returns `None` if no magic fits, and for gzip without a tar inside.
fn magic(bytes: &[u8]) -> Option<FileForm> {
    if bytes.starts_with(b"\x7fELF") {
        return Some(elf_type(bytes));
    }
    // BLOB-56: a thin archive counts as an archive here, and is rejected when it is read.
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return Some(FileForm::Archive);
    }
    // BLOB-56: `export_library` compresses a `.tar` regardless of its name. Any other gzip is not a form of TVM.
    if bytes.starts_with(&[0x1f, 0x8b, 8]) {
        return super::inflate::is_gzip_tar(bytes).then_some(FileForm::GzipTar);
    }
    if super::tar::is_tar(bytes) {
        return Some(FileForm::Tar);
    }
    let form = mach_o(bytes)
        .or_else(|| pe(bytes))
        .or_else(|| super::wasm::form(bytes));
    if form.is_some() {
        return form;
    }
    // PAY-82: 0.23 increased the lowest byte of the magic, and later releases may do so again.
    let is_vm = |first: u64| first >> 8 == VM >> 8 && first >= VM;
    match word(bytes, 0)? {
        PARAMS => Some(FileForm::Params),
        TENSOR => Some(FileForm::Tensor),
        first if is_vm(first) => Some(vm(bytes, 8)),
        // PAY-81: files of releases before 0.22 start with the length of the code, like the payload.
        _ if is_vm(word(bytes, 8)?) => Some(vm(bytes, 16)),
        _ => None,
    }
}

/// Returns the form of an ELF file, by its `e_type`. A position-independent executable counts as a shared object.
fn elf_type(bytes: &[u8]) -> FileForm {
    // Byte 5 of ELF is its byte order, where 2 means big endian; `e_type` is in that order.
    let little = bytes.get(5) != Some(&2);
    let kind = bytes
        .get(16..18)
        .and_then(|two| <[u8; 2]>::try_from(two).ok());
    let kind = kind.map(|two| {
        if little {
            u16::from_le_bytes(two)
        } else {
            u16::from_be_bytes(two)
        }
    });
    match kind {
        Some(1) => FileForm::ElfObject,
        // BLOB-69: every other type is treated as a shared object. A position-independent executable has the same number.
        Some(2) => FileForm::ElfExecutable,
        _ => FileForm::ElfShared,
    }
}

/// Detects Mach-O for one machine, in either byte order and width, or for several (BLOB-69).
fn mach_o(bytes: &[u8]) -> Option<FileForm> {
    let first: [u8; 4] = *bytes.first_chunk()?;
    // BLOB-69: the header has magic, processor, its variant, and file type. A shorter file is not Mach-O.
    let kind: [u8; 4] = bytes.get(12..16)?.try_into().ok()?;
    let kind = match first {
        [0xfe, 0xed, 0xfa, 0xce | 0xcf] => u32::from_be_bytes(kind),
        [0xce | 0xcf, 0xfa, 0xed, 0xfe] => u32::from_le_bytes(kind),
        // A Java class has the same magic. Its next word is a version of 45 or more; in Mach-O it is the number of machines.
        [0xca, 0xfe, 0xba, 0xbe | 0xbf] => {
            let count: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            return (u32::from_be_bytes(count) < 40).then_some(FileForm::MachOFat);
        }
        _ => return None,
    };
    Some(match kind {
        1 => FileForm::MachOObject,
        2 => FileForm::MachOExecutable,
        _ => FileForm::MachOShared,
    })
}

/// Detects a PE image (BLOB-69).
fn pe(bytes: &[u8]) -> Option<FileForm> {
    if !bytes.starts_with(b"MZ") {
        return None;
    }
    // BLOB-69: a DOS program also begins with `MZ`. A signature at this offset shows that the file is PE.
    let at: [u8; 4] = bytes.get(0x3c..0x40)?.try_into().ok()?;
    let at = usize::try_from(u32::from_le_bytes(at)).ok()?;
    let header = bytes.get(at..at.checked_add(24)?)?;
    if !header.starts_with(b"PE\0\0") {
        return None;
    }
    // The flag 0x2000 of the characteristics. Its upper byte is byte 23 of signature and header.
    const IMAGE_FILE_DLL: u8 = 0x20;
    let dll = header
        .get(23)
        .is_some_and(|flags| flags & IMAGE_FILE_DLL != 0);
    Some(if dll {
        FileForm::PeShared
    } else {
        FileForm::PeExecutable
    })
}

/// Detects COFF. Its magic is only a machine number of two bytes, so the rest of the header must be plausible as well.
fn coff(bytes: &[u8]) -> bool {
    // BLOB-69: x86-64, i386, AArch64, ARM64EC, ARM.
    const MACHINES: [u16; 5] = [0x8664, 0x014c, 0xaa64, 0xa641, 0x01c4];
    // COFF is little endian on all of these machines.
    let half = |at: usize| {
        let two: [u8; 2] = bytes.get(at..at.saturating_add(2))?.try_into().ok()?;
        Some(u16::from_le_bytes(two))
    };
    // BLOB-69: an object file with more sections than 16 bits can count does not start with the machine.
    let bigobj = bytes.starts_with(&[0, 0, 0xff, 0xff, 2, 0]);
    // BLOB-69: section counts from 0xff00 on have special meanings; an object file has no optional header (16).
    let plain = half(0).is_some_and(|machine| MACHINES.contains(&machine))
        && half(2).is_some_and(|sections| (1..=0xfeff).contains(&sections))
        && half(16) == Some(0);
    bigobj || plain
}

/// Decides which VM the code belongs to (BLOB-69); its version begins at byte `version`.
fn vm(bytes: &[u8], version: usize) -> FileForm {
    let text = version.saturating_add(8);
    // PAY-61: Relay VM code has the older magic of PAY-82, so the version decides. It is `0.14` in all Relax VM code (PAY-83), and the
    // release in Relay VM code.
    let later = word(bytes, version.saturating_sub(8)) != Some(VM);
    let relax = later
        || word(bytes, version) == Some(4)
            && bytes
                .get(text..)
                .is_some_and(|rest| rest.starts_with(b"0.14"));
    if relax {
        FileForm::RelaxVm
    } else {
        FileForm::RelayVm
    }
}

/// Detects a library binary by its header or by the shape of its first fields (BLOB-69).
///
/// The header alone is enough if it counts the bytes that follow. With a wrong header, the fields must look like those of a blob.
fn raw_blob(bytes: &[u8]) -> bool {
    let (Some(nbytes), Some(second)) = (word(bytes, 0), word(bytes, 8)) else {
        return false;
    };
    if nbytes == (bytes.len() as u64).saturating_sub(8) {
        return true;
    }
    // The file may be a blob with a wrong header, and then the reader of the blob reports the error. Layout 0.22 continues with a
    // vector that starts with 0. The other layouts continue with a count and the name of a module kind.
    match word(bytes, 16) {
        Some(0) => (1..=nbytes).contains(&second) && nbytes < 1 << 48,
        Some(length) => second > 0 && second < 1 << 32 && named(bytes, 24, length, 64),
        None => false,
    }
}

/// Detects a StackVM file by its count of functions and the first name (BLOB-69).
fn stack_vm(bytes: &[u8]) -> bool {
    let (Some(functions), Some(length)) = (word(bytes, 0), word(bytes, 8)) else {
        return false;
    };
    // PAY-55: there is no magic, only the count of a map and the name of its first function.
    (1..1 << 16).contains(&functions) && named(bytes, 16, length, 1024)
}

/// Returns whether `start` is followed by `length` printable bytes, at most `longest`.
fn named(bytes: &[u8], start: usize, length: u64, longest: u64) -> bool {
    // The length may be any u64, because the file may be of another form.
    let end = usize::try_from(length.min(longest))
        .unwrap_or(0)
        .saturating_add(start);
    (1..=longest).contains(&length)
        && bytes
            .get(start..end)
            .is_some_and(|name| name.iter().all(u8::is_ascii_graphic))
}

/// Returns the offset of `needle` in `haystack`.
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
