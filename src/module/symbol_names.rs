//! The names that a library and its loader share, release by release.

use super::exports;
use super::symbols::{Data, SymbolName, Symbols};
use crate::release::Layout;
use crate::rule::Violation;

/// The calling convention of compiled functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Convention {
    /// 0.2 to 0.20: values of 8 bytes and an array of type codes. 0.2 to 0.6 have three parameters, which are the first three of the
    /// six from 0.7 on. A function that takes three ignores the others.
    Legacy,
    /// 0.21: cells of 16 bytes, with objects in a form that no other release has (MOD-25).
    Ffi021,
    /// 0.22 on: cells of 16 bytes.
    Ffi,
}

/// The form of the entry point `__tvm_main__` and of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryPoint {
    /// Data: the name of the entry function, with a terminating NUL. A C host exports a function with this name instead.
    NameOf(&'static str),
    /// An ordinary function: `main` with the prefix of all functions.
    Prefixed,
}

/// The names in one dialect of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Data symbol with the embedded modules (MOD-01).
    pub blob: SymbolName<'static>,
    /// Pointer to the module from which the library's own lookups start (MOD-06).
    pub context: SymbolName<'static>,
    /// Prefix of the names of exported functions (MOD-02).
    pub prefix: &'static str,
    /// Meaning of `main` (MOD-04).
    pub entry: EntryPoint,
    /// Calling convention of functions (MOD-03).
    pub convention: Convention,
    /// Prefix of the global function that reads the payload of a kind (MOD-11).
    pub loader: &'static str,
}

impl Dialect {
    /// Returns the names in libraries of `layout`.
    pub const fn of(layout: Layout) -> Dialect {
        const LEGACY: Dialect = Dialect {
            blob: SymbolName::of("__tvm_dev_mblob"),
            context: SymbolName::of("__tvm_module_ctx"),
            prefix: "",
            entry: EntryPoint::NameOf("__tvm_main__"),
            convention: Convention::Legacy,
            loader: "runtime.module.loadbinary_",
        };
        match layout {
            Layout::V0_2 => Dialect {
                // MOD-11: 0.7 added the prefix `runtime.`. The other names of 0.2 to 0.6 are the same as in 0.7.
                loader: "module.loadbinary_",
                ..LEGACY
            },
            Layout::V0_7 => LEGACY,
            Layout::V0_21 => Dialect {
                blob: SymbolName::of("__tvm_ffi_library_bin"),
                context: SymbolName::of("__tvm_ffi_library_ctx"),
                convention: Convention::Ffi021,
                // MOD-02, MOD-04, MOD-11: 0.21 has no prefix yet, its entry point is still data, and its loaders are named as in 0.7.
                ..LEGACY
            },
            Layout::V0_22 => Dialect {
                blob: SymbolName::of("__tvm_ffi__library_bin"),
                context: SymbolName::of("__tvm_ffi__library_ctx"),
                prefix: "__tvm_ffi_",
                entry: EntryPoint::Prefixed,
                convention: Convention::Ffi,
                loader: "ffi.Module.load_from_bytes.",
            },
        }
    }
}

/// Slots of 0.2 to 0.20: data symbols of 8 bytes that the loader sets to the function with the same name without `__`.
pub(crate) const SLOTS_LEGACY: &[&str] = &[
    "__TVMFuncCall",
    "__TVMAPISetLastError",
    "__TVMBackendGetFuncFromEnv",
    "__TVMBackendAllocWorkspace",
    "__TVMBackendFreeWorkspace",
    "__TVMBackendParallelLaunch",
    "__TVMBackendParallelBarrier",
];

/// Slots of 0.21 to 0.25.
pub(crate) const SLOTS_0_21: &[&str] = &[
    "__TVMFFIFunctionCall",
    "__TVMFFIErrorSetRaisedFromCStr",
    "__TVMBackendGetFuncFromEnv",
    "__TVMBackendAllocWorkspace",
    "__TVMBackendFreeWorkspace",
    "__TVMBackendParallelLaunch",
    "__TVMBackendParallelBarrier",
];

/// Slots of 0.26 on. From 0.22 on further slots can be added at run time.
pub(crate) const SLOTS_0_26: &[&str] = &[
    "__TVMFFIFunctionCall",
    "__TVMFFIErrorSetRaisedFromCStr",
    "__TVMFFIEnvModLookupFromImports",
    "__TVMFFIHandleInitOnce",
    "__TVMBackendAllocWorkspace",
    "__TVMBackendFreeWorkspace",
    "__TVMBackendParallelLaunch",
    "__TVMBackendParallelBarrier",
];

/// Additional slot of compiled code after 0.27.
const SLOT_AFTER_0_27: &str = "__TVMBackendSetDevice";

/// Returns the slots that a loader of `release` fills (MOD-05).
pub const fn slots(release: crate::release::Release) -> &'static [&'static str] {
    match release.minor() {
        ..=20 => SLOTS_LEGACY,
        21..=25 => SLOTS_0_21,
        26.. => SLOTS_0_26,
    }
}

/// Returns every slot of every release, once. A slot has the same meaning in every release, so one loader can fill all of them.
pub(super) fn all_slots() -> impl Iterator<Item = &'static str> {
    // MOD-05: these two lists contain all slots of 0.21 to 0.25.
    let rest = SLOTS_0_26
        .iter()
        .filter(|name| !SLOTS_LEGACY.contains(name));
    let all = SLOTS_LEGACY.iter().chain(rest).copied();
    all.chain([SLOT_AFTER_0_27])
}

