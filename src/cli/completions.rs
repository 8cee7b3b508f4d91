//! `tvmspec completions SHELL`: a completion script on stdout.

use super::{CliError, CommandLine, Exit};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::Write as _;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    shell: Shell,
}

/// Writes the script to stdout.
pub(crate) fn run(args: CompletionsArgs) -> Result<Exit, CliError> {
    // clap panics where it cannot write: a closed pipe is to be quiet.
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut CommandLine::command(),
        "tvmspec",
        &mut script,
    );
    super::output::stdout().write_all(&script)?;
    Ok(Exit::Good)
}
