//! The meaning of a symbol to TVM, by its name.
//!
//! | symbol | role | rule |
//! |---|---|---|
//! | `..__tvm_dev_mblob`, `..__tvm_ffi_library_bin`, `..__tvm_ffi__library_bin` | the library binary | BLOB-50, BLOB-51 |
//! | `..__tvm_module_ctx`, `..__tvm_ffi_library_ctx`, `..__tvm_ffi__library_ctx` | the slot of the module | BLOB-65 |
//! | `__tvm_main__` | the entry function, or its name | BLOB-64 |
//! | `__tvm_param__..` | a parameter that is linked in | |
//! | `__tvm_ffi__metadata_..`, `__tvm_ffi__doc_..`, `__tvm_ffi__cubin_..` | description of a function; device code | BLOB-62 |
//! | `__tvm_ffi_..` | a packed function from 0.22 on | BLOB-62 |
//! | `__TVM..`, data | the slot of a runtime function | BLOB-65 |
//! | `TVM..`, undefined | a runtime function that is called directly | BLOB-65 |
//! | `TVM..`, a function | a runtime function that the file defines: a runtime is linked into it | |
//! | any other function | a packed function up to 0.21, if no function has the prefix | BLOB-63 |

use super::allowance::Allowance;
use super::linkage;
use crate::release::{Layout, Releases};
use crate::rule::Violation;
use std::borrow::Cow;

/// A symbol that matters to TVM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The name, without the underscore that Mach-O adds before it.
    pub name: Cow<'a, str>,
    /// The system-library prefix before the name that TVM knows; empty otherwise.
    pub prefix: Cow<'a, str>,
    /// The purpose of the symbol.
    pub role: Role<'a>,
    /// True if the symbol is code. `__tvm_main__` is data in most libraries, but a function in those of C hosts (BLOB-64).
    pub code: bool,
    /// Its value; `None` if it is undefined.
    pub address: Option<u64>,
    /// Its size in the symbol table; 0 if the table has no sizes.
    pub size: u64,
}

