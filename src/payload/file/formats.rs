//! Which kind of module is in a file of which extension, and which releases save and load it (PAY-28).

use crate::release::{Release, Releases};

/// The files of one extension.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFormat {
    /// What follows the last dot of the name; the format of the module, too.
    pub extension: &'static str,
    /// The kind of the module that a loader makes of it.
    pub kind: &'static str,
    /// Another kind that is saved under this extension: what a compiler without the device makes.
    pub other: Option<&'static str>,
    /// The releases that save it; `None` where none does.
    pub saved: Option<Releases>,
    /// The releases that register a loader of it.
    pub loaded: &'static [Releases],
}

impl FileFormat {
    /// The kinds of modules that are saved under this extension.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        std::iter::once(self.kind).chain(self.other).collect()
    }

    /// Whether `release` saves modules under this extension.
    pub fn is_saved(&self, release: Release) -> bool {
        self.saved.is_some_and(|range| range.contains(release))
    }

    /// The global function that loads it in `release`; `None` where none is registered.
    pub fn loader(&self, release: Release) -> Option<String> {
        let loaded = self.loaded.iter().any(|range| range.contains(release));
        loaded.then(|| {
            // PAY-28: renamed with the namespace of the runtime, and with the layout of the library binary, as PAY-99 has it.
            let prefix = match release.minor() {
                ..=6 => "module.loadfile_",
                7..=21 => "runtime.module.loadfile_",
                22.. => "ffi.Module.load_from_file.",
            };
            format!("{prefix}{}", self.extension)
        })
    }
}

/// A row, most of which have one range of releases that load it.
const fn row(
    extension: &'static str,
    kind: &'static str,
    saved: (u8, u8),
    loaded: &'static [Releases],
) -> FileFormat {
    FileFormat {
        extension,
        kind,
        other: None,
        saved: Some(Releases::between(saved.0, saved.1)),
        loaded,
    }
}

/// The releases that load most of them.
const TO_23: &[Releases] = &[Releases::between(2, 23)];
/// The releases of the FPGAs.
const FPGA: &[Releases] = &[Releases::between(4, 19)];

/// Every extension of a device module, by kind.
static FORMATS: [FileFormat; 13] = [
    row("ptx", "cuda", (2, 23), TO_23),
    row(
        "cubin",
        "cuda",
        (2, 23),
        // PAY-28: 0.22 lost the line that registers it.
        &[Releases::between(2, 21), Releases::between(23, 23)],
    ),
    // PAY-28: the source, which is saved beside what it was compiled to.
    row("cu", "cuda", (2, 23), &[]),
    // PAY-28: what 0.22 and 0.23 register beside `ptx`; no module has this format.
    FileFormat {
        saved: None,
        ..row("cuda", "cuda", (22, 23), &[Releases::between(22, 23)])
    },
    row("cl", "opencl", (2, 23), TO_23),
    row("clbin", "opencl", (2, 23), TO_23),
    row("aocx", "aocl", (4, 19), FPGA),
    row("xclbin", "sdaccel", (4, 19), FPGA),
    row("awsxclbin", "sdaccel", (4, 19), FPGA),
    // PAY-28: a compiler without Metal saves it up to 0.23, which no release after 0.12 loads.
    row("metal", "metal", (2, 23), &[Releases::between(2, 12)]),
    FileFormat {
        other: Some("hsaco"),
        ..row("hsaco", "hip", (3, 23), &[Releases::between(6, 23)])
    },
    // PAY-28: registered, though no release makes a module of this format.
    FileFormat {
        saved: None,
        ..row("hip", "hip", (6, 23), &[Releases::between(6, 23)])
    },
    row("vulkan", "vulkan", (3, 23), &[Releases::between(3, 23)]),
];

/// The files of host code that LLVM reads or writes: the module's own code, without a side file (PAY-28).
static HOST: [FileFormat; 2] = [
    row("ll", "llvm", (2, 27), &[Releases::between(2, 27)]),
    row("bc", "llvm", (2, 27), &[]),
];

/// The row of `extension` among the files of host code, which have no side file; `None` where host code is in none of it.
pub fn host_format(extension: &str) -> Option<&'static FileFormat> {
    HOST.iter().find(|format| format.extension == extension)
}

/// Every extension under which a release saves or loads a device module.
pub fn file_formats() -> impl Iterator<Item = &'static FileFormat> {
    FORMATS.iter()
}

/// The row of `extension`; `None` where no device module is in files of it.
pub fn file_format(extension: &str) -> Option<&'static FileFormat> {
    FORMATS.iter().find(|format| format.extension == extension)
}
