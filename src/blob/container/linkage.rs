//! The needs of an image that the system's dynamic loader resolves before TVM reads anything in it.
//!
//! | | ELF | Mach-O | PE |
//! |---|---|---|---|
//! | libraries | `DT_NEEDED` | load commands | import tables |
//! | search path | `DT_RUNPATH`, or else `DT_RPATH` | not read | none |
//! | bound when opened | `DT_BIND_NOW`, `DF_BIND_NOW`, `DF_1_NOW` | not read | not read |
//! | functions called and defined | symbol tables | symbol table, without the underscore | symbols, where an image has them |

use super::{ContainerPart, FileForm};
#[cfg(feature = "inspect")]
use crate::release::Releases;
use object::read::ObjectSymbol as _;
use object::read::elf::{ElfFile, FileHeader};
use object::{
    Architecture, Endianness, FileKind, Object as _, ObjectSection as _, RelocationFlags,
    RelocationTarget, SymbolIndex, elf,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::env::consts::{ARCH, OS};

/// The libraries and functions that an image needs, and those that it defines. Nothing is looked up: the caller must check whether a
/// library exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Linkage<'a> {
    /// The libraries that the image needs, in order: `DT_NEEDED`, the load commands of Mach-O, the import tables of PE.
    pub libraries: Vec<&'a str>,
    /// The search path for them, as the file stores it: `DT_RUNPATH`, or else `DT_RPATH`.
    pub search: Vec<&'a str>,
    /// True if the environment (`LD_LIBRARY_PATH`) is searched before `search`, as it is for `DT_RUNPATH`.
    pub environment_first: bool,
    /// True if all functions that the image calls are looked up when the image is opened. Otherwise each is looked up on its first
    /// call.
    pub binds_now: bool,
    /// True if the image has initializers in addition to those that every compiler adds. Always true for formats other than ELF, which
    /// are not checked.
    pub has_initializers: bool,
    /// The functions of TVM's C interface that the image calls but does not define. Weak functions are left out, because they may be
    /// missing.
    pub calls: Vec<&'a str>,
    /// The functions among `calls` whose addresses are in the data of the image, so that they are looked up when it is opened. ELF
    /// only.
    pub bound_early: Vec<&'a str>,
    /// The functions of TVM's C interface that the image defines. Only a TVM runtime defines any.
    pub defines: Vec<&'a str>,
}

/// Largest number of libraries that are listed, and longest name in bytes. Only a hostile file has more.
const MOST: usize = 1024;

/// Largest number of bytes of names that are read. In a hostile file, names may be the tails of one long string.
const SCANNED: usize = 1 << 26;

/// Reads the tables of an image. The result is empty for any other form, and for tables that cannot be read.
pub fn linkage(form: FileForm, bytes: &[u8]) -> Linkage<'_> {
    let mut linkage = Linkage::default();
    let underscored = match form {
        FileForm::ElfShared
        | FileForm::ElfExecutable
        | FileForm::PeShared
        | FileForm::PeExecutable => false,
        FileForm::MachOShared | FileForm::MachOExecutable => true,
        // Object files and archives are input for a linker: no loader opens them.
        _ => return linkage,
    };
    // `open` reports that the file is broken (BLOB-55).
    let Ok(file) = object::File::parse(bytes) else {
        return linkage;
    };
    let libraries = file.import_libraries().into_iter().flatten();
    linkage.libraries = libraries
        .take(MOST)
        .flatten()
        .filter_map(|library| std::str::from_utf8(library.name()).ok())
        .filter(|name| !name.is_empty() && name.len() <= MOST)
        .collect();
    match &file {
        // Search paths and the time of binding are tags of the dynamic table, which only ELF has.
        object::File::Elf32(file) => linkage.dynamic(file),
        object::File::Elf64(file) => linkage.dynamic(file),
        _ => linkage.has_initializers = true,
    }
    let mut scanned = 0_usize;
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let name = symbol.name_bytes();
        // BLOB-68: names may share their bytes, as in any string table. A name without an end was searched up to the end of the table.
        scanned = scanned.saturating_add(name.map_or(bytes.len() / 16, <[u8]>::len));
        // The names that were found so far are kept: the result only improves messages.
        if scanned > SCANNED {
            break;
        }
        let Some(name) = name.ok().and_then(|name| std::str::from_utf8(name).ok()) else {
            continue;
        };
        let name = if underscored {
            name.strip_prefix('_').unwrap_or(name)
        } else {
            name
        };
        if !is_interface(name) {
            continue;
        }
        // A weak symbol without a definition is null, and the library still opens.
        if symbol.is_undefined() && !symbol.is_weak() {
            linkage.calls.push(name);
        } else if symbol.is_definition() && symbol.is_global() {
            linkage.defines.push(name);
        }
    }
    linkage.bound_early = bound_early(&file, &linkage.calls);
    for list in [&mut linkage.calls, &mut linkage.defines] {
        // The static table of ELF repeats the names of the dynamic table.
        list.sort_unstable();
        list.dedup();
    }
    linkage
}

