//! The program `tvmspec`: the command line of the library in a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    tvmspec::cli::run(std::env::args_os().collect(), None).into()
}
