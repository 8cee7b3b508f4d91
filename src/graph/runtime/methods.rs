//! The functions of an executor under the names that frontends call (GRF-44).

use super::arguments::{as_bytes, as_module, description, position};
use super::executor::{Executor, PoolTensor};
use super::executor_module::{ExecutorMethod, ExecutorState, GraphExecutor};
use crate::function::{self, Error};
use crate::graph::format::dtype_text;
use crate::graph::{GRF_32, GRF_44};
use crate::object::{Array, Map, Shape, Tensor};
use crate::rule::{Findings, Kind};
use crate::tensor::Params;
use crate::value::{Any, AnyView, cast};
use crate::wire::Cursor;

/// The functions of every executor (GRF-44), without regard to the release that brought each.
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

/// Input by number or by name. A name that the graph does not have is `None`: released executors then do nothing, and
/// frontends rely on it when they set all parameters that they have (GRF-44).
fn which_input(executor: &Executor, key: AnyView<'_>) -> function::Result<Option<usize>> {
    if let Ok(name) = String::try_from(key) {
        return Ok(executor.input_index(&name));
    }
    // A number without an input is rejected where it is used (GRF-32).
    position(key).map(Some)
}

/// Output by number, or by the name of its node (0.12): the last of the outputs of that node.
fn which_output(executor: &Executor, key: AnyView<'_>) -> function::Result<usize> {
    named_output(executor, key, |name, node, _| name == node)
}

/// Output by number, by `<node>:<number of the output>` (0.10), or by the name of its node (0.8 and 0.9).
fn which_output_in_place(executor: &Executor, key: AnyView<'_>) -> function::Result<usize> {
    // GRF-32: releases pass over an unknown name here, so that the caller's tensor is never written. Here it is an error.
    named_output(executor, key, |name, node, at| {
        name == node || name == format!("{node}:{at}")
    })
}

/// Output by number, or the last one of whose head `is` says so: by the name, the name of its node, and its number.
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

/// `(name or number, tensor)`: copies the tensor into the input (GRF-33).
fn set_input(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let tensor = description(tensor)?;
        // SAFETY: an argument describes memory that its caller keeps for the call.
        unsafe { state.executor.set_input_from(index, tensor) }?;
    }
    Ok(Any::none())
}

/// `(name or number, tensor)`: calls use the tensor from now on (GRF-34).
fn set_input_zero_copy(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    if let Some(index) = which_input(&state.executor, key)? {
        let (source, keep) = (description(tensor)?, tensor.to_any());
        // SAFETY: a tensor object is kept; the memory of a bare description, which only `unsafe` code makes, is kept by
        // the caller, as GRF-34 demands.
        unsafe { state.executor.refer_input(index, source, keep) }?;
    }
    Ok(Any::none())
}

/// `(name or number, tensor)`: calls write to the tensor from now on (GRF-34).
fn set_output_zero_copy(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, tensor) = (args[0], &args[1]);
    let index = which_output_in_place(&state.executor, key)?;
    // Whether it may be written to is for `refer_output` to look at.
    let (target, keep) = (description(tensor)?, tensor.to_any());
    // SAFETY: as for an input.
    unsafe { state.executor.refer_output(index, target, keep) }?;
    Ok(Any::none())
}

/// `(name or number[, out])`: the input's memory, or a copy of it (GRF-45); None for an unknown name (GRF-46).
fn input(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    // GRF-45: the second argument is required in 0.3 and 0.4, and ignored from 0.5 on. Here it is what is copied to.
    let (key, rest) = (args[0], &args[1..]);
    let Some(index) = which_input(&state.executor, key)? else {
        return Ok(Any::none());
    };
    tensor_or_copy(state.executor.input(index)?, rest)
}

/// `(name or number[, out])`: the output's memory, or a copy of it (GRF-45).
fn output(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let (key, rest) = (args[0], &args[1..]);
    let index = which_output(&state.executor, key)?;
    tensor_or_copy(state.executor.output(index)?, rest)
}

/// The tensor itself, or a copy of it in the tensor that was handed in.
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

/// `(name)`: the number of the input, -1 for an unknown name (GRF-44).
fn input_index(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let name = String::try_from(args[0])
        .map_err(|_| Error::from(GRF_44.rejected(Kind::Type, "Input key is not a string")))?;
    Ok(state
        .executor
        .input_index(&name)
        .map_or(-1, |index| index as i64)
        .into())
}

/// `{"shape": {name: shape}, "dtype": {name: text}}`, without the inputs that a parameter file set (GRF-44).
///
/// Releases look both up by the number of the *node*, which is another entry behind any node with two outputs; these are of the entry.
fn info(executor: &Executor, inputs: bool) -> function::Result {
    let graph = executor.graph();
    let (mut shapes, mut dtypes) = (Map::new(), Map::new());
    let mut add = |name: &str, tensor: &PoolTensor| -> function::Result<()> {
        // OBJ-39: the names are those of the graph, whose writer could let them share a chain.
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

/// `(host device type, host device id, name0, tensor0, ...)`: sets, runs, and returns host copies of the outputs.
fn run_from_inputs(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    GRF_44.demand(Kind::Type, args.len().is_multiple_of(2), || {
        "Number of arguments to run_from_inputs must be an even number of key-value pairs".into()
    })?;
    // GRF-44: the two numbers in front name the host, where the copies are in any case.
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
    // Copies: the next run writes to the executor's own (GRF-45).
    let mut outputs = Vec::new();
    for index in 0..state.executor.output_count() {
        outputs.push(Any::from(state.executor.output(index)?.to_host_object()?));
    }
    Ok(Array::new(outputs).into())
}

/// Sets every parameter of a parameter file that is an input of the graph; others are skipped, as from 0.7 on.
fn load_params(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let bytes = as_bytes(args[0])?;
    let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())?;
    state.executor.load_params(&params)?;
    Ok(Any::none())
}

/// `(other executor's module, parameter file)`: uses the other's memory for every parameter that the file names.
fn share_params(state: &mut ExecutorState, args: &[AnyView<'_>]) -> function::Result {
    let other = as_module(args[0])?;
    let shared = GraphExecutor::of(&other).ok_or_else(|| {
        Error::from(GRF_44.rejected(
            Kind::Type,
            format!(
                "parameters are shared with a GraphExecutor, not a {}",
                other.kind()
            ),
        ))
    })?;
    let bytes = as_bytes(args[1])?;
    // GRF-35: its names alone are used; the elements are those of the other executor.
    let (params, _) = Params::detect(&mut Cursor::new(&bytes), &mut Findings::default())?;
    // GRF-44: it may be this very executor, whose lock this call has: to wait for it would never end.
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
