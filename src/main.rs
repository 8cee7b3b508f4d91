//! The program `tvmspec`: the command line of the library as an executable.

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: a user who names a library to `call` or `run` trusts it, as their help says.
    unsafe { tvmspec::cli::run(std::env::args_os().collect(), None) }.into()
}
