//! `tvmspec man -o DIR`: writes the manual pages.

use super::output::Content;
use super::output_folder::OutputFolder;
use super::{CliError, CommandLine, Exit};
use clap::CommandFactory as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The folder for tvmspec.1 and a page for each command; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Writes the page of the program and one of each command into the folder.
pub(crate) fn run(args: ManArgs) -> Result<Exit, CliError> {
    let mut program = CommandLine::command().disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().filter(|one| !one.is_hide_set());
    let mut folder = OutputFolder::open(&args.output, &[])?;
    for command in commands.chain([&program]) {
        // `tvmspec-check.1`: `build` gave the commands these names.
        let manual = clap_mangen::Man::new(command.clone())
            .source(concat!("tvmspec ", env!("CARGO_PKG_VERSION")));
        let mut page = Vec::new();
        manual.render(&mut page)?;
        folder.write(&manual.get_filename(), &page, Content::Text)?;
    }
    folder.finish()?;
    Ok(Exit::Good)
}
