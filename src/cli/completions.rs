//! `tvmspec completions SHELL`: writes a completion script to stdout.

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
    // clap panics on a write error, but a closed pipe should be quiet. Therefore the script is generated in memory.
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
