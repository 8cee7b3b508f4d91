//! The command line: one file per subcommand, with its arguments and its `run` function.
//!
//! A `run` function takes the arguments and returns an `Exit`, or a [`CliError`] if it could not do its work. It computes nothing
//! about TVM itself: all knowledge about a file comes from `tvmspec::examine`, and the commands turn it into text, JSON or files.
//! Shared code is in files that are not subcommands:
//!
//! * `input`, `library` and `array` read: files and stdin, the one library binary of a file, numpy arrays;
//! * `output` writes: stdout, and files that appear when they are complete;
//! * `host_array` writes arrays for numpy, `output_folder` several files of one folder, by the handle of `directory`;
//! * `diagnostic`, `hexdump`, `table`, `color` and `array_text` format text;
//! * `embedding` and `embedded` run commands in the process of another program;
//! * `multiple_files` is for commands that take several files, `package` for those that write a library binary.
//!
//! Text from a file is escaped before it reaches a terminal, because the file may be hostile.
//!
//! Feature `check` builds only `check`, `rule` and `testee`, for users who only want to test an implementation. Module `full` has all other
//! commands, and the code that only they use.
//!
//! Exit codes: 0 good, 1 violations or failed cases, 2 usage or I/O. A closed pipe ends the program quietly.

#![cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "`check` uses a part of what the commands share")
)]

mod check;
mod closed_stdout;
mod color;
mod directory;
mod embedding;
#[cfg(feature = "cli")]
// With `path`, the modules of the commands are files of this folder.
#[path = "full.rs"]
mod full;
mod output;
mod output_folder;
mod rule;
mod table;
mod testee;

#[cfg(feature = "cli")]
use full::Command;
#[cfg(feature = "cli")]
pub use full::{
    Input, ReportKind, ReportOptions, UnpackedFiles, Written, report, rules, unpack, write,
};

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use tvmspec::conformance::adapter::program_command;
use tvmspec::rule::Violation;

/// The TVM runtime, specified: read, check and rewrite TVM libraries, and test any implementation against the rules
#[derive(Parser)]
#[command(
    name = "tvmspec",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// Colour the output of inspect, verify, explain, dump and check, and messages; auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    color: ColorChoice,
}

#[cfg(not(feature = "cli"))]
#[derive(clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value exists")]
enum Command {
    Check(check::CheckArgs),
    Rule(rule::RuleArgs),
    Testee(testee::TesteeArgs),
    #[command(hide = true)]
    Worker(testee::WorkerArgs),
}

#[cfg(not(feature = "cli"))]
impl Command {
    fn run(self, _: &[OsString]) -> Result<Exit, CliError> {
        match self {
            Command::Check(args) => check::run(args),
            Command::Rule(args) => rule::run(args),
            Command::Testee(args) => testee::run(args),
            Command::Worker(args) => testee::run_worker(args),
        }
    }
}

/// The result of a subcommand that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Exit code 0.
    Good,
    /// Exit code 1: violations, or failed cases.
    Bad,
    /// Exit code 2: one of several files cannot be read, and the error has been printed.
    Failed,
}

impl Exit {
    /// Combines two results into the one with the larger exit code, because a file that cannot be read hides the result for another
    /// file.
    pub(crate) fn worse_of(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
            (Exit::Bad, _) | (_, Exit::Bad) => Exit::Bad,
            (Exit::Good, Exit::Good) => Exit::Good,
        }
    }
}

/// The reason why a subcommand could not do its work: usage or I/O, exit code 2.
#[derive(Debug)]
#[non_exhaustive]
pub enum CliError {
    /// A message for people: the fault, its place, and what to do.
    Message(String),
    /// A file that cannot be read or written.
    #[non_exhaustive]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
        /// The message, which names the file.
        message: String,
    },
    /// A file that breaks a rule, which the command needs.
    #[non_exhaustive]
    Broken {
        /// The file, and the part of it; empty if it has no name.
        file: String,
        /// The broken rule.
        violation: Violation,
        /// The message, which names the file.
        message: String,
    },
    /// The reader closed the pipe, and the command ends without a message.
    ClosedPipe,
}

