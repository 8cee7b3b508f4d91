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
//! * `multiple_files` is for commands that take several files, `package` for those that write a library binary.
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
mod device_argument;
#[cfg(feature = "cli")]
mod device_mirror;
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
mod mapped_file;
#[cfg(feature = "cli")]
mod multiple_files;
#[cfg(feature = "cli")]
mod npy;
mod output;
mod output_folder;
#[cfg(feature = "cli")]
mod pack;
#[cfg(feature = "cli")]
mod package;
#[cfg(feature = "cli")]
mod proxy;
#[cfg(feature = "cli")]
mod replace_blob;
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
pub use input::Input;
#[cfg(feature = "cli")]
pub use report::{ReportKind, ReportOptions, json_text, report, rules, with_library};

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use tvmspec::conformance::adapter::program_command;

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

// In the order of the help: looking into files, writing them, running them, judging implementations, help.
// The size does not matter for a value that exists once.
#[cfg_attr(not(feature = "cli"), allow(clippy::large_enum_variant))]
#[derive(Subcommand)]
enum Command {
    /// Show the content of a file: layout, modules, import tree, functions, payloads; nothing is executed
    ///
    /// If a rule is broken, shows everything before the fault, then the rule.
    ///
    /// Exit code 0: no rule is broken. This includes programs and libraries without any content of TVM. 1: a rule is broken, in the file
    /// or in its container. 2: the file cannot be read completely: it is unreadable, has no form that TVM writes, or has a module of an
    /// unknown kind. With several files, all are shown, and the largest exit code counts.
    #[cfg(feature = "cli")]
    Inspect(inspect::InspectArgs),
    /// Show why each release loads a file, or why it does not
    ///
    /// Shows for every release whether it reads the file, the needs of the file, and where loading fails without an error.
    ///
    /// Of a broken file, only the parts that the loader of each release reads are judged. Of an ELF file or another image, these are the
    /// machine, the needed libraries, the symbols and the library binary, but not other headers and tables. If the result is not known,
    /// prints "unknown".
    ///
    /// Exit code 0: the file is explained, even if it is broken or has no content of TVM. 2: the file cannot be read, has no form that TVM
    /// loads, or has a module of an unknown kind without --grammar. With --release, 0 means that this release loads the file on this
    /// machine, or with --elsewhere on the machine that it is for. 1 means that it does not, that something is missing, or that the result
    /// is not known.
    #[cfg(feature = "cli")]
    Explain(explain::ExplainArgs),
    /// Report every broken rule and every tolerated oddity
    ///
    /// Exit code 0: no rule is broken. 1: a rule is broken, in the file or in its container, or there is a finding and --strict is set. 2:
    /// the file cannot be read, a module has an unknown kind without --grammar, or no rule applies to the file, for example because it is
    /// a program or only a runtime. With several files, all are checked, and the largest exit code counts.
    #[cfg(feature = "cli")]
    Verify(verify::VerifyArgs),
    /// Show every byte with its field and rule
    ///
    /// Offsets count from the start of the library binary. Bytes that no field covers, because they follow a broken rule, are called
    /// unread. If a file has more fields than fit into the memory limit, the dump ends with the offset at which to continue. Compiled code
    /// without a library binary has no fields, so that its dump is empty.
    ///
    /// Exit code 0: no rule is broken. 1: a rule is broken; if it is one of the container, no field is shown. 2: the file cannot be read,
    /// or has no fields, for example because it is a program or JSON.
    #[cfg(feature = "cli")]
    Dump(dump::DumpArgs),
    /// Write the code or payload of one module: PTX, source, SPIR-V, ...
    ///
    /// Without an option, writes the code: PTX, OpenCL or Metal source, SPIR-V, an object file. A module with several kernels needs a
    /// folder (-o DIR/) or --kernel.
    #[cfg(feature = "cli")]
    Extract(extract::ExtractArgs),
    /// Build a library binary from a list of modules, as .bin, .c, .o, .so or .tar
    #[cfg(feature = "cli")]
    Pack(pack::PackArgs),
    /// Split a library binary into a manifest and payloads, from which `pack` rebuilds it
    ///
    /// The folder gets `manifest.json` and a file for each payload. `tvmspec pack DIR/manifest.json` writes the same bytes again.
    ///
    /// Bytes that no reader checks (`tvmspec verify` reports them) are left out, with a warning. A folder with the manifest of another
    /// library is rejected.
    #[cfg(feature = "cli")]
    Unpack(unpack::UnpackArgs),
    /// Rewrite a library binary in another layout or file format
    ///
    /// The input is any container. Its host code is neither changed nor copied; pass its object files with --with.
    ///
    /// The index of a tensor cache, or its folder, becomes a parameter file. A parameter file becomes a tensor cache with shards of 32 MiB
    /// (-o DIR/tensor-cache.json).
    ///
    /// Fails with the reason if the layout cannot hold the content, or if the release of --release does not load the result. Bytes that no
    /// reader checks are left out, with a warning.
    #[cfg(feature = "cli")]
    Convert(convert::ConvertArgs),
    /// Call a function of a compiled library of any release
    ///
    /// The library is code and runs with your rights. Call only libraries that you trust, and examine others with `inspect`.
    #[cfg(feature = "cli")]
    Call(call::CallArgs),
    /// Run a model: a graph or Relax VM library, or graph, parameters and kernels
    ///
    /// The library is code and runs with your rights. Run only libraries that you trust, and examine others with `inspect`.
    #[cfg(feature = "cli")]
    Run(run::RunArgs),
    /// Show the devices of this machine with every attribute
    ///
    /// Exit code 0, even if there is no device.
    #[cfg(feature = "cli")]
    Devices(devices::DevicesArgs),
    /// Test an implementation against the rules: this one, or any that speaks the exec protocol
    ///
    /// Ctrl-C, SIGTERM and SIGHUP end the run. The report then covers the answered cases, marks the others as skipped, and names the
    /// signal as a problem. The exit code is 1. Another signal at least a second later ends the program without a report.
    Check(check::CheckArgs),
    /// Serve RPC clients of all releases, each in a separate process
    ///
    /// Any client that reaches the port has all rights that the options grant. Without --allow-load, a client can use its own files, its
    /// memory and the functions that every server has. With it, a client can do everything that this user may do.
    ///
    /// The first line of stdout is `serving on HOST:PORT`, printed after the tracker has the server. The start and the end of each session
    /// are logged on stderr. Ctrl-C waits for running sessions, and a second one ends them. SIGTERM and SIGHUP end them after a second.
    #[cfg(all(unix, feature = "cli"))]
    Serve(serve::ServeArgs),
    /// Serve one session; `serve` starts this command itself
    #[cfg(all(unix, feature = "cli"))]
    #[command(hide = true)]
    ServeSession(serve_session::ServeSessionArgs),
    /// Run or query a tracker, which assigns RPC servers to clients by key
    ///
    /// Prints one line for each event. Ctrl-C and SIGTERM end the tracker. With --query, asks a running tracker, and returns exit code 2
    /// if there is no tracker at the address.
    #[cfg(feature = "cli")]
    Tracker(tracker::TrackerArgs),
    /// Connect RPC servers and clients that cannot reach each other, and record their traffic
    ///
    /// Pairs servers and clients with the same key. With --to, forwards every connection to that one server. Ctrl-C accepts no further
    /// connections and waits for the running sessions, and a second one ends them. SIGTERM and SIGHUP end them after a second.
    #[cfg(feature = "cli")]
    Proxy(proxy::ProxyArgs),
    /// Show the messages that client and server of an RPC session sent
    ///
    /// The bytes do not state the release that wrote them (RPC-23). The newest form of the protocol that both sides follow is used. For
    /// each other form, the first broken rule is shown. Exit code 1 if a rule is broken.
    #[cfg(feature = "cli")]
    RpcDecode(rpc_decode::RpcDecodeArgs),
    /// Show the target that a text describes, and how each release reads it
    ///
    /// Exit code 1 if the release of --release rejects the text, or without that option if every release does.
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
    /// Serve the exec protocol on stdin and stdout, for this implementation
    Testee(testee::TesteeArgs),
    /// Serve an implementation to `check`, which starts this command itself
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
    /// A message for people: the fault, its place, and what to do.
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
        CliError::Message(output::escape_line(&message.to_string()))
    }

    /// Creates an error with the reason of a failure in the library, which ends with the broken rule.
    pub(crate) fn from_library_error(error: tvmspec::function::Error) -> CliError {
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
        program_command::set(program);
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