/// Returns the functions among `calls` that a relocation of data names. Only functions of jump slots can wait for the first call.
fn bound_early<'a>(file: &object::File<'a>, calls: &[&'a str]) -> Vec<&'a str> {
    let named: HashMap<SymbolIndex, &str> = file
        .dynamic_symbols()
        .filter_map(|symbol| {
            let name = std::str::from_utf8(symbol.name_bytes().ok()?).ok()?;
            calls.contains(&name).then_some((symbol.index(), name))
        })
        .collect();
    let Some(relocations) = file.dynamic_relocations().filter(|_| !named.is_empty()) else {
        return Vec::new();
    };
    let jump_slot = match file.architecture() {
        Architecture::X86_64 | Architecture::I386 => elf::R_X86_64_JUMP_SLOT,
        Architecture::Aarch64 => elf::R_AARCH64_JUMP_SLOT,
        Architecture::Arm => elf::R_ARM_JUMP_SLOT,
        Architecture::Riscv64 | Architecture::Riscv32 => elf::R_RISCV_JUMP_SLOT,
        // The relocation types of other machines are not known here: all their functions count as bound on first use.
        _ => return Vec::new(),
    };
    let mut bound: Vec<&str> = relocations
        .filter(|(_, relocation)| {
            !matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == jump_slot)
        })
        .filter_map(|(_, relocation)| match relocation.target() {
            RelocationTarget::Symbol(index) => named.get(&index).copied(),
            _ => None,
        })
        .collect();
    bound.sort_unstable();
    bound.dedup();
    bound
}

/// The names in the dynamic symbol table of an image, as bytes without the NUL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DynamicNames<'a> {
    /// The functions and objects that other libraries must define. Weak ones are left out, because they may be missing.
    pub wanted: Vec<&'a [u8]>,
    /// The functions and objects that the image defines for other libraries.
    pub defined: Vec<&'a [u8]>,
}