/// The purpose of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role<'a> {
    /// The library binary (BLOB-50).
    Blob(Layout),
    /// The slot in which the loader stores the module (BLOB-65).
    Context(Layout),
    /// `__tvm_main__`, which names the entry function (BLOB-64).
    Entry,
    /// An exported packed function, under the name by which it is looked up (BLOB-62, BLOB-63).
    Function(Cow<'a, str>),
    /// The metadata of a function, from tvm-ffi 0.1.4 on.
    Metadata(Cow<'a, str>),
    /// The documentation of a function, from tvm-ffi 0.1.4 on.
    Doc(Cow<'a, str>),
    /// Embedded device code, which the library loader does not read.
    Cubin(Cow<'a, str>),
    /// A slot in which the loader stores the address of a runtime function (BLOB-65).
    Slot(Cow<'a, str>),
    /// A parameter linked into the library, 0.8 to 0.20.
    LinkedParam,
    /// A runtime function that must exist when the file is loaded or the function is called.
    Needs(Cow<'a, str>),
    /// A runtime function that the file defines itself.
    Defines(Cow<'a, str>),
}

impl Symbol<'_> {
    /// Returns whether only compiled code has a symbol of this role. Any program may have functions and call the runtime.
    pub(super) fn is_of_compiled_code(&self) -> bool {
        match self.role {
            Role::Needs(_) | Role::Defines(_) => false,
            Role::Function(_) => self.name.starts_with(FFI),
            _ => true,
        }
    }

    /// Returns whether it is a function with the prefix of 0.22 (BLOB-62).
    pub(super) fn is_prefixed(&self) -> bool {
        matches!(self.role, Role::Function(_)) && self.name.starts_with(FFI)
    }

    /// Returns the symbol with all borrowed text copied.
    pub(super) fn into_owned(self) -> Symbol<'static> {
        Symbol {
            name: owned(self.name),
            prefix: owned(self.prefix),
            role: self.role.into_owned(),
            code: self.code,
            address: self.address,
            size: self.size,
        }
    }
}

impl Role<'_> {
    fn into_owned(self) -> Role<'static> {
        match self {
            Role::Blob(layout) => Role::Blob(layout),
            Role::Context(layout) => Role::Context(layout),
            Role::Entry => Role::Entry,
            Role::Function(name) => Role::Function(owned(name)),
            Role::Metadata(name) => Role::Metadata(owned(name)),
            Role::Doc(name) => Role::Doc(owned(name)),
            Role::Cubin(name) => Role::Cubin(owned(name)),
            Role::Slot(api) => Role::Slot(owned(api)),
            Role::LinkedParam => Role::LinkedParam,
            Role::Needs(api) => Role::Needs(owned(api)),
            Role::Defines(api) => Role::Defines(owned(api)),
        }
    }
}

/// Copies the text.
fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// A symbol as the object file stores it.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) defined: bool,
    pub(super) text: bool,
}

/// Returns the symbols whose names have a meaning for TVM. The other symbols are needed for that, because an unmarked function is a
/// packed function only in some releases.
pub(super) fn classify<'a>(
    raw: impl Iterator<Item = Raw<'a>> + Clone,
    allowance: &mut Allowance,
) -> Result<Vec<Symbol<'a>>, Violation> {
    let prefixed = raw
        .clone()
        // BLOB-63: this must be known before the first symbol is classified, because symbol tables have no order.
        .any(|symbol| symbol.defined && symbol.text && symbol.name.starts_with(FFI));
    let mut symbols = Vec::new();
    for raw in raw {
        let Some((prefix, role)) = role(&raw, prefixed) else {
            continue;
        };
        allowance.symbol(raw.name.len())?;
        symbols.push(Symbol {
            name: raw.name.into(),
            prefix: prefix.into(),
            role,
            code: raw.text,
            address: raw.defined.then_some(raw.address),
            size: raw.size,
        });
    }
    Ok(symbols)
}

/// Returns the prefix and the layout of a blob's symbol (BLOB-50, BLOB-51).
pub(super) fn blob(name: &str) -> Option<(&str, Layout)> {
    suffixed(name, &BLOBS)
}

/// Returns the symbol of the blob in a layout, without a prefix.
pub(in super::super) const fn blob_symbol(layout: Layout) -> &'static str {
    match layout {
        // BLOB-18: both layouts share a symbol; only the bytes differ.
        Layout::V0_2 | Layout::V0_7 => "__tvm_dev_mblob",
        Layout::V0_21 => "__tvm_ffi_library_bin",
        Layout::V0_22 => "__tvm_ffi__library_bin",
    }
}

/// Returns the releases that fit all of these symbols; `None` if no symbol shows a release. An unmarked function only narrows the range
/// that other symbols show, because any program has functions.
pub(super) fn releases(
    layouts: impl Iterator<Item = Layout>,
    symbols: &[Symbol<'_>],
) -> Option<Releases> {
    let of_layout = |layout: Layout| match layout {
        // Both layouts share a symbol; only the bytes differ.
        Layout::V0_2 | Layout::V0_7 => Releases::between(2, 20),
        newer => newer.releases(),
    };
    let of_symbol = |symbol: &Symbol<'_>| match &symbol.role {
        Role::Blob(layout) | Role::Context(layout) => Some(of_layout(*layout)),
        Role::Function(_) if symbol.name.starts_with(FFI) => Some(Releases::from(22)),
        // BLOB-62: from 0.22 on functions have a prefix.
        Role::Function(_) => Some(Releases::between(2, 21)),
        Role::Metadata(_) | Role::Doc(_) | Role::Cubin(_) => Some(Releases::from(22)),
        // BLOB-64: from 0.22 on, the entry function is `__tvm_ffi_main`, a function like any other (BLOB-62).
        Role::Entry => Some(Releases::between(2, 21)),
        Role::LinkedParam => Some(Releases::between(8, 20)),
        Role::Slot(api) => find_releases(&SLOTS, api).or_else(|| defined_by(api)),
        Role::Needs(api) => defined_by(api),
        Role::Defines(_) => None,
    };
    let plain = |symbol: &Symbol<'_>| {
        matches!(symbol.role, Role::Function(_)) && !symbol.name.starts_with(FFI)
    };
    // BLOB-63: every program has functions without a prefix, not only those of TVM.
    let mut telling = symbols.iter().filter(|symbol| !plain(symbol));
    let mut layouts = layouts.peekable();
    if layouts.peek().is_none() && !telling.any(|symbol| of_symbol(symbol).is_some()) {
        return None;
    }
    layouts
        .map(of_layout)
        .chain(symbols.iter().filter_map(of_symbol))
        // The result is empty for symbols of two eras, because no runtime finds all of them.
        .reduce(Releases::common)
}

