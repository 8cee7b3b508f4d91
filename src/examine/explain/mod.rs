//! Why a file loads in a release, or why it does not (`spec/schema/explain.json`).
//!
//! What each release does is computed for every release ([`loading`]) from the layout, the symbols and the payloads; nothing is
//! looked up by file.

mod account;
mod cache;
mod damaged;
mod library;
mod linked;
mod objects;
mod registrar;

pub use account::{Account, Need};
pub use damaged::damaged;
pub use linked::{MachineFindings, is_image};

use super::loading::{self, Load};
use super::subject::Assembled;
use super::{Format, NotExaminable, Subject, Unit};
use crate::blob::container::{File, FileForm, Part};
use crate::payload;
use crate::payload::file::{FileFormat, SideFile};
use crate::release::{Release, Releases};
use crate::rule::{Finding, Findings, Violation};
use crate::wire::Cursor;
use account::loads;
use linked::LinkedImage;

/// Says for every release, or for `only` one, whether it reads the file, what it needs to, and where it fails without a word. One
/// account for each library binary or other thing in the file.
///
/// A broken file is judged by what the loader of each release looks at. Of an image the machine, the needed libraries, the symbols
/// and the library binary are read. Its other headers and tables are not judged, nor are instructions and data. No library of any
/// machine is looked for: the caller fills [`Account::here`].
///
/// # Errors
///
/// Nothing in the file is of a form that TVM loads.
pub fn explain(
    subject: &Subject<'_>,
    only: Option<Release>,
) -> Result<Vec<Account>, NotExaminable> {
    let file = &subject.file;
    let units = subject.units();
    // Once for the whole file: an image is one part, and its symbols are those of every library binary in it.
    let linked = LinkedImage::of(file, subject.bytes);
    // The members of an archive are linked into one library: what one lacks another may have.
    // A fat Mach-O is no such archive: each of its members is a whole library for another machine.
    let joined = file.form.is_archive() && file.form != FileForm::MachOFat;
    let whole = joined.then(|| join(file));
    let mut accounts = Vec::new();
    for unit in &units {
        let own = file.parts.get(unit.part);
        let account = match (whole.as_ref().or(own), &unit.format) {
            (Some(part), Format::Library { .. }) => library::library(unit, part, &linked, only),
            _ => data(unit, subject.module.as_ref(), only),
        };
        accounts.push(account);
    }
    let parts = match &whole {
        Some(whole) => std::slice::from_ref(whole),
        None => file.parts.as_slice(),
    };
    if linked.is_runtime() {
        accounts.push(library::runtime(subject, &linked, only));
    } else {
        for part in parts.iter().filter(|part| is_bare(part)) {
            accounts.push(library::bare(subject, part, &linked, only));
        }
    }
    // Nothing in it has a loader's name: it may still be something that a function of TVM reads.
    if accounts.is_empty() {
        accounts.push(other(subject, &linked, only)?);
    }
    for account in &mut accounts {
        account.raw = raw(file.form);
        account.looked_at = linked.looked_at();
    }
    Ok(accounts)
}

/// Why no release opens a file of this form as it is, and what to do.
///
/// `None` for what is opened as it is.
fn raw(form: FileForm) -> Option<&'static str> {
    Some(match form {
        FileForm::ElfObject | FileForm::MachOObject | FileForm::CoffObject => {
            "it is an object file. Link it into a library first: `cc -shared -o lib.so FILE.o`. (Python's `load_module` does that itself for a name that ends in .o, and needs a compiler for it.) What follows is about that library."
        }
        FileForm::Archive => {
            "it is a static archive. Link it into a library first: `cc -shared -o lib.so -Wl,--whole-archive FILE.a -Wl,--no-whole-archive`. What follows is about that library."
        }
        FileForm::Tar | FileForm::GzipTar => {
            "it is an archive of object files or sources. Unpack it and link what is in it into a library first: `tar -xf FILE.tar` in an empty folder, then `cc -shared -fPIC -o lib.so` with every member. (Python's `load_module` does that itself for a name that ends in .tar, and needs a compiler for it.) What follows is about that library."
        }
        FileForm::CText => {
            "it is source text. Compile and link it, with the host code that belongs to it: `cc -shared -fPIC -o lib.so FILE.c`. What follows is about that library."
        }
        FileForm::ElfExecutable | FileForm::MachOExecutable | FileForm::PeExecutable => {
            "it is an executable, and the loader of the system opens libraries only. Link the same objects with `-shared`."
        }
        _ => return None,
    })
}

/// The members of an archive as the one part that a linker makes of them.
///
/// It has the library binaries and symbols of all objects, in the order of the members. Members of another form, as a list of names, are
/// not linked. An archive without objects is a part without anything.
fn join<'a>(file: &File<'a>) -> Part<'a> {
    let mut parts = file.parts.iter();
    let mut whole = Part {
        member: String::new(),
        form: file.form,
        machine: None,
        blobs: Vec::new(),
        symbols: Vec::new(),
    };
    for part in parts.by_ref().filter(|part| part.form.is_object()) {
        // The joined part counts as code by its form, which is that of its objects and not that of the archive.
        whole.form = part.form;
        whole.blobs.extend(part.blobs.iter().cloned());
        whole.symbols.extend(part.symbols.iter().cloned());
    }
    whole
}

/// Whether this is a compiled part that has symbols of TVM but no library binary.
fn is_bare(part: &Part<'_>) -> bool {
    part.form.is_object() && part.blobs.is_empty() && part.releases().is_some()
}

