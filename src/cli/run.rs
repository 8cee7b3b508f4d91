//! `tvmspec run`: run a whole model.

use super::output::{self, Content};
use super::table::table;
use super::{Error, Exit, array};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tvmspec::graph::executor::{Executor, Place};
use tvmspec::graph::module::Factory;
use tvmspec::graph::{Graph, debug};
use tvmspec::module::{self, Module};
use tvmspec::object::Tensor;
use tvmspec::rule::{Findings, Strictness};
use tvmspec::tensor::{Device, Params};
use tvmspec::value::device_from_text;
use tvmspec::wire::Cursor;

/// Run a model: a graph or Relax VM library, or graph, parameters and kernels
///
/// The library is code and runs with your rights: run only what you trust, and look at the rest with `inspect`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A library with the whole model in it
    #[arg(required_unless_present = "graph", conflicts_with_all = ["graph", "params", "lib"])]
    library: Option<PathBuf>,
    /// Graph JSON, instead of a whole model
    #[arg(long, requires = "lib")]
    graph: Option<PathBuf>,
    /// Parameter file for --graph
    #[arg(long)]
    params: Option<PathBuf>,
    /// Library with the kernels for --graph
    #[arg(long)]
    lib: Option<PathBuf>,
    /// One input; may be repeated
    #[arg(long, value_name = "NAME=FILE.npy")]
    input: Vec<String>,
    /// Inputs by name (`x`, or `in_x`) from one file
    #[arg(long, value_name = "FILE.npz")]
    inputs: Option<PathBuf>,
    /// Write the outputs here, as out_0, out_1, ...
    #[arg(short, long, value_name = "OUT.npz")]
    output: Option<PathBuf>,
    /// Where to run: cpu, cuda:0, opencl:0, vulkan:0; may be repeated, the first is the fallback
    #[arg(long, default_value = "cpu")]
    device: Vec<String>,
    /// The function of a VM executable
    #[arg(long, default_value = "main")]
    func: String,
    /// Say how long each operator takes
    #[arg(long)]
    profile: bool,
    /// Write the profile as a Chrome trace
    #[arg(long, value_name = "TRACE.json")]
    trace: Option<PathBuf>,
    /// Write the debug dump of a graph (graph, trace, every tensor) below this folder
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Run this often and say how long it took
    #[arg(long, default_value_t = 1)]
    repeat: usize,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let places = args
        .device
        .iter()
        .map(|text| place(text))
        .collect::<Result<Vec<_>, _>>()?;
    let inputs = read_inputs(&args)?;
    match &args.library {
        Some(library) => {
            let module = load(library)?;
            match Factory::of(&module) {
                Some(factory) => run_graph(
                    &args,
                    factory.create(&module, places).map_err(Error::new)?,
                    inputs,
                ),
                None => Err(Error::Message(format!(
                    "{} is a `{}` module, no model; `tvmspec call` calls its functions, --graph with --lib runs a graph on it",
                    library.display(),
                    module.kind()
                ))),
            }
        }
        None => {
            let executor = from_parts(&args, places)?;
            run_graph(&args, executor, inputs)
        }
    }
}

fn from_parts(args: &Args, places: Vec<Place>) -> Result<Executor, Error> {
    let (Some(graph), Some(lib)) = (&args.graph, &args.lib) else {
        return Err(Error::new("give a library, or --graph and --lib"));
    };
    let text = std::fs::read_to_string(graph)
        .map_err(|error| Error::new(format!("cannot read {}: {error}", graph.display())))?;
    let mut findings = Findings::default();
    let parsed = Graph::read(&text, &mut findings)
        .map_err(|broken| Error::new(format!("{}: {broken}", graph.display())))?;
    for finding in findings {
        eprintln!("note: {finding}");
    }
    let module = load(lib)?;
    let mut executor = Executor::new(
        Arc::new(parsed),
        &|name| module.function(name, true),
        places,
    )
    .map_err(Error::new)?;
    if let Some(path) = &args.params {
        let bytes = std::fs::read(path)
            .map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
        let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())
            .map_err(|broken| Error::new(format!("{}: {broken}", path.display())))?;
        let set = executor.load_params(&params).map_err(Error::new)?;
        if set < params.len() {
            eprintln!(
                "note: {} of {} parameters are not inputs of the graph",
                params.len() - set,
                params.len()
            );
        }
    }
    Ok(executor)
}

fn run_graph(
    args: &Args,
    mut executor: Executor,
    inputs: Vec<(String, Tensor)>,
) -> Result<Exit, Error> {
    for (name, tensor) in &inputs {
        let index = executor.require_input(name).map_err(Error::new)?;
        executor.set_input(index, tensor.dl()).map_err(Error::new)?;
    }
    fill_with_zeros(&mut executor)?;
    let times = timed(args.repeat, || {
        executor
            .run()
            .and_then(|()| executor.sync())
            .map_err(Error::new)
    })?;
    let outputs = (0..executor.output_count())
        .map(|index| {
            Ok((
                format!("out_{index}"),
                executor.output(index)?.to_host_object()?,
            ))
        })
        .collect::<Result<Vec<_>, tvmspec::function::Error>>()
        .map_err(Error::new)?;
    give(args, &outputs)?;
    statistics(&times);
    if args.profile || args.trace.is_some() {
        profile_graph(args, &executor)?;
    }
    if let Some(folder) = &args.dump {
        let written = debug::dump(&executor, folder).map_err(Error::new)?;
        eprintln!("dumped to {}", written.display());
    }
    Ok(Exit::Good)
}

