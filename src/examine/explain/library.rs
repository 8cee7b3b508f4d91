//! The report on a library binary, and on a TVM runtime.

use super::account::{Account, Need, loads};
use super::linked_image::LinkedImage;
use super::{called_functions, registrar, unusable};
use crate::blob::container::{ContainerPart, Role, Symbol};
use crate::blob::{BLOB_06, LibraryModule, PartialBlob, StoredModule, is_unknown_kind};
use crate::examine::loading::{self, ExaminedLibrary, Load, LoadOutcome};
use crate::examine::{Format, Subject, Unit, document};
use crate::payload::{self, PAY_54, PAY_58, Payload};
use crate::release::{Layout, Release, Releases};

/// Reports the verdict of each release on a library binary, and the needs of its modules.
///
/// `unit` is the library binary, and `part` is the code that contains it. `is_whole` states that `part` is all code of the library.
/// Modules after a broken rule are left out.
pub(super) fn library(
    unit: &Unit<'_>,
    part: &ContainerPart<'_>,
    is_whole: bool,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Account {
    let Format::Library { layout, symbol } = &unit.format else {
        unreachable!("the caller passes library binaries")
    };
    let Some(PartialBlob {
        blob,
        findings,
        broken,
    }) = unit.library()
    else {
        unreachable!("a library binary has a partial reading")
    };
    // TEN-35: a tensor that can be read but not used breaks a MUST, as in `verify`.
    let broken = broken.or_else(|| unusable(findings.as_slice()));
    let payloads: Vec<Option<Payload<'_>>> = blob
        .modules
        .iter()
        // The oddities of payloads are already among those of the library binary.
        .map(LibraryModule::decoded)
        .collect();
    let library = ExaminedLibrary {
        layout: *layout,
        symbol: Some(symbol.as_str()).filter(|symbol| !symbol.is_empty()),
        part,
        bytes: &unit.bytes,
        blob: &blob,
        broken: broken.as_ref(),
        payloads: &payloads,
    };
    let mut remarks = remarks(&library, linked);
    let is_guessed = findings
        .as_slice()
        .iter()
        .any(|finding| finding.rule == BLOB_06);
    let has_unknown_kind = is_guessed || broken.as_ref().is_some_and(is_unknown_kind);
    if let Some(unknown) = broken.as_ref().filter(|broken| is_unknown_kind(broken)) {
        remarks.insert(
            0,
            format!("Not known: {unknown}. Nothing after it was read."),
        );
    } else if let Some(broken) = &broken {
        // Inserted first, because the remarks after it do not cover the whole file.
        remarks.insert(
            0,
            format!("It breaks a rule: {broken}. `tvmspec verify` shows the place. Modules after that place are not in this report."),
        );
    }
    // If a library binary ends early, its content is not checked.
    let fault = match &broken {
        Some(_) => None,
        None => document::fault_in(&blob),
    };
    if let Some(fault) = &fault {
        remarks.insert(
            0,
            format!("It breaks a rule: {fault}. `tvmspec verify` shows the place."),
        );
    }
    remarks.extend(linked.runtime_remark());
    // PAY-58: the library loads, but its use fails.
    let told = findings.as_slice().iter();
    let told = told.filter(|finding| finding.rule == PAY_58 || finding.rule == BLOB_06);
    remarks.extend(told.take(20).map(|finding| {
        let message = finding.message.escape_debug();
        format!("Finding: {message} [{}].", finding.rule)
    }));
    remarks.extend(linked.remark());
    let title = format!("{}: {}, {}", unit.name, unit.title(), written_by(&library));
    // An object that is still to be linked may get the missing functions from other objects.
    let calls = if is_whole && broken.is_none() {
        called_functions::unresolved(&library)
    } else {
        Vec::new()
    };
    let load = |release| {
        let load = match (library.load(release), &fault) {
            (load, Some(fault)) if load.outcome == LoadOutcome::Loads => Load::unseen(fault),
            (load, _) => load,
        };
        let load = linked.judge(release, load);
        match load.outcome {
            LoadOutcome::Loads => calls
                .iter()
                .find_map(|calls| calls.judge(release))
                .unwrap_or(load),
            _ => load,
        }
    };
    Account {
        has_unknown_kind,
        needs: needs(&library),
        remarks,
        ..Account::new(title, loads(only, load))
    }
}

/// Reports the verdict of each release on a TVM runtime.
///
/// Releases open it without an error, and find no function in it that they can call.
pub(super) fn runtime(
    subject: &Subject<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Account {
    let title = format!(
        "{}: {}, a TVM runtime",
        subject.name,
        subject.file.form.title()
    );
    // MOD-01: a library without a blob is a single module, so no release reports an error.
    let load = |release| {
        let load = Load::silent(
            "it opens it as a compiled library that imports nothing, and no function in it is a packed one",
        );
        linked.judge(release, load)
    };
    let mut account = Account::new(title, loads(only, load));
    let releases = match linked.releases() {
        Some(releases) => format!(", as {} have them", describe_releases(releases)),
        None => String::new(),
    };
    account.remarks.push(format!(
        "It defines {} functions of TVM's own C interface{releases}: it is the library that loads compiled ones, not one that is loaded. Run `tvmspec explain` on what `export_library` wrote.",
        linked.defines()
    ));
    account
}

/// Describes a range of releases in words.
///
/// A range that ends at the last known release has no known end.
pub(super) fn describe_releases(Releases { since, until }: Releases) -> String {
    match until {
        _ if since == until => format!("tvm {since}"),
        Release::LAST => format!("tvm {since} and later"),
        _ => format!("tvm {since} to {until}"),
    }
}

/// Describes the releases that write a layout, in words.
///
/// The releases are those of chapter blob.
fn written_by(library: &ExaminedLibrary<'_>) -> String {
    let mut payloads = library.payloads.iter().flatten();
    let is_later_form = library.broken.is_some_and(|broken| broken.rule() == PAY_54);
    if is_later_form || payloads.any(Payload::is_later) {
        return "written by a TVM after 0.27".to_owned();
    }
    let Releases { since, until } = library.layout.releases();
    if since == until {
        format!("written by tvm {since}")
    } else {
        format!("written by tvm {since} to {until}")
    }
}

/// Returns the needs of each module that could be read, in the order of the library binary. The host library (`_lib`) has no needs.
///
/// A kind that is not in the table has no loaders here. A user's own library must register one (MOD-11).
fn needs(library: &ExaminedLibrary<'_>) -> Vec<Need> {
    let modules = library.blob.modules.iter().enumerate();
    modules
        .filter_map(|(index, module)| Some((index, module.stored()?)))
        .map(|(index, module)| {
            let info = payload::kind_info(&module.kind);
            let payload = library.payloads.get(index).and_then(Option::as_ref);
            let mut loaders: Vec<(Releases, String)> = Vec::new();
            for release in Release::all() {
                // PAY-99: only the releases of its row load a kind.
                let Some(name) = info.and_then(|info| info.loader(release)) else {
                    continue;
                };
                match loaders.last_mut() {
                    Some((range, last))
                        // Releases without a loader were skipped, so that only the next release extends the range.
                        if *last == name
                            && range.until.minor().checked_add(1) == Some(release.minor()) =>
                    {
                        range.until = release;
                    }
                    _ => loaders.push((
                        Releases {
                            since: release,
                            until: release,
                        },
                        name,
                    )),
                }
            }
            let renamed = info
                .and_then(|info| info.renamed)
                .map(|(to, since)| format!("`{}` is called `{to}` from {since} on", module.kind));
            // The table records a renaming in the row of the old name, which therefore has to be searched for the new name.
            let former = payload::kinds()
                .iter()
                .find(|other| other.renamed.is_some_and(|(to, _)| to == module.kind))
                .and_then(|other| Some((other.kind, other.renamed?.1)))
                .map(|(from, since)| {
                    format!("`{}` was called `{from}` before {since}", module.kind)
                });
            Need {
                module: index,
                kind: module.kind.to_string(),
                about: info
                    .map_or("a kind that no release has", |info| info.about)
                    .into(),
                loaders,
                registered_by: registrar::registering_part(&module.kind).into(),
                renamed: renamed.or(former),
                code: payload.map(Payload::code_needs).unwrap_or_default(),
                here: Vec::new(),
            }
        })
        .collect()
}

/// Returns remarks on oddities that cause no error.
///
/// The order is: entries (BLOB-12, BLOB-13), root, symbols of the host code, prefix (BLOB-51).
fn remarks(library: &ExaminedLibrary<'_>, linked: &LinkedImage<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let (part, blob) = (library.part, library.blob);
    let own = part
        .blobs
        .iter()
        .find(|own| Some(&*own.symbol) == library.symbol);
    let prefix = own.map_or("", |own| own.prefix.as_str());
    let libraries = blob
        .modules
        .iter()
        .filter(|module| module.is_host())
        .count();
    // BLOB-12, TREE-26.
    if libraries > 1 {
        remarks.push("Several entries are `_lib`. 0.7 made a module of each; 0.8 to 0.21 reject the file; from 0.22 on the last one counts.".into());
    }
    // BLOB-13, MOD-06.
    if libraries == 0 && blob.tree.is_some() {
        remarks.push("No entry is `_lib`: host functions of this library cannot be reached, and host code that looks for device functions finds no context (it is null up to 0.21, and left as it was from 0.22 on).".into());
    }
    let root = blob.modules.first().and_then(LibraryModule::stored);
    // TREE-22: device modules that import the host code are stored first, so one of them can be module 0.
    if let Some(StoredModule { kind: root, .. }) = root
        && libraries > 0
        && blob.tree.is_some()
    {
        remarks.push(format!(
            "The root is of kind `{root}` and imports the host library: host functions are found with query_imports only."
        ));
    }
    // Only for code: C source and raw blobs have no symbols to check.
    if part.form.is_object() {
        let imports = blob.modules.iter().any(|module| !module.is_host());
        let context = part
            .symbols
            .iter()
            .any(|symbol| matches!(symbol.role, Role::Context(_)) && symbol.prefix == prefix);
        // BLOB-65: code from LLVM has a slot for the look-up; code from a C host needs the function as a symbol.
        let calls_out = part.symbols.iter().any(|symbol| match &symbol.role {
            Role::Slot(api) | Role::Needs(api) => {
                api == "TVMBackendGetFuncFromEnv" || api == "TVMFFIEnvModLookupFromImports"
            }
            _ => false,
        });
        // MOD-06, MOD-13: the context is the module whose imports are searched. A loader can set it only by this symbol.
        if imports && calls_out && !context {
            let name = loading::context_symbol(library.layout);
            remarks.push(format!(
                "The context symbol {name} is missing, and the host code looks functions up: it will not find those of its imports."
            ));
        }
        if !part
            .symbols
            .iter()
            .any(|symbol| is_of(symbol, prefix, part))
        {
            remarks.push("No packed function is exported: all that can be called is in the imported modules.".into());
        }
    }
    remarks.extend(system_library(part, prefix, linked));
    remarks.extend(symbol_remarks(part));
    remarks
}

/// Returns remarks on symbols, with or without a library binary.
///
/// They are about names whose meaning changed with a release (BLOB-62 to BLOB-64, MOD-04).
pub(super) fn symbol_remarks(part: &ContainerPart<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let entry = part
        .symbols
        .iter()
        .find(|symbol| matches!(symbol.role, Role::Entry));
    // BLOB-64, MOD-04.
    if entry.is_some_and(|entry| entry.code) {
        remarks.push("`__tvm_main__` is a function here, as C host code of 0.8 to 0.21 has it. The loader reads its machine code as the name of the entry function and finds none: call functions by their own names.".into());
    }
    // BLOB-62, BLOB-63.
    let prefixed = loading::prefixed(part);
    // BLOB-50: loaders determine the layout from the symbol. A raw blob has no symbol and mixes nothing.
    let blob_is_old = part
        .blobs
        .iter()
        .any(|blob| blob.layout.is_some_and(|layout| layout < Layout::V0_22));
    if prefixed && blob_is_old {
        remarks.push("Functions carry the `__tvm_ffi_` prefix of 0.22 beside a library binary of an older layout: no release writes both.".into());
    }
    remarks
}

/// Returns whether `symbol` is a packed function of the library with this prefix. If a file has several libraries, each has the
/// functions that begin with its prefix.
fn is_of(symbol: &Symbol<'_>, prefix: &str, part: &ContainerPart<'_>) -> bool {
    let Role::Function(name) = &symbol.role else {
        return false;
    };
    let mut others = part.blobs.iter().map(|blob| blob.prefix.as_str());
    let is_other = others.any(|other| other.len() > prefix.len() && name.starts_with(other));
    name.starts_with(prefix) && !is_other
}

/// Explains how to find a system library that `part` has under `prefix`; `None` for any other code.
pub(super) fn system_library(
    part: &ContainerPart<'_>,
    prefix: &str,
    linked: &LinkedImage<'_>,
) -> Option<String> {
    // BLOB-51: the loader of files knows no prefixes.
    if !prefix.is_empty() {
        let lost = if part.blobs.iter().any(|blob| blob.prefix == prefix) {
            "no release finds the library binary under the prefixed name, and it loads as a bare library without imports"
        } else {
            "no release finds the context under the prefixed name, and functions that look others up fail"
        };
        let several = part.blobs.iter().any(|blob| blob.prefix != prefix);
        let several = if several {
            " The file also holds other libraries, each under a different name."
        } else {
            ""
        };
        return Some(format!(
            "It is built as a system library with the prefix `{prefix}`: its objects register themselves when the program starts, and `SystemLib(\"{prefix}\")` returns the module (0.13 and later). Opened as a shared library by path, {lost}.{several}"
        ));
    }
    linked.is_system_library().then(|| "It is built as a system library without a prefix: its objects register themselves when the program starts, and `SystemLib()` returns the module. Of several such libraries in one program the functions are one set, in which a name can be there once.".into())
}