impl CliError {
    /// Creates an error with this message.
    pub(crate) fn new(message: impl Display) -> CliError {
        CliError::Message(message.to_string())
    }

    /// Creates an error whose message is one line, even if it contains file names with line ends.
    pub(crate) fn line(message: impl Display) -> CliError {
        CliError::Message(output::escape_line(&message.to_string()))
    }

    /// Creates an error for `file`, which breaks a rule. The message is one line.
    pub(crate) fn broken(file: &str, violation: &Violation, message: impl Display) -> CliError {
        CliError::Broken {
            file: file.to_owned(),
            violation: violation.clone(),
            message: output::escape_line(&message.to_string()),
        }
    }

    /// Creates an error with the reason of a failure in the library, which ends with the broken rule.
    pub(crate) fn from_library_error(error: tvmspec::function::Error) -> CliError {
        CliError::Message(error.reason())
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CliError::Message(message)
            | CliError::File { message, .. }
            | CliError::Broken { message, .. } => f.write_str(message),
            CliError::ClosedPipe => f.write_str("the reader closed the pipe"),
        }
    }
}

impl std::error::Error for CliError {}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        match error.kind() {
            // `tvmspec dump FILE | head` must end without a message. Rust ignores SIGPIPE, so that the write fails.
            ErrorKind::BrokenPipe => CliError::ClosedPipe,
            _ => CliError::new(error),
        }
    }
}

impl From<Violation> for CliError {
    fn from(broken: Violation) -> CliError {
        CliError::broken("", &broken, &broken)
    }
}

impl From<tvmspec::release::ParseError> for CliError {
    fn from(error: tvmspec::release::ParseError) -> CliError {
        CliError::Message(error.to_string())
    }
}

impl From<String> for CliError {
    fn from(message: String) -> CliError {
        CliError::Message(message)
    }
}

/// Parses the command line `words`, of which the first is the name of the program, runs the subcommand, and returns the exit code.
///
/// Some subcommands start this program a second time, for work that may crash. `program` states how: its file and the words that come
/// before the subcommand. With `None` it is the file of the current process, which is wrong if that is an interpreter of a language.
///
/// # Safety
///
/// `call`, `run`, `serve` and others load the libraries that `words` name, and run their code, under the contract of
/// [`module::load`](crate::module::load).
pub unsafe fn run(words: Vec<OsString>, program: Option<Vec<OsString>>) -> u8 {
    embedding::take_process();
    if let Some(program) = program {
        program_command::set(program);
    }
    exit_code(execute(words))
}

/// Parses the command line and runs the subcommand.
fn execute(words: Vec<OsString>) -> Result<Exit, CliError> {
    // Before the line is parsed, because a message about its errors must also follow `--color`.
    let command = CommandLine::command().color(color::asked(words.iter().cloned()));
    let matches = command.try_get_matches_from(&words);
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(usage) if embedding::is_embedded() => {
            // The first paragraph is the fault; the rest is about the help of the command line.
            let text = usage.to_string();
            let fault = text.split("\n\n").next().unwrap_or_default();
            return Err(CliError::new(fault.trim_start_matches("error: ")));
        }
        Err(usage) => return print_usage(&usage),
    };
    color::choose(line.color);
    line.command.run(&words)
}

/// Prints the error of the command line, or the requested help.
fn print_usage(usage: &clap::Error) -> Result<Exit, CliError> {
    if usage.use_stderr() {
        // If stderr cannot be written, the exit code still reports the error.
        let _ = usage.print();
        return Ok(Exit::Failed);
    }
    closed_stdout::check()?;
    usage.print().map_err(output::of_stdout)?;
    Ok(Exit::Good)
}

/// Converts the outcome of a command into its exit code, and prints the reason if it could not do its work.
fn exit_code(outcome: Result<Exit, CliError>) -> u8 {
    match outcome {
        // A reader that closed the pipe has all the output that it wanted.
        Ok(Exit::Good) | Err(CliError::ClosedPipe) => 0,
        Ok(Exit::Bad) => 1,
        Ok(Exit::Failed) => 2,
        Err(error) => {
            // On stderr, because programs that read stdout expect only results.
            output::error(error);
            2
        }
    }
}
