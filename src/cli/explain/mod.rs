//! `tvmspec explain FILE`: why it loads, or why it does not.
//!
//! What each release does is computed for every release ([`verdict`]) from the layout, the symbols and the payloads;
//! nothing is looked up by file.

mod objects;
mod registrar;
pub(crate) mod verdict;

use super::convert::broken_input;
use super::input::Input;
use super::subject::{Format, Unit};
use super::table::wrap;
use super::{Error, Exit, output, subject};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use tvmspec::blob::container::{File, Form, Part, Role};
use tvmspec::blob::{LIBRARY, Partial};
use tvmspec::payload::{self, Payload};
use tvmspec::release::{Layout, Release, Releases};
use tvmspec::rule::Findings;
use verdict::{Library, Load};

/// Says for every release whether it reads the file, what it needs to, and where it fails without a word.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file, or - for stdin
    file: PathBuf,
    /// Only this release
    #[arg(long, value_name = "R")]
    release: Option<Release>,
    /// Read library binaries in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is said about one library binary, or about a part without one.
struct Account {
    title: String,
    /// Consecutive releases of which the same is true.
    loads: Vec<(Releases, Load)>,
    /// What each module needs.
    needs: Vec<Need>,
    /// What a user should know besides.
    remarks: Vec<String>,
}

struct Need {
    module: usize,
    kind: String,
    about: String,
    loaders: Vec<(Releases, String)>,
    registered_by: String,
    renamed: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let file = subject::open(&input).map_err(|broken| broken_input(&input, &broken))?;
    let units = subject::units(&input, &file, args.layout);
    // The members of an archive are linked into one library: what one lacks another may have.
    let linked = file.form.is_archive() && file.form != Form::MachOFat;
    let whole = linked.then(|| link(&file));
    let mut accounts = Vec::new();
    for unit in &units {
        let part = whole.as_ref().unwrap_or(&file.parts[unit.part]);
        accounts.push(match unit.format {
            Format::Library { .. } => library(unit, part, args.release),
            _ => data(unit, args.release),
        });
    }
    let parts = match &whole {
        Some(whole) => std::slice::from_ref(whole),
        None => file.parts.as_slice(),
    };
    for part in parts.iter().filter(|part| is_bare(part)) {
        accounts.push(bare(&input, part, args.release));
    }
    if accounts.is_empty() {
        accounts.push(other(&input, &file, args.release)?);
    }
    if args.json {
        let value: Vec<Value> = accounts.iter().map(Account::to_json).collect();
        output::json(&Value::from(value))?;
    } else {
        let text: Vec<String> = accounts.iter().map(Account::to_text).collect();
        output::show(&text.join("\n"))?;
    }
    Ok(Exit::Good)
}

/// The members of an archive as the one part that a linker makes of them.
fn link<'a>(file: &File<'a>) -> Part<'a> {
    let mut parts = file.parts.iter();
    let mut whole = Part {
        member: String::new(),
        form: file.form,
        machine: None,
        blobs: Vec::new(),
        symbols: Vec::new(),
    };
    for part in parts.by_ref().filter(|part| part.form.is_object()) {
        whole.form = part.form;
        whole.blobs.extend(part.blobs.iter().cloned());
        whole.symbols.extend(part.symbols.iter().cloned());
    }
    whole
}

/// A compiled part that speaks of TVM but has no library binary.
fn is_bare(part: &Part<'_>) -> bool {
    part.form.is_object() && part.blobs.is_empty() && part.releases().is_some()
}

