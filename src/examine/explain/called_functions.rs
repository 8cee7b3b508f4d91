//! The functions that a file calls by name. They are looked up on first use, and not when the file is loaded.

use super::account::Account;
use super::linked_image::{is_image, since};
use crate::blob::container::{ContainerFile, ContainerPart, Role};
use crate::examine::Subject;
use crate::examine::loading::global_functions::{FUNCTIONS, FunctionRow, is_loader, releases};
use crate::examine::loading::{ExaminedLibrary, Load, LoadOutcome};
use crate::graph::Graph;
use crate::payload::relax_vm::FunctionKind;
use crate::payload::{Field, Payload};
use crate::release::Release;
use crate::rule::Findings;
use object::{Object as _, ObjectSegment as _};
use std::collections::{BTreeSet, HashSet};

/// The number of names that a sentence lists.
const LISTED: usize = 4;

/// Names that one user looks up together.
pub(super) struct Calls {
    /// The operation that fails if a name is not found.
    user: &'static str,
    /// Names that only the file itself can define.
    own: BTreeSet<String>,
    /// Names that are searched in the file first, and then in the registry (VM-11).
    global: BTreeSet<String>,
}

/// Returns the functions that the modules of a library call but that the library does not have. Returns an empty list if the functions
/// of any module are unknown.
pub(super) fn unresolved(library: &ExaminedLibrary<'_>) -> Vec<Calls> {
    let modules = || library.blob.modules.iter().zip(library.payloads);
    let mut has: HashSet<&str> = library.part.functions().collect();
    // Every name of a system library starts with its prefix (MOD-16).
    if library.part.prefix().is_some() {
        return Vec::new();
    }
    for (module, payload) in modules().filter(|(module, _)| !module.is_host()) {
        match payload {
            Some(payload) if functions(payload, &mut has) => {}
            _ => return Vec::new(),
        }
        // The functions that an executable exports are found too.
        if let Some(code) = payload.as_ref().and_then(Payload::relax_vm) {
            let own = code.functions.iter();
            let own = own.filter(|function| function.kind != FunctionKind::Packed);
            has.extend(own.map(|function| &*function.name));
        }
        if is_host_code(module.kind()) {
            return Vec::new();
        }
    }
    let payloads = modules().filter_map(|(_, payload)| payload.as_ref());
    let mut all: Vec<Calls> = payloads.filter_map(calls).collect();
    for calls in &mut all {
        calls.remove_functions(&has);
    }
    all.retain(|calls| !calls.own.is_empty() || !calls.global.is_empty());
    all
}

/// Returns whether a module of this kind is code that is still to be linked. The symbols of such code name its functions.
fn is_host_code(kind: &str) -> bool {
    matches!(kind, "c" | "static_library")
}

/// Adds the names of the functions that a module has. Returns `false` if the payload does not show them.
fn functions<'p>(payload: &'p Payload<'_>, has: &mut HashSet<&'p str>) -> bool {
    has.extend(payload.functions().map(|(name, _)| name));
    has.extend(payload.kernels().map(|(name, _)| name));
    if let Some(Field::Text(symbol)) = payload.field("symbol") {
        has.insert(symbol);
    }
    let shown = ["functions", "kernels", "shaders", "symbol"];
    let has_none = matches!(
        payload.kind(),
        "const_loader"
            | "metadata"
            | "metadata_module"
            | "GraphRuntimeFactory"
            | "GraphExecutorFactory"
            | "AotExecutorFactory"
            | "VMExecutable"
            | "relax.Executable"
            | "relax.VMExecutable"
    );
    has_none || shown.iter().any(|name| payload.field(name).is_some())
}

/// Returns the functions of a whole library, both of its code and of its modules. Returns `None` if a module does not show its
/// functions.
fn offered(library: &Subject<'_>) -> Option<HashSet<String>> {
    let parts = library.file.parts.iter();
    let mut has: HashSet<String> = parts
        .flat_map(|part| part.functions().map(str::to_owned))
        .collect();
    for unit in &library.units() {
        let partial = unit.library()?;
        for module in &partial.blob.modules {
            let Some(module) = module.stored() else {
                continue;
            };
            let payload = module.decode().ok()?.value;
            let mut names = HashSet::new();
            if !functions(&payload, &mut names) || is_host_code(&module.kind) {
                return None;
            }
            has.extend(names.into_iter().map(str::to_owned));
        }
    }
    Some(has)
}

/// Compares graph JSON with the library that is to run it, and changes the accounts of the graph. An executor looks up every function
/// of its graph in that library (GRF-31). Returns `false` and changes nothing if the library does not show its functions.
pub fn hold_to_library(
    accounts: &mut [Account],
    graph: &Subject<'_>,
    library: &Subject<'_>,
) -> bool {
    let (Some(mut calls), Some(has)) = (of_graph(graph.bytes), offered(library)) else {
        return false;
    };
    calls.own.retain(|name| !has.contains(name));
    let loads = accounts.iter_mut().flat_map(|account| &mut account.loads);
    for (releases, load) in loads {
        if load.outcome == LoadOutcome::Loads
            && let Some(missing) = calls.judge(releases.since)
        {
            *load = missing;
        }
    }
    true
}

