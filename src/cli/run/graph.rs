//! Graphs: from one library, or from graph, parameters and kernels. Up to 0.6 models are three files. `--graph` accepts these for every
//! release.

use super::inputs::Inputs;
use super::{Operator, RunArgs, load, read_bytes, report, statistics, timed, write_outputs};
use crate::cli::full::array::Bound;
use crate::cli::full::device_argument::Places;
use crate::cli::output::Content;
use crate::cli::output_folder::OutputFolder;
use crate::cli::{CliError, Exit, output};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{Graph, debug};
use tvmspec::rule::Findings;
use tvmspec::tensor::Params;

/// Creates the executor from graph, parameters and library. Functions are looked up in the library and its imports (GRF-31).
pub(super) fn from_parts(
    (graph, params, lib): (&Path, Option<&Path>, &Path),
    places: Vec<ExecutorDevice>,
    server: &Places,
) -> Result<Executor, CliError> {
    let text = String::from_utf8(read_bytes(graph)?).map_err(|error| {
        CliError::new(format!(
            "{} is not UTF-8: {error}",
            output::file_name(graph)
        ))
    })?;
    let mut findings = Findings::default();
    let parsed = Graph::read(&text, &mut findings)
        .map_err(|broken| CliError::new(format!("{}: {broken}", output::file_name(graph))))?;
    for finding in findings {
        output::note(format_args!("note: {finding}"));
    }
    let module = load(lib, server)?;
    let mut executor = Executor::new(
        Arc::new(parsed),
        &|name| module.function(name, true),
        places,
    )
    .map_err(CliError::new)?;
    if let Some(path) = params {
        let bytes = read_bytes(path)?;
        // TEN-45: the release of a parameter file is unknown, and releases count bytes differently.
        let params = Params::open(&bytes)
            .map(|read| read.value)
            .map_err(|broken| CliError::new(format!("{}: {broken}", output::file_name(path))))?;
        let set = executor.load_params(&params).map_err(CliError::new)?;
        // GRF-37: the executor skips unknown parameters, which hides a wrong parameter file.
        if set < params.len() {
            output::note(format_args!(
                "note: {} of {} parameters are not inputs of the graph",
                params.len() - set,
                params.len()
            ));
        }
    }
    Ok(executor)
}

/// Sets the inputs, runs the graph, and writes outputs, times, profile and dump as requested.
pub(super) fn run(
    args: &RunArgs,
    mut executor: Executor,
    mut inputs: Inputs,
) -> Result<Exit, CliError> {
    let names: Vec<String> = inputs.names().map(str::to_owned).collect();
    for name in &names {
        // GRF-32: the function `set_input` of an executor ignores an unknown name. On the command line it is a mistake.
        let index = executor.require_input(name).map_err(CliError::new)?;
        let entry = executor.input(index).map_err(CliError::new)?;
        let (dtype, shape) = (entry.as_dltensor().dtype, entry.shape().to_vec());
        // GRF-33: at most the size of the entry is read, so that a hostile file costs nothing.
        let tensor = inputs.read(name, Bound::Like(name, dtype, &shape), Some(dtype))?;
        let Some(tensor) = tensor else { continue };
        executor.set_input(index, &tensor).map_err(CliError::new)?;
    }
    fill_with_zeros(&mut executor)?;
    let times = timed(args.repeat, || {
        executor
            .run()
            // A device runs asynchronously. Without the sync, only the launches would be measured.
            .and_then(|()| executor.sync())
            .map_err(CliError::new)
    })?;
    let outputs = (0..executor.output_count())
        .map(|index| {
            Ok((
                format!("out_{index}"),
                // GRF-45: an output is memory of the executor, possibly on a device, and the profile below runs the graph again.
                executor.output(index)?.to_host_object()?,
            ))
        })
        .collect::<Result<Vec<_>, tvmspec::function::Error>>()
        .map_err(CliError::new)?;
    write_outputs(args, &outputs)?;
    statistics(&times);
    if args.profile || args.trace.is_some() {
        profile(args, &mut executor)?;
    }
    if let Some(root) = &args.dump {
        let dump = debug::dump(&mut executor).map_err(CliError::new)?;
        let mut folder = OutputFolder::open(root, &[&dump.folder])?;
        for (name, bytes) in &dump.files {
            folder.write(name, bytes, Content::Binary)?;
        }
        folder.finish()?;
        let written = output::file_name(&root.join(&dump.folder));
        output::note(format_args!("dumped to {written}"));
    }
    Ok(Exit::Good)
}

/// Fills the inputs that were not set with zeros, and prints their names to stderr. A model can be measured without inputs, but their
/// memory is undefined until it is set.
fn fill_with_zeros(executor: &mut Executor) -> Result<(), CliError> {
    let names: Vec<String> = executor
        .unset_inputs()
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in &names {
        let index = executor.require_input(name).map_err(CliError::new)?;
        executor.clear_input(index).map_err(CliError::new)?;
    }
    if !names.is_empty() {
        let names = names.join(", ");
        output::note(format_args!(
            "note: these inputs have no value and are filled with zeros: {names}"
        ));
    }
    Ok(())
}

/// Measures and reports every call separately. Of three repetitions with ten runs each, the last one counts, because the first ones
/// warm up caches.
fn profile(args: &RunArgs, executor: &mut Executor) -> Result<(), CliError> {
    let repetitions = debug::run_individual(executor, 10, 3, 0).map_err(CliError::new)?;
    let seconds = repetitions.last().cloned().unwrap_or_default();
    let graph = executor.graph();
    let mut operators = Vec::new();
    let mut started = Duration::ZERO;
    for (index, (node, seconds)) in graph.nodes.iter().zip(&seconds).enumerate() {
        // GRF-42: an input takes no time, and has no row in the report.
        let Some(call) = &node.call else { continue };
        let entry = |id: usize| -> String {
            let entry = &graph.entries[id];
            let extents: Vec<String> = entry.shape.iter().map(i64::to_string).collect();
            format!("{}[{}]", entry.dtype, extents.join(","))
        };
        let inputs = node
            .inputs
            .iter()
            .filter_map(|input| graph.entry_id(*input));
        let inputs: Vec<String> = inputs.map(entry).collect();
        // GRF-12: the entries of a node are consecutive from there.
        let first = graph.node_row_ptr[index];
        let outputs: Vec<String> = (first..first + call.num_outputs).map(entry).collect();
        let took = Duration::from_secs_f64(*seconds);
        operators.push(Operator {
            name: node.name.clone(),
            started,
            took,
            shapes: format!("{} -> {}", inputs.join(", "), outputs.join(", ")),
        });
        // The calls are shown as if they followed each other without a gap. Each was measured alone, so that they have no common clock.
        started += took;
    }
    report(args, operators)
}
