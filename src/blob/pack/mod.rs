//! Packing of a library binary into a file that a linker or a loader accepts.
//!
//! | result | made by | rule |
//! |---|---|---|
//! | C text, as `export_library` writes it without LLVM | [`c_text()`] | BLOB-59, BLOB-60 |
//! | an object file: ELF, Mach-O, COFF | [`object()`] | BLOB-66, BLOB-67 |
//! | the files of an export: host code and library binary | [`plan()`] | BLOB-70 to BLOB-72 |
//! | these files as an archive or one text | [`tar()`], [`ExportPlan::c_source`] | BLOB-73, BLOB-74 |
//! | an existing library with another library binary | [`replace()`] | BLOB-75 |
//! | a shared library, through the C compiler of the system | `shared`, `export`, `export_job` (feature `runtime`) | |
//!
//! The bytes are not checked. The caller must pass a blob in the layout of the release whose symbol it gets.

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

/// The symbol of a packed blob, and whether the blob registers itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolNaming {
    symbol: String,
    register: Option<&'static str>,
    release: Release,
}

impl SymbolNaming {
    /// Returns the naming of a blob that a loader finds by its symbol, as in a shared library.
    pub fn library(release: Release) -> SymbolNaming {
        SymbolNaming {
            symbol: blob_symbol(Layout::of(release)).to_owned(),
            register: None,
            release,
        }
    }

    /// Returns the naming of a system library: a blob that registers itself with the runtime that it is linked to. From 0.13 on it may
    /// have a prefix, so that one program can contain several system libraries (BLOB-61).
    ///
    /// # Errors
    ///
    /// Returns BLOB-61 for a prefix before 0.13 (kind unsupported), and for a prefix that cannot begin a C name (kind type).
    pub fn system(release: Release, prefix: &str) -> Result<SymbolNaming, Violation> {
        // BLOB-61: an older runtime looks up a fixed symbol, so it never finds a blob with a prefix.
        let known = prefix.is_empty() || release >= Release::of(13);
        BLOB_61.demand(Kind::Unsupported, known, || {
            format!("{release} knows no prefixes of system libraries; 0.13 and later do")
        })?;
        let identifier = prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            // BLOB-61: the prefix is the start of a C name.
            && !prefix.starts_with(|first: char| first.is_ascii_digit());
        if !identifier {
            let message =
                format!("`{prefix}` cannot be in front of a C name: letters, digits and `_` can");
            return Err(BLOB_61.rejected(Kind::Type, message));
        }
        Ok(SymbolNaming {
            symbol: format!("{prefix}{}", blob_symbol(Layout::of(release))),
            // BLOB-60: 0.21 uses the symbol of tvm-ffi for the blob, but still the registration function of the older runtime.
            register: Some(if release < Release::of(22) {
                "TVMBackendRegisterSystemLibSymbol"
            } else {
                "TVMFFIEnvModRegisterSystemLibSymbol"
            }),
            release,
        })
    }

    /// Calls [`SymbolNaming::library`], or [`SymbolNaming::system`] with `prefix`. A prefix without a system library breaks BLOB-61.
    ///
    /// # Errors
    ///
    /// Fails like [`SymbolNaming::system`]. Also returns BLOB-61 for a prefix without a system library.
    pub fn of(release: Release, system_lib: bool, prefix: &str) -> Result<SymbolNaming, Violation> {
        if system_lib {
            return SymbolNaming::system(release, prefix);
        }
        // BLOB-51: the loader of files looks up only the symbol without a prefix, and would treat the library as one without imports.
        BLOB_61.demand(Kind::Type, prefix.is_empty(), || {
            format!(
                "the prefix `{prefix}` is for system libraries: no loader looks for it elsewhere"
            )
        })?;
        Ok(SymbolNaming::library(release))
    }

    /// Returns the symbol of the library binary, without the underscore of Mach-O (BLOB-50).
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Returns the prefix of a system library, which is also part of its file name.
    pub fn prefix(&self) -> &str {
        let plain = blob_symbol(Layout::of(self.release));
        self.symbol.strip_suffix(plain).unwrap_or_default()
    }

    /// Returns the runtime function that a system library calls to register its symbols.
    pub fn register(&self) -> Option<&'static str> {
        self.register
    }

    /// Returns the release whose loader must find the blob.
    pub fn release(&self) -> Release {
        self.release
    }
}
