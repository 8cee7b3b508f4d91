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
//! * `several` is for commands that take several files, `package` for those that write a library binary.
//!
//! Text from a file is escaped before it reaches a terminal, because the file may be hostile.
//!
//! Feature `check` builds only `check`, `rule` and `testee`, for users who only want to test an implementation.
//!
//! Exit codes: 0 good, 1 violations or failed cases, 2 usage or I/O. A closed pipe ends the program quietly.

#![cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "`check` uses a part of what the commands share")
)]

#[cfg(feature = "cli")]
mod address;
#[cfg(feature = "cli")]
mod array;
#[cfg(feature = "cli")]
mod array_text;
#[cfg(feature = "cli")]
mod call;
#[cfg(feature = "cli")]
mod call_tensor;
mod check;
mod closed_stdout;
mod color;
#[cfg(feature = "cli")]
mod completions;
#[cfg(feature = "cli")]
mod convert;
#[cfg(feature = "cli")]
mod convert_params;
#[cfg(feature = "cli")]
mod devices;
#[cfg(feature = "cli")]
mod diagnostic;
mod directory;
#[cfg(feature = "cli")]
mod dump;
#[cfg(feature = "cli")]
mod explain;
#[cfg(feature = "cli")]
mod extract;
#[cfg(feature = "cli")]
mod hexdump;
#[cfg(feature = "cli")]
mod host_array;
#[cfg(feature = "cli")]
mod html;
#[cfg(feature = "cli")]
mod input;
#[cfg(feature = "cli")]
mod inspect;
#[cfg(feature = "cli")]
mod interrupt;
#[cfg(feature = "cli")]
mod interruptible;
#[cfg(feature = "cli")]
mod library;
#[cfg(feature = "cli")]
mod man;
#[cfg(feature = "cli")]
mod manifest;
#[cfg(feature = "cli")]
mod mapped;
#[cfg(feature = "cli")]
mod npy;
#[cfg(feature = "cli")]
mod on_device;
mod output;
mod output_folder;
#[cfg(feature = "cli")]
mod pack;
#[cfg(feature = "cli")]
mod package;
#[cfg(feature = "cli")]
mod proxy;
#[cfg(feature = "cli")]
mod remote;
#[cfg(feature = "cli")]
mod report;
#[cfg(feature = "cli")]
mod rpc_decode;
mod rule;
#[cfg(feature = "cli")]
mod run;
#[cfg(all(unix, feature = "cli"))]
mod serve;
#[cfg(all(unix, feature = "cli"))]
mod serve_directory;
#[cfg(all(unix, feature = "cli"))]
mod serve_lobby;
#[cfg(all(unix, feature = "cli"))]
mod serve_memory;
#[cfg(all(unix, feature = "cli"))]
mod serve_peer;
#[cfg(all(unix, feature = "cli"))]
mod serve_running;
#[cfg(all(unix, feature = "cli"))]
mod serve_session;
#[cfg(all(unix, feature = "cli"))]
mod serve_tracker;
#[cfg(all(unix, feature = "cli"))]
mod session_log;
#[cfg(feature = "cli")]
mod several;
#[cfg(feature = "cli")]
mod small_float;
mod table;
#[cfg(feature = "cli")]
mod target;
#[cfg(feature = "cli")]
mod target_remedy;
mod testee;
#[cfg(feature = "cli")]
mod tracker;
#[cfg(feature = "cli")]
mod tracker_query;
#[cfg(feature = "cli")]
mod unpack;
#[cfg(feature = "cli")]
mod verdict;
#[cfg(feature = "cli")]
mod verify;
#[cfg(feature = "cli")]
mod whole;

#[cfg(feature = "cli")]
pub use input::Input;
#[cfg(feature = "cli")]
pub use report::{ReportKind, ReportOptions, json_text, report, rules, with_library};

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use tvmspec::conformance::adapter::own_program;

/// The TVM runtime, specified: read, judge and rewrite TVM libraries, and hold any implementation to the rules.
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
    /// Paint what inspect, verify, explain, dump and check print for people, and messages; auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    color: ColorChoice,
}

