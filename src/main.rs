//! The command line of tvmspec. It only dispatches; every subcommand is a file in `src/cli/`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
