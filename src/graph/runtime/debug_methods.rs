//! The additional functions of a debug executor.

use super::arguments::{count, position};
use super::debug;
use super::executor::Executor;
use super::executor_module::{ExecutorMethod, ExecutorState, GraphExecutor};
use super::methods::{self, tensor_or_copy};
use crate::function::{self, Error};
use crate::graph::{GRF_42, GRF_44};
use crate::rule::Kind;
use crate::value::{Any, AnyView, Bytes};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

impl GraphExecutor {
    /// Returns `executor` as a module. A debug executor has additional functions (GRF-44).
    pub(crate) fn new(executor: Executor, debug: bool) -> GraphExecutor {
        // GRF-44: the additional functions replace none of the others.
        const ALL: [&[ExecutorMethod]; 2] = [&methods::METHODS, &METHODS];
        let known = if debug { &ALL[..] } else { &ALL[..1] };
        GraphExecutor::with_methods(executor, known)
    }
}

/// The functions that only a debug executor has. `profile` is missing, because its report is an object of the C++ runtime (GRF-44).
const METHODS: [ExecutorMethod; 8] = [
    ("execute_node", 1, execute_node),
    ("get_node_output", 2, node_output),
    ("debug_get_output", 1, debug_output),
    ("get_output_by_layer", 2, output_by_layer),
    ("debug_run", 1, debug_run),
    ("run_individual", 3, individual),
    ("run_individual_node", 4, individual_node),
    ("profile_rpc", 0, profile),
];

/// Runs up to a node (GRF-40); arguments: `(node)`.
fn execute_node(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    // The state is destructured, because the stepper borrows the executor.
    let ExecutorState { executor, stepper } = state;
    stepper.execute(executor, position(args[0])?)?;
    Ok(Any::none())
}

/// Returns a host copy of an output of the node that ran last (GRF-41); arguments: `(node, output)`.
fn node_output(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (index, output) = (position(args[0])?, position(args[1])?);
    let found = state.stepper.output(&state.executor, index, output)?;
    Ok(found.to_host_object()?.into())
}

/// Returns an output as it is in memory now; arguments: `(node, output)`.
fn output_by_layer(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (node, index) = (position(args[0])?, position(args[1])?);
    // GRF-44: this runs no node. 0.5 to 0.7 return the content of the entry after the last run.
    let entry = state.executor.graph().entry_of(node, index);
    let entry = entry.and_then(|entry| state.executor.entry(entry));
    let entry = entry.ok_or_else(|| {
        let message = format!("there is no output {index} of node {node}");
        Error::from(GRF_44.rejected(Kind::Missing, message))
    })?;
    Ok(entry.to_object().into())
}

/// Runs only this node, and returns the seconds that it took; arguments: `(node)`.
fn debug_run(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let node = count(args[0])?;
    known_node(&state.executor, node)?;
    let start = Instant::now();
    state.executor.run_node(node)?;
    // The result includes the kernel, which a device may only have queued.
    state.executor.sync()?;
    Ok(start.elapsed().as_secs_f64().into())
}

/// Returns a report in the form of upstream's profiler: one call with its duration for every node that calls a function.
fn profile(state: &mut ExecutorState, _: &[AnyView<'_>]) -> function::Result {
    // GRF-44: three full runs come before the measurement. `run_individual` makes the third.
    state.executor.run()?;
    state.executor.run()?;
    let times = debug::run_individual(&mut state.executor, 1, 1, 0)?;
    let nodes = state.executor.graph().nodes.iter();
    // GRF-44: an input takes no time and is not listed in the report.
    let calls = nodes
        .zip(times.iter().flatten())
        .filter_map(|(node, seconds)| {
            let call = node.call.as_ref()?;
            let micros = json!({ "microseconds": seconds * 1e6 });
            Some(json!({ "Name": { "string": call.func_name }, "Duration (us)": micros }))
        });
    let calls: Vec<Value> = calls.collect();
    Ok(json!({ "calls": calls }).to_string().into())
}

/// Runs up to a node and returns its first output; arguments: `(node name or number[, out])`.
///
/// Upstream returns the *entry* of that number, which is the wrong one after a node with two outputs.
fn debug_output(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, rest) = (args[0], &args[1..]);
    let graph = Arc::clone(state.executor.graph());
    let index = match String::try_from(key) {
        Ok(name) => graph
            .nodes
            .iter()
            .position(|node| node.name == name)
            .ok_or_else(|| {
                Error::from(
                    GRF_44.rejected(Kind::Missing, format!("cannot find {name} among nodes")),
                )
            })?,
        Err(_) => position(key)?,
    };
    // GRF-50: always from the first node on. The progress of `execute_node` does not change.
    let mut stepper = debug::Stepper::default();
    stepper.execute(&mut state.executor, index)?;
    tensor_or_copy(stepper.output(&state.executor, index, 0)?, rest)
}