fn library(unit: &Unit<'_>, part: &Part<'_>, only: Option<Release>) -> Account {
    let Format::Library { layout, symbol } = &unit.format else {
        unreachable!("the caller gives library binaries")
    };
    let Some(Partial { blob, broken, .. }) = unit.library() else {
        unreachable!("a library binary has a partial reading")
    };
    let payloads: Vec<Option<Payload<'_>>> = blob
        .modules
        .iter()
        .map(|module| {
            let decoded = module.decode(blob.layout, &mut Findings::default());
            decoded.ok().flatten()
        })
        .collect();
    let library = Library {
        layout: *layout,
        symbol: Some(symbol.as_str()).filter(|symbol| !symbol.is_empty()),
        part,
        blob: &blob,
        payloads: &payloads,
    };
    let mut remarks = remarks(&library);
    if let Some(broken) = &broken {
        remarks.insert(
            0,
            format!("It breaks a rule, and what is said here ends there: {broken}. `tvmspec verify` shows the place."),
        );
    }
    Account {
        title: format!("{}: {}, {}", unit.name, unit.title(), written_by(*layout)),
        loads: loads(only, |release| library.load(release)),
        needs: needs(&library),
        remarks,
    }
}

fn bare(input: &Input, part: &Part<'_>, only: Option<Release>) -> Account {
    let name = match part.member.as_str() {
        "" => input.name.clone(),
        member => format!("{}, member {member}", input.name),
    };
    let mut remarks = vec![
        "Without a library binary no module is imported: every function must be host code. That is how a host-only library of 0.2 to 0.27 looks when its root imports nothing."
            .to_owned(),
    ];
    remarks.extend(symbol_remarks(part));
    let both = |releases: Releases| {
        releases.contains(Release::of(20)) && releases.contains(Release::of(21))
    };
    if part.releases().is_some_and(both) {
        remarks.push("0.7 and 0.21 changed how packed functions are called, and nothing in this file says which way its functions speak: a runtime of another era calls them and they crash, or return nonsense. Ask whoever built it.".into());
    }
    Account {
        title: format!(
            "{name}: {}, no library binary",
            subject::form_name(part.form)
        ),
        loads: loads(only, |release| verdict::bare(part, release)),
        needs: Vec::new(),
        remarks,
    }
}

fn data(unit: &Unit<'_>, only: Option<Release>) -> Account {
    let broken = unit.judge().broken;
    let read = match &unit.format {
        Format::Payload { kind, .. } => payload::kind_info(kind).map(|info| info.releases()),
        _ => Some(Releases::ALL),
    };
    let load = |release: Release| {
        if let Some(broken) = &broken {
            return Load::fails(format!("it breaks a rule: {broken}"));
        }
        match (&unit.format, read) {
            (Format::Payload { .. }, Some(range)) if !range.contains(release) => {
                Load::fails("it has no such executable")
            }
            (Format::Params, _) => {
                Load::whole("by `load_param_dict` or an executor's `load_params`")
            }
            _ => Load::whole("as a file"),
        }
    };
    Account {
        title: format!("{}: {}", unit.name, unit.title()),
        loads: loads(only, load),
        needs: Vec::new(),
        remarks: match unit.format {
            Format::Params => vec![
                "The bytes are the same from 0.2 to 0.27 for tensors of one lane and whole bytes. Vector types are cut to one lane from 0.4 on, and up to 0.6 types below 8 bits lose their data."
                    .into(),
            ],
            _ => Vec::new(),
        },
    }
}

/// What is not loaded by name: JSON, text, object code without anything of TVM.
fn other(input: &Input, file: &File<'_>, only: Option<Release>) -> Result<Account, Error> {
    let (remark, loads) = match file.form {
        Form::GraphJson => (
            "The graph of a graph executor: `tvm.graph_runtime.create` (0.2 to 0.7) or `tvm.graph_executor.create` (0.8 to 0.19) takes it with a library and parameters. 0.20 dropped the graph executor.",
            vec![
                (
                    Releases::between(2, 19),
                    Load::whole("with the library that it was built with"),
                ),
                (
                    Releases::from(20),
                    Load::fails("there is no graph executor"),
                ),
            ],
        ),
        Form::ObjectJson => (
            "Objects as `save_json` wrote them up to 0.21. Each release reads the members and containers of its time.",
            objects::legacy(input.bytes(), only),
        ),
        Form::FfiJson => (
            "Objects as tvm-ffi writes them.",
            objects::ffi(input.bytes(), only),
        ),
        form if form.is_object() || form.is_archive() => (
            "It holds no TVM library: no symbol in it is one of TVM. From 0.2 on such a shared object is opened without a complaint, as a library that imports nothing; whatever functions it has are taken for packed ones up to 0.21.",
            Vec::new(),
        ),
        _ => return Err(subject::nothing(input, file)),
    };
    Ok(Account {
        title: format!("{}: {}", input.name, subject::form_name(file.form)),
        loads,
        needs: Vec::new(),
        remarks: vec![remark.into()],
    })
}

