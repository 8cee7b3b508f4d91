//! `tvmspec completions SHELL`: a completion script on stdout.

use super::{CliError, CommandLine, Exit};
use clap::CommandFactory as _;
use clap_complete::Shell;

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
    super::output::print(&String::from_utf8(script).map_err(CliError::new)?)?;
    Ok(Exit::Good)
}