/// Measures all nodes; arguments: `(number, repeat, min_repeat_ms)` and, later, pauses. With three arguments it returns text as 0.8
/// does: the seconds of each node and a comma. With more arguments it returns bytes (GRF-42): the number of nodes, then doubles,
/// node after node, with all repetitions.
fn individual(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let rest = &args[3..];
    check_pauses(rest)?;
    let times = debug::run_individual(
        &mut state.executor,
        count(args[0])?,
        count(args[1])?,
        count(args[2])? as u64,
    )?;
    // GRF-42: 0.6 to 0.8 return text of the last repetition only. From 0.9 on there are two more arguments and bytes of all
    // repetitions.
    if rest.is_empty() {
        // The unit is seconds, as in 0.8. 0.6 and 0.7 return microseconds in the same form.
        let last = times.last().map(Vec::as_slice).unwrap_or_default();
        return Ok(last
            .iter()
            .map(|seconds| format!("{seconds},"))
            .collect::<String>()
            .into());
    }
    let nodes = &state.executor.graph().nodes;
    let numbered = nodes.iter().enumerate();
    let doubles =
        numbered.flat_map(|(node, _)| times.iter().filter_map(move |times| times.get(node)));
    // GRF-42: the number of nodes comes first, because a reader needs it to assign the doubles to nodes.
    let mut bytes = (nodes.len() as i64).to_le_bytes().to_vec();
    bytes.extend(doubles.flat_map(|seconds| seconds.to_le_bytes()));
    Ok(Bytes::new(bytes).into())
}

/// Measures one node and returns the bytes of `repeat` doubles; arguments: `(node, number, repeat, min_repeat_ms, ...)`.
fn individual_node(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let node = count(args[0])?;
    known_node(&state.executor, node)?;
    check_pauses(&args[4..])?;
    let mut bytes = Vec::new();
    let (number, repeat) = (count(args[1])?, count(args[2])?);
    // GRF-42: checked before the first run. With a count of 0 the mean would divide by 0.
    debug::check_counts(&[number, repeat])?;
    for _ in 0..repeat {
        let seconds = debug::time_node(&mut state.executor, node, number, count(args[3])? as u64)?;
        bytes.extend(seconds.to_le_bytes());
    }
    Ok(Bytes::new(bytes).into())
}

/// Checks that the graph has the node (GRF-44).
fn known_node(executor: &Executor, node: usize) -> function::Result<()> {
    if node < executor.graph().nodes.len() {
        return Ok(());
    }
    Err(GRF_44
        .rejected(Kind::Missing, format!("there is no node {node}"))
        .into())
}

/// Checks the arguments after `min_repeat_ms`: pauses between repetitions, which this crate ignores, and the number of repetitions
/// before a pause, which must be positive (GRF-42).
fn check_pauses(rest: &[AnyView<'_>]) -> function::Result<()> {
    let Some((repeats, others)) = rest.split_last() else {
        return Ok(());
    };
    for other in others {
        count(*other)?;
    }
    GRF_42.demand(Kind::Type, count(*repeats)? > 0, || {
        "a pause follows at least one repetition".into()
    })?;
    Ok(())
}
