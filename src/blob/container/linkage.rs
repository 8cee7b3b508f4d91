//! What the dynamic loader of the system needs of an image, before TVM reads anything in it.
//!
//! | | ELF | Mach-O | PE |
//! |---|---|---|---|
//! | libraries | `DT_NEEDED` | load commands | import tables |
//! | search path | `DT_RUNPATH`, without one `DT_RPATH` | not read | none |
//! | bound when opened | `DT_BIND_NOW`, `DF_BIND_NOW`, `DF_1_NOW` | not read | not read |
//! | functions called and defined | symbol tables | symbol table, without the underscore | symbols, where an image has them |

use super::{FileForm, Part};
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

/// What an image needs and what it defines. Nothing is looked up: whether a library is there is for the caller to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Linkage<'a> {
    /// The libraries that must be there, in order: `DT_NEEDED`, the load commands of Mach-O, the import tables of PE.
    pub libraries: Vec<&'a str>,
    /// Where to look for them, as the file has it: `DT_RUNPATH`, or without one `DT_RPATH`.
    pub search: Vec<&'a str>,
    /// Whether the environment (`LD_LIBRARY_PATH`) comes before `search`: where that is `DT_RUNPATH`.
    pub environment_first: bool,
    /// Whether every function that it calls is looked up when it is opened, and not when it is first called.
    pub binds_now: bool,
    /// Whether it has initializers other than those that every compiler links; not read, and true, of other images than ELF.
    pub has_initializers: bool,
    /// The functions of TVM's C interface that it calls and does not define. Weak ones are left out: they may be absent.
    pub calls: Vec<&'a str>,
    /// Those of them whose addresses are in its data, and are looked up when it is opened in any case; ELF only.
    pub bound_early: Vec<&'a str>,
    /// The functions of TVM's C interface that it defines: a TVM runtime has some.
    pub defines: Vec<&'a str>,
}

/// How many libraries are listed, and how long a name may be. A hostile file has more; nothing real does.
const MOST: usize = 1024;

/// How many bytes of names are looked at. Those of a hostile file are the tails of one long string.
const SCANNED: usize = 1 << 26;

/// Reads the tables of an image; an empty answer for any other form, and for tables that cannot be read.
pub fn linkage(form: FileForm, bytes: &[u8]) -> Linkage<'_> {
    let mut linkage = Linkage::default();
    let underscored = match form {
        FileForm::ElfShared
        | FileForm::ElfExecutable
        | FileForm::PeShared
        | FileForm::PeExecutable => false,
        FileForm::MachOShared | FileForm::MachOExecutable => true,
        // Object files and archives are for a linker: no loader opens one.
        _ => return linkage,
    };
    // That the file is broken is for `open` to report (BLOB-55).
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
        // Search paths and the time of binding are tags of the dynamic table, which ELF alone has.
        object::File::Elf32(file) => linkage.dynamic(file),
        object::File::Elf64(file) => linkage.dynamic(file),
        _ => linkage.has_initializers = true,
    }
    let mut scanned = 0_usize;
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let name = symbol.name_bytes();
        // A name without an end was looked for up to the end of its table.
        // BLOB-68: names may share their bytes, as in any table of strings.
        scanned = scanned.saturating_add(name.map_or(bytes.len() / 16, <[u8]>::len));
        // What was found so far stands: the answer is a help for messages, and no verdict.
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
        // A weak symbol without a definition is null, and the library opens.
        if symbol.is_undefined() && !symbol.is_weak() {
            linkage.calls.push(name);
        } else if symbol.is_definition() && symbol.is_global() {
            linkage.defines.push(name);
        }
    }
    linkage.bound_early = bound_early(&file, &linkage.calls);
    for list in [&mut linkage.calls, &mut linkage.defines] {
        // The static table of ELF has the names of the dynamic one again.
        list.sort_unstable();
        list.dedup();
    }
    linkage
}

/// The functions among `calls` that a relocation of data names: only those of jump slots wait for the first call.
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
        // The numbers of other machines are not known here: all their functions count as bound on first use.
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
    /// The functions and objects that other libraries have to define. Weak ones are left out: they may be absent.
    pub wanted: Vec<&'a [u8]>,
    /// The functions and objects that the image defines for other libraries.
    pub defined: Vec<&'a [u8]>,
}

