//! The commands of feature `cli`, and the code that only they use.

mod address;
mod array;
mod array_text;
mod call;
mod call_tensor;
mod completions;
mod convert;
mod convert_params;
mod device_argument;
mod device_mirror;
mod devices;
mod diagnostic;
mod dump;
mod embedded;
mod explain;
mod extract;
mod hexdump;
mod host_array;
mod html;
mod input;
mod inspect;
mod interrupt;
mod interruptible;
mod library;
mod man;
mod manifest;
mod mapped_file;
mod multiple_files;
mod npy;
mod pack;
mod package;
mod proxy;
mod replace_blob;
mod report;
mod rpc_decode;
mod run;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod serve_directory;
#[cfg(unix)]
mod serve_lobby;
#[cfg(unix)]
mod serve_memory;
#[cfg(unix)]
mod serve_peer;
#[cfg(unix)]
mod serve_running;
#[cfg(unix)]
mod serve_session;
#[cfg(unix)]
mod serve_tracker;
#[cfg(unix)]
mod session_log;
mod small_float;
mod target;
mod target_remedy;
mod tracker;
mod tracker_query;
mod unpack;
mod verdict;
mod verify;

pub use embedded::{UnpackedFiles, Written, unpack, write};
pub use input::Input;
pub use report::{ReportKind, ReportOptions, report, rules};

use super::{
    CliError, CommandLine, Exit, check, closed_stdout, color, embedding, output, output_folder,
    rule, table, testee,
};
use clap::Subcommand;
use std::ffi::OsString;

