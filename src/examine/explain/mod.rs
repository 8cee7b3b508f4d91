//! Explanation why a file loads or does not load in each release (`spec/schema/explain.json`).
//!
//! The verdict of every release is computed ([`loading`]) from the layout, the symbols and the payloads. There is no table of known
//! files.

mod account;
mod advice;
mod broken_container;
mod cache;
mod called_functions;
mod code_without_blob;
mod export_macros;
mod headers;
mod library;
mod linked_image;
mod objects;
mod package;
mod registrar;
mod unread_members;

pub use account::{Account, Need};
pub use advice::{advice, foreign_code};
use broken_container::explain_broken_container;
pub use called_functions::hold_to_library;
pub(crate) use called_functions::own_names;
pub(crate) use linked_image::cpp_interface;
pub use linked_image::{MachineFindings, is_image};
pub use package::{Package, PackageKind};
pub(crate) use registrar::registering_part as registered_by;

use super::loading::{self, Load, LoadCause, LoadOutcome, tensor_types};
use super::subject::Assembled;
use super::{Format, NotExaminable, Subject, Unit};
use crate::blob::container::{ContainerFile, ContainerPart, FileForm};
use crate::payload;
use crate::payload::file::{FileFormat, SideFile};
use crate::release::{Release, Releases};
use crate::rule::{Detail, Finding, Findings, Kind, Violation};
use crate::tensor::{Params, Sizing, TensorRecord};
use crate::wire::Cursor;
use account::{loads, refine};
use advice::{is_codeless, is_linked, mixed_machines};
use linked_image::LinkedImage;

impl Subject<'_> {
    /// Explains how the loader of every release treats the file. The result states whether the file loads, the needs of its modules,
    /// and the cases of silent failure. Returns one account for each library binary or other content of the file, and at least one. A
    /// release loads the file if every account says so, and if none has a reason in [`Account::raw`].
    ///
    /// A broken file is judged by the checks of each loader. For an image, only the machine, the needed libraries, the symbols and the
    /// library binary are read. Other headers and tables, instructions and data are not. No library of this machine is searched: the
    /// caller fills [`Account::here`].
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has a form that TVM loads.
    pub fn explain(&self) -> Result<Vec<Account>, NotExaminable> {
        self.explain_for(None)
    }

    /// Like [`Subject::explain`], for one release; `None` for all of them.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::explain`].
    pub fn explain_for(&self, only: Option<Release>) -> Result<Vec<Account>, NotExaminable> {
        if let Some(broken) = &self.broken {
            return Ok(vec![explain_broken_container(
                self.name, self.bytes, broken, only,
            )]);
        }
        let file = &self.file;
        let units = self.units();
        // Read once for the whole file: an image is one part, and its symbols belong to every library binary in it.
        let linked = LinkedImage::read(file, self.bytes);
        // The members of an archive are linked into one library, so that one member may have the functions that another lacks.
        // The members of a fat Mach-O file are not linked: each is a whole library for another machine.
        if file.form == FileForm::WasmModule {
            let mut account = code_without_blob::web_module(self, &linked, only);
            account.raw = advice(file);
            return Ok(vec![account]);
        }
        let joined = file.form.is_archive() && file.form != FileForm::MachOFat;
        let whole = joined.then(|| join(file));
        let is_joined = |part: &ContainerPart<'_>| joined && is_linked(part);
        // All code of the library is present in an image, and in an archive that contains only objects.
        let mut forms = file.parts.iter().map(|part| part.form);
        let is_whole = is_image(file.form) || joined && forms.all(FileForm::is_object);
        let mut accounts = Vec::new();
        for unit in &units {
            let own = file.parts.get(unit.part);
            let part = match own {
                Some(own) if is_joined(own) => whole.as_ref(),
                own => own,
            };
            let account = match (part, &unit.format) {
                (Some(part), Format::Library { .. }) => {
                    library::library(unit, part, is_whole, &linked, only)
                }
                _ => data(unit, self.module.as_ref(), only),
            };
            accounts.push(account);
        }
        let alone = file.parts.iter().filter(|part| !is_joined(part));
        for part in whole.iter().chain(alone) {
            if linked.is_runtime() && !part.is_compiled() {
                continue;
            }
            accounts.extend(code_without_blob::explain_code_without_blob(
                self, part, &linked, only,
            ));
        }
        if linked.is_runtime() && accounts.is_empty() {
            accounts.push(library::runtime(self, &linked, only));
        }
        // No loader finds anything in the file. A function of TVM may still read it.
        if accounts.is_empty() {
            accounts.push(report_other_file(self, &linked, only)?);
        }
        let raw = raw(file);
        let mixed = mixed_machines(file);
        let named = called_functions::in_host_code(file, self.bytes);
        let brought_beside = called_functions::brought_beside(&named);
        let doubled = self.json().and_then(|read| doubled(&read.findings));
        let is_own = |part: &ContainerPart<'_>| {
            is_linked(part) && part.form.is_object() && part.is_compiled()
        };
        let found_alone = !linked.is_system_library()
            && file.parts.iter().any(is_own)
            && !file.parts.iter().any(|part| is_image(part.form))
            && Package::recognize(file).is_none();
        let is_web = file
            .parts
            .iter()
            .any(|part| part.form == FileForm::WasmObject);
        for account in &mut accounts {
            refine(&mut account.loads, |release, load| match load.outcome {
                LoadOutcome::Loads => {
                    called_functions::judge_host_code(&named, release).or_else(|| doubled.clone())
                }
                _ => None,
            });
            account.remarks.extend(brought_beside.clone());
            if found_alone {
                account.remarks.push("It is no system library: nothing in it registers its functions, and `SystemLib()` does not find them in a program that it is linked into. Build it as one: with the attribute `system_lib_prefix` of the module from 0.13 on (an empty text is no prefix), with `--system-lib` in the target before.".into());
            }
            if found_alone && is_web {
                refine(&mut account.loads, |_, _| {
                    Some(Load::silent(
                        "tvmjs instantiates the module that is linked from it, but finds none of its functions, because it looks only in the system library",
                    ))
                });
            }
            account.raw.clone_from(&raw);
            account.looked_at = linked.looked_at();
            if let Some(mixed) = &mixed {
                account.loads = loads(only, |_| Load::fails(mixed.clone()));
            } else {
                unread_members::withdraw_verdicts(file, account);
                headers::judge(file, account);
            }
        }
        Ok(accounts)
    }
}

