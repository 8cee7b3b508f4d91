//! `tvmspec explain FILE`: explains why releases load it or do not.

mod devices;
mod json;
mod local_machine;
mod needed_libraries;
mod runtime;
mod text;

use super::input::{Input, examined, subject};
use super::{CliError, Exit, output};
use json::AccountJson;
use runtime::RuntimeComparison;
use serde_core::{Serialize, Serializer};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::Subject;
use tvmspec::examine::explain::{Account, foreign_code, hold_to_library};
use tvmspec::examine::loading::LoadOutcome;
use tvmspec::release::{Layout, Release};

#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    /// The file, or - for stdin
    file: PathBuf,
    /// Show only this release, and answer by the exit code
    #[arg(long, value_name = "R")]
    release: Option<Release>,
    /// Ignore the libraries and devices of this machine, because the file is for another one
    #[arg(long)]
    elsewhere: bool,
    /// The library with which a graph is run; reports functions that the graph calls and that the library lacks
    #[arg(long, value_name = "LIB")]
    lib: Option<PathBuf>,
    /// Read library binaries in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Compare the needs of the file with the names that this runtime registers; it is loaded in a separate process. Exit code 1 if its
    /// release does not load the file, or something is or may be missing; 2 if the runtime cannot be loaded
    #[arg(long, value_name = "LIB[,LIB]", conflicts_with = "release")]
    runtime: Option<String>,
    /// Time limit for loading the runtime and listing its names
    #[arg(long, value_name = "SECONDS", default_value = "30", requires = "runtime", value_parser = super::check::seconds)]
    timeout: Duration,
    /// Read modules of KIND, which no release has, by the grammar of the known kind KNOWN; a JSON runtime is recognised without it
    #[arg(long, value_name = "KIND=KNOWN")]
    grammar: Vec<String>,
    /// Print JSON, as spec/schema/explain.json describes it
    #[arg(long)]
    json: bool,
}

/// Prints which releases load each library binary of the file.
///
/// Returns [`Exit::Bad`] only with `--release` or `--runtime`, if that release certainly does not load the file, or the runtime lacks
/// something. Without these options, the report itself is the answer.
pub(crate) fn run(args: ExplainArgs) -> Result<Exit, CliError> {
    let input = Input::open(&args.file)?;
    let asked = ExplainOptions {
        layout: args.layout,
        grammar: &args.grammar,
        release: args.release,
        elsewhere: args.elsewhere,
        lib: args.lib.as_deref(),
        runtime: args.runtime.as_deref(),
        timeout: args.timeout,
    };
    let explained = explain(&input, &asked)?;
    let Explained { accounts, runtime } = &explained;
    if args.json {
        output::json(&explained)?;
    } else {
        output::stream(|out| {
            accounts
                .iter()
                .enumerate()
                .try_for_each(|(index, account)| {
                    if index > 0 {
                        out.write_char('\n')?;
                    }
                    text::text(out, account)
                })?;
            runtime.as_ref().map_or(Ok(()), |runtime| runtime.text(out))
        })?;
    }
    // Without --release or --runtime there is an answer for each release, and no single verdict.
    let good = accounts.iter().all(Account::is_good)
        && runtime.as_ref().is_none_or(RuntimeComparison::is_good);
    let is_asked = args.release.is_some() || runtime.is_some();
    let mut loads = accounts.iter().flat_map(|account| &account.loads);
    let is_certain = is_asked
        && loads.any(|(_, load)| matches!(load.outcome, LoadOutcome::Fails | LoadOutcome::Silent));
    // BLOB-06: the payload of an unknown kind is not judged.
    if accounts.iter().any(|account| account.has_unknown_kind) && !is_certain {
        return Ok(Exit::Failed);
    }
    Ok(if is_asked && !good {
        Exit::Bad
    } else {
        Exit::Good
    })
}