const FFI: &str = "__tvm_ffi_";

const BLOBS: [(&str, Layout); 3] = [
    (blob_symbol(Layout::V0_22), Layout::V0_22),
    (blob_symbol(Layout::V0_21), Layout::V0_21),
    (blob_symbol(Layout::V0_7), Layout::V0_7),
];

const CONTEXTS: [(&str, Layout); 3] = [
    ("__tvm_ffi__library_ctx", Layout::V0_22),
    ("__tvm_ffi_library_ctx", Layout::V0_21),
    ("__tvm_module_ctx", Layout::V0_7),
];

/// The runtime functions whose slots a loader fills, and the releases that fill them (BLOB-65).
const SLOTS: [(&str, Releases); 11] = [
    ("TVMFuncCall", Releases::between(2, 20)),
    ("TVMAPISetLastError", Releases::between(2, 20)),
    ("TVMBackendGetFuncFromEnv", Releases::between(2, 25)),
    ("TVMBackendAllocWorkspace", Releases::ALL),
    ("TVMBackendFreeWorkspace", Releases::ALL),
    ("TVMBackendParallelLaunch", Releases::ALL),
    ("TVMBackendParallelBarrier", Releases::ALL),
    ("TVMFFIFunctionCall", Releases::from(21)),
    ("TVMFFIErrorSetRaisedFromCStr", Releases::from(21)),
    ("TVMFFIEnvModLookupFromImports", Releases::from(26)),
    ("TVMFFIHandleInitOnce", Releases::from(26)),
];

/// Functions that runtimes define, with the releases that define them, if these differ from the releases that fill their slots. The
/// code of C hosts and of system libraries calls them directly.
const CALLED: [(&str, Releases); 8] = [
    ("TVMBackendRegisterEnvCAPI", Releases::between(8, 20)),
    (
        "TVMBackendRegisterSystemLibSymbol",
        Releases::between(2, 21),
    ),
    ("TVMBackendRunOnce", Releases::between(2, 25)),
    ("TVMFFIEnvCheckSignals", Releases::from(21)),
    ("TVMFFIEnvModLookupFromImports", Releases::from(22)),
    ("TVMFFIEnvRegisterCAPI", Releases::from(21)),
    ("TVMFFIErrorSetRaisedFromCStrParts", Releases::from(22)),
    ("TVMFFIHandleInitOnce", Releases::from(23)),
];

/// Returns the releases of `api` in a table.
fn find_releases(table: &[(&str, Releases)], api: &str) -> Option<Releases> {
    let found = table.iter().find(|(name, _)| *name == api);
    found.map(|(_, releases)| *releases)
}

/// Returns the releases whose runtimes define a function.
fn defined_by(api: &str) -> Option<Releases> {
    find_releases(&CALLED, api)
        .or_else(|| find_releases(&SLOTS, api))
        .or_else(|| api.starts_with("TVMFFIEnv").then_some(Releases::from(22)))
        .or_else(|| api.starts_with("TVMFFI").then_some(Releases::from(21)))
}