// In the order of the help: looking into files, writing them, running them, judging implementations, help.
// The size does not matter for a value that exists once.
#[cfg_attr(not(feature = "cli"), allow(clippy::large_enum_variant))]
#[derive(Subcommand)]
enum Command {
    /// Show what a file holds: layout, modules, import tree, functions, payloads; nothing is executed
    #[cfg(feature = "cli")]
    Inspect(inspect::InspectArgs),
    /// Show why a file loads, or why not, in each release
    #[cfg(feature = "cli")]
    Explain(explain::ExplainArgs),
    /// Report every broken rule and every oddity
    #[cfg(feature = "cli")]
    Verify(verify::VerifyArgs),
    /// Show every byte with its field and rule
    #[cfg(feature = "cli")]
    Dump(dump::DumpArgs),
    /// Write out what one module stores: PTX, source, SPIR-V, ...
    #[cfg(feature = "cli")]
    Extract(extract::ExtractArgs),
    /// Make a library binary from a list of modules, as .bin, .c, .o, .so or .tar
    #[cfg(feature = "cli")]
    Pack(pack::PackArgs),
    /// Take a library binary apart into what `pack` makes it of
    #[cfg(feature = "cli")]
    Unpack(unpack::UnpackArgs),
    /// Rewrite a library binary in another layout
    #[cfg(feature = "cli")]
    Convert(convert::ConvertArgs),
    /// Call a function of a compiled library
    #[cfg(feature = "cli")]
    Call(call::CallArgs),
    /// Run a model: a graph or Relax VM library, or graph, parameters and kernels
    #[cfg(feature = "cli")]
    Run(run::RunArgs),
    /// Show the devices that are here, with every attribute
    #[cfg(feature = "cli")]
    Devices(devices::DevicesArgs),
    /// Hold an implementation to the rules: ours, or any that speaks the exec protocol
    ///
    /// At Ctrl-C, SIGTERM and SIGHUP the report is of the cases that were answered: the others are skipped, the signal is a problem of the run,
    /// and the exit code is 1. A signal a second later ends the program without a report.
    Check(check::CheckArgs),
    /// Serve RPC clients of all releases, each in a process of its own
    #[cfg(all(unix, feature = "cli"))]
    Serve(serve::ServeArgs),
    /// One session of `serve`, which starts this itself
    #[cfg(all(unix, feature = "cli"))]
    #[command(hide = true)]
    ServeSession(serve_session::ServeSessionArgs),
    /// Bring RPC servers and clients together by their keys
    #[cfg(feature = "cli")]
    Tracker(tracker::TrackerArgs),
    /// Connect RPC servers and clients that cannot reach each other, and record what they write
    #[cfg(feature = "cli")]
    Proxy(proxy::ProxyArgs),
    /// Show what the client and the server of an RPC session wrote to each other
    #[cfg(feature = "cli")]
    RpcDecode(rpc_decode::RpcDecodeArgs),
    /// Show what a text names as a target, and what each release makes of it
    #[cfg(feature = "cli")]
    Target(target::TargetArgs),
    /// Show a rule: its text, evidence, code, cases, files and known failures
    Rule(rule::RuleArgs),
    /// Write a completion script for a shell
    #[cfg(feature = "cli")]
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    #[cfg(feature = "cli")]
    Man(man::ManArgs),
    /// Answer the exec protocol on stdin and stdout, for our own implementation
    Testee(testee::TesteeArgs),
    /// Serve an implementation to `check`, which starts this itself
    #[command(hide = true)]
    Worker(testee::WorkerArgs),
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
    pub(crate) fn or(self, other: Exit) -> Exit {
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
    /// A message for people: what is wrong, where, and what to do.
    Message(String),
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
        CliError::Message(output::line_of(&message.to_string()))
    }

    /// Creates an error with the reason of a failure in the library, which starts with the broken rule.
    pub(crate) fn of(error: tvmspec::function::Error) -> CliError {
        CliError::Message(error.reason())
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CliError::Message(message) => f.write_str(message),
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

impl From<tvmspec::rule::Violation> for CliError {
    fn from(broken: tvmspec::rule::Violation) -> CliError {
        CliError::line(broken)
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
    if let Some(program) = program {
        own_program::set(program);
    }
    exit_code(execute(words))
}

/// Runs a command that writes files as [`run`] does, and returns whether all is good. Warnings go to stderr.
///
/// # Errors
///
/// The message that `run` would print before it returns exit code 2.
#[cfg(feature = "cli")]
pub fn write(words: Vec<OsString>) -> Result<bool, CliError> {
    execute(words).map(|exit| exit == Exit::Good)
}

/// Parses the command line and runs the subcommand.
fn execute(words: Vec<OsString>) -> Result<Exit, CliError> {
    // Before the line is parsed, because a message about its errors must also follow `--color`.
    let command = CommandLine::command().color(color::asked(words.iter().cloned()));
    let matches = command.try_get_matches_from(&words);
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(usage) => return print_usage(&usage),
    };
    color::choose(line.color);
    match line.command {
        #[cfg(feature = "cli")]
        Command::Inspect(args) => inspect::run(args),
        #[cfg(feature = "cli")]
        Command::Explain(args) => explain::run(args),
        #[cfg(feature = "cli")]
        Command::Verify(args) => verify::run(args),
        #[cfg(feature = "cli")]
        Command::Dump(args) => dump::run(args),
        #[cfg(feature = "cli")]
        Command::Extract(args) => extract::run(args),
        #[cfg(feature = "cli")]
        Command::Pack(args) => pack::run(args),
        #[cfg(feature = "cli")]
        Command::Unpack(args) => unpack::run(args),
        #[cfg(feature = "cli")]
        Command::Convert(args) => convert::run(args),
        #[cfg(feature = "cli")]
        Command::Call(args) => call::run(args, &words),
        #[cfg(feature = "cli")]
        Command::Run(args) => run::run(args),
        #[cfg(feature = "cli")]
        Command::Devices(args) => devices::run(args),
        Command::Check(args) => check::run(args),
        #[cfg(all(unix, feature = "cli"))]
        Command::Serve(args) => serve::run(args),
        #[cfg(all(unix, feature = "cli"))]
        Command::ServeSession(args) => serve_session::run(args),
        #[cfg(feature = "cli")]
        Command::RpcDecode(args) => rpc_decode::run(args),
        #[cfg(feature = "cli")]
        Command::Target(args) => target::run(args),
        #[cfg(feature = "cli")]
        Command::Proxy(args) => proxy::run(args),
        #[cfg(feature = "cli")]
        Command::Tracker(args) => tracker::run(args),
        Command::Rule(args) => rule::run(args),
        #[cfg(feature = "cli")]
        Command::Completions(args) => completions::run(args),
        #[cfg(feature = "cli")]
        Command::Man(args) => man::run(args),
        Command::Testee(args) => testee::run(args),
        Command::Worker(args) => testee::run_worker(args),
    }
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
        Err(CliError::Message(message)) => {
            // On stderr, because programs that read stdout expect only results.
            output::error(message);
            2
        }
    }
}