/// A model can be measured without inputs. Their memory holds anything until it is set.
fn fill_with_zeros(executor: &mut Executor) -> Result<(), Error> {
    let names: Vec<String> = executor
        .unset_inputs()
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in &names {
        let index = executor.require_input(name).map_err(Error::new)?;
        let input = executor.input(index).map_err(Error::new)?;
        let zeros = Tensor::empty(input.shape(), input.as_dltensor().dtype).map_err(Error::new)?;
        executor.set_input(index, zeros.dl()).map_err(Error::new)?;
    }
    if !names.is_empty() {
        eprintln!("note: not given, and zero: {}", names.join(", "));
    }
    Ok(())
}

fn profile_graph(args: &Args, executor: &Executor) -> Result<(), Error> {
    let repetitions = debug::run_individual(executor, 10, 3, 0).map_err(Error::new)?;
    let seconds = repetitions.last().cloned().unwrap_or_default();
    let graph = executor.graph();
    if let Some(path) = &args.trace {
        let text = debug::chrome_trace(graph, &seconds).to_string();
        output::write(path, text.as_bytes(), Content::Text)?;
    }
    if !args.profile {
        return Ok(());
    }
    let total: f64 = seconds.iter().sum();
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for (index, (node, seconds)) in graph.nodes.iter().zip(&seconds).enumerate() {
        let Some(call) = &node.call else { continue };
        let entry = |id: usize| -> String {
            let entry = &graph.entries[id];
            let extents: Vec<String> = entry.shape.iter().map(i64::to_string).collect();
            format!("{}[{}]", entry.dtype, extents.join(","))
        };
        let ins: Vec<String> = node
            .inputs
            .iter()
            .filter_map(|input| graph.entry_id(*input))
            .map(entry)
            .collect();
        let first = graph.node_row_ptr[index];
        let outs: Vec<String> = (first..first + call.num_outputs).map(entry).collect();
        let share = if total > 0.0 {
            seconds / total * 100.0
        } else {
            0.0
        };
        let row = vec![
            node.name.clone(),
            format!("{:.3}", seconds * 1e6),
            format!("{share:.1} %"),
            format!("{} -> {}", ins.join(", "), outs.join(", ")),
        ];
        rows.push((*seconds, row));
    }
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let count = rows.len();
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    output::print(&format!(
        "{}{count} operators, {:.3} us together\n",
        table(&["operator", "us", "share", "shapes"], rows),
        total * 1e6
    ))
}

fn give(args: &Args, outputs: &[(String, Tensor)]) -> Result<(), Error> {
    match &args.output {
        Some(path) => array::write_all(outputs, path),
        None => outputs.iter().try_for_each(|(name, tensor)| {
            output::print(&format!("{name} = {}\n", super::call::tensor_text(tensor)))
        }),
    }
}

fn timed(
    repeat: usize,
    mut once: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<Duration>, Error> {
    let mut times = Vec::with_capacity(repeat.max(1));
    for _ in 0..repeat.max(1) {
        let start = Instant::now();
        once()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// On stderr, so that outputs can be piped.
fn statistics(times: &[Duration]) {
    if times.len() < 2 {
        return;
    }
    let mut micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    micros.sort_by(f64::total_cmp);
    let mean = micros.iter().sum::<f64>() / micros.len() as f64;
    let spread =
        (micros.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / micros.len() as f64).sqrt();
    eprintln!(
        "{} runs: median {:.1} us, mean {mean:.1} us, min {:.1} us, max {:.1} us, deviation {spread:.1} us",
        micros.len(),
        micros[micros.len() / 2],
        micros[0],
        micros[micros.len() - 1],
    );
}

fn load(path: &Path) -> Result<Module, Error> {
    tvmspec::device::install();
    tvmspec::graph::module::install();
    let loaded = module::load_library(path, Strictness::Lenient).map_err(Error::new)?;
    for finding in &loaded.findings {
        eprintln!("note: {finding}");
    }
    Ok(loaded.module)
}

fn place(text: &str) -> Result<Place, Error> {
    let device = device_from_text(text).map_err(Error::new)?;
    Place::of(Device {
        kind: device.device_type,
        id: device.device_id,
    })
    .map_err(|error| Error::new(format!("{text}: {error}")))
}

fn read_inputs(args: &Args) -> Result<Vec<(String, Tensor)>, Error> {
    let mut inputs = Vec::new();
    if let Some(path) = &args.inputs {
        for (name, tensor) in array::read_all(path)? {
            // The samples keep outputs beside inputs.
            if let Some(name) = name.strip_prefix("in_") {
                inputs.push((name.to_owned(), tensor));
            } else if !name.starts_with("out_") {
                inputs.push((name, tensor));
            }
        }
    }
    for text in &args.input {
        let (name, path) = text
            .split_once('=')
            .ok_or_else(|| Error::Message(format!("`{text}`: write --input NAME=FILE.npy")))?;
        inputs.push((name.to_owned(), array::read(path)?));
    }
    Ok(inputs)
}
