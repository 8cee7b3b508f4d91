//! `tvmspec run`: runs a whole model.
//!
//! | model | run by | releases |
//! |---|---|---|
//! | a library with a graph factory at its root (GRF-49) | `graph` | 0.7 to 0.19 |
//! | `--graph`, `--params` and `--lib` | `graph` | 0.2 to 0.19 |
//! | a package of tvmc, which has these three | `package`, `graph` | 0.6 to 0.19 |
//! | a package with the library of a Relax VM | `package`, `vm` | 0.16 and later |
//! | a library with a Relax VM executable among its modules | `vm` | 0.16 and later |
//!
//! Outputs go to stdout or to `--output`; times and notes go to stderr.

mod graph;
mod inputs;
mod package;
mod profile_page;
mod vm;

use super::call::load_error;
use super::device_argument::Places;
use super::input;
use super::output::{self, Content};
use super::table::table;
use super::{CliError, Exit, host_array};
use indicatif::{ProgressBar, ProgressStyle};
use inputs::Inputs;
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tvmspec::graph::executor::ExecutorDevice;
use tvmspec::graph::module::GraphExecutorFactory;
use tvmspec::module::{self, Module};
use tvmspec::object::Tensor;
use tvmspec::rule::Strictness;
use tvmspec::tensor::Device;

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// A library that contains the whole model, or a package of tvmc (.tar)
    #[arg(required_unless_present = "graph", conflicts_with_all = ["graph", "params", "lib"])]
    library: Option<PathBuf>,
    /// Graph JSON; needs --lib
    #[arg(long, requires = "lib")]
    graph: Option<PathBuf>,
    /// The parameter file for --graph
    #[arg(long)]
    params: Option<PathBuf>,
    /// The library with the kernels for --graph
    #[arg(long)]
    lib: Option<PathBuf>,
    /// An input, which replaces the one of that name in --inputs; may be repeated for other names. FILE.npy:bfloat16 states the type of
    /// raw elements
    #[arg(long, value_name = "NAME=FILE.npy")]
    input: Vec<String>,
    /// Inputs by name (`x` or `in_x`, but not both) from one file; arrays named out_... are ignored
    #[arg(long, value_name = "FILE.npz")]
    inputs: Option<PathBuf>,
    /// Write the outputs to this file, as out_0, out_1, ...
    #[arg(short, long, value_name = "OUT.npz")]
    output: Option<PathBuf>,
    /// The device: cpu, cuda:0, opencl:0, rocm:0, vulkan:0; or rpc://HOST:PORT/KEY#cpu:0 to upload the library to a server and run it
    /// there; rpc-tracker:// requests the server from a tracker. May be repeated; the first device is the fallback
    #[arg(long, default_value = "cpu")]
    device: Vec<String>,
    /// The function to call, for a VM executable
    #[arg(long, default_value = "main")]
    func: String,
    /// Print the time of each operator
    #[arg(long)]
    profile: bool,
    /// Write the profile as a Chrome trace, which Perfetto opens, or with the extension .html as a page with bars
    #[arg(long, value_name = "TRACE.json|TRACE.html")]
    trace: Option<PathBuf>,
    /// Write the debug dump of a graph (graph, trace, every tensor) into this folder
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Run the model this many times, and print statistics of the times
    #[arg(long, default_value_t = 1)]
    repeat: usize,
}

