//! The names that a file needs and a runtime lacks.

use super::{PREFIXES, RegisteredNames, providers};
use crate::blob::container::{FileForm, linkage};
use crate::examine::explain::{Account, Need, cpp_interface, own_names, registered_by};
use crate::examine::loading::exported;
use crate::examine::loading::global_functions::is_loader;
use crate::examine::{Format, Subject, Unit};
use crate::payload::kinds::loader_prefix;
use crate::payload::relax_vm::{FunctionKind, RelaxExecutable};
use crate::payload::{self, Payload};
use crate::rule::Findings;
use crate::wire::Cursor;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kind of a missing name, by who needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeededName {
    /// The loader of a module. Without it the file does not load.
    Loader,
    /// A function that a virtual machine looks up when it is created.
    Builtin,
    /// A function that host code looks up when it first calls it.
    Function,
    /// A C or C++ function that host code calls.
    Symbol,
}

/// A name that a file needs and a runtime lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingName {
    /// The kind of the name.
    pub what: NeededName,
    /// The name, as a runtime registers or exports it.
    pub name: String,
    /// The module or the code that needs it.
    pub needed_by: String,
    /// The runtimes, libraries or Python modules that have it.
    pub brought_by: String,
}

impl NeededName {
    /// Returns the word for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            NeededName::Loader => "loader",
            NeededName::Builtin => "builtin",
            NeededName::Function => "function",
            NeededName::Symbol => "symbol",
        }
    }

    /// Returns the effect of its absence.
    pub const fn effect(self) -> &'static str {
        match self {
            NeededName::Loader => "loading the file fails",
            NeededName::Builtin => "making the virtual machine fails",
            NeededName::Function => "the first call that needs it fails",
            NeededName::Symbol => "opening the file fails, or the first such call ends the process",
        }
    }
}

impl MissingName {
    /// Returns the JSON form.
    pub fn to_json(&self) -> Value {
        json!({
            "what": self.what.name(),
            "name": self.name,
            "needed_by": self.needed_by,
            "without_it": self.what.effect(),
            "brought_by": self.brought_by,
        })
    }
}

/// The number of missing names to list, because a hostile file may have any number.
const MOST: usize = 256;

/// Returns texts of host code that look like function names but that neither the runtime nor any release registers. Host code may look
/// them up. Returns `None` for code that looks up nothing by name, because all its needs are known.
pub fn perhaps_missing(subject: &Subject<'_>, names: &RegisteredNames) -> Option<Vec<String>> {
    let own = own_names(&subject.file, subject.bytes)?;
    let absent = own
        .into_iter()
        .filter(|name| !names.functions.contains(*name));
    Some(absent.take(MOST).map(str::to_owned).collect())
}

/// Returns the names that the file needs and the runtime lacks: loaders, functions of virtual machines and of host code, C functions.
///
/// `accounts` is the result of [`Subject::explain`] for the file. Host code stores the names that it looks up as texts. Only texts that
/// some release registers as a name are found.
pub fn missing(
    subject: &Subject<'_>,
    accounts: &[Account],
    names: &RegisteredNames,
) -> Vec<MissingName> {
    let linkage = linkage(subject.file.form, subject.bytes);
    // A runtime provides names and needs none. A runtime that contains compiled code is also a library, and is examined.
    if linkage.is_runtime() && !subject.is_compiled() {
        return Vec::new();
    }
    let mut found = loaders(accounts, names);
    builtins(subject, names, &mut found);
    let releases = names.releases();
    let known: BTreeSet<String> = found.iter().map(|missing| missing.name.clone()).collect();
    for name in named_global_functions(subject) {
        if !names.functions.contains(name) && !known.contains(name) {
            found.push(MissingName {
                what: NeededName::Function,
                name: name.to_owned(),
                needed_by: "host code".to_owned(),
                brought_by: providers::describe_providers(name, releases),
            });
        }
    }
    for name in linkage.calls {
        if !exported(name).is_empty() && !names.exports.contains(name) {
            found.push(MissingName {
                what: NeededName::Symbol,
                name: name.to_owned(),
                needed_by: "host code".to_owned(),
                brought_by: providers::exported_by(name),
            });
        }
    }
    if let Some(cpp) = &names.cpp {
        for name in cpp_interface(subject.file.form, subject.bytes) {
            let name = String::from_utf8_lossy(name);
            if found.len() < MOST && !cpp.contains(&*name) {
                found.push(MissingName {
                    what: NeededName::Symbol,
                    name: name.into_owned(),
                    needed_by: "host code".to_owned(),
                    brought_by: "the runtime that the file was compiled against".to_owned(),
                });
            }
        }
    }
    found.truncate(MOST);
    found
}

