//! `tvmspec testee` serves the exec protocol for this crate's implementation. `tvmspec worker SPEC`, which users do not call, serves it
//! for an implementation that `check` runs in a separate process.

use super::{CliError, Exit};
use std::io;
use tvmspec::conformance::adapter::{
    Testee, builtin::BuiltinTestee, family, liar::Liar, protocol, worker,
};

/// Serve the exec protocol on stdin and stdout, for this implementation
#[derive(clap::Args)]
pub(crate) struct TesteeArgs {
    /// Give wrong answers of this kind, to test the suite itself
    #[arg(long, hide = true, value_name = "NAME")]
    liar: Option<Liar>,
}

/// Serve an implementation to `check`, which starts this command itself
#[derive(clap::Args)]
pub(crate) struct WorkerArgs {
    /// The implementation, as for `check --impl`
    spec: String,
}

/// Serves this crate's implementation, or one that is wrong on purpose, until stdin ends.
pub(crate) fn run(args: TesteeArgs) -> Result<Exit, CliError> {
    match args.liar {
        Some(mut liar) => serve(&mut liar),
        None => serve(&mut BuiltinTestee),
    }
}

/// Serves the implementation that `check` names, until stdin or `check` ends.
pub(crate) fn run_worker(args: WorkerArgs) -> Result<Exit, CliError> {
    // A killed `check` cannot end its workers, and one that hangs in a case would remain.
    family::end_with_parent();
    serve(&mut *worker(&args.spec)?)
}

/// Answers requests, one line of JSON each, until stdin ends.
fn serve(testee: &mut dyn Testee) -> Result<Exit, CliError> {
    protocol::serve(
        testee,
        &mut io::stdin().lock(),
        &mut super::output::stdout(),
    )?;
    Ok(Exit::Good)
}
