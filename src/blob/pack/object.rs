//! An object file that defines only a blob.
//!
//! | section | content | format |
//! |---|---|---|
//! | read-only data; on x86-64, `.lrodata` for more than 1 GiB | the blob, alignment 1 (BLOB-66) | all |
//! | `.note.GNU-stack` | empty: the stack stays not executable | ELF |
//! | `.drectve` | `/EXPORT:symbol,DATA` | COFF |
//! | `.rodata.str`, `.text.startup`, `.init_array` | name, code and pointer of the constructor of a system library (BLOB-67) | ELF |

use super::{Arch, ObjectFormat, ObjectTarget, SymbolNaming};
use crate::blob::{BLOB_66, BLOB_67};
use crate::rule::{Kind, Violation};
use object::write::{
    Object, Relocation, SectionId, StandardSection, Symbol, SymbolId, SymbolSection,
};
use object::{
    Architecture, BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionFlags, SectionKind,
    SymbolFlags, SymbolKind, SymbolScope, elf,
};

/// Size in bytes above which x86-64 code cannot reach across the data. Larger data go to a distant section, as in LLVM.
const LARGE: usize = 1 << 30;

/// Returns an object file for `target` that defines `blob` (header included) under the symbol of `naming` (BLOB-66).
///
/// A system library registers itself when it is loaded (BLOB-67), which requires machine code. That code exists for ELF on x86-64 and
/// AArch64. Use [`super::c_text()`] for other targets.
///
/// # Errors
///
/// Returns BLOB-66 for a target without an object format. Returns BLOB-67, kind unsupported, for a system library if no constructor
/// exists for the target.
pub fn object(
    blob: &[u8],
    naming: &SymbolNaming,
    target: ObjectTarget,
) -> Result<Vec<u8>, Violation> {
    let mut file = empty(target)?;
    let section = match target {
        ObjectTarget {
            format: ObjectFormat::Elf,
            arch: Arch::X86_64,
            ..
        } if blob.len() > LARGE => large(&mut file),
        _ => file.section_id(StandardSection::ReadOnlyData),
    };
    let symbol = define(
        &mut file,
        naming.symbol(),
        SymbolKind::Data,
        SymbolScope::Dynamic,
    );
    file.set_symbol_data(symbol, section, 0, blob.len() as u64);
    // BLOB-66: the alignment is 1, because nothing in a blob is aligned (WIRE-02), and readers copy.
    file.set_section_data(section, blob, 1);
    if target.format == ObjectFormat::Coff {
        // BLOB-66: a DLL exports only listed symbols, and the loader of TVM looks this one up by name.
        export(&mut file, naming.symbol());
    }
    if let Some(register) = naming.register() {
        announce(&mut file, symbol, naming.symbol(), register, target)?;
    }
    file.write().map_err(|error| {
        BLOB_66.rejected(
            Kind::Unsupported,
            format!("{target} cannot be written: {error}"),
        )
    })
}

/// Creates an object file without sections and symbols. Returns BLOB-66 if the format does not support the machine.
fn empty<'a>(target: ObjectTarget) -> Result<Object<'a>, Violation> {
    let architecture = match target.arch {
        Arch::X86_64 => Architecture::X86_64,
        Arch::I386 => Architecture::I386,
        Arch::Aarch64 => Architecture::Aarch64,
        Arch::Arm => Architecture::Arm,
        Arch::Riscv64 => Architecture::Riscv64,
        Arch::Riscv32 => Architecture::Riscv32,
        Arch::PowerPc64 => Architecture::PowerPc64,
        Arch::S390x => Architecture::S390x,
    };
    let (format, known) = match target.format {
        ObjectFormat::Elf => (BinaryFormat::Elf, true),
        ObjectFormat::MachO => (
            BinaryFormat::MachO,
            matches!(
                target.arch,
                Arch::X86_64 | Arch::I386 | Arch::Aarch64 | Arch::Arm
            ),
        ),
        ObjectFormat::Coff => (
            BinaryFormat::Coff,
            matches!(
                target.arch,
                Arch::X86_64 | Arch::I386 | Arch::Aarch64 | Arch::Arm
            ),
        ),
    };
    if !known || (target.format != ObjectFormat::Elf && !target.little_endian) {
        return Err(BLOB_66.rejected(Kind::Unsupported, format!("there is no {target}")));
    }
    let endian = if target.little_endian {
        Endianness::Little
    } else {
        Endianness::Big
    };
    let mut file = Object::new(format, architecture, endian);
    if target.format == ObjectFormat::Elf {
        file.flags = FileFlags::Elf {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_flags: elf_flags(target),
        };
        // Without this section the linker would make the stack of the whole program executable.
        file.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
    }
    Ok(file)
}