/// First bytes of the symbols that [`is_of_runtime`] accepts: `TVM`, `_Z`.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(super) const INITIALS: [u8; 2] = *b"T_";

/// Returns whether `symbol` is a function or a class of a TVM runtime, in C or in C++.
pub(super) fn is_of_runtime(symbol: &[u8]) -> bool {
    // C++ mangles the namespace `tvm` as `3tvm`, anywhere in a name, also in a template argument.
    let names_tvm = || symbol.windows(4).any(|part| part == b"3tvm");
    symbol.starts_with(b"TVM") || symbol.starts_with(b"_Z") && names_tvm()
}

/// Explains that `library` needs these symbols of a runtime, which nothing in this process defines (MOD-26).
#[cold]
pub(super) fn explain_missing_symbols(library: &str, needed: &[String]) -> String {
    let own = |name: &String| exports::find(name).is_some();
    let why = if needed.iter().all(own) {
        "This process has them and does not show them to its libraries: link the program with `-rdynamic`, or open this \
         library with `RTLD_GLOBAL`"
    } else if needed.iter().any(|name| name.starts_with("_Z")) {
        "Names that begin with `_Z` are C++ of the runtime that the library was linked with (libtvm_ffi, libtvm_runtime or \
         libtvm): load that into this process first, with `RTLD_GLOBAL`"
    } else {
        "No release up to 0.27 has them: compile it with one of these, or load what has them first, with `RTLD_GLOBAL`"
    };
    let mut names: Vec<&str> = needed.iter().map(String::as_str).take(SHOWN).collect();
    let rest = needed.len().saturating_sub(SHOWN);
    let more = format!("{rest} more");
    if rest > 0 {
        names.push(&more);
    }
    let names = names.join(", ");
    format!("{library} needs {names}, and nothing in this process has that. {why}")
}

/// Maximum number of names that a message lists.
const SHOWN: usize = 8;

/// Returns the blob of a library, and the dialect that the name of its symbol implies (MOD-01).
///
/// 0.2 and 0.7 use the same names and differ only in the blob itself.
pub(super) fn blob(symbols: &dyn Symbols) -> Result<Option<(Layout, Data<'_>)>, Violation> {
    for layout in [Layout::V0_22, Layout::V0_21, Layout::V0_7] {
        let found = symbols.data(Dialect::of(layout).blob)?;
        if let Some(data) = found {
            return Ok(Some((layout, data)));
        }
    }
    Ok(None)
}

/// Returns the dialect of a library without a blob, from its other symbols (MOD-03). 0.2 and 0.7 do not differ in this case.
pub(crate) fn dialect(symbols: &dyn Symbols) -> Layout {
    const MAIN: SymbolName<'_> = SymbolName::of("__tvm_ffi_main");
    const CONTEXTS: [(SymbolName<'_>, Layout); 2] = [
        (Dialect::of(Layout::V0_22).context, Layout::V0_22),
        (Dialect::of(Layout::V0_21).context, Layout::V0_21),
    ];
    const LEGACY: [SymbolName<'_>; 3] = [
        SymbolName::of("__tvm_module_ctx"),
        SymbolName::of("__TVMFuncCall"),
        SymbolName::of("__TVMAPISetLastError"),
    ];
    let has = |name: SymbolName<'_>| symbols.address(name).is_some();
    // MOD-02: no release before 0.22 exports a function with this prefix, and most libraries have this one.
    if has(MAIN) {
        return Layout::V0_22;
    }
    if let Some((_, layout)) = CONTEXTS.into_iter().find(|(name, _)| has(*name)) {
        return layout;
    }
    // MOD-03: slots of 0.2 to 0.20 that no later release has.
    if LEGACY.into_iter().any(has) {
        return Layout::V0_7;
    }
    // MOD-03: C hosts have no slots. The functions that they need and export show their convention.
    let list = symbols.list();
    let exports = |prefix: &str| {
        list.iter()
            .any(|(name, needed)| !needed && name.starts_with(prefix))
    };
    let needs = |prefix: &str| {
        list.iter()
            .any(|(name, needed)| *needed && name.starts_with(prefix))
    };
    // MOD-03: functions without the prefix of MOD-02, together with the interface of 16-byte cells, exist only in 0.21.
    if exports("__tvm_ffi_") {
        Layout::V0_22
    } else if needs("TVMFFI") || exports("__TVMFFI") {
        Layout::V0_21
    } else {
        Layout::V0_7
    }
}

/// Returns the name in the data symbol of the entry point (MOD-04): ASCII up to a NUL, within the symbol.
pub(super) fn entry_name(symbols: &dyn Symbols, entry: &str) -> Option<String> {
    // MOD-04, MOD-18: text of unknown length is not read, and then there is no entry point.
    let bytes = symbols.data(SymbolName::of(entry)).ok()??.bytes;
    let length = bytes.iter().position(|byte| *byte == 0)?;
    let name = bytes.get(..length).filter(|name| !name.is_empty())?;
    // MOD-04: a C host exports a function with this name, whose machine code is not text. Releases read it as text.
    let is_name = name.iter().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}