/// The options that decide the answer.
pub(super) struct ExplainOptions<'o> {
    pub(super) layout: Option<Layout>,
    pub(super) grammar: &'o [String],
    pub(super) release: Option<Release>,
    pub(super) elsewhere: bool,
    pub(super) lib: Option<&'o Path>,
    pub(super) runtime: Option<&'o str>,
    pub(super) timeout: Duration,
}

/// The answer: the account of each library binary of the file, and the comparison with the runtime of the options.
pub(super) struct Explained {
    accounts: Vec<Account>,
    runtime: Option<RuntimeComparison>,
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.runtime {
            Some(runtime) => {
                let accounts = self.accounts.iter().map(Account::to_json).collect();
                runtime.to_json(accounts).serialize(serializer)
            }
            // The accounts of a file without a runtime are created while they are written.
            None => serializer.collect_seq(self.accounts.iter().map(AccountJson)),
        }
    }
}

/// Explains the file.
pub(super) fn explain(input: &Input, options: &ExplainOptions<'_>) -> Result<Explained, CliError> {
    let mut runtime = match options.runtime {
        Some(libraries) => Some(RuntimeComparison::load(libraries, options.timeout)?),
        None => None,
    };
    let subject = examined(input, None, options.layout, options.grammar)?;
    let (mut accounts, form, foreign) = accounts(&subject, options.release)?;
    if subject.broken().is_none() {
        if let Some(lib) = options.lib {
            compare_with_library(&mut accounts, &subject, lib)?;
        }
        if let Some(runtime) = &mut runtime {
            runtime.compare_names(&subject, &accounts);
        }
    }
    if !options.elsewhere {
        judge_here(&mut accounts, form, foreign, input, options.runtime);
    }
    if let Some(runtime) = &runtime {
        runtime.narrow(&mut accounts);
    }
    Ok(Explained { accounts, runtime })
}

/// Returns the account of each library binary of the file, its form, and the machine of other code.
fn accounts(
    subject: &Subject<'_>,
    release: Option<Release>,
) -> Result<(Vec<Account>, FileForm, Option<String>), CliError> {
    let accounts = subject.explain_for(release).map_err(CliError::line)?;
    Ok(match subject.broken() {
        None => (accounts, subject.file.form, foreign_code(&subject.file)),
        // PAY-23: a driver opens code with a side file, so that the form of its bytes does not matter.
        Some(broken) if broken.rule().id().starts_with("PAY-") => {
            (accounts, FileForm::Unknown, None)
        }
        Some(_) => (accounts, FileForm::detect(subject.bytes), None),
    })
}

/// Adds to each account the findings of this machine's loader and devices.
fn judge_here(
    accounts: &mut [Account],
    form: FileForm,
    foreign: Option<String>,
    input: &Input,
    runtime: Option<&str>,
) {
    let mut here = local_machine::examine_machine(form, input.bytes(), input.path(), runtime);
    here.foreign = here.foreign.or(foreign);
    // A fault of this machine prevents loading every library binary of the file.
    for account in accounts.iter_mut().filter(|account| !account.is_broken) {
        account.here = here.clone();
        devices::judge(&mut account.needs);
    }
}

/// Compares graph JSON with the functions of the library at `lib`.
fn compare_with_library(
    accounts: &mut [Account],
    graph: &Subject<'_>,
    lib: &Path,
) -> Result<(), CliError> {
    if graph.file.form != FileForm::GraphJson {
        return Err(CliError::new(
            "--lib is for graph JSON: a library states what it calls",
        ));
    }
    let input = Input::open(lib)?;
    let library = subject(&input, lib, None).map_err(CliError::new)?;
    let form = library.file.form;
    if !form.is_object() && !form.is_archive() && form != FileForm::CText {
        return Err(CliError::new(format!(
            "--lib {} is no library: its form is {}",
            input.line(),
            form.title()
        )));
    }
    if !hold_to_library(accounts, graph, &library) {
        output::warning(format_args!(
            "{} has modules that do not show their functions: the graph is not held against it",
            input.line()
        ));
    }
    Ok(())
}