/// Returns the header flags (BLOB-66). Linkers reject an object whose calling convention differs from that of the other objects, even
/// if it contains no calls.
fn elf_flags(target: ObjectTarget) -> elf::FileFlags {
    const RISCV_COMPRESSED_DOUBLE: u32 = 0x5;
    const ARM_EABI_5: u32 = 0x0500_0000;
    const POWERPC_ELF_V2: u32 = 2;
    elf::FileFlags(match target.arch {
        Arch::Riscv64 | Arch::Riscv32 => RISCV_COMPRESSED_DOUBLE,
        Arch::Arm => ARM_EABI_5,
        // BLOB-66: little endian uses ELFv2; big endian uses the older convention, whose flag is 0.
        Arch::PowerPc64 if target.little_endian => POWERPC_ELF_V2,
        _ => 0,
    })
}

/// Creates the ELF section for data that x86-64 code cannot reach across (BLOB-66). `SHF_X86_64_LARGE` tells the linker to place it after
/// everything that code addresses with 32 bits.
fn large(file: &mut Object<'_>) -> SectionId {
    const ALLOC: u64 = 2;
    const X86_64_LARGE: u64 = 0x1000_0000;
    let section = file.add_section(Vec::new(), b".lrodata".to_vec(), SectionKind::ReadOnlyData);
    file.section_mut(section).flags = SectionFlags::Elf {
        sh_type: elf::SHT_PROGBITS,
        sh_flags: elf::SectionFlags(ALLOC | X86_64_LARGE),
    };
    section
}

/// Adds a directive with which the linker exports the symbol from the library, like `__declspec(dllexport)`.
fn export(file: &mut Object<'_>, symbol: &str) {
    let section = file.add_section(Vec::new(), b".drectve".to_vec(), SectionKind::Linker);
    let option = format!(" /EXPORT:{symbol},DATA");
    file.append_section_data(section, option.as_bytes(), 1);
}

/// Adds an undefined symbol. If no data define it later, another file has to define it.
fn define(file: &mut Object<'_>, name: &str, kind: SymbolKind, scope: SymbolScope) -> SymbolId {
    file.add_symbol(Symbol {
        name: name.as_bytes().to_vec(),
        value: 0,
        size: 0,
        kind,
        scope,
        weak: false,
        section: SymbolSection::Undefined,
        flags: SymbolFlags::None,
    })
}

/// Adds a constructor that calls `register(name, blob)` (BLOB-67).
fn announce(
    file: &mut Object<'_>,
    blob: SymbolId,
    name: &str,
    register: &str,
    target: ObjectTarget,
) -> Result<(), Violation> {
    let Some(machine) = constructor(target) else {
        let message = format!(
            "a system library as an object file is {target}: only ELF for x86_64 and aarch64 can be written; \
             write C text and compile it as C++"
        );
        return Err(BLOB_67.rejected(Kind::Unsupported, message));
    };
    let names = file.add_section(
        Vec::new(),
        b".rodata.str".to_vec(),
        SectionKind::ReadOnlyData,
    );
    let label = define(
        file,
        &format!("{name}.str"),
        SymbolKind::Data,
        SymbolScope::Compilation,
    );
    // BLOB-60: the runtime takes a C string (`const char*`).
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    file.add_symbol_data(label, names, &bytes, 1);
    // BLOB-60: the function stays undefined, because the runtime in the program defines it.
    let callee = define(file, register, SymbolKind::Unknown, SymbolScope::Unknown);

    let text = file.add_section(Vec::new(), b".text.startup".to_vec(), SectionKind::Text);
    let start = define(
        file,
        &format!("{name}_reg_"),
        SymbolKind::Text,
        SymbolScope::Compilation,
    );
    let at = file.add_symbol_data(start, text, machine.code, 16);
    for &(offset, to, r_type, addend) in machine.relocations {
        let symbol = match to {
            ConstructorOperand::Name => label,
            ConstructorOperand::Blob => blob,
            ConstructorOperand::Register => callee,
        };
        relocate(
            file,
            text,
            at.saturating_add(offset),
            symbol,
            r_type,
            addend,
        )?;
    }

    let init = file.add_section(Vec::new(), b".init_array".to_vec(), SectionKind::Data);
    const WRITE_ALLOC: u64 = 3;
    file.section_mut(init).flags = SectionFlags::Elf {
        sh_type: elf::SHT_INIT_ARRAY,
        sh_flags: elf::SectionFlags(WRITE_ALLOC),
    };
    // BLOB-67: a slot for one pointer, which the relocation fills in.
    file.append_section_data(init, &[0; 8], 8);
    relocate(file, init, 0, start, machine.absolute, 0)
}