impl<'a> DynamicNames<'a> {
    /// Reads the dynamic symbols of `bytes`.
    ///
    /// Returns `None` if one of the names cannot be read, or if all names together are longer than in any real library. With an
    /// incomplete list, functions would wrongly look missing.
    pub fn read(bytes: &'a [u8]) -> Option<DynamicNames<'a>> {
        let file = object::File::parse(bytes).ok()?;
        let mut names = DynamicNames::default();
        let mut scanned = 0_usize;
        for symbol in file.dynamic_symbols() {
            let name = symbol.name_bytes().ok()?;
            // BLOB-68: names may share their bytes, as in any string table.
            scanned = scanned.saturating_add(name.len());
            if scanned > SCANNED {
                return None;
            }
            if !symbol.is_undefined() && symbol.is_global() {
                names.defined.push(name);
            } else if symbol.is_undefined() && !symbol.is_weak() {
                names.wanted.push(name);
            }
        }
        Some(names)
    }
}

/// Returns whether a name belongs to TVM's C interface: `TVMFuncCall`, `TVMFFIErrorSetRaised`.
pub(crate) fn is_interface(name: &str) -> bool {
    let behind = name
        .strip_prefix("TVM")
        .and_then(|rest| rest.bytes().next());
    // A capital letter must follow, because any other name may begin with `TVM` too.
    name.len() <= 128 && behind.is_some_and(|byte| byte.is_ascii_uppercase())
}

/// Returns whether a name belongs to TVM's C++ interface, as compilers other than Microsoft's mangle it:
/// `_ZN3tvm7runtime6Object11DerivedFromEj`.
pub fn is_cpp_interface(name: &[u8]) -> bool {
    let Some(name) = name.strip_prefix(b"_Z") else {
        return false;
    };
    // The vtable, the typeinfo, and the name of a type.
    let tables = [b"TV", b"TI", b"TS"];
    let table = tables
        .iter()
        .find_map(|table| name.strip_prefix(table.as_slice()));
    let name = table.unwrap_or(name);
    let is_qualifier = |letter: &u8| b"NKVrRO".contains(letter);
    let start = name.iter().position(|letter| !is_qualifier(letter));
    let name = start
        .and_then(|start| name.get(start..))
        .unwrap_or_default();
    start != Some(0) && (name.starts_with(b"3tvm") || name.starts_with(b"4dmlc"))
}

/// Functions that a TVM runtime defines and that compiled code only calls.
const RUNTIME: [&str; 6] = [
    "TVMBackendParallelLaunch",
    "TVMFFIFunctionCall",
    "TVMFFIFunctionSetGlobal",
    "TVMFuncCall",
    "TVMFuncRegisterGlobal",
    "TVMModGetFunction",
];

impl<'a> Linkage<'a> {
    /// Returns whether the image contains a TVM runtime, alone or linked to compiled code.
    pub fn is_runtime(&self) -> bool {
        RUNTIME.iter().any(|name| self.defines.contains(name))
    }

    /// Returns the releases that the needed libraries show: tvm-ffi is a separate library since 0.22.
    #[cfg(feature = "inspect")]
    pub(crate) fn since(&self) -> Option<Releases> {
        let is_split = self.libraries.iter().any(|name| name.contains("tvm_ffi"));
        is_split.then(|| Releases::from(22))
    }

