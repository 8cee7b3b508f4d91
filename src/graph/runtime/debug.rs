//! The debug executor: one node at a time, times, and the dump of a run.

use super::executor::{Executor, ExecutorDevice, PoolTensor};
use crate::function::Error;
use crate::graph::format::dtype_text;
use crate::graph::{GRF_40, GRF_41, GRF_42, Graph, TvmOpParam};
use crate::rule::Kind;
use crate::tensor::{Device, Params, Sizing, TensorRecord};
use crate::wire::Writer;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// The progress of a step-by-step run (GRF-40).
#[derive(Debug, Default)]
pub(crate) struct Stepper {
    /// The node that ran last; `None` before the first step.
    last: Option<usize>,
}

impl Stepper {
    /// Runs up to node `index`. It continues after the last node, or starts again if `index` is earlier, and does nothing if they
    /// are equal.
    pub(crate) fn execute(&mut self, executor: &mut Executor, index: usize) -> Result<(), Error> {
        let nodes = executor.graph().nodes.len();
        if index >= nodes {
            return Err(GRF_40
                .rejected(
                    Kind::Missing,
                    format!("there is no node {index}; there are {nodes}"),
                )
                .into());
        }
        // GRF-40: going back means starting again, because later entries may already use the memory of an earlier node's inputs.
        let first = match self.last {
            Some(last) if last == index => return Ok(()),
            Some(last) if last < index => last + 1,
            _ => 0,
        };
        for node in first..=index {
            executor.run_node(node)?;
            // Updated after each node, so that the next call after a failure continues after the nodes that ran.
            self.last = Some(node);
        }
        Ok(())
    }

    /// Returns output `output` of node `index`, which must be the node that ran last (GRF-41).
    pub(crate) fn output<'e>(
        &self,
        executor: &'e Executor,
        index: usize,
        output: usize,
    ) -> Result<&'e PoolTensor, Error> {
        GRF_41.demand(Kind::Missing, self.last == Some(index), || {
            format!("node {index} did not run last: run it first")
        })?;
        // GRF-41: releases only add `output` to the first entry of the node, so a number that is too large selects an entry of the next
        // node.
        let entry = executor.graph().entry_of(index, output);
        let entry = entry.and_then(|entry| executor.entry(entry));
        entry.ok_or_else(|| {
            GRF_41
                .rejected(
                    Kind::Missing,
                    format!("node {index} has no output {output}"),
                )
                .into()
        })
    }
}

/// Measures each node: the mean seconds of `number` runs, in each of `repeat` repetitions (GRF-42).
///
/// If `min_repeat_ms` is above 0, `number` is raised until one repetition takes that long. Inputs take 0 seconds.
///
/// # Errors
///
/// Returns GRF-42 if `number` or `repeat` is 0; the error of a function; the error of a device.
pub fn run_individual(
    executor: &mut Executor,
    number: usize,
    repeat: usize,
    min_repeat_ms: u64,
) -> Result<Vec<Vec<f64>>, Error> {
    check_counts(&[number, repeat])?;
    // GRF-42: one full run first, so that no node is measured on untouched memory.
    executor.run()?;
    let mut repetitions = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        // The loop runs nodes, which needs the executor, so the graph must not be borrowed from it.
        let graph = Arc::clone(executor.graph());
        let mut times = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let seconds = match &node.call {
                None => 0.0,
                Some(_) => time_node(executor, index, number, min_repeat_ms)?,
            };
            times.push(seconds);
        }
        repetitions.push(times);
    }
    Ok(repetitions)
}

/// Checks that nodes are run, and repeated, at least once (GRF-42).
pub(super) fn check_counts(counts: &[usize]) -> Result<(), Error> {
    GRF_42.demand(Kind::Type, !counts.contains(&0), || {
        "number and repeat must be greater than 0".into()
    })?;
    Ok(())
}

/// Measures the mean seconds of one run of node `index`.
pub(crate) fn time_node(
    executor: &mut Executor,
    index: usize,
    mut number: usize,
    min_repeat_ms: u64,
) -> Result<f64, Error> {
    loop {
        let start = Instant::now();
        for _ in 0..number {
            executor.run_node(index)?;
        }
        // Devices queue kernels. Without the wait only the launches would be measured.
        executor.sync()?;
        let taken = start.elapsed();
        if taken.as_millis() as u64 >= min_repeat_ms {
            return Ok(taken.as_secs_f64() / number as f64);
        }
        // GRF-42: measured again from the start, because the runs were too short.
        number = number.saturating_mul(2);
    }
}

