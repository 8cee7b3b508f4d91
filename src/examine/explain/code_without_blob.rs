//! The report on compiled code without a library binary, and on code that only uses a runtime.

use super::account::{Account, loads};
use super::library::{symbol_remarks, system_library};
use super::linked_image::LinkedImage;
use super::package::Package;
use crate::blob::container::{ContainerPart, FileForm, Role};
use crate::examine::Subject;
use crate::examine::loading::{self, Load};
use crate::release::Release;

/// Reports code without a library binary. Returns one account for the file. If other system libraries in the file have a library
/// binary, returns one account for each that has none.
///
/// No loader is needed, because nothing is imported without a library binary.
pub(super) fn explain_code_without_blob(
    subject: &Subject<'_>,
    part: &ContainerPart<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Vec<Account> {
    let is_code = part.form.is_object() || part.form == FileForm::CText;
    if !is_code || part.releases().is_none() {
        return Vec::new();
    }
    let contexts = part
        .symbols
        .iter()
        .filter(|symbol| matches!(symbol.role, Role::Context(_)));
    // BLOB-51: the library binary and the context of one system library have the same prefix.
    let prefixes = contexts.map(|symbol| &*symbol.prefix).filter(|prefix| {
        !prefix.is_empty() && part.blobs.iter().all(|blob| blob.prefix != *prefix)
    });
    let prefixes: Vec<&str> = prefixes.collect();
    if prefixes.is_empty() && !part.blobs.is_empty() {
        return Vec::new();
    }
    let name = subject.part_name(part);
    if part.blobs.is_empty() && uses_only(part) {
        // C source that no code generator wrote is not read, and may define anything.
        if part.form == FileForm::CText {
            return Vec::new();
        }
        return vec![user(&name, part, linked, only)];
    }
    let one = |prefix: &str| {
        let title = match (prefix, prefixes.len()) {
            ("", _) | (_, 0..=1) if part.blobs.is_empty() => {
                format!("{name}: {}, no library binary", part.form.title())
            }
            _ => format!("{name}: system library `{prefix}`, no library binary"),
        };
        let load = |release| linked.judge(release, loading::judge_without_blob(part, release));
        Account {
            remarks: remarks(subject, part, prefix, linked),
            ..Account::new(title, loads(only, load))
        }
    };
    match prefixes.as_slice() {
        [] => vec![one("")],
        prefixes => prefixes.iter().map(|prefix| one(prefix)).collect(),
    }
}

/// Returns whether the code calls a runtime but contains nothing that a loader finds, as an extension or a program does.
fn uses_only(part: &ContainerPart<'_>) -> bool {
    // BLOB-62: from 0.22 on, no function without the prefix is found.
    let is_new = part
        .releases()
        .is_some_and(|releases| releases.since >= Release::of(22));
    !part.is_compiled()
        && part.convention.is_none()
        && (is_new || part.functions().next().is_none())
}

/// Reports code that only uses a runtime.
fn user(
    name: &str,
    part: &ContainerPart<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Account {
    let (does, how) = if linked.registers() {
        (
            "registers functions with a TVM runtime",
            "for what it registers: it exports no packed function",
        )
    } else {
        ("calls a TVM runtime", "and finds no packed function in it")
    };
    let title = format!("{name}: {} that {does}", part.form.title());
    let load = |release| linked.judge(release, Load::loads(how));
    let mut account = Account::new(title, loads(only, load));
    account.remarks.push(format!(
        "It is not what a code generator of TVM writes: it {does}, and no symbol in it is one that a loader looks for. {}",
        if linked.registers() {
            "Once it is opened, its functions are found by the names that it registers (`tvm.get_global_func`), and a module of it has none. A name that is registered already makes registering it fail, unless it overrides it."
        } else {
            "A module of it has no functions."
        }
    ));
    account.remarks.extend(linked.remark());
    account
}

/// Returns the remarks for the user.
fn remarks(
    subject: &Subject<'_>,
    part: &ContainerPart<'_>,
    prefix: &str,
    linked: &LinkedImage<'_>,
) -> Vec<String> {
    let mut remarks = vec![
        "Without a library binary no module is imported: every function must be host code. That is how a host-only library of 0.2 to 0.27 looks when its root imports nothing."
            .to_owned(),
    ];
    // The advice for a package stands first and already mentions its content.
    if Package::recognize(&subject.file).is_none() {
        remarks.extend(operators(part));
    }
    remarks.extend(system_library(part, prefix, linked));
    remarks.extend(symbol_remarks(part));
    // MOD-02, MOD-03: both eras export functions under their own names, and without slots nothing shows the convention.
    if loading::is_ambiguous(part) {
        remarks.push("0.21 changed how packed functions are called, and no symbol in this file states which convention its functions follow: a runtime of the other era calls them and they crash, or return nonsense. Ask who built it.".into());
    }
    remarks.extend(linked.runtime_remark());
    remarks.extend(linked.remark());
    remarks
}

/// Reports a linked WebAssembly module, which native runtimes cannot open.
pub(super) fn web_module(
    subject: &Subject<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Account {
    let what = if linked.is_runtime() {
        ", with a TVM runtime"
    } else {
        ""
    };
    let title = format!("{}: {}{what}", subject.name, subject.file.form.title());
    let load = |_| Load::fails("a native runtime opens no WebAssembly");
    let mut account = Account::new(title, loads(only, load));
    account.remarks.push("What a linked module still shows is what it exports and imports, and the names of functions that were not stripped: library binaries lie in its data, and no symbol says where. Run `tvmspec explain` on the object files that it was linked of.".into());
    account.remarks.extend(linked.remark());
    account
}

/// Explains how to run a model for which `part` contains only the operators, as tvmc packs them. Returns `None` for other code.
fn operators(part: &ContainerPart<'_>) -> Option<String> {
    let main = part
        .functions()
        .find(|name| name.ends_with("___tvm_main__"));
    if let Some(main) = main {
        return Some(format!(
            "It is a model of the ahead-of-time executor without its factory, and has no function `default`: `{main}` takes the inputs and outputs (`tvmspec call FILE {main} ...`)."
        ));
    }
    let mut functions = part.functions();
    functions.any(|name| name.starts_with("tvmgen_")).then(|| {
        "Its functions are the operators of a graph, and it has no function `default`: it runs with the graph and the parameters that were built with it, `tvmspec run --graph mod.json --params mod.params --lib FILE`.".to_owned()
    })
}
