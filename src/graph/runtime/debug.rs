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

/// How far a step-by-step run has come (GRF-40).
#[derive(Debug, Default)]
pub(crate) struct Stepper {
    /// The node that ran last; nothing before the first step.
    last: Option<usize>,
}

impl Stepper {
    /// Runs up to node `index`: on from the last one, or from the start if that is already behind; nothing if it is it.
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
        // GRF-40: back means from the start, for the memory of inputs of an earlier node may hold later entries by now.
        let first = match self.last {
            Some(last) if last == index => return Ok(()),
            Some(last) if last < index => last + 1,
            _ => 0,
        };
        for node in first..=index {
            executor.run_node(node)?;
            // After each node: where a later one fails, the next call goes on behind those that ran.
            self.last = Some(node);
        }
        Ok(())
    }

    /// Output `output` of node `index`, which must be the node that ran last (GRF-41).
    pub(crate) fn output<'e>(
        &self,
        executor: &'e Executor,
        index: usize,
        output: usize,
    ) -> Result<&'e PoolTensor, Error> {
        GRF_41.demand(Kind::Missing, self.last == Some(index), || {
            format!("node {index} did not run last: run it first")
        })?;
        // GRF-41: releases add `output` to the first entry of the node, which leads into the next node where it is too large.
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

/// How long each node takes, in seconds: the mean of `number` runs, the last of `repeat` times (GRF-42).
///
/// Where `min_repeat_ms` is above 0, `number` is raised until one repetition takes that long. Inputs take 0.
///
/// # Errors
///
/// GRF-42 when `number` or `repeat` is 0; what a function raises; what a device rejects.
pub fn run_individual(
    executor: &mut Executor,
    number: usize,
    repeat: usize,
    min_repeat_ms: u64,
) -> Result<Vec<Vec<f64>>, Error> {
    check_counts(&[number, repeat])?;
    // GRF-42: once through, so that no node is measured on memory that was never touched.
    executor.run()?;
    let mut repetitions = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        // Nodes run while the graph is walked, so that the graph may not be borrowed from the executor.
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

/// GRF-42: something is run, and repeated.
pub(super) fn check_counts(counts: &[usize]) -> Result<(), Error> {
    GRF_42.demand(Kind::Type, !counts.contains(&0), || {
        "number and repeat must be greater than 0".into()
    })?;
    Ok(())
}

/// Mean seconds of one run of node `index`.
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
        // Devices queue kernels: without the wait it is their launches that are measured.
        executor.sync()?;
        let taken = start.elapsed();
        if taken.as_millis() as u64 >= min_repeat_ms {
            return Ok(taken.as_secs_f64() / number as f64);
        }
        // GRF-42: the whole is measured again, for the runs so far were too short to tell.
        number = number.saturating_mul(2);
    }
}

/// The graph as the debug dump shows it: `inputs` are names, `op` is the function or `param`, and every node says the type
/// and shape of its first output.
///
/// Released dumps look type and shape up under the *node* number, which is another entry as soon as an earlier node has
/// two outputs. Ours are those of the node.
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

/// A Chrome trace: one event pair for each node, one behind the other, times in microseconds.
pub(crate) fn chrome_trace(graph: &Graph, seconds: &[f64]) -> Value {
    let mut now = 0.0;
    let mut events = Vec::new();
    for (node, seconds) in graph.nodes.iter().zip(seconds) {
        // One process, one thread: nodes run one behind the other.
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
    /// The name of the folder that readers look for them in: `_tvmdbg_device_CPU_0`.
    pub folder: String,
    /// The graph, a Chrome trace and every tensor: name and content.
    pub files: [(&'static str, Vec<u8>); 3],
}

/// Runs every node once by itself and returns the dump of it.
///
/// # Errors
///
/// What a function raises; what a device rejects; a tensor whose type parameter files do not have.
pub fn dump(executor: &mut Executor) -> Result<DebugDump, Error> {
    let graph = &Arc::clone(executor.graph());
    let mut stepper = Stepper::default();
    // Up to 0.8 the names come in the order of a hash map; readers find them by name. Here they are in the order of the nodes.
    let mut tensors: Vec<(Cow<'_, str>, TensorRecord<'_>)> = Vec::new();
    let mut seconds = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let start = Instant::now();
        stepper.execute(executor, index)?;
        // A device queues the kernel: its time is that of its end, and its outputs are there only then.
        executor.sync()?;
        // The trace shows inputs, too, as events that take no time.
        seconds.push(if node.call.is_some() {
            start.elapsed().as_secs_f64()
        } else {
            0.0
        });
        // At once: a later node may use the same pool, as the plan allows (GRF-22).
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

/// `CPU_0`, `CUDA_1`: the text of the device in capitals, as the Python package names the folder.
fn device_name(device: Device) -> String {
    let name = crate::value::device_to_text(crate::value::DLDevice::from(device));
    name.to_uppercase()
        .replace([':', '('], "_")
        .replace(')', "")
}

/// JSON with four spaces for a level, as the Python package writes it.
fn indented(value: &Value) -> String {
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
    let written = serde_core::Serialize::serialize(value, &mut serializer);
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&out).into_owned()
}
