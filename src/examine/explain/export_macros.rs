//! Functions that C++ source exports with a macro of TVM's headers, as TVM's C code generator and tvm-ffi do.

use crate::blob::container::identifier;

/// The macros, and the releases whose headers have them.
const MACROS: [(&str, &str); 3] = [
    ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(", "0.21 and later"),
    ("TVM_DLL_EXPORT_TYPED_FUNC(", "0.7 and later"),
    ("TVM_DLL_EXPORT_PACKED_FUNC(", "0.7 to 0.20"),
];

/// Describes which functions `text` exports with which macro. Returns `None` if it exports none.
pub(super) fn exports(text: &[u8]) -> Option<String> {
    const NAMED: usize = 8;
    MACROS.iter().find_map(|(name, releases)| {
        let lines = text.split(|byte| *byte == b'\n');
        let uses = lines.filter_map(|line| line.trim_ascii_start().strip_prefix(name.as_bytes()));
        let functions: Vec<&str> = uses
            .filter_map(|rest| Some(identifier(rest.trim_ascii_start())?.0))
            .collect();
        let shown = functions.get(..NAMED).unwrap_or(&functions).join("`, `");
        let more = match functions.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let name = name.trim_end_matches('(');
        (!functions.is_empty()).then(|| {
            format!(
                "It exports `{shown}`{more} by the macro `{name}`, which the headers of {releases} have. The headers state the name of each symbol and how it is called: compile it with those of the release that loads it."
            )
        })
    })
}
