//! `tvmspec explain FILE`: why it loads, or why it does not.
//!
//! What each release does is computed for every release ([`tvmspec::examine::loading`]) from the layout, the symbols and the
//! payloads; nothing is looked up by file.

mod account;
mod damaged;
mod here;
mod library;
mod objects;
mod registrar;

use super::input::Input;
use super::subject::{Format, Unit};
use super::{Error, Exit, output, subject};
use account::{Account, loads};
use here::Linked;
use serde_json::Value;
use std::path::PathBuf;
use tvmspec::blob::container::{File, Form, Part};
use tvmspec::examine::loading::{self, Load};
use tvmspec::payload;
use tvmspec::release::{Layout, Release, Releases};
use tvmspec::rule::{Finding, Findings, Violation};
use tvmspec::wire::Cursor;

/// Says for every release whether it reads the file, what it needs to, and where it fails without a word.
///
/// A broken file is judged by what the loader of each release looks at, and the tables of an ELF library by what the dynamic
/// loader does with them; instructions are not looked at. Where it is not known what happens, it says "unknown".
/// Exit code 0. With --release 0 if that release loads the file, here or, with --elsewhere, on the machine that it is for; 1 if
/// it does not, if something of it would be missing, or if it is not known. 2: the file cannot be read.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file, or - for stdin
    file: PathBuf,
    /// Only this release; its answer is the exit code
    #[arg(long, value_name = "R")]
    release: Option<Release>,
    /// Judge for the machine that the file is for: look for none of its libraries on this one
    #[arg(long)]
    elsewhere: bool,
    /// Read library binaries in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Print JSON, as spec/schema/explain.json describes it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let mut accounts = match subject::open(&input) {
        Ok(file) => explain(&input, &file, &args)?,
        Err(broken) => vec![damaged::damaged(&input, &broken, args.release)],
    };
    if args.elsewhere {
        accounts
            .iter_mut()
            .for_each(|account| account.here = here::Here::default());
    }
    let good = accounts.iter().all(Account::is_good);
    if args.json {
        let value: Vec<Value> = accounts.iter().map(Account::to_json).collect();
        output::json(&Value::from(value))?;
    } else {
        let text: Vec<String> = accounts.iter().map(Account::to_text).collect();
        output::show(&text.join("\n"))?;
    }
    Ok(match args.release {
        Some(_) if !good => Exit::Bad,
        _ => Exit::Good,
    })
}

fn explain(input: &Input, file: &File<'_>, args: &Args) -> Result<Vec<Account>, Error> {
    let only = args.release;
    let units = subject::units(input, file, args.layout);
    let linked = Linked::of(file, input.bytes());
    // The members of an archive are linked into one library: what one lacks another may have.
    let joined = file.form.is_archive() && file.form != Form::MachOFat;
    let whole = joined.then(|| join(file));
    let mut accounts = Vec::new();
    for unit in &units {
        let part = whole.as_ref().unwrap_or(&file.parts[unit.part]);
        accounts.push(match unit.format {
            Format::Library { .. } => library::library(unit, part, &linked, only),
            _ => data(unit, only),
        });
    }
    let parts = match &whole {
        Some(whole) => std::slice::from_ref(whole),
        None => file.parts.as_slice(),
    };
    if linked.is_runtime() {
        accounts.push(library::runtime(input, file, &linked, only));
    } else {
        for part in parts.iter().filter(|part| is_bare(part)) {
            accounts.push(library::bare(input, part, &linked, only));
        }
    }
    if accounts.is_empty() {
        accounts.push(other(input, file, &linked, only)?);
    }
    let raw = raw(file.form);
    let here = here::here(file, input.bytes(), &linked, &args.file);
    for account in &mut accounts {
        account.raw = raw;
        account.looked_at = linked.looked_at();
        account.here = here.clone();
    }
    Ok(accounts)
}

/// Why no release opens a file of this form as it is, and what to do.
fn raw(form: Form) -> Option<&'static str> {
    Some(match form {
        Form::ElfObject | Form::MachOObject | Form::CoffObject => {
            "it is an object file. Link it into a library first: `cc -shared -o lib.so FILE.o`. (Python's `load_module` does that itself for a name that ends in .o, and needs a compiler for it.) What is said here is said of that library."
        }
        Form::Archive => {
            "it is a static archive. Link it into a library first: `cc -shared -o lib.so -Wl,--whole-archive FILE.a -Wl,--no-whole-archive`. What is said here is said of that library."
        }
        Form::Tar | Form::GzipTar => {
            "it is an archive of object files or sources. Unpack it and link what is in it into a library first: `tar -xf FILE.tar` in an empty folder, then `cc -shared -fPIC -o lib.so` with every member. (Python's `load_module` does that itself for a name that ends in .tar, and needs a compiler for it.) What is said here is said of that library."
        }
        Form::CText => {
            "it is source text. Compile and link it, with the host code that belongs to it: `cc -shared -fPIC -o lib.so FILE.c`. What is said here is said of that library."
        }
        Form::ElfExecutable | Form::MachOExecutable | Form::PeExecutable => {
            "it is an executable, and the loader of the system opens libraries only. Link the same objects with `-shared`."
        }
        _ => return None,
    })
}

