//! Detection of the releases of tvm-ffi that a library was built with, from the C functions that it calls and C++ names from headers.

use crate::blob::container::DynamicNames;

/// A name, and the patch release `0.1.N` of tvm-ffi that introduced it.
type Row = (&'static str, u8);

/// C functions that 0.1.0 does not have.
const FUNCTIONS: [Row; 8] = [
    ("TVMFFIHandleInitOnce", 5),
    ("TVMFFIHandleDeinitOnce", 5),
    ("TVMFFITensorCreateUnsafeView", 6),
    ("TVMFFIErrorCreateWithCauseAndExtraContext", 8),
    ("TVMFFIGetCustomAllocator", 13),
    ("TVMFFISetCustomAllocator", 13),
    ("TVMFFIBigIntFromByteArray", 14),
    ("TVMFFIBigIntGetContentByteArray", 14),
];

/// Parts of mangled names of namespaces, classes and functions that a release introduced.
const BROUGHT: [Row; 12] = [
    ("N3tvm3ffi15DenseMapBaseObj", 9),
    ("N3tvm3ffi15SmallMapBaseObj", 9),
    ("N3tvm3ffi10MapBaseObj", 9),
    ("N3tvm3ffi10SeqBaseObj", 9),
    ("N3tvm3ffi8DeepCopy", 9),
    ("N3tvm3ffi11Recursive", 10),
    ("N3tvm3ffi13RecursiveHash", 10),
    ("N3tvm3ffi9ReprPrint", 10),
    ("17VisitErrorContext15FindAccessPaths", 12),
    ("N3tvm3ffi10IntEnumObj", 13),
    ("4json9StringifyERKNS0_3AnyERKNS0_8Optional", 13),
    ("N3tvm3ffi6detail", 15),
];

/// Parts of mangled names, and the last release that has them.
const ENDED: [Row; 4] = [
    ("N3tvm3ffi11DenseMapObj", 8),
    ("N3tvm3ffi11SmallMapObj", 8),
    ("4json9StringifyERKNS0_3AnyENS0_8Optional", 12),
    ("N3tvm3ffi7details", 14),
];

/// Returns the range of releases, as `0.1.9..0.1.14` or `0.1.9..`. Returns `None` for a library without any name of tvm-ffi.
pub(super) fn built_on(bytes: &[u8]) -> Option<String> {
    let names = DynamicNames::read(bytes)?;
    let (mut of_ffi, mut since, mut until) = (false, 0, None);
    for name in names.wanted.iter().chain(&names.defined) {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        let is_cxx = name.starts_with("_Z") && name.contains("N3tvm3ffi");
        if !is_cxx && !name.starts_with("TVMFFI") {
            continue;
        }
        of_ffi = true;
        let rows = if is_cxx {
            BROUGHT.as_slice()
        } else {
            FUNCTIONS.as_slice()
        };
        for (part, release) in rows {
            let found = if is_cxx {
                name.contains(part)
            } else {
                name == *part
            };
            if found {
                since = since.max(*release);
            }
        }
        for (_, release) in ENDED
            .iter()
            .filter(|(part, _)| is_cxx && name.contains(part))
        {
            until = Some(until.map_or(*release, |until: u8| until.min(*release)));
        }
    }
    let until = match until {
        // Objects of several releases can be linked into one library. Then no release has all of its names.
        Some(until) if until < since => return None,
        Some(until) => format!("0.1.{until}"),
        None => String::new(),
    };
    of_ffi.then(|| format!("0.1.{since}..{until}"))
}