/// Returns the [`advice`], and a sentence that the account is about the result of following it.
fn raw(file: &ContainerFile<'_>) -> Option<String> {
    advice(file)
        .map(|advice| format!("{advice} The rest of this report is about the linked result."))
}

/// Joins the members of an archive into one part, like the library that a linker creates from them.
///
/// It has the library binaries and symbols of all objects and sources, in the order of the members. Members of another form, such as a
/// list of names, are not linked. An archive without objects becomes an empty part.
fn join<'a>(file: &ContainerFile<'a>) -> ContainerPart<'a> {
    let mut whole = ContainerPart {
        member: String::new(),
        form: file.form,
        machine: None,
        blobs: Vec::new(),
        symbols: Vec::new(),
        convention: None,
        headers: Vec::new(),
    };
    for part in file.parts.iter().filter(|part| is_linked(part)) {
        // The joined part takes the form of its objects, not that of the archive, so that it counts as code.
        if part.form.is_object() || !whole.form.is_object() {
            whole.form = part.form;
        }
        whole.blobs.extend(part.blobs.iter().cloned());
        whole.symbols.extend(part.symbols.iter().cloned());
        let conventions = whole.convention.into_iter().chain(part.convention);
        whole.convention = conventions.reduce(Releases::common);
    }
    whole
}

