//! The functions of an executor under the names that frontends call (GRF-44).

use super::arguments::{as_bytes, as_module, description, position};
use super::executor::{Executor, PoolTensor};
use super::executor_module::{ExecutorMethod, ExecutorState, GraphExecutor};
use crate::function::{self, Error};
use crate::graph::format::dtype_text;
use crate::graph::{GRF_32, GRF_44};
use crate::object::{Array, Map, Shape, Tensor};
use crate::rule::Kind;
use crate::tensor::Params;
use crate::value::{Any, AnyView, cast};

/// The functions of every executor (GRF-44), of all releases together.
pub(super) const METHODS: [ExecutorMethod; 14] = [
    ("set_input", 2, set_input),
    ("set_input_zero_copy", 2, set_input_zero_copy),
    ("set_output_zero_copy", 2, set_output_zero_copy),
    ("get_input", 1, input),
    ("get_output", 1, output),
    ("get_num_inputs", 0, |state, _| {
        Ok((state.executor.input_count() as i64).into())
    }),
    ("get_num_outputs", 0, |state, _| {
        Ok((state.executor.output_count() as i64).into())
    }),
    ("get_input_index", 1, input_index),
    ("get_input_info", 0, |state, _| info(&state.executor, true)),
    ("get_output_info", 0, |state, _| {
        info(&state.executor, false)
    }),
    ("run", 0, |state, _| {
        state.executor.run().map(|()| Any::none())
    }),
    ("run_from_inputs", 2, run_from_inputs),
    ("load_params", 1, load_params),
    ("share_params", 2, share_params),
];

/// Finds an input by number or by name. Returns `None` for an unknown name. Upstream then does nothing, and frontends rely on this when
/// they set all parameters that they have (GRF-44).
fn which_input(executor: &Executor, key: AnyView<'_>) -> function::Result<Option<usize>> {
    if let Ok(name) = String::try_from(key) {
        return Ok(executor.input_index(&name));
    }
    // A number without an input is rejected where it is used (GRF-32).
    position(key).map(Some)
}

/// Finds an output by number, or by the name of its node (0.12). A name means the last output of that node.
fn which_output(executor: &Executor, key: AnyView<'_>) -> function::Result<usize> {
    named_output(executor, key, |name, node, _| name == node)
}

/// Finds an output by number, by `<node>:<number of the output>` (0.10), or by the name of its node (0.8 and 0.9).
fn which_output_in_place(executor: &Executor, key: AnyView<'_>) -> function::Result<usize> {
    // GRF-32: releases ignore an unknown name here, so that the caller's tensor is never written. Here it is an error.
    named_output(executor, key, |name, node, at| {
        name == node || name == format!("{node}:{at}")
    })
}

/// Finds an output by number, or the last one for which `is` returns true. `is` gets the name, the name of the node, and the
/// output's number.
fn named_output(
    executor: &Executor,
    key: AnyView<'_>,
    is: impl Fn(&str, &str, usize) -> bool,
) -> function::Result<usize> {
    let Ok(name) = String::try_from(key) else {
        return position(key);
    };
    let graph = executor.graph();
    // GRF-32: a name means the last of its outputs.
    let mut heads = graph.heads.iter().enumerate().rev();
    let found = heads.find(|(at, head)| {
        let node = graph.nodes.get(head.node).map_or("", |node| &node.name);
        is(&name, node, *at)
    });
    let found = found.map(|(at, _)| at);
    found.ok_or_else(|| {
        GRF_32
            .rejected(Kind::Missing, format!("Invalid output node:{name}"))
            .into()
    })
}

/// Copies a tensor into an input (GRF-33); arguments: `(name or number, tensor)`.
fn set_input(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let tensor = description(tensor)?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    Ok(Any::none())
}

/// Makes calls use the tensor from now on (GRF-34); arguments: `(name or number, tensor)`.
fn set_input_zero_copy(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let (source, keep) = (description(tensor)?, tensor.to_any());
        // SAFETY: a tensor object is kept. A bare description can only be created by `unsafe` code, which keeps its memory as GRF-34
        // demands.
        unsafe { state.executor.refer_input(index, source, keep) }?;
    }
    Ok(Any::none())
}

/// Makes calls write to the tensor from now on (GRF-34); arguments: `(name or number, tensor)`.
fn set_output_zero_copy(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    let index = which_output_in_place(&state.executor, key)?;
    // `refer_output` checks whether it may be written to.
    let (target, keep) = (description(tensor)?, tensor.to_any());
    // SAFETY: as for an input.
    unsafe { state.executor.refer_output(index, target, keep) }?;
    Ok(Any::none())
}

/// Returns the input's memory, or copies it (GRF-45); arguments: `(name or number[, out])`. Returns None for an unknown name
/// (GRF-46).
fn input(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    // GRF-45: the second argument is required in 0.3 and 0.4, and ignored from 0.5 on. Here it is the target of the copy.
    let (key, rest) = (args[0], &args[1..]);
    let Some(index) = which_input(&state.executor, key)? else {
        return Ok(Any::none());
    };
    tensor_or_copy(state.executor.input(index)?, rest)
}

