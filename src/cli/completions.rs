//! `tvmspec completions SHELL`: a completion script on stdout.

use super::{Error, Exit, Line};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::Write as _;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell to write for
    shell: Shell,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Line::command(), "tvmspec", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Good)
}