/// Returns the graph for the debug dump. `inputs` are names, `op` is the function or `param`, and every node states the type and
/// shape of its first output.
///
/// Upstream looks up type and shape by the *node* number, which is the wrong entry after a node with two outputs. Here they belong to
/// the node.
pub(crate) fn graph_dump(graph: &Graph) -> Value {
    let name_of = |index: usize| graph.nodes.get(index).map_or("", |node| &node.name);
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let entry = graph
                .node_row_ptr
                .get(index)
                .and_then(|entry| graph.entries.get(*entry));
            let mut attrs = node
                .call
                .as_ref()
                .map(TvmOpParam::attrs_json)
                .unwrap_or_default();
            let dtype = entry
                .map(|entry| dtype_text(entry.dtype))
                .unwrap_or_default();
            attrs.insert("T".into(), format!("type: {dtype}").into());
            let inputs: Vec<&str> = node
                .inputs
                .iter()
                .map(|input| name_of(input.node))
                .collect();
            json!({
                "op": node.call.as_ref().map_or("param", |call| &call.func_name),
                "name": node.name,
                "inputs": inputs,
                "attrs": attrs,
                "shape": entry.map(|entry| entry.shape.clone()).unwrap_or_default(),
            })
        })
        .collect();
    // Frontends find the other members as in the graph JSON.
    let mut dump = graph.to_json();
    if let Value::Object(members) = &mut dump {
        members.insert("nodes".into(), nodes.into());
    }
    dump
}

/// Returns a Chrome trace: a pair of events for each node, in sequence, with times in microseconds.
pub(crate) fn chrome_trace(graph: &Graph, seconds: &[f64]) -> Value {
    let mut now = 0.0;
    let mut events = Vec::new();
    for (node, seconds) in graph.nodes.iter().zip(seconds) {
        // All events have one process and one thread, because the nodes run in sequence.
        let mut event = |at: f64, phase: &str| {
            events.push(json!({ "ts": at, "tid": 1, "pid": 1, "name": node.name, "ph": phase }));
        };
        event(now, "B");
        now += seconds * 1e6;
        event(now, "E");
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events })
}

/// The files of a debug dump.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DebugDump {
    /// The name of the folder where readers look for the files, such as `_tvmdbg_device_CPU_0`.
    pub folder: String,
    /// The names and contents of the files: the graph, a Chrome trace and every tensor.
    pub files: [(&'static str, Vec<u8>); 3],
}

/// Runs every node once, one at a time, and returns the dump of the run.
///
/// # Errors
///
/// Returns the error of a function, or of a device. Also fails for a tensor whose type parameter files do not support.
pub fn dump(executor: &mut Executor) -> Result<DebugDump, Error> {
    let graph = &Arc::clone(executor.graph());
    let mut stepper = Stepper::default();
    // Up to 0.8 the names come in the order of a hash map, and readers find them by name. Here they come in the order of the nodes.
    let mut tensors: Vec<(Cow<'_, str>, TensorRecord<'_>)> = Vec::new();
    let mut seconds = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let start = Instant::now();
        stepper.execute(executor, index)?;
        // A device only queues the kernel. Its time and its outputs are complete after this wait.
        executor.sync()?;
        // The trace also shows inputs, as events without duration.
        seconds.push(if node.call.is_some() {
            start.elapsed().as_secs_f64()
        } else {
            0.0
        });
        // The outputs are copied at once, because a later node may use the same pool (GRF-22).
        let outputs = node.call.as_ref().map_or(1, |call| call.num_outputs);
        for output in 0..outputs {
            let tensor = stepper.output(executor, index, output)?;
            let record = TensorRecord::new(
                tensor.dtype(),
                tensor.shape(),
                Cow::Owned(tensor.to_host()?),
                Sizing::V0_7,
            )?;
            tensors.push((Cow::Owned(format!("{}____{output}", node.name)), record));
        }
    }
    let device = executor
        .devices()
        .first()
        .map_or(Device::CPU, ExecutorDevice::device);
    let mut params = Writer::new();
    Params::new(tensors).write(&mut params);
    Ok(DebugDump {
        folder: format!("_tvmdbg_device_{}", device_name(device)),
        files: [
            (
                "_tvmdbg_graph_dump.json",
                indented(&graph_dump(graph)).into_bytes(),
            ),
            (
                "_tvmdbg_execution_trace.json",
                chrome_trace(graph, &seconds).to_string().into_bytes(),
            ),
            ("output_tensors.params", params.into_bytes()),
        ],
    })
}

/// Returns the text of the device in capitals, such as `CPU_0` or `CUDA_1`, as the Python package names the folder.
fn device_name(device: Device) -> String {
    let name = crate::value::device_to_text(device);
    name.to_uppercase()
        .replace([':', '('], "_")
        .replace(')', "")
}

/// Formats JSON with four spaces for each level, as the Python package does.
fn indented(value: &Value) -> String {
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
    let written = serde_core::Serialize::serialize(value, &mut serializer);
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&out).into_owned()
}