/// The account of a file of one format: parameters, a tensor, an executable. It says nothing of needs or of this machine: no system's
/// loader opens it.
fn data(unit: &Unit<'_>, files: Option<&Assembled>, only: Option<Release>) -> Account {
    let reading = unit.judge();
    let broken = reading.broken.or_else(|| unusable(&reading.findings));
    // A `Reading` keeps fields and findings only: what the loaders look at is the value, which is read once more.
    let payload = match &unit.format {
        Format::Payload { kind, layout } => {
            let mut cursor = Cursor::new(&unit.bytes);
            payload::read(kind, *layout, &mut cursor, &mut Findings::default()).ok()
        }
        _ => None,
    };
    // PAY-62: a runtime takes code of its own version only, so that the version decides for every release.
    let version = match &unit.format {
        Format::RelayCode => payload::relay_vm::RelayExecutable::read_code(
            &mut Cursor::new(&unit.bytes),
            &mut Findings::default(),
        )
        .ok()
        .map(|executable| executable.version.into_owned()),
        _ => None,
    };
    let side = match &unit.format {
        Format::SideFile => SideFile::read(&unit.bytes, &mut Findings::default()).ok(),
        _ => None,
    };
    let side = side.map(|side| side.rejected).unwrap_or_default();
    let load = |release: Release| {
        // PAY-28: by the name of its loader; PAY-25, PAY-26: readers of before take no member that they do not know.
        if let (Format::ModuleFile { .. }, Some(files)) = (&unit.format, files) {
            return by_files(files, release);
        }
        match (&unit.format, &broken) {
            (Format::HostFile { format }, _) => by_extension(format, release),
            (Format::SideFile, _) if release >= Release::of(24) => {
                Load::fails("it has no loader of any device module in files")
            }
            (Format::SideFile, None) => match side.iter().find(|(of, _)| of.contains(release)) {
                Some((_, why)) => Load::fails(why.clone()),
                None => Load::whole("with the code beside it"),
            },
            (Format::Payload { kind, .. }, broken) => loading::stored(
                release,
                kind,
                &unit.bytes,
                payload.as_ref(),
                broken.as_ref(),
            ),
            // PAY-61: the Relay VM came with 0.6 and ended with 0.19.
            (Format::RelayCode, _) if !Releases::between(6, 19).contains(release) => {
                Load::fails("it has no such executable")
            }
            // How the readers of these files fail was not read release by release, as it was for payloads (`loading`).
            (_, Some(broken)) => Load::unknown(format!("it breaks {broken}")),
            (Format::RelayCode, None) => loading::relay_code(release, version.as_deref()),
            (Format::Params, None) => {
                Load::whole("by `load_param_dict` or an executor's `load_params`")
            }
            (_, None) => Load::whole("as a file"),
        }
    };
    let mut account = Account::new(
        format!("{}: {}", unit.name, unit.title()),
        loads(only, load),
    );
    // TEN-29, TEN-30, TEN-31: the three counts of bytes agree on these tensors.
    if unit.format == Format::Params {
        account.remarks.push("The bytes are the same from 0.2 to 0.27 for tensors of one lane and whole bytes. Vector types are cut to one lane from 0.4 on, and up to 0.6 types below 8 bits lose their data.".into());
    }
    account
}

/// What `release` makes of a device module in files.
fn by_files(files: &Assembled, release: Release) -> Load {
    let mut rejected = files.rejected.iter();
    match rejected.find(|(releases, _)| releases.contains(release)) {
        Some((_, why)) if files.format.loader(release).is_some() => {
            Load::fails(format!("of its side file, {why}"))
        }
        _ => by_extension(files.format, release),
    }
}

/// Whether `release` has a loader of files of this extension.
fn by_extension(format: &FileFormat, release: Release) -> Load {
    match format.loader(release) {
        Some(loader) => Load::whole(format!("by `{loader}`")),
        None => Load::fails(format!("it has no loader of `.{}` files", format.extension)),
    }
}

/// What can be read and not be used: a MUST is broken all the same, as `verify` has it.
fn unusable(findings: &[Finding]) -> Option<Violation> {
    let unusable = findings.iter().find(|finding| !finding.usable)?;
    Some(unusable.to_violation())
}

/// The account of what is not loaded by name: JSON, text, object code without anything of TVM.
fn other(
    subject: &Subject<'_>,
    linked: &LinkedImage<'_>,
    only: Option<Release>,
) -> Result<Account, NotExaminable> {
    let form = subject.file.form;
    if form == FileForm::TensorCache {
        return Ok(cache::cache(subject, only));
    }
    // The forms that are left have neither units nor compiled parts.
    let (remark, loads) = match form {
        FileForm::GraphJson => {
            let broken = subject.json().and_then(|reading| reading.broken);
            let load = |release: Release| match &broken {
                // 0.20 has no graph executor, so that no rule of its text matters.
                _ if release >= Release::of(20) => Load::fails("there is no graph executor"),
                Some(broken) => Load::unknown(format!("it breaks {broken}")),
                None => Load::whole("with the library that it was built with"),
            };
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
        // BLOB-63: up to 0.21 nothing marks a packed function, so that any function of the file counts as one.
        form if form.is_object() || form.is_archive() => (
            "It holds no TVM library: no symbol in it is one of TVM. Whatever functions it has are taken for packed ones up to 0.21.",
            loads(only, |release| {
                let load = Load::silent(
                    "it opens it without a complaint, as a library that imports nothing",
                );
                linked.judge(release, load)
            }),
        ),
        _ => return Err(subject.nothing()),
    };
    let mut account = Account::new(format!("{}: {}", subject.name, form.title()), loads);
    account.remarks.push(remark.into());
    Ok(account)
}