/// Adds a relocation that makes the linker store the address of `symbol` at `offset`.
fn relocate(
    file: &mut Object<'_>,
    section: SectionId,
    offset: u64,
    symbol: SymbolId,
    r_type: elf::RelocationType,
    addend: i64,
) -> Result<(), Violation> {
    let relocation = Relocation {
        offset,
        symbol,
        addend,
        flags: RelocationFlags::Elf { r_type },
    };
    file.add_relocation(section, relocation)
        .map_err(|error| BLOB_67.rejected(Kind::Unsupported, error.to_string()))
}

/// The operand of an instruction in a constructor.
#[derive(Clone, Copy)]
enum ConstructorOperand {
    /// The text of the symbol's name, which is the first argument.
    Name,
    /// The blob, through the GOT, because a linker may place it anywhere.
    Blob,
    /// The registration function of the runtime (BLOB-60).
    Register,
}

/// The machine code of a constructor and its relocations.
struct Constructor {
    /// Machine code that is position-independent, with zeros where the linker stores addresses.
    code: &'static [u8],
    /// Offset in `code`, operand, relocation type and addend of each address.
    relocations: &'static [(u64, ConstructorOperand, elf::RelocationType, i64)],
    /// The relocation type of a pointer in data, for `.init_array`.
    absolute: elf::RelocationType,
}

/// Returns the constructor for `target`; `None` if no constructor exists for it (BLOB-67).
fn constructor(target: ObjectTarget) -> Option<Constructor> {
    match target {
        ObjectTarget {
            format: ObjectFormat::Elf,
            arch: Arch::X86_64,
            ..
        } => Some(Constructor {
            code: &[
                0x50, // push rax: aligns the stack
                0x48, 0x8d, 0x3d, 0, 0, 0, 0, // lea rdi, [rip + name]
                0x48, 0x8b, 0x35, 0, 0, 0, 0, // mov rsi, [rip + blob@GOTPCREL]
                0xe8, 0, 0, 0, 0,    // call register@PLT
                0x58, // pop rax
                0xc3, // ret
            ],
            relocations: &[
                (4, ConstructorOperand::Name, elf::R_X86_64_PC32, -4),
                (
                    11,
                    ConstructorOperand::Blob,
                    elf::R_X86_64_REX_GOTPCRELX,
                    -4,
                ),
                (16, ConstructorOperand::Register, elf::R_X86_64_PLT32, -4),
            ],
            absolute: elf::R_X86_64_64,
        }),
        ObjectTarget {
            format: ObjectFormat::Elf,
            arch: Arch::Aarch64,
            little_endian: true,
        } => Some(Constructor {
            code: &[
                0xfd, 0x7b, 0xbf, 0xa9, // stp x29, x30, [sp, #-16]!
                0x00, 0x00, 0x00, 0x90, // adrp x0, name
                0x00, 0x00, 0x00, 0x91, // add x0, x0, :lo12:name
                0x01, 0x00, 0x00, 0x90, // adrp x1, :got:blob
                0x21, 0x00, 0x40, 0xf9, // ldr x1, [x1, :got_lo12:blob]
                0x00, 0x00, 0x00, 0x94, // bl register
                0xfd, 0x7b, 0xc1, 0xa8, // ldp x29, x30, [sp], #16
                0xc0, 0x03, 0x5f, 0xd6, // ret
            ],
            relocations: &[
                (
                    4,
                    ConstructorOperand::Name,
                    elf::R_AARCH64_ADR_PREL_PG_HI21,
                    0,
                ),
                (
                    8,
                    ConstructorOperand::Name,
                    elf::R_AARCH64_ADD_ABS_LO12_NC,
                    0,
                ),
                (12, ConstructorOperand::Blob, elf::R_AARCH64_ADR_GOT_PAGE, 0),
                (
                    16,
                    ConstructorOperand::Blob,
                    elf::R_AARCH64_LD64_GOT_LO12_NC,
                    0,
                ),
                (20, ConstructorOperand::Register, elf::R_AARCH64_CALL26, 0),
            ],
            absolute: elf::R_AARCH64_ABS64,
        }),
        _ => None,
    }
}