/// Returns the missing loaders of modules.
fn loaders(accounts: &[Account], names: &RegisteredNames) -> Vec<MissingName> {
    // The registered names decide, because the release of a runtime is an estimate that may be wrong if it has few names.
    let registered = names.functions.iter().find_map(|name| {
        let mut prefixes = PREFIXES.into_iter();
        prefixes.find(|prefix| name.starts_with(prefix))
    });
    let prefix = registered.unwrap_or_else(|| loader_prefix(names.releases().until));
    let mut found = Vec::new();
    for need in accounts.iter().flat_map(|account| &account.needs) {
        let name = format!("{prefix}{}", need.kind);
        if found.len() < MOST && !names.functions.contains(&name) {
            found.push(MissingName {
                what: NeededName::Loader,
                name,
                needed_by: format!("module {} of kind {}", need.module, need.kind),
                brought_by: brought_loader(need),
            });
        }
    }
    found
}

/// Describes the libraries or options that add the loader of a module, and the releases that have a loader for this kind.
fn brought_loader(need: &Need) -> String {
    let registrar = registered_by(&need.kind);
    if need.loaders.is_empty() {
        return registrar.to_owned();
    }
    let releases = providers::in_words(need.loaders.iter().map(|(releases, _)| *releases));
    let renamed = need
        .renamed
        .as_ref()
        .map_or(String::new(), |renamed| format!("; {renamed}"));
    format!("{registrar}, in {releases}{renamed}")
}

/// Adds the functions that executables of the Relax VM call and that neither the file nor the runtime has.
fn builtins(subject: &Subject<'_>, names: &RegisteredNames, found: &mut Vec<MissingName>) {
    // PAY-84: the imports of the executable are searched first for a packed function. All code of the file counts as imports here.
    let own: BTreeSet<&str> = subject
        .file
        .parts
        .iter()
        .flat_map(|part| part.functions())
        .collect();
    let releases = names.releases();
    let mut judge = |executable: &RelaxExecutable<'_>, needed_by: &str, beside: &[&[u8]]| {
        let packed = executable
            .functions
            .iter()
            .filter(|function| function.kind == FunctionKind::Packed)
            .map(|function| &*function.name)
            .filter(|name| !names.functions.contains(*name) && !own.contains(name));
        // A module that has the function has its name in the payload.
        let absent = packed
            .take(MOST)
            .filter(|name| !beside.iter().any(|bytes| contains(bytes, name)));
        found.extend(absent.map(|name| MissingName {
            what: NeededName::Builtin,
            name: name.to_owned(),
            needed_by: needed_by.to_owned(),
            brought_by: providers::describe_providers(name, releases),
        }));
    };
    for unit in subject.units() {
        match &unit.format {
            Format::Library { .. } => of_library(&unit, &mut judge),
            Format::Payload { kind, layout } => {
                let mut cursor = Cursor::new(&unit.bytes);
                let read = payload::read(kind, *layout, &mut cursor, &mut Findings::default());
                if let Some(executable) = read.ok().as_ref().and_then(Payload::relax_vm) {
                    judge(executable, &format!("the {kind}"), &[]);
                }
            }
            _ => {}
        }
    }
}

/// Calls `judge` with each executable of a library binary and the payloads of the other modules.
fn of_library(unit: &Unit<'_>, judge: &mut impl FnMut(&RelaxExecutable<'_>, &str, &[&[u8]])) {
    let Some(partial) = unit.library() else {
        return;
    };
    let modules = &partial.blob.modules;
    for (index, module) in modules.iter().enumerate() {
        let decoded = module.decoded();
        let Some(executable) = decoded.as_ref().and_then(Payload::relax_vm) else {
            continue;
        };
        let others = modules
            .iter()
            .enumerate()
            .filter(|(other, module)| *other != index && !module.is_host());
        let beside: Vec<&[u8]> = others.filter_map(|(_, other)| other.payload()).collect();
        let needed_by = format!("module {index} of kind {}", module.kind());
        judge(executable, &needed_by, &beside);
    }
}

/// Returns whether `bytes` contains `name`.
fn contains(bytes: &[u8], name: &str) -> bool {
    !name.is_empty()
        && bytes
            .windows(name.len())
            .any(|part| part == name.as_bytes())
}

/// Returns the names of global functions among the texts of compiled code or of C source.
fn named_global_functions<'s>(subject: &'s Subject<'_>) -> Vec<&'s str> {
    let form = subject.file.form;
    // Compressed archives have no readable texts, and files without code call nothing.
    let is_code = (form.is_object() || form.is_archive() || form == FileForm::CText)
        && form != FileForm::GzipTar;
    if !is_code {
        return Vec::new();
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let words = subject.bytes.split(|byte| !is_part(byte));
    let mut found = BTreeSet::new();
    for word in words.filter(|word| word.contains(&b'.')) {
        if let Ok(word) = str::from_utf8(word)
            && providers::is_native(word)
            && !is_loader(word)
        {
            found.insert(word);
        }
    }
    found.into_iter().collect()
}