/// Returns the calls of one module; `None` for a kind that calls nothing by name.
fn calls(payload: &Payload<'_>) -> Option<Calls> {
    if let Some(code) = payload.relax_vm() {
        let functions = code.functions.iter();
        let packed = functions.filter(|function| function.kind == FunctionKind::Packed);
        return Some(Calls {
            user: "making its virtual machine",
            own: BTreeSet::new(),
            global: packed.map(|function| function.name.to_string()).collect(),
        });
    }
    if let Some(code) = payload.relay_vm() {
        return Some(Calls {
            user: "making its virtual machine",
            own: code
                .primitives
                .iter()
                .map(|name| name.to_string())
                .collect(),
            global: BTreeSet::new(),
        });
    }
    match payload.field("graph_json") {
        // The runtime of a vendor runs the vendor's graph itself.
        Some(Field::Text(text)) if payload.field("symbol").is_none() => of_graph(text.as_bytes()),
        _ => None,
    }
}

/// Returns the calls of the nodes of a graph; `None` if the text is not a graph.
fn of_graph(text: &[u8]) -> Option<Calls> {
    let graph = Graph::read_bytes(text, &mut Findings::default()).ok()?;
    let calls = graph.nodes.into_iter().filter_map(|node| node.call);
    // GRF-36: the executor itself implements these two.
    let named = calls
        .map(|call| call.func_name)
        .filter(|name| !matches!(name.as_str(), "__nop" | "__copy"));
    Some(Calls {
        user: "making its executor",
        own: named.collect(),
        global: BTreeSet::new(),
    })
}

/// Returns the global functions of releases whose names are constants in the host code of an image. The code looks up each of them when
/// it calls it.
pub(super) fn in_host_code(file: &ContainerFile<'_>, bytes: &[u8]) -> Vec<&'static str> {
    let texts = host_texts(file, bytes).unwrap_or_default();
    let names = texts
        .into_iter()
        .filter_map(|(_, text)| Some(*FUNCTIONS.get_key_value(text)?.0));
    let names: BTreeSet<&str> = names
        .filter(|name| name.contains('.') && !is_loader(name))
        .collect();
    names.into_iter().collect()
}

/// Returns names that the host code of an image may look up and that no release registers. Such a name consists of words joined by
/// dots, and lies in a part of the file that is loaded into memory. Returns `None` for code that looks up nothing.
pub(crate) fn own_names<'a>(file: &ContainerFile<'_>, bytes: &'a [u8]) -> Option<Vec<&'a str>> {
    /// Last words of texts in this form that are file names.
    const FILES: [&str; 12] = [
        "S", "a", "c", "cc", "cold", "cpp", "cu", "h", "o", "py", "s", "so",
    ];
    let is_word = |word: &str| {
        let mut letters = word.bytes();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    };
    let is_name = |text: &&str| {
        let last = text.rsplit('.').next();
        text.contains('.')
            && text.split('.').all(is_word)
            && !text.contains(".so.")
            && last.is_some_and(|last| !FILES.contains(&last))
            && !FUNCTIONS.contains_key(text)
    };
    let texts = host_texts(file, bytes)?;
    // Symbols and debug information are not loaded. A file that cannot be parsed is searched completely.
    let image = object::File::parse(bytes).ok();
    let loaded = image.map(|image| {
        let segments = image.segments();
        let ranges: Vec<_> = segments.map(|segment| segment.file_range()).collect();
        ranges
    });
    let is_loaded = |at: u64| {
        loaded.as_ref().is_none_or(|ranges| {
            let mut ranges = ranges.iter();
            ranges.any(|(start, size)| (*start..start.saturating_add(*size)).contains(&at))
        })
    };
    let names = texts.into_iter().filter(|(at, _)| is_loaded(*at));
    let names: BTreeSet<&str> = names.map(|(_, text)| text).filter(is_name).collect();
    Some(names.into_iter().collect())
}

/// Returns the texts in the host code of an image, each with its offset, except the names of the image's functions. Returns `None` for
/// code that looks up no function by name.
///
/// The library binaries in the image are left out. A file with more than `SEARCHED` bytes is not searched.
fn host_texts<'a>(file: &ContainerFile<'_>, bytes: &'a [u8]) -> Option<Vec<(u64, &'a str)>> {
    const SEARCHED: usize = 64 << 20;
    let looks_up = |part: &ContainerPart<'_>| {
        part.symbols.iter().any(|symbol| match &symbol.role {
            Role::Slot(api) | Role::Needs(api) => LOOKUPS.contains(&&**api),
            _ => false,
        })
    };
    if bytes.len() > SEARCHED || !is_image(file.form) || !file.parts.iter().any(looks_up) {
        return None;
    }
    let blobs = file.parts.iter().flat_map(|part| &part.blobs);
    let inside: Vec<(usize, usize)> = blobs
        .filter_map(|blob| {
            let start = usize::try_from(blob.offset?).ok()?;
            Some((start, start.saturating_add(blob.bytes.len())))
        })
        .collect();
    let own: HashSet<&str> = file
        .parts
        .iter()
        .flat_map(|part| part.functions())
        .collect();
    let mut at = 0_usize;
    // A text in C ends with a NUL. The bytes before it are another text or padding.
    let texts = bytes.split(|byte| *byte == 0).filter_map(|text| {
        let start = at;
        at = at.saturating_add(text.len()).saturating_add(1);
        let is_inside = inside
            .iter()
            .any(|(from, to)| (*from..*to).contains(&start));
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|text| text.len() > 2)?;
        let start = u64::try_from(start).ok()?;
        (!is_inside && !own.contains(text)).then_some((start, text))
    });
    Some(texts.collect())
}