    /// Reads the tags that only the dynamic table of ELF has.
    fn dynamic<E: FileHeader>(&mut self, file: &ElfFile<'a, E>) {
        let Ok(table) = file.elf_dynamic_table() else {
            return;
        };
        let mut scanned = 0_usize;
        let (mut array, mut start) = (0, None);
        for entry in table.iter().take(MOST) {
            match entry.tag {
                elf::DT_INIT_ARRAYSZ => array = entry.val,
                elf::DT_INIT => start = Some(entry.val),
                elf::DT_RPATH | elf::DT_RUNPATH => {
                    let path = table.string(entry).ok();
                    scanned = scanned.saturating_add(path.map_or(0, <[u8]>::len));
                    if scanned > SCANNED {
                        return;
                    }
                    let path = path.and_then(|path| std::str::from_utf8(path).ok());
                    // The loader ignores `DT_RPATH` if there is a `DT_RUNPATH`, in any order.
                    let newer = entry.tag == elf::DT_RUNPATH;
                    if newer && !self.environment_first {
                        self.search.clear();
                        self.environment_first = true;
                    }
                    if newer == self.environment_first {
                        self.search.extend(path);
                    }
                }
                // Three tags have the same meaning; which one a linker sets depends on its age.
                elf::DT_BIND_NOW => self.binds_now = true,
                elf::DT_FLAGS => self.binds_now |= entry.val & DF_BIND_NOW != 0,
                elf::DT_FLAGS_1 => self.binds_now |= entry.val & DF_1_NOW != 0,
                _ => {}
            }
        }
        // The start files of compilers add the section `.init` and one function of the array. Without that section they add neither.
        let is_given = |start: u64| {
            let section = file.section_by_name(".init");
            section.is_none_or(|section| section.address() == start)
        };
        let word = if file.is_64() { 8 } else { 4 };
        let given = if start.is_some() { word } else { 0 };
        self.has_initializers = array > given || start.is_some_and(|start| !is_given(start));
    }
}

/// The bit of `DT_FLAGS` that requires binding when the image is opened.
const DF_BIND_NOW: u64 = 8;
/// The bit of `DT_FLAGS_1` that requires binding when the image is opened.
const DF_1_NOW: u64 = 1;

/// The system and the machine that an image is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetMachine {
    /// The system: `macOS`, `Windows`, or `Linux`, which here includes every system whose images are ELF.
    pub system: &'static str,
    /// Rust's name of the machine, and its bits; ELF only.
    pub machine: Option<(Cow<'static, str>, u32)>,
}

/// Returns the system and machine of the image that begins with `head`; `None` if it is not an image.
pub(crate) fn made_for(head: &[u8]) -> Option<TargetMachine> {
    let (system, machine) = match FileKind::parse(head).ok()? {
        // The magic decides, because every system of one family uses it.
        FileKind::Elf64 => {
            let header = elf::FileHeader64::<Endianness>::parse(head).ok()?;
            (
                "Linux",
                Some((name(header.e_machine(header.endian().ok()?)), 64)),
            )
        }
        FileKind::Elf32 => {
            let header = elf::FileHeader32::<Endianness>::parse(head).ok()?;
            (
                "Linux",
                Some((name(header.e_machine(header.endian().ok()?)), 32)),
            )
        }
        FileKind::MachO64 | FileKind::MachO32 | FileKind::MachOFat32 | FileKind::MachOFat64 => {
            // In a file for several machines, the loader chooses its own.
            ("macOS", None)
        }
        FileKind::Pe32 | FileKind::Pe64 => ("Windows", None),
        _ => return None,
    };
    Some(TargetMachine { system, machine })
}

/// Returns the reason why this system's loader cannot open an image that begins with `head`: it is for another machine or another
/// system. Returns `None` for an image that it may open, and for a file that is not an image.
pub fn incompatibility(head: &[u8]) -> Option<String> {
    let TargetMachine { system, machine } = made_for(head)?;
    let here = match () {
        () if cfg!(windows) => "Windows",
        () if cfg!(target_vendor = "apple") => "macOS",
        () => "Linux",
    };
    if system != here {
        return Some(format!("it is for {system}; this machine runs {OS}"));
    }
    let (machine, bits) = machine?;
    let same = machine == ARCH.trim_end_matches("el") && bits == usize::BITS;
    (!same).then(|| {
        format!(
            "it is for {machine}, {bits} bits; this machine is {ARCH}, {} bits",
            usize::BITS
        )
    })
}

/// Returns whether code is for this system and machine, so that it can be linked or loaded here. A part without a machine is source,
/// which any compiler accepts.
pub fn is_native(part: &ContainerPart<'_>) -> bool {
    let Some(machine) = &part.machine else {
        return true;
    };
    let format = match part.form {
        FileForm::MachOObject | FileForm::MachOShared => cfg!(target_vendor = "apple"),
        FileForm::CoffObject | FileForm::PeShared => cfg!(windows),
        FileForm::ElfObject | FileForm::ElfShared => {
            cfg!(not(any(windows, target_vendor = "apple")))
        }
        _ => false,
    };
    let name = match machine.architecture.as_str() {
        "i386" => "x86",
        name => name,
    };
    // A web page does not know its machine, so it answers for the most common one.
    if cfg!(target_family = "wasm") {
        return format && name == "x86_64" && machine.bits == 64;
    }
    format
        && name == ARCH.trim_end_matches("el")
        && u32::from(machine.bits) == usize::BITS
        && machine.little_endian == cfg!(target_endian = "little")
}

/// Returns Rust's name of an ELF machine.
fn name(machine: elf::Machine) -> Cow<'static, str> {
    Cow::Borrowed(match machine {
        elf::EM_X86_64 => "x86_64",
        elf::EM_386 => "x86",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_ARM => "arm",
        elf::EM_RISCV if usize::BITS == 32 => "riscv32",
        elf::EM_RISCV => "riscv64",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_PPC => "powerpc",
        elf::EM_S390 => "s390x",
        elf::EM_LOONGARCH => "loongarch64",
        elf::EM_MIPS => "mips",
        other => return Cow::Owned(format!("machine {:#x}", other.0)),
    })
}
