//! `tvmspec testee` speaks the exec protocol for our own implementation; `tvmspec worker SPEC`, which is not typed by hand, for
//! whatever `check` wants in a process of its own.

use super::{CliError, Exit};
use std::io;
use tvmspec::conformance::adapter::{
    Testee, builtin::BuiltinTestee, family, liar::Liar, protocol, worker,
};

#[derive(clap::Args)]
pub(crate) struct TesteeArgs {
    /// Lie instead, in this way: for trying the suite itself
    #[arg(long, hide = true, value_name = "NAME")]
    liar: Option<Liar>,
}

#[derive(clap::Args)]
pub(crate) struct WorkerArgs {
    /// What to serve, as in `check --impl`
    spec: String,
}

/// Serves our own implementation, or one that lies on purpose, until stdin ends.
pub(crate) fn run(args: TesteeArgs) -> Result<Exit, CliError> {
    match args.liar {
        Some(mut liar) => serve(&mut liar),
        None => serve(&mut BuiltinTestee),
    }
}

/// Serves the implementation that `check` names, until stdin ends or `check` does.
pub(crate) fn run_worker(args: WorkerArgs) -> Result<Exit, CliError> {
    // A killed `check` cannot end its workers, and one that hangs in a case would stay.
    family::end_with_parent();
    serve(&mut *worker(&args.spec)?)
}

/// Answers requests, a line of JSON each, until stdin ends.
fn serve(testee: &mut dyn Testee) -> Result<Exit, CliError> {
    protocol::serve(
        testee,
        &mut io::stdin().lock(),
        &mut super::output::stdout(),
    )?;
    Ok(Exit::Good)
}