impl<'a> DynamicNames<'a> {
    /// Reads the dynamic symbols of `bytes`.
    ///
    /// Returns `None` where one of them cannot be read, or where their names are longer than any library has: half a list
    /// would make functions look missing.
    pub fn read(bytes: &'a [u8]) -> Option<DynamicNames<'a>> {
        let file = object::File::parse(bytes).ok()?;
        let mut names = DynamicNames::default();
        let mut scanned = 0_usize;
        for symbol in file.dynamic_symbols() {
            let name = symbol.name_bytes().ok()?;
            // BLOB-68: names may share their bytes, as in any table of strings.
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

/// Whether a name is one of TVM's C interface: `TVMFuncCall`, `TVMFFIErrorSetRaised`.
pub(crate) fn is_interface(name: &str) -> bool {
    let behind = name
        .strip_prefix("TVM")
        .and_then(|rest| rest.bytes().next());
    // A capital behind the three letters: `TVM` may be the beginning of a name of anything.
    name.len() <= 128 && behind.is_some_and(|byte| byte.is_ascii_uppercase())
}

/// Whether a name is one of TVM's C++ interface, as compilers other than Microsoft's write it: `_ZN3tvm7runtime6Object11DerivedFromEj`.
pub fn is_cpp_interface(name: &[u8]) -> bool {
    let Some(name) = name.strip_prefix(b"_Z") else {
        return false;
    };
    // Tables of virtual functions, and types and their names.
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
    /// Whether a runtime of TVM is in it, alone or linked to compiled code.
    pub fn is_runtime(&self) -> bool {
        RUNTIME.iter().any(|name| self.defines.contains(name))
    }

    /// The releases that the needed libraries show: tvm-ffi is a library of its own since 0.22.
    #[cfg(feature = "inspect")]
    pub(crate) fn since(&self) -> Option<Releases> {
        let is_split = self.libraries.iter().any(|name| name.contains("tvm_ffi"));
        is_split.then(|| Releases::from(22))
    }

    /// What only the dynamic table of ELF has.
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
                    // The loader ignores the older table where the newer one is there, in whatever order they come.
                    let newer = entry.tag == elf::DT_RUNPATH;
                    if newer && !self.environment_first {
                        self.search.clear();
                        self.environment_first = true;
                    }
                    if newer == self.environment_first {
                        self.search.extend(path);
                    }
                }
                // Three tags say the same: a linker sets those of its time.
                elf::DT_BIND_NOW => self.binds_now = true,
                elf::DT_FLAGS => self.binds_now |= entry.val & DF_BIND_NOW != 0,
                elf::DT_FLAGS_1 => self.binds_now |= entry.val & DF_1_NOW != 0,
                _ => {}
            }
        }
        // The start files of compilers bring the section `.init` and one function of the array. Without the section there are none.
        let is_given = |start: u64| {
            let section = file.section_by_name(".init");
            section.is_none_or(|section| section.address() == start)
        };
        let word = if file.is_64() { 8 } else { 4 };
        let given = if start.is_some() { word } else { 0 };
        self.has_initializers = array > given || start.is_some_and(|start| !is_given(start));
    }
}

/// The bit of `DT_FLAGS` that demands binding at once.
const DF_BIND_NOW: u64 = 8;
/// The same of `DT_FLAGS_1`.
const DF_1_NOW: u64 = 1;

/// What an image is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetMachine {
    /// `Linux`, which here stands for every system whose images are ELF, `macOS` or `Windows`.
    pub system: &'static str,
    /// The machine as Rust calls it, and its bits; ELF only.
    pub machine: Option<(Cow<'static, str>, u32)>,
}

/// What the image that begins with `head` is made for; `None` for what is no image.
pub(crate) fn made_for(head: &[u8]) -> Option<TargetMachine> {
    let (system, machine) = match FileKind::parse(head).ok()? {
        // By the magic, which every system of that family has in common.
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
            // A file for several machines has the loader choose its own.
            ("macOS", None)
        }
        FileKind::Pe32 | FileKind::Pe64 => ("Windows", None),
        _ => return None,
    };
    Some(TargetMachine { system, machine })
}

/// Why the loader of this system does not open an image that begins with `head`: it is for another machine or another system.
/// `None` for one that it may open, and for what is no image.
pub fn foreign(head: &[u8]) -> Option<String> {
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

/// Whether code is for this system and machine: the compiler here makes libraries of an object file, the loader opens an image. A part
/// without a machine is source, which any compiler takes.
pub fn is_native(part: &Part<'_>) -> bool {
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
    // A page does not know what machine it is shown on: it answers for the most frequent one.
    if cfg!(target_family = "wasm") {
        return format && name == "x86_64" && machine.bits == 64;
    }
    format
        && name == ARCH.trim_end_matches("el")
        && u32::from(machine.bits) == usize::BITS
        && machine.little_endian == cfg!(target_endian = "little")
}

/// What Rust calls a machine of ELF.
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