// In the order of the help: looking into files, writing them, running them, judging implementations, help. The commands that feature
// `check` also has are described at their arguments.
#[derive(Subcommand)]
pub(super) enum Command {
    /// Show the content of a file: layout, modules, import tree, functions, payloads; nothing is executed
    ///
    /// If a rule is broken, shows everything before the fault, then the rule.
    ///
    /// Exit code 0: no rule is broken. This includes programs and libraries without any content of TVM. 1: a rule is broken, in the file
    /// or in its container. 2: the file cannot be read completely: it is unreadable, has no form that TVM writes, or has a module of an
    /// unknown kind. With several files, all are shown, and the largest exit code counts.
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
    Explain(explain::ExplainArgs),
    /// Report every broken rule and every tolerated oddity
    ///
    /// Exit code 0: no rule is broken. 1: a rule is broken, in the file or in its container, or there is a finding and --strict is set. 2:
    /// the file cannot be read, a module has an unknown kind without --grammar, or no rule applies to the file, for example because it is
    /// a program or only a runtime. With several files, all are checked, and the largest exit code counts.
    Verify(verify::VerifyArgs),
    /// Show every byte with its field and rule
    ///
    /// Offsets count from the start of the library binary. Bytes that no field covers, because they follow a broken rule, are called
    /// unread. If a file has more fields than fit into the memory limit, the dump ends with the offset at which to continue. Compiled code
    /// without a library binary has no fields, so that its dump is empty.
    ///
    /// Exit code 0: no rule is broken. 1: a rule is broken; if it is one of the container, no field is shown. 2: the file cannot be read,
    /// or has no fields, for example because it is a program or JSON.
    Dump(dump::DumpArgs),
    /// Write the code or payload of one module: PTX, source, SPIR-V, ...
    ///
    /// Without an option, writes the code: PTX, OpenCL or Metal source, SPIR-V, an object file. A module with several kernels needs a
    /// folder (-o DIR/) or --kernel.
    Extract(extract::ExtractArgs),
    /// Build a library binary from a list of modules, as .bin, .c, .o, .so or .tar
    Pack(pack::PackArgs),
    /// Split a library binary into a manifest and payloads, from which `pack` rebuilds it
    ///
    /// The folder gets `manifest.json` and a file for each payload. `tvmspec pack DIR/manifest.json` writes the same bytes again.
    ///
    /// Bytes that no reader checks (`tvmspec verify` reports them) are left out, with a warning. A folder with the manifest of another
    /// library is rejected.
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
    Convert(convert::ConvertArgs),
    /// Call a function of a compiled library of any release
    ///
    /// The library is code and runs with your rights. Call only libraries that you trust, and examine others with `inspect`.
    Call(call::CallArgs),
    /// Run a model: a graph or Relax VM library, or graph, parameters and kernels
    ///
    /// The library is code and runs with your rights. Run only libraries that you trust, and examine others with `inspect`.
    Run(run::RunArgs),
    /// Show the devices of this machine with every attribute
    ///
    /// Exit code 0, even if there is no device.
    Devices(devices::DevicesArgs),
    Check(check::CheckArgs),
    /// Serve RPC clients of all releases, each in a separate process
    ///
    /// Any client that reaches the port has all rights that the options grant. Without --allow-load, a client can use its own files, its
    /// memory and the functions that every server has. With it, a client can do everything that this user may do.
    ///
    /// The first line of stdout is `serving on HOST:PORT`, printed after the tracker has the server. The start and the end of each session
    /// are logged on stderr. Ctrl-C waits for running sessions, and a second one ends them. SIGTERM and SIGHUP end them after a second.
    #[cfg(unix)]
    Serve(serve::ServeArgs),
    /// Serve one session; `serve` starts this command itself
    #[cfg(unix)]
    #[command(hide = true)]
    ServeSession(serve_session::ServeSessionArgs),
    /// Run or query a tracker, which assigns RPC servers to clients by key
    ///
    /// Prints one line for each event. Ctrl-C and SIGTERM end the tracker. With --query, asks a running tracker, and returns exit code 2
    /// if there is no tracker at the address.
    Tracker(tracker::TrackerArgs),
    /// Connect RPC servers and clients that cannot reach each other, and record their traffic
    ///
    /// Pairs servers and clients with the same key. With --to, forwards every connection to that one server. Ctrl-C accepts no further
    /// connections and waits for the running sessions, and a second one ends them. SIGTERM and SIGHUP end them after a second.
    Proxy(proxy::ProxyArgs),
    /// Show the messages that client and server of an RPC session sent
    ///
    /// The bytes do not state the release that wrote them (RPC-23). The newest form of the protocol that both sides follow is used. For
    /// each other form, the first broken rule is shown. Exit code 1 if a rule is broken.
    RpcDecode(rpc_decode::RpcDecodeArgs),
    /// Show the target that a text describes, and how each release reads it
    ///
    /// Exit code 1 if the release of --release rejects the text, or without that option if every release does.
    Target(target::TargetArgs),
    Rule(rule::RuleArgs),
    /// Write a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(man::ManArgs),
    Testee(testee::TesteeArgs),
    #[command(hide = true)]
    Worker(testee::WorkerArgs),
}

impl Command {
    /// Runs the subcommand of the command line `words`.
    pub(super) fn run(self, words: &[OsString]) -> Result<Exit, CliError> {
        match self {
            Command::Inspect(args) => inspect::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Verify(args) => verify::run(args),
            Command::Dump(args) => dump::run(args),
            Command::Extract(args) => extract::run(args),
            Command::Pack(args) => pack::run(args),
            Command::Unpack(args) => unpack::run(args),
            Command::Convert(args) => convert::run(args),
            Command::Call(args) => call::run(args, words),
            Command::Run(args) => run::run(args),
            Command::Devices(args) => devices::run(args),
            Command::Check(args) => check::run(args),
            #[cfg(unix)]
            Command::Serve(args) => serve::run(args),
            #[cfg(unix)]
            Command::ServeSession(args) => serve_session::run(args),
            Command::RpcDecode(args) => rpc_decode::run(args),
            Command::Target(args) => target::run(args),
            Command::Proxy(args) => proxy::run(args),
            Command::Tracker(args) => tracker::run(args),
            Command::Rule(args) => rule::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
            Command::Testee(args) => testee::run(args),
            Command::Worker(args) => testee::run_worker(args),
        }
    }
}