/// Returns the prefix and the role of a symbol, by its name and kind. `prefixed` states that some function has the prefix of 0.22.
fn role<'a>(raw: &Raw<'a>, prefixed: bool) -> Option<(&'a str, Role<'a>)> {
    let name = raw.name;
    // BLOB-65: the code of C hosts and system libraries calls the runtime without slots.
    if !raw.defined {
        // BLOB-65: `TVM` alone is not a function of the runtime.
        let needed = name.starts_with("TVM") && name.len() > 3;
        return needed.then(|| ("", Role::Needs(name.into())));
    }
    if let Some((prefix, layout)) = blob(name) {
        return Some((prefix, Role::Blob(layout)));
    }
    // BLOB-51: in a system library, both symbols have the same prefix.
    if let Some((prefix, layout)) = suffixed(name, &CONTEXTS) {
        return Some((prefix, Role::Context(layout)));
    }
    // BLOB-64: in code from LLVM this is data that contains a name. In code of a C host it is a function. Loaders read it as text in
    // both cases.
    if name == "__tvm_main__" {
        return Some(("", Role::Entry));
    }
    // Parameters that the compiler of 0.8 to 0.20 links into the code, each under its name.
    if name.starts_with("__tvm_param__") {
        return Some(("", Role::LinkedParam));
    }
    let of = |tag: &str| name.strip_prefix(tag).map(Cow::Borrowed);
    // BLOB-62: these look like functions whose names begin with `_`, but they are not functions.
    if let Some(of) = of("__tvm_ffi__metadata_") {
        return Some(("", Role::Metadata(of)));
    }
    if let Some(of) = of("__tvm_ffi__doc_") {
        return Some(("", Role::Doc(of)));
    }
    if let Some(of) = of("__tvm_ffi__cubin_") {
        return Some(("", Role::Cubin(of)));
    }
    if !raw.text {
        let api = name.strip_prefix("__")?;
        // BLOB-65: a slot that a loader does not know stays null, and compiled code calls through it. For example, a library of 0.27
        // crashes in a runtime of 0.25.
        let slot = find_releases(&SLOTS, api).is_some() || api.starts_with("TVM");
        return slot.then(|| ("", Role::Slot(api.into())));
    }
    if let Some(of) = of(FFI) {
        return Some(("", Role::Function(of)));
    }
    if linkage::is_interface(name) {
        return Some(("", Role::Defines(name.into())));
    }
    // BLOB-63: before 0.22 nothing marks a packed function, so every global function may be one. If any function has the prefix of
    // 0.22, only functions with the prefix are packed.
    let plain = !prefixed && !is_helper(name);
    plain.then(|| ("", Role::Function(name.into())))
}

/// Returns whether the compiler, the linker or a runtime added this function to the file (BLOB-63). Such a function is not packed.
fn is_helper(name: &str) -> bool {
    const NAMES: [&str; 6] = [
        "_init",
        "_fini",
        "_start",
        "main",
        "get_c_metadata",
        "DllMain",
    ];
    name.starts_with("__")
        || name.starts_with("_Z")
        || name.starts_with("_GLOBAL_")
        || name.starts_with("TVM")
        || name.starts_with("DW.ref.")
        // COFF: `.weak.NAME.default.OTHER` is the default of a weak symbol; `?..` and `@..` are decorated names of C++ and of the linker.
        || name.starts_with(['.', '?', '@'])
        || NAMES.contains(&name)
}

/// Returns the prefix and the layout of a name that ends with one of `known`.
fn suffixed<'a>(name: &'a str, known: &[(&str, Layout)]) -> Option<(&'a str, Layout)> {
    known
        .iter()
        // BLOB-51: the known name ends the symbol, after any prefix. One more underscore distinguishes 0.22 from 0.21 (BLOB-50).
        .find_map(|(suffix, layout)| Some((name.strip_suffix(suffix)?, *layout)))
}
