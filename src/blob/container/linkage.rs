//! What the dynamic loader of the system asks of an image, before TVM reads anything in it.

use super::{Form, Machine};
use object::Object as _;
use object::elf;
use object::read::ObjectSymbol as _;
use object::read::elf::{ElfFile, FileHeader};

/// What an image asks for and offers. Nothing is looked up: whether a library is there is for the caller to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linkage<'a> {
    /// The libraries that must be there, in order: `DT_NEEDED`, the load commands of Mach-O, the import tables of PE.
    pub libraries: Vec<&'a str>,
    /// Where to look for them first, as the file says: `DT_RPATH`, `DT_RUNPATH`.
    pub search: Vec<&'a str>,
    /// Whether every function that it calls is looked up when it is opened, and not when it is first called.
    pub binds_now: bool,
    /// The functions of TVM's C interface that it calls and does not define. Weak ones are left out: they may be absent.
    pub calls: Vec<&'a str>,
    /// The functions of TVM's C interface that it defines: a TVM runtime has some.
    pub defines: Vec<&'a str>,
}

/// How many libraries are listed, and how long a name may be. A hostile file has more; nothing real does.
const MOST: usize = 1024;

/// Reads the tables of an image; an empty answer for any other form, and for tables that cannot be read.
pub fn linkage(form: Form, bytes: &[u8]) -> Linkage<'_> {
    let mut linkage = Linkage::default();
    let underscored = match form {
        Form::ElfShared | Form::ElfExecutable | Form::PeShared | Form::PeExecutable => false,
        Form::MachOShared | Form::MachOExecutable => true,
        _ => return linkage,
    };
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
        object::File::Elf32(file) => linkage.dynamic(file),
        object::File::Elf64(file) => linkage.dynamic(file),
        _ => {}
    }
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let name = match underscored {
            true => name.strip_prefix('_').unwrap_or(name),
            false => name,
        };
        if !is_interface(name) {
            continue;
        }
        if symbol.is_undefined() && !symbol.is_weak() {
            linkage.calls.push(name);
        } else if symbol.is_definition() && symbol.is_global() {
            linkage.defines.push(name);
        }
    }
    for list in [&mut linkage.calls, &mut linkage.defines] {
        list.sort_unstable();
        list.dedup();
    }
    linkage
}

/// Whether a name is one of TVM's C interface: `TVMFuncCall`, `TVMFFIErrorSetRaised`.
fn is_interface(name: &str) -> bool {
    let behind = name
        .strip_prefix("TVM")
        .and_then(|rest| rest.bytes().next());
    name.len() <= 128 && behind.is_some_and(|byte| byte.is_ascii_uppercase())
}

impl<'a> Linkage<'a> {
    /// What only the dynamic table of ELF says.
    fn dynamic<E: FileHeader>(&mut self, file: &ElfFile<'a, E>) {
        let Ok(table) = file.elf_dynamic_table() else {
            return;
        };
        for entry in table.iter().take(MOST) {
            match entry.tag {
                elf::DT_RPATH | elf::DT_RUNPATH => {
                    let path = table.string(entry).ok();
                    let path = path.and_then(|path| std::str::from_utf8(path).ok());
                    self.search.extend(path);
                }
                elf::DT_BIND_NOW => self.binds_now = true,
                elf::DT_FLAGS => self.binds_now |= entry.val & DF_BIND_NOW != 0,
                elf::DT_FLAGS_1 => self.binds_now |= entry.val & DF_1_NOW != 0,
                _ => {}
            }
        }
    }
}

const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;

/// The machine that an object file of any format is for; `None` for what is none.
pub fn machine(bytes: &[u8]) -> Option<Machine> {
    let file = object::File::parse(bytes).ok()?;
    Some(Machine {
        architecture: format!("{:?}", file.architecture()).to_ascii_lowercase(),
        bits: if file.is_64() { 64 } else { 32 },
        little_endian: file.is_little_endian(),
    })
}

impl Machine {
    /// Whether it is the machine that this program runs on, as far as names tell.
    pub fn is_host(&self) -> bool {
        let host = match std::env::consts::ARCH {
            "x86" => "i386",
            host => host,
        };
        self.architecture == host
            && u32::from(self.bits) == usize::BITS
            && self.little_endian == cfg!(target_endian = "little")
    }
}