/// Runs the model, and writes its outputs and everything else that the options select.
pub(crate) fn run(args: RunArgs) -> Result<Exit, CliError> {
    let server = Places::resolve(&args.device)?;
    let places = args
        .device
        .iter()
        .zip(&server.devices)
        .map(|(text, device)| parse_device(text, *device))
        .collect::<Result<Vec<_>, _>>()?;
    for path in [&args.output, &args.trace].into_iter().flatten() {
        output::check(path, Content::Binary)?;
    }
    let is_other = |path: &&PathBuf| path.extension().is_some_and(|last| last != "npz");
    if let Some(path) = args.output.as_ref().filter(is_other) {
        return Err(CliError::new(format!(
            "{} is the name of another form: the outputs go into one archive of numpy, whose name ends in .npz",
            output::file_name(path)
        )));
    }
    // Before the library is loaded, which runs its initializers, so that a wrong input is found without running them.
    let inputs = Inputs::from_args(&args)?;
    let Some(library) = &args.library else {
        let (Some(graph), Some(lib)) = (&args.graph, &args.lib) else {
            return Err(CliError::new("give a library, or --graph and --lib"));
        };
        let executor = graph::from_parts((graph, args.params.as_deref(), lib), places, &server)?;
        return graph::run(&args, executor, inputs);
    };
    let package = package::unpack(library, server.is_remote())?;
    if let Some(package) = &package
        && let Some(graph) = &package.graph
    {
        let parts = (&**graph, package.params.as_deref(), &*package.lib);
        let executor = graph::from_parts(parts, places, &server)?;
        return graph::run(&args, executor, inputs);
    }
    let file = package.as_ref().map_or(library, |package| &package.lib);
    let module = load(file, &server)?;
    // A factory is the root of its library. A VM executable may be below the root, which is then the host code.
    if let Some(factory) = GraphExecutorFactory::from_module(&module) {
        let executor = factory.create(&module, places).map_err(CliError::new)?;
        return graph::run(&args, executor, inputs);
    }
    // The kind was renamed in 0.20.
    let is_vm = |kind: &str| matches!(kind, "relax.VMExecutable" | "relax.Executable");
    if module.walk().iter().any(|module| is_vm(&module.kind())) {
        let devices: Vec<Device> = places.iter().map(ExecutorDevice::device).collect();
        return vm::run(&args, &module, &devices, inputs);
    }
    Err(CliError::Message(package::no_model(library, &module)))
}

/// One call of a profile.
struct Operator {
    /// The function of a VM, or the node of a graph.
    name: String,
    /// The time since the first call.
    started: Duration,
    /// The wall time of the call, or the mean of several.
    took: Duration,
    /// The types and shapes of the arguments.
    shapes: String,
}

/// Prints the table of `--profile`, most expensive first, and writes the trace of `--trace`, in the order of the calls.
fn report(args: &RunArgs, mut operators: Vec<Operator>) -> Result<(), CliError> {
    // Written before the operators are sorted.
    if let Some(path) = &args.trace {
        let is_page = path.extension().is_some_and(|last| last == "html");
        let model = args.library.as_ref().or(args.graph.as_ref());
        let name = model.and_then(|model| model.file_name());
        let model = name.map_or_else(String::new, |name| output::file_name(Path::new(name)));
        let text = if is_page {
            profile_page::page(&model, &operators)
        } else {
            chrome_trace(&model, &operators)
        };
        output::write(path, text.as_bytes(), Content::Text)?;
    }
    if !args.profile {
        return Ok(());
    }
    let took = operators.iter().map(|operator| operator.took.as_secs_f64());
    // The sum of an empty list is negative zero.
    let total = took.sum::<f64>() + 0.0;
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.took));
    let count = operators.len();
    let rows = operators.into_iter().map(|operator| {
        let seconds = operator.took.as_secs_f64();
        let share = if total > 0.0 {
            seconds / total * 100.0
        } else {
            0.0
        };
        vec![
            operator.name,
            format!("{:.3}", seconds * 1e6),
            format!("{share:.1} %"),
            operator.shapes,
        ]
    });
    output::show(&format!(
        "{}{count} operators, {:.3} us together\n",
        table(&["operator", "us", "share", "shapes"], rows.collect()),
        total * 1e6
    ))
}

