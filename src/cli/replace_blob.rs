//! Libraries in which `pack` and `convert` replace only the library binary (BLOB-75).

use super::CliError;
use std::borrow::Cow;
use tvmspec::blob::container::{self, FileForm};
use tvmspec::blob::pack::{self, SymbolNaming};
use tvmspec::release::Layout;

/// A file whose library binary is replaced.
pub(crate) struct WholeLibrary<'w> {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its content.
    pub(crate) bytes: Cow<'w, [u8]>,
    /// The number of the library binary, if the file has several.
    pub(crate) index: Option<usize>,
}

impl WholeLibrary<'_> {
    /// Checks that the file can take a library binary of `layout`.
    pub(crate) fn is_for(&self, layout: Layout) -> Result<(), CliError> {
        let file = container::open(&self.bytes).map_err(CliError::new)?;
        let count = file.blobs().count();
        if count > 1 && self.index.is_none() {
            return Err(CliError::new(format!(
                "{} has {count} library binaries, counted from 0: choose one by `blob`",
                self.name
            )));
        }
        // BLOB-50: the symbols of its releases also find the host code. A library binary alone has no symbol.
        let found = file.blobs().nth(self.index.unwrap_or(0));
        let own = found.and_then(|(_, found)| found.layout);
        let symbol = |layout: Layout| {
            let naming = SymbolNaming::library(layout.releases().until);
            naming.symbol().to_owned()
        };
        match own.filter(|own| symbol(*own) != symbol(layout)) {
            Some(own) => Err(CliError::new(format!(
                "the host code of {} is of layout {own}, whose symbol layout {layout} does not have: link it anew, with --with",
                self.name
            ))),
            None => Ok(()),
        }
    }

    /// Returns the file with its library binary replaced by `blob`, and its form.
    pub(crate) fn replace(&self, blob: &[u8]) -> Result<(Vec<u8>, FileForm), CliError> {
        // `is_for` has rejected several library binaries without a number.
        let made = pack::replace(&self.bytes, self.index.unwrap_or(0), blob);
        Ok((made.map_err(CliError::new)?, FileForm::detect(&self.bytes)))
    }
}

/// Returns the extensions of files of `form`, the usual one first.
pub(crate) const fn extensions(form: FileForm) -> &'static [&'static str] {
    match form {
        FileForm::ElfShared => &["so"],
        FileForm::MachOShared => &["dylib", "so"],
        FileForm::PeShared => &["dll", "so"],
        FileForm::ElfObject | FileForm::MachOObject | FileForm::WasmObject => &["o"],
        FileForm::CoffObject => &["obj", "o"],
        FileForm::WasmModule => &["wasm"],
        FileForm::MachOFat => &["dylib", "so", "o", "a"],
        FileForm::ElfExecutable | FileForm::MachOExecutable | FileForm::PeExecutable => {
            &["", "exe"]
        }
        FileForm::Archive => &["a", "lib"],
        FileForm::Tar | FileForm::GzipTar => &["tar", "gz", "tgz"],
        FileForm::CText => &["c", "cc", "cpp"],
        _ => &["bin", "library_bin", "mblob", "blob"],
    }
}