/// The members of an archive as the one part that a linker makes of them.
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

fn data(unit: &Unit<'_>, only: Option<Release>) -> Account {
    let reading = unit.judge();
    let broken = reading.broken.or_else(|| unusable(&reading.findings));
    let payload = match &unit.format {
        Format::Payload { kind, layout } => {
            let mut cursor = Cursor::new(&unit.bytes);
            payload::read(kind, *layout, &mut cursor, &mut Findings::default()).ok()
        }
        _ => None,
    };
    let version = match &unit.format {
        Format::RelayCode => payload::relay_vm::Executable::read_code(
            &mut Cursor::new(&unit.bytes),
            &mut Findings::default(),
        )
        .ok()
        .map(|executable| executable.version.into_owned()),
        _ => None,
    };
    let load = |release: Release| match (&unit.format, &broken) {
        (Format::Payload { kind, .. }, broken) => loading::stored(
            release,
            kind,
            &unit.bytes,
            payload.as_ref(),
            broken.as_ref(),
        ),
        (Format::RelayCode, _) if !Releases::between(6, 19).contains(release) => {
            Load::fails("it has no such executable")
        }
        (_, Some(broken)) => Load::unknown(format!("it breaks {broken}")),
        (Format::RelayCode, None) => loading::relay_code(release, version.as_deref()),
        (Format::Params, None) => {
            Load::whole("by `load_param_dict` or an executor's `load_params`")
        }
        (_, None) => Load::whole("as a file"),
    };
    let mut account = Account::new(
        format!("{}: {}", unit.name, unit.title()),
        loads(only, load),
    );
    if unit.format == Format::Params {
        account.remarks.push("The bytes are the same from 0.2 to 0.27 for tensors of one lane and whole bytes. Vector types are cut to one lane from 0.4 on, and up to 0.6 types below 8 bits lose their data.".into());
    }
    account
}

/// What can be read and not be used: a MUST is broken all the same, as `verify` has it.
fn unusable(findings: &[Finding]) -> Option<Violation> {
    let must = |finding: &&Finding| {
        let text = finding.rule.text();
        text.is_some_and(|text| text.level.binds())
    };
    let Finding {
        rule,
        kind,
        offset,
        message,
    } = findings.iter().find(must)?;
    Some(rule.broken(*kind, *offset, message))
}

/// What is not loaded by name: JSON, text, object code without anything of TVM.
fn other(
    input: &Input,
    file: &File<'_>,
    linked: &Linked<'_>,
    only: Option<Release>,
) -> Result<Account, Error> {
    let (remark, loads) = match file.form {
        Form::GraphJson => {
            let broken = subject::graph(input, file.form).and_then(|reading| reading.broken);
            let load = |release: Release| match &broken {
                _ if release >= Release::of(20) => Load::fails("there is no graph executor"),
                Some(broken) => Load::unknown(format!("it breaks {broken}")),
                None => Load::whole("with the library that it was built with"),
            };
            (
                "The graph of a graph executor: `tvm.graph_runtime.create` (0.2 to 0.7) or `tvm.graph_executor.create` (0.8 to 0.19) takes it with a library and parameters. 0.20 dropped the graph executor.",
                loads(only, load),
            )
        }
        Form::ObjectJson => (
            "Objects as `save_json` wrote them up to 0.21. Each release reads the members and containers of its time.",
            objects::legacy(input.bytes(), only),
        ),
        Form::FfiJson => (
            "Objects as tvm-ffi writes them.",
            objects::ffi(input.bytes(), only),
        ),
        form if form.is_object() || form.is_archive() => (
            "It holds no TVM library: no symbol in it is one of TVM. Whatever functions it has are taken for packed ones up to 0.21.",
            loads(only, |release| {
                let load = Load::silent(
                    "it opens it without a complaint, as a library that imports nothing",
                );
                linked.judge(release, load)
            }),
        ),
        _ => return Err(subject::nothing(input, file)),
    };
    let mut account = Account::new(
        format!("{}: {}", input.name, subject::form_name(file.form)),
        loads,
    );
    account.remarks.push(remark.into());
    Ok(account)
}