/// Reports a file of one format: parameters, a tensor, an executable. The report has no needs and nothing about this machine, because
/// no system loader opens the file.
fn data(unit: &Unit<'_>, files: Option<&Assembled>, only: Option<Release>) -> Account {
    let reading = unit.judge();
    let broken = reading.broken.or_else(|| unusable(&reading.findings));
    // A `Reading` has only fields and findings. The loaders check the value, which is therefore read a second time.
    let payload = match &unit.format {
        Format::Payload { kind, layout } => {
            let mut cursor = Cursor::new(&unit.bytes);
            payload::read(kind, *layout, &mut cursor, &mut Findings::default()).ok()
        }
        _ => None,
    };
    let side = match &unit.format {
        Format::SideFile => SideFile::read(&unit.bytes, &mut Findings::default()).ok(),
        _ => None,
    };
    let side = side.map(|side| side.rejected).unwrap_or_default();
    let mut cursor = Cursor::new(&unit.bytes);
    let types = match unit.format {
        Format::Params => Params::detect(&mut cursor, &mut Findings::default())
            .map(|(params, _)| tensor_types::of_params(&params)),
        Format::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, &mut Findings::default())
            .map(|record| tensor_types::of_record(&record)),
        _ => Ok(Vec::new()),
    };
    // An unreadable file has no types to compare.
    let types = types.unwrap_or_default();
    let doubled = match &unit.format {
        Format::Params => doubled(&reading.findings),
        _ => None,
    };
    let host = match &unit.format {
        Format::HostFile { format } => Some(loading::llvm_text::judge(format, &unit.bytes)),
        _ => None,
    };
    let load = |release: Release| {
        if let Some(judge) = &host {
            return judge(release);
        }
        // PAY-28: the loader is found by its name. PAY-25, PAY-26: older readers reject members that they do not know.
        if let (Format::ModuleFile { .. }, Some(files)) = (&unit.format, files) {
            return by_files(files, release);
        }
        match (&unit.format, &broken) {
            (Format::SideFile, _) if release >= Release::of(24) => {
                Load::fails("it has no loader of any device module in files")
            }
            (Format::SideFile, None) => match side.iter().find(|(of, _)| of.contains(release)) {
                Some((_, why)) => Load::fails(why.clone()),
                None => Load::loads("with the code beside it"),
            },
            (Format::Payload { kind, .. }, broken) => loading::stored(
                release,
                kind,
                &unit.bytes,
                payload.as_ref(),
                broken.as_ref(),
            ),
            // PAY-61: 0.6 introduced the Relay VM, and 0.19 is the last release with it.
            (Format::RelayCode, _) if !Releases::between(6, 19).contains(release) => {
                Load::fails("it has no such executable").with_cause(LoadCause::NoLoader {
                    module: None,
                    kind: "VMExecutable".to_owned(),
                })
            }
            (Format::Params, broken) => {
                let load =
                    loading::tensor_file::params(release, &unit.bytes, &types, broken.as_ref());
                match (load.outcome, &doubled) {
                    (LoadOutcome::Loads, Some(doubled)) => doubled.clone(),
                    _ => load,
                }
            }
            (Format::Tensor, broken) => {
                loading::tensor_file::judge_tensor(release, &unit.bytes, &types, broken.as_ref())
            }
            (Format::RelayCode, broken) => {
                loading::relay_code(release, &unit.bytes, broken.as_ref())
            }
            // The readers of these files were not examined release by release, unlike those of payloads (`loading`).
            (_, Some(broken)) => Load::broken(broken),
            (_, None) => Load::loads("as a file"),
        }
    };
    let mut account = Account::new(
        format!("{}: {}", unit.name, unit.title()),
        loads(only, load),
    );
    if let Some(later) = broken.filter(|broken| broken.detail() == Some(Detail::LaterRelease)) {
        account.remarks.push(format!("It breaks a rule: {later}."));
    }
    // TEN-29, TEN-30, TEN-31: the three ways to count bytes agree for these tensors.
    if unit.format == Format::Params {
        account.remarks.push("The bytes are the same from 0.2 to 0.27 for tensors of one lane and whole bytes. Vector types are cut to one lane from 0.4 on, and up to 0.6 types below 8 bits lose their data.".into());
    }
    account
}

/// Returns the verdict of `release` on a device module in files.
fn by_files(files: &Assembled, release: Release) -> Load {
    let mut rejected = files.rejected.iter();
    match rejected.find(|(releases, _)| releases.contains(release)) {
        Some((_, why)) if files.format.loader(release).is_some() => {
            Load::fails(format!("of its side file, {why}"))
        }
        _ => by_extension(files.format, release),
    }
}