/// Returns the output's memory, or copies it (GRF-45); arguments: `(name or number[, out])`.
fn output(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, rest) = (args[0], &args[1..]);
    let index = which_output(&state.executor, key)?;
    tensor_or_copy(state.executor.output(index)?, rest)
}

/// Returns the tensor itself, or copies it into the given tensor.
pub(super) fn tensor_or_copy(tensor: &PoolTensor, rest: &[AnyView<'_>]) -> function::Result {
    match rest {
        [] => Ok(tensor.to_object().into()),
        [target, ..] => {
            if let Ok(target) = cast::<Tensor>(*target) {
                target.check_writable()?;
            }
            let target = description(target)?;
            // SAFETY: an argument describes memory that its caller keeps for the call.
            unsafe { tensor.copy_into(target) }?;
            Ok(Any::none())
        }
    }
}

/// Returns the number of the input, or -1 for an unknown name (GRF-44); arguments: `(name)`.
fn input_index(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let name = String::try_from(args[0])
        .map_err(|_| Error::from(GRF_44.rejected(Kind::Type, "Input key is not a string")))?;
    Ok(state
        .executor
        .input_index(&name)
        .map_or(-1, |index| index as i64)
        .into())
}

/// Returns `{"shape": {name: shape}, "dtype": {name: text}}`, without the inputs that a parameter file set (GRF-44).
///
/// Releases look up both by the number of the *node*, which is the wrong entry after any node with two outputs. Here the number of the
/// entry is used.
fn info(executor: &Executor, inputs: bool) -> function::Result {
    let graph = executor.graph();
    let (mut shapes, mut dtypes) = (Map::new(), Map::new());
    let mut add = |name: &str, tensor: &PoolTensor| -> function::Result<()> {
        // OBJ-39: the names come from the graph, whose writer may have chosen them to collide in the map.
        shapes.set_untrusted(name, Shape::new(tensor.shape()))?;
        dtypes.set_untrusted(name, dtype_text(tensor.dtype()))
    };
    if inputs {
        for (index, (_, name)) in graph.inputs().enumerate() {
            if executor.is_param(index) {
                continue;
            }
            add(name, executor.input(index)?)?;
        }
    } else {
        for (index, head) in graph.heads.iter().enumerate() {
            let node = graph.nodes.get(head.node).map_or("", |node| &node.name);
            // GRF-44: outputs of one node need different names.
            let name = if head.index == 0 {
                node.to_owned()
            } else {
                format!("{node}:{}", head.index)
            };
            add(&name, executor.output(index)?)?;
        }
    }
    let mut both = Map::new();
    both.set("shape", shapes)?;
    both.set("dtype", dtypes)?;
    Ok(both.into())
}

/// Sets inputs, runs, and returns host copies of the outputs; arguments: `(host device type, host device id, name0, tensor0, ...)`.
fn run_from_inputs(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    GRF_44.demand(Kind::Type, args.len().is_multiple_of(2), || {
        "Number of arguments to run_from_inputs must be an even number of key-value pairs".into()
    })?;
    // GRF-44: the first two numbers name the host, and the copies are on the host in any case.
    for pair in args[2..].chunks_exact(2) {
        let name = String::try_from(pair[0])?;
        let index = state.executor.input_index(&name).ok_or_else(|| {
            Error::from(GRF_32.rejected(Kind::Missing, format!("{name} is not a valid input name")))
        })?;
        let tensor = description(&pair[1])?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    state.executor.run()?;
    // GRF-45: copies, because the next run overwrites the executor's memory.
    let mut outputs = Vec::new();
    for index in 0..state.executor.output_count() {
        outputs.push(Any::from(state.executor.output(index)?.to_host_object()?));
    }
    Ok(Array::new(outputs).into())
}

/// Sets every parameter of a parameter file that is an input of the graph. Others are skipped, as from 0.7 on.
fn load_params(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let bytes = as_bytes(args[0])?;
    let params = Params::open(&bytes)?.value;
    state.executor.load_params(&params)?;
    Ok(Any::none())
}

/// Uses another executor's memory for every parameter in the file; arguments: `(other executor's module, parameter file)`.
fn share_params(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let other = as_module(args[0])?;
    let shared = GraphExecutor::from_module(&other).ok_or_else(|| {
        Error::from(GRF_44.rejected(
            Kind::Type,
            format!(
                "parameters are shared with a GraphExecutor, not a {}",
                other.kind()
            ),
        ))
    })?;
    let bytes = as_bytes(args[1])?;
    // GRF-35: only the names of the file are used. The elements come from the other executor.
    let params = Params::open(&bytes)?.value;
    // GRF-44: the other may be this same executor, which this call has locked. Waiting for it would be a deadlock.
    let other = shared.state.try_lock().map_err(|_| {
        Error::from(GRF_44.rejected(
            Kind::Cycle,
            "an executor cannot share parameters with itself",
        ))
    })?;
    state
        .executor
        .share_inputs(&other.executor, params.iter().map(|(name, _)| name))?;
    Ok(Any::none())
}