/// Returns a time in microseconds. The division keeps three decimals, unlike a product with 1e6.
fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Creates a trace in the format of `chrome://tracing`, which Perfetto also opens: one complete event for each operator, in
/// microseconds, after the names of the process and of its thread.
fn chrome_trace(model: &str, operators: &[Operator]) -> String {
    let named = |what: &str, name: &str| json!({ "ph": "M", "name": what, "pid": 1, "tid": 1, "args": { "name": name } });
    let mut events = vec![
        named("process_name", model),
        named("thread_name", "operators"),
    ];
    events.extend(operators.iter().map(|operator| {
        json!({
            // The format requires a thread and a process.
            "ph": "X", "name": operator.name, "cat": "operator", "pid": 1, "tid": 1,
            "ts": micros(operator.started), "dur": micros(operator.took),
            "args": { "shapes": operator.shapes },
        })
    }));
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}

/// Writes the outputs to `--output`, or prints them.
fn write_outputs(args: &RunArgs, outputs: &[(String, Tensor)]) -> Result<(), CliError> {
    match &args.output {
        Some(path) => host_array::write_all(outputs, path),
        None => outputs.iter().try_for_each(|(name, tensor)| {
            output::show(&format!("{name} = {}\n", host_array::tensor_text(tensor)))
        }),
    }
}

/// Returns the duration of each of `repeat` runs. There is at least one run, because its outputs are needed.
fn timed(
    repeat: usize,
    mut once: impl FnMut() -> Result<(), CliError>,
) -> Result<Vec<Duration>, CliError> {
    let mut times = Vec::with_capacity(repeat.max(1));
    for _ in 0..repeat.max(1) {
        let start = Instant::now();
        once()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Prints the times of several runs to stderr, so that outputs can be piped. Prints nothing for a single run, which has no
/// distribution.
fn statistics(times: &[Duration]) {
    if times.len() < 2 {
        return;
    }
    let mut micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    micros.sort_by(f64::total_cmp);
    let mean = micros.iter().sum::<f64>() / micros.len() as f64;
    let spread =
        // The deviation of these runs, not an estimate for others, so that it is divided by their number.
        (micros.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / micros.len() as f64).sqrt();
    output::note(format_args!(
        "{} runs: median {:.1} us, mean {mean:.1} us, min {:.1} us, max {:.1} us, deviation {spread:.1} us",
        micros.len(),
        // The upper of two middle values, so that the median is a measured time.
        micros[micros.len() / 2],
        micros[0],
        micros[micros.len() - 1],
    ));
}

/// Loads a library for local or remote devices, and prints its oddities to stderr.
fn load(path: &Path, server: &Places) -> Result<Module, CliError> {
    if let Some(there) = server.load(path)? {
        return Ok(there);
    }
    let busy = spinner(path);
    // SAFETY: a user who runs a library by name trusts it, as the help says; `inspect` examines one that is not trusted.
    let loaded = unsafe { module::load_library(path, Strictness::Lenient) };
    busy.finish_and_clear();
    // Cleared before any message, which the spinner would overwrite.
    let loaded = loaded.map_err(|failed| load_error(path, &failed))?;
    for finding in &loaded.findings {
        output::note(format_args!("note: {finding}"));
    }
    Ok(loaded.module)
}

/// Creates the spinner that a terminal shows while a file of 64 MiB or more is read. Returns a hidden one otherwise.
fn spinner(path: &Path) -> ProgressBar {
    const LARGE: u64 = 64 << 20;
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    // A file or a pipe would receive every step of the animation.
    if size < LARGE || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let bar = match ProgressStyle::with_template("{spinner} loading {msg}, {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    bar.set_message(format!("{} ({} MiB)", output::file_name(path), size >> 20));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Reads a file, with a spinner if it is large.
fn read_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    let busy = spinner(path);
    let bytes = input::read(path);
    busy.finish_and_clear();
    bytes
}

/// Checks that the device that `text` names exists.
fn parse_device(text: &str, device: Device) -> Result<ExecutorDevice, CliError> {
    ExecutorDevice::new(device).map_err(|error| CliError::new(format!("{text}: {error}")))
}
