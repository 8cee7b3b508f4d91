//! The target of an object file: format, processor and byte order.

use crate::blob::BLOB_66;
use crate::rule::{Kind, Violation};
use std::fmt;

/// The format of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectFormat {
    /// Linux, BSD, Android, bare metal.
    Elf,
    /// macOS and iOS.
    MachO,
    /// Windows.
    Coff,
}

/// The processor that an object file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// 64 bits, little endian.
    X86_64,
    /// 32 bits, little endian.
    I386,
    /// 64 bits; either byte order, usually little endian.
    Aarch64,
    /// 32 bits; either byte order, usually little endian.
    Arm,
    /// 64 bits, little endian, with double-precision floats in registers.
    Riscv64,
    /// 32 bits, little endian, with double-precision floats in registers.
    Riscv32,
    /// 64 bits; either byte order.
    PowerPc64,
    /// 64 bits, big endian.
    S390x,
}

impl Arch {
    /// Returns the width of an address in bits: 32 or 64.
    pub const fn bits(self) -> u8 {
        match self {
            Arch::I386 | Arch::Arm | Arch::Riscv32 => 32,
            _ => 64,
        }
    }

    /// Returns LLVM's name of the processor.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::I386 => "i386",
            Arch::Aarch64 => "aarch64",
            Arch::Arm => "arm",
            Arch::Riscv64 => "riscv64",
            Arch::Riscv32 => "riscv32",
            Arch::PowerPc64 => "powerpc64",
            Arch::S390x => "s390x",
        }
    }
}

/// Format, machine and byte order of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectTarget {
    /// ELF, Mach-O or COFF.
    pub format: ObjectFormat,
    /// The processor.
    pub arch: Arch,
    /// True if integers in the object file are little endian. The blob is not affected.
    pub little_endian: bool,
}

impl ObjectTarget {
    /// Creates a target with the usual byte order of `arch`.
    pub const fn new(format: ObjectFormat, arch: Arch) -> ObjectTarget {
        ObjectTarget {
            format,
            arch,
            // `powerpc64` without `le` is big endian, as in a triple.
            little_endian: !matches!(arch, Arch::S390x | Arch::PowerPc64),
        }
    }

    /// Returns the machine that this crate was compiled for; `None` if object files for it cannot be written.
    pub const fn host() -> Option<ObjectTarget> {
        let format = if cfg!(target_vendor = "apple") {
            ObjectFormat::MachO
        } else if cfg!(windows) {
            ObjectFormat::Coff
        } else {
            ObjectFormat::Elf
        };
        let arch = if cfg!(target_arch = "x86_64") {
            Arch::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Arch::Aarch64
        } else if cfg!(target_arch = "x86") {
            Arch::I386
        } else if cfg!(target_arch = "arm") {
            Arch::Arm
        } else if cfg!(target_arch = "riscv64") {
            Arch::Riscv64
        } else if cfg!(target_arch = "powerpc64") {
            Arch::PowerPc64
        } else if cfg!(target_arch = "s390x") {
            Arch::S390x
        } else {
            return None;
        };
        Some(ObjectTarget {
            format,
            arch,
            little_endian: cfg!(target_endian = "little"),
        })
    }

    /// Parses an LLVM triple: `aarch64-apple-darwin`, `x86_64-pc-windows-msvc`, `armv7a-linux-gnueabihf`.
    ///
    /// # Errors
    ///
    /// Returns BLOB-66 for a machine whose object files cannot be written.
    pub fn from_triple(triple: &str) -> Result<ObjectTarget, Violation> {
        // BLOB-66: the machine comes first, and the other parts in any order and number, as in LLVM.
        let machine = triple.split('-').next().unwrap_or_default();
        let (arch, little_endian) = match machine {
            "x86_64" | "amd64" => (Arch::X86_64, true),
            "i386" | "i486" | "i586" | "i686" => (Arch::I386, true),
            "aarch64" | "arm64" | "arm64e" => (Arch::Aarch64, true),
            "aarch64_be" => (Arch::Aarch64, false),
            "riscv64" | "riscv64gc" => (Arch::Riscv64, true),
            "riscv32" | "riscv32gc" => (Arch::Riscv32, true),
            "powerpc64le" | "ppc64le" => (Arch::PowerPc64, true),
            // Without `le` the machine is big endian.
            "powerpc64" | "ppc64" => (Arch::PowerPc64, false),
            "s390x" => (Arch::S390x, false),
            // This case must come before the one for names that begin with `arm`.
            "armeb" => (Arch::Arm, false),
            arm if arm.starts_with("arm") || arm.starts_with("thumb") => (Arch::Arm, true),
            _ => {
                // A wrong guess would create a file that no linker of that machine accepts.
                let message = format!(
                    "no object file can be written for the machine `{machine}`; write C text and compile it there"
                );
                return Err(BLOB_66.rejected(Kind::Unsupported, message));
            }
        };
        // Vendor and system can be anywhere after the machine, in separate parts or in one, with a version at the end.
        let has = |what: &str| triple.contains(what);
        let format = if has("apple") || has("darwin") || has("macos") || has("-ios") {
            ObjectFormat::MachO
        } else if has("windows") || has("mingw") || has("cygwin") {
            ObjectFormat::Coff
        } else {
            ObjectFormat::Elf
        };
        Ok(ObjectTarget {
            format,
            arch,
            little_endian,
        })
    }
}

impl fmt::Display for ObjectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match self.format {
            ObjectFormat::Elf => "ELF",
            ObjectFormat::MachO => "Mach-O",
            ObjectFormat::Coff => "COFF",
        };
        let order = if self.little_endian { "little" } else { "big" };
        write!(f, "{format} for {}, {order} endian", self.arch.name())
    }
}
