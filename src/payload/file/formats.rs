//! The kind of module for each file extension, and the releases that save and load such files (PAY-28).

use crate::release::{Release, Releases};

/// The files of one extension.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFormat {
    /// The text after the last dot of the name, which is also the format of the module.
    pub extension: &'static str,
    /// The kind of the module that a loader creates.
    pub kind: &'static str,
    /// Another kind that is saved under this extension, by a compiler without the device.
    pub other: Option<&'static str>,
    /// The releases that save it; `None` if no release does.
    pub saved: Option<Releases>,
    /// The releases that register a loader for it.
    pub loaded: &'static [Releases],
}

impl FileFormat {
    /// Returns the kinds of modules that are saved under this extension.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        std::iter::once(self.kind).chain(self.other).collect()
    }

    /// Returns whether `release` saves modules under this extension.
    pub fn is_saved(&self, release: Release) -> bool {
        self.saved.is_some_and(|range| range.contains(release))
    }

    /// Returns the global function that loads the file in `release`; `None` if none is registered.
    pub fn loader(&self, release: Release) -> Option<String> {
        let loaded = self.loaded.iter().any(|range| range.contains(release));
        loaded.then(|| {
            // PAY-28: renamed with the namespace of the runtime, and with the layout of the library binary, as in PAY-99.
            let prefix = match release.minor() {
                ..=6 => "module.loadfile_",
                7..=21 => "runtime.module.loadfile_",
                22.. => "ffi.Module.load_from_file.",
            };
            format!("{prefix}{}", self.extension)
        })
    }
}

/// Creates a row.
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

/// The releases that load most formats.
const TO_23: &[Releases] = &[Releases::between(2, 23)];
/// The releases that save and load the formats of FPGAs.
const FPGA: &[Releases] = &[Releases::between(4, 19)];

/// Every extension of a device module, ordered by kind.
static FORMATS: [FileFormat; 13] = [
    row("ptx", "cuda", (2, 23), TO_23),
    row(
        "cubin",
        "cuda",
        (2, 23),
        // PAY-28: 0.22 lacks the line that registers this loader.
        &[Releases::between(2, 21), Releases::between(23, 23)],
    ),
    // PAY-28: the source, which is saved next to the compiled code.
    row("cu", "cuda", (2, 23), &[]),
    // PAY-28: 0.22 and 0.23 register this loader next to `ptx`, but no module has this format.
    FileFormat {
        saved: None,
        ..row("cuda", "cuda", (22, 23), &[Releases::between(22, 23)])
    },
    row("cl", "opencl", (2, 23), TO_23),
    row("clbin", "opencl", (2, 23), TO_23),
    row("aocx", "aocl", (4, 19), FPGA),
    row("xclbin", "sdaccel", (4, 19), FPGA),
    row("awsxclbin", "sdaccel", (4, 19), FPGA),
    // PAY-28: a compiler without Metal saves it up to 0.23, but no release after 0.12 loads it.
    row("metal", "metal", (2, 23), &[Releases::between(2, 12)]),
    FileFormat {
        other: Some("hsaco"),
        ..row("hsaco", "hip", (3, 23), &[Releases::between(6, 23)])
    },
    // PAY-28: a loader is registered, but no release creates a module of this format.
    FileFormat {
        saved: None,
        ..row("hip", "hip", (6, 23), &[Releases::between(6, 23)])
    },
    row("vulkan", "vulkan", (3, 23), &[Releases::between(3, 23)]),
];

/// The files of host code that LLVM reads or writes. They contain only the code of the module, without a side file (PAY-28).
static HOST: [FileFormat; 2] = [
    row("ll", "llvm", (2, 27), &[Releases::between(2, 27)]),
    row("bc", "llvm", (2, 27), &[]),
];

/// Returns the row of `extension` for host code, which has no side file; `None` if host code does not use it.
pub fn host_format(extension: &str) -> Option<&'static FileFormat> {
    HOST.iter().find(|format| format.extension == extension)
}

/// Returns every extension under which a release saves or loads a device module.
pub fn file_formats() -> impl Iterator<Item = &'static FileFormat> {
    FORMATS.iter()
}

/// Returns the row of `extension`; `None` if device modules do not use it.
pub fn file_format(extension: &str) -> Option<&'static FileFormat> {
    FORMATS.iter().find(|format| format.extension == extension)
}