/// Returns the verdict on two members or two tensors of one name. Every release uses the last one (OBJ-28, GRF-20, TEN-44, TEN-59).
/// Returns `None` if no name occurs twice.
fn doubled(findings: &[Finding]) -> Option<Load> {
    let doubled = findings
        .iter()
        .find(|finding| finding.kind == Kind::Duplicate)?;
    Some(Load::silent(format!(
        "it takes the last of both and drops the other: {doubled}"
    )))
}

/// Returns the verdict of `release` on files of this extension: whether it has a loader.
fn by_extension(format: &FileFormat, release: Release) -> Load {
    match format.loader(release) {
        Some(loader) => Load::loads(format!("by `{loader}`")),
        None => Load::without_loader(format.kind, format.extension),
    }
}

/// Returns the violation for content that can be read but not used. It breaks a MUST, as in `verify`.
fn unusable(findings: &[Finding]) -> Option<Violation> {
    let unusable = findings.iter().find(|finding| !finding.usable)?;
    Some(unusable.to_violation())
}

/// Returns the verdict of `release` on code in which no symbol is one of TVM (BLOB-63).
fn unmarked(file: &ContainerFile<'_>, release: Release) -> Load {
    let has_functions = file
        .parts
        .iter()
        .any(|part| part.functions().next().is_some());
    if has_functions && release <= Release::of(21) {
        Load::unknown(
            "it opens it without a complaint, as a library that imports nothing, and calls any of its functions as a packed one: that is right for code of a C host that calls no runtime, and crashes for any other",
        )
    } else {
        Load::silent("it opens it without a complaint, as a library that imports nothing")
    }
}

/// Reports a file that no loader of modules opens: JSON, text, object code without symbols of TVM.
fn report_other_file(
    subject: &Subject<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Result<Account, NotExaminable> {
    let form = subject.file.form;
    if form == FileForm::TensorCache {
        return Ok(cache::cache(subject, only));
    }
    // The remaining forms have neither units nor compiled parts.
    let (remark, loads) = match form {
        FileForm::GraphJson => {
            let broken = subject.json().and_then(|reading| reading.broken);
            let graph = loading::graph_text::GraphText::read(subject.bytes, broken);
            let load = |release| graph.judge(release);
            (
                "The graph of a graph executor: `tvm.graph_runtime.create` (0.2 to 0.7) or `tvm.graph_executor.create` (0.8 to 0.19) takes it with a library and parameters. 0.20 dropped the graph executor.",
                loads(only, load),
            )
        }
        FileForm::ObjectJson => (
            "Objects as `save_json` wrote them up to 0.21. Each release reads the members and containers of its time.",
            objects::old(subject.bytes, only),
        ),
        FileForm::FfiJson => (
            "Objects as tvm-ffi writes them.",
            objects::new(subject.bytes, only),
        ),
        FileForm::CText => (
            "It has no definition that TVM's code generator for hosts writes. Other C code is not read here: compile it to see what it defines.",
            loads(only, |_| {
                Load::unknown("what this source defines was not read")
            }),
        ),
        _ if is_codeless(&subject.file) => (
            "Its members are data, which its own functions read.",
            loads(only, |_| {
                Load::fails("there is nothing in it to link, and a linker rejects the archive")
            }),
        ),
        // BLOB-63: up to 0.21 nothing marks a packed function, so that any function of the file counts as one.
        form if form.is_object() || form.is_archive() => (
            linked.unmarked(),
            loads(only, |release| {
                linked.judge(release, unmarked(&subject.file, release))
            }),
        ),
        _ => return Err(subject.not_examinable()),
    };
    let mut account = Account::new(format!("{}: {}", subject.name, form.title()), loads);
    let exports = (form == FileForm::CText).then(|| export_macros::exports(subject.bytes));
    account
        .remarks
        .push(exports.flatten().unwrap_or_else(|| remark.into()));
    Ok(account)
}