/// The functions with which host code looks up other functions.
const LOOKUPS: [&str; 4] = [
    "TVMBackendGetFuncFromEnv",
    "TVMFuncGetGlobal",
    "TVMFFIFunctionGetGlobal",
    "TVMFFIEnvModLookupFromImports",
];

/// Describes which optional parts of TVM register the names of [`in_host_code`]. Returns `None` if every runtime has all of them.
pub(super) fn brought_beside(names: &[&str]) -> Option<String> {
    let parts = names.iter().filter_map(|name| {
        let rows = FUNCTIONS.get(name)?;
        let last = rows.last()?;
        let is_usual = rows.iter().any(|row| row.is_usual());
        (!is_usual).then(|| with_options(name, *last))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Its host code names {}: in a runtime without it the first call of it fails.",
            listed(parts.into_iter())
        )
    })
}

/// Describes a function and the build options that add it.
fn with_options(name: &str, row: FunctionRow) -> String {
    format!(
        "`{name}` (of a runtime built with {})",
        row.options_in_words()
    )
}

/// Returns the verdict of `release` on the names of [`in_host_code`]. Returns `None` if the release registers all of them.
pub(super) fn judge_host_code(names: &[&str], release: Release) -> Option<Load> {
    let absent = names.iter().filter_map(|name| {
        let rows = FUNCTIONS.get(name)?;
        let is_in = rows.iter().any(|row| row.is_in(release));
        (!is_in).then(|| format!("`{name}` ({})", since(&releases(rows))))
    });
    let absent: Vec<String> = absent.collect();
    (!absent.is_empty()).then(|| {
        Load::silent(format!(
            "its host code names {}, which this release does not register: the first call of it fails",
            listed(absent.into_iter())
        ))
    })
}

impl Calls {
    /// Removes the functions in `has`.
    fn remove_functions(&mut self, has: &HashSet<&str>) {
        self.own.retain(|name| !has.contains(name.as_str()));
        self.global.retain(|name| !has.contains(name.as_str()));
    }

    /// Returns the verdict on the first use in `release`; `None` if every name is found.
    pub(super) fn judge(&self, release: Release) -> Option<Load> {
        let user = self.user;
        if !self.own.is_empty() {
            let names = listed(self.own.iter().map(|name| format!("`{name}`")));
            return Some(Load::fails(format!(
                "it opens it, and {user} fails: the library has no function {names}"
            )));
        }
        let (mut absent, mut foreign) = (Vec::new(), Vec::new());
        for name in &self.global {
            let Some(rows) = FUNCTIONS.get(name.as_str()) else {
                foreign.push(format!("`{name}`"));
                continue;
            };
            match rows.iter().find(|row| row.is_in(release)) {
                None => absent.push(format!("`{name}` ({})", since(&releases(rows)))),
                Some(row) if row.is_usual() => {}
                Some(row) => foreign.push(with_options(name, *row)),
            }
        }
        if !absent.is_empty() {
            let names = listed(absent.into_iter());
            let others = if foreign.is_empty() {
                String::new()
            } else {
                format!("; it also needs {}", listed(foreign.into_iter()))
            };
            return Some(Load::fails(format!(
                "it opens it, and {user} fails: this release does not register {names}{others}"
            )));
        }
        (!foreign.is_empty()).then(|| {
            Load::unknown(format!(
                "it opens it, and {user} fails unless something registers {} first",
                listed(foreign.into_iter())
            ))
        })
    }
}

/// Lists the first few names, and counts the others.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown: Vec<String> = names.take(LISTED).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