fn written_by(layout: Layout) -> String {
    let Releases { since, until } = layout.releases();
    if since == until {
        format!("written by tvm {since}")
    } else {
        format!("written by tvm {since} to {until}")
    }
}

/// What is true of each release, consecutive releases with the same taken together.
fn loads(only: Option<Release>, load: impl Fn(Release) -> Load) -> Vec<(Releases, Load)> {
    let mut all: Vec<(Releases, Load)> = Vec::new();
    for release in Release::all().filter(|release| only.is_none_or(|only| only == *release)) {
        let load = load(release);
        match all.last_mut() {
            Some((range, last)) if *last == load => range.until = release,
            _ => all.push((
                Releases {
                    since: release,
                    until: release,
                },
                load,
            )),
        }
    }
    all
}

fn needs(library: &Library<'_>) -> Vec<Need> {
    let modules = library.blob.modules.iter().enumerate();
    modules
        .filter(|(_, module)| module.kind != LIBRARY)
        .map(|(index, module)| {
            let info = payload::kind_info(&module.kind);
            let mut loaders: Vec<(Releases, String)> = Vec::new();
            for release in Release::all() {
                let Some(name) = info.and_then(|info| info.loader(release)) else {
                    continue;
                };
                match loaders.last_mut() {
                    Some((range, last))
                        if *last == name && range.until.minor() + 1 == release.minor() =>
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
                about: info.map_or("a kind of its own", |info| info.about).into(),
                loaders,
                registered_by: registrar::of(&module.kind).into(),
                renamed: renamed.or(former),
            }
        })
        .collect()
}

fn remarks(library: &Library<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let (part, blob) = (library.part, library.blob);
    let libraries = blob
        .modules
        .iter()
        .filter(|module| module.kind == LIBRARY)
        .count();
    if libraries > 1 {
        remarks.push("Several entries are `_lib`. 0.7 made a module of each; 0.8 to 0.21 refuse the file; from 0.22 on the last one counts.".into());
    }
    if libraries == 0 && blob.tree.is_some() {
        remarks.push("No entry is `_lib`: host functions of this library cannot be reached, and host code that looks for device functions finds no context (it is null up to 0.21, and left as it was from 0.22 on).".into());
    }
    if blob
        .modules
        .first()
        .is_some_and(|root| root.kind != LIBRARY)
        && libraries > 0
        && blob.tree.is_some()
    {
        remarks.push(format!(
            "The root is of kind `{}` and imports the host library: host functions are found with query_imports only.",
            blob.modules[0].kind
        ));
    }
    if part.form.is_object() {
        let imports = blob.modules.iter().any(|module| module.kind != LIBRARY);
        let context = part
            .symbols
            .iter()
            .any(|symbol| matches!(symbol.role, Role::Context(_)));
        let calls_out = part.symbols.iter().any(|symbol| match &symbol.role {
            Role::Slot(api) | Role::Needs(api) => {
                api == "TVMBackendGetFuncFromEnv" || api == "TVMFFIEnvModLookupFromImports"
            }
            _ => false,
        });
        if imports && calls_out && !context {
            let name = verdict::context_symbol(library.layout);
            remarks.push(format!(
                "The context symbol {name} is missing, and the host code looks functions up: it will not find those of its imports."
            ));
        }
        if part.functions().next().is_none() {
            remarks.push("No packed function is exported: all that can be called is in the imported modules.".into());
        }
    }
    if let Some(prefix) = part.prefix() {
        remarks.push(format!(
            "It is built as a system library with the prefix `{prefix}`: its objects register themselves when the program starts, and `SystemLib(\"{prefix}\")` gives the module (0.13 and later). Opened as a shared library by path, no release finds the library binary under the prefixed name, and it loads as a bare library without imports."
        ));
    }
    remarks.extend(symbol_remarks(part));
    remarks
}

/// What the symbols tell, with or without a library binary.
fn symbol_remarks(part: &Part<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let entry = part
        .symbols
        .iter()
        .find(|symbol| matches!(symbol.role, Role::Entry));
    if entry.is_some_and(|entry| entry.code) {
        remarks.push("`__tvm_main__` is a function here, as C host code of 0.8 to 0.21 has it. The loader reads its machine code as the name of the entry function and finds none: call functions by their own names.".into());
    }
    let prefixed = verdict::prefixed(part);
    let blob_is_old = part
        .blobs
        .iter()
        .any(|blob| blob.layout.is_some_and(|layout| layout < Layout::V0_22));
    if prefixed && blob_is_old {
        remarks.push("Functions carry the `__tvm_ffi_` prefix of 0.22 beside a library binary of an older layout: no release writes both.".into());
    }
    remarks
}

impl Account {
    fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if !self.loads.is_empty() {
            out.push('\n');
        }
        for (releases, load) in &self.loads {
            let range = range(*releases);
            let lines = wrap(&load.to_string(), 78);
            for (index, line) in lines.iter().enumerate() {
                let range = if index == 0 { range.as_str() } else { "" };
                let _ = writeln!(out, "  {range:<16} {line}");
            }
        }
        for need in &self.needs {
            let _ = writeln!(
                out,
                "\nmodule {} {}: {}",
                need.module, need.kind, need.about
            );
            if need.loaders.is_empty() {
                let _ = writeln!(out, "  loader           none is registered in any release");
            }
            for (releases, name) in &need.loaders {
                let _ = writeln!(out, "  {:<16} {name}", range(*releases));
            }
            let lines = wrap(&need.registered_by, 78);
            for (index, line) in lines.iter().enumerate() {
                let what = if index == 0 { "registered by" } else { "" };
                let _ = writeln!(out, "  {what:<16} {line}");
            }
            if let Some(renamed) = &need.renamed {
                let _ = writeln!(out, "  {:<16} {renamed}", "renamed");
            }
        }
        for remark in &self.remarks {
            out.push('\n');
            for line in wrap(remark, 96) {
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }

    fn to_json(&self) -> Value {
        let loads: Vec<Value> = self
            .loads
            .iter()
            .map(|(releases, load)| {
                json!({
                    "releases": releases.to_string(),
                    "outcome": load.outcome.name(),
                    "why": load.why,
                })
            })
            .collect();
        let needs: Vec<Value> = self
            .needs
            .iter()
            .map(|need| {
                let loaders: Vec<Value> = need
                    .loaders
                    .iter()
                    .map(|(releases, name)| json!({ "releases": releases.to_string(), "name": name }))
                    .collect();
                json!({
                    "module": need.module,
                    "kind": need.kind,
                    "about": need.about,
                    "loaders": loaders,
                    "registered_by": need.registered_by,
                    "renamed": need.renamed,
                })
            })
            .collect();
        json!({ "title": self.title, "loads": loads, "needs": needs, "remarks": self.remarks })
    }
}

fn range(releases: Releases) -> String {
    let Releases { since, until } = releases;
    if since == until {
        format!("tvm {since}")
    } else {
        format!("tvm {since} to {until}")
    }
}
