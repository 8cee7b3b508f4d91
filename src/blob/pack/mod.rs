//! Putting a library binary into something that a linker or a loader takes.
//!
//! | to | by | rule |
//! |---|---|---|
//! | C text, as `export_library` writes it without LLVM | [`c_text()`] | BLOB-59, BLOB-60 |
//! | an object file: ELF, Mach-O, COFF | [`object()`] | BLOB-66, BLOB-67 |
//! | the files of an export: host code and library binary | [`plan()`] | BLOB-70 to BLOB-72 |
//! | an archive or a text of these files | [`tar()`], [`ExportPlan::c_source`] | BLOB-73, BLOB-74 |
//! | a library that is there, in the place of its own | [`replace()`] | BLOB-75 |
//! | a shared library, through the C compiler of the system | `shared`, `export`, `export_job` (feature `runtime`) | |
//!
//! The bytes are taken as they are: that they are a blob of the release whose symbol they get is up to the caller.

mod archive;
mod c_text;
mod elf;
mod export;
#[cfg(feature = "runtime")]
mod job;
#[cfg(feature = "runtime")]
mod link;
mod members;
mod object;
mod replace;
mod target;

pub use self::archive::tar;
pub use self::c_text::c_text;
pub use self::export::{ExportContent, ExportModule, ExportPlan, HostCode, HostFormat, pack, plan};
#[cfg(feature = "runtime")]
pub use self::job::{LinkHook, export_job};
#[cfg(feature = "runtime")]
pub(crate) use self::link::WrittenFile;
#[cfg(all(feature = "runtime", any(feature = "rpc", feature = "target")))]
pub(crate) use self::link::write_whole;
#[cfg(feature = "runtime")]
pub use self::link::{LinkJob, LinkOptions, export, export_with, shared};
pub use self::object::object;
pub use self::replace::replace;
pub use self::target::{Arch, ObjectFormat, ObjectTarget};

use super::BLOB_61;
use super::container::blob_symbol;
use crate::release::{Layout, Release};
use crate::rule::{Kind, Violation};

/// What a packed blob is called, and whether it announces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolNaming {
    symbol: String,
    register: Option<&'static str>,
    release: Release,
}

impl SymbolNaming {
    /// A blob that a loader finds by its symbol, as in a shared library.
    pub fn library(release: Release) -> SymbolNaming {
        SymbolNaming {
            symbol: blob_symbol(Layout::of(release)).to_owned(),
            register: None,
            release,
        }
    }

    /// A blob that registers itself with the runtime that it is linked with: the system library. From 0.13 on it may
    /// have a prefix, so that several fit into one program (BLOB-61).
    ///
    /// # Errors
    ///
    /// BLOB-61 for a prefix before 0.13 (kind unsupported), and for one that no C name begins with (kind type).
    pub fn system(release: Release, prefix: &str) -> Result<SymbolNaming, Violation> {
        // BLOB-61: a runtime of before looks for one symbol, so that a blob with a prefix is never found.
        let known = prefix.is_empty() || release >= Release::of(13);
        BLOB_61.demand(Kind::Unsupported, known, || {
            format!("{release} knows no prefixes of system libraries; 0.13 and later do")
        })?;
        let identifier = prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            // BLOB-61: the prefix is the beginning of a C name.
            && !prefix.starts_with(|first: char| first.is_ascii_digit());
        if !identifier {
            let message =
                format!("`{prefix}` cannot be in front of a C name: letters, digits and `_` can");
            return Err(BLOB_61.rejected(Kind::Type, message));
        }
        Ok(SymbolNaming {
            symbol: format!("{prefix}{}", blob_symbol(Layout::of(release))),
            // BLOB-60: 0.21 has the symbol of tvm-ffi for the blob, and still the function of the runtime before.
            register: Some(if release < Release::of(22) {
                "TVMBackendRegisterSystemLibSymbol"
            } else {
                "TVMFFIEnvModRegisterSystemLibSymbol"
            }),
            release,
        })
    }

    /// [`SymbolNaming::library`], or [`SymbolNaming::system`] with `prefix`; a prefix without a system library breaks BLOB-61.
    ///
    /// # Errors
    ///
    /// BLOB-61: as [`SymbolNaming::system`], and for a prefix without a system library.
    pub fn of(release: Release, system_lib: bool, prefix: &str) -> Result<SymbolNaming, Violation> {
        if system_lib {
            return SymbolNaming::system(release, prefix);
        }
        // BLOB-51: the loader of files looks for the plain symbol only, and takes the library for one without imports.
        BLOB_61.demand(Kind::Type, prefix.is_empty(), || {
            format!(
                "the prefix `{prefix}` is for system libraries: no loader looks for it elsewhere"
            )
        })?;
        Ok(SymbolNaming::library(release))
    }

    /// The symbol that the library binary has, without the underscore of Mach-O (BLOB-50).
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// What comes before the symbol of the release: the prefix of a system library, which is in the name of its file, too.
    pub fn prefix(&self) -> &str {
        let plain = blob_symbol(Layout::of(self.release));
        self.symbol.strip_suffix(plain).unwrap_or_default()
    }

    /// The runtime function that a system library calls to announce its symbols.
    pub fn register(&self) -> Option<&'static str> {
        self.register
    }

    /// The release whose loader is meant to find it.
    pub fn release(&self) -> Release {
        self.release
    }
}
