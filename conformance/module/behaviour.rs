//! Operations of the chapter module that drive what compiled code calls.

use super::ops::plain;
use super::{backend, lookup, probe};
use crate::conformance::op::{Answer, Op, Refusal, Run};
use crate::module::workspace::{self, Request};
use crate::module::{Name, Symbols, system};
use serde_json::{Value, json};

/// What a case of this chapter can ask of the functions that compiled code calls.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "module.launch",
        help: "value {workers, tasks, fail}: which tasks ran, in a group of how many, and the error",
        run: Run::Driven(backend::launch),
    },
    Op {
        name: "module.barrier",
        help: "nothing: how many of two tasks had come when the barrier let one pass",
        run: Run::Driven(backend::barrier),
    },
    Op {
        name: "module.once",
        help: "value {times, failures}: how often the initialiser ran, and what each run returned",
        run: Run::Driven(backend::once),
    },
    Op {
        name: "module.workspace",
        help: "value [bytes, ...]: whether each is aligned",
        run: Run::Partly(aligned, backend::workspace),
    },
    Op {
        name: "module.system",
        help: "value {register, prefix, before, name}: which registered symbol is found",
        run: Run::Partly(system_symbol, lookup::system),
    },
];

fn aligned(args: &Value) -> Result<Answer, Refusal> {
    let sizes = args["value"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64);
    let mut answers = Vec::new();
    for bytes in sizes {
        let request = Request {
            device_type: 1,
            device_id: 0,
            bytes,
            hint: (2, 32),
        };
        let mut aligned = true;
        // Both who serves now, and who does where no device chapter is.
        for source in [workspace::current(), workspace::host()] {
            let memory = source.alloc(request).map_err(Refusal::Unsupported)?;
            aligned &= (memory.as_ptr() as usize).is_multiple_of(workspace::ALIGNMENT);
            // SAFETY: just allocated on this thread.
            unsafe { source.free((1, 0), memory) }.map_err(Refusal::Unsupported)?;
        }
        answers.push(aligned);
    }
    Ok(plain(json!(answers)))
}

fn system_symbol(args: &Value) -> Result<Answer, Refusal> {
    let value = &args["value"];
    // Names of this case alone: the table is one for the process.
    let own = |name: &str| format!("{name}@{:?}", std::thread::current().id());
    let mut replaced = Vec::new();
    for (name, code) in value["register"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?)))
    {
        let address = probe::address(code).cast_mut();
        // SAFETY: a function of the probe, which takes any arguments and stays.
        replaced.push(unsafe { system::register(&own(name), address) });
    }
    let symbols = system::SystemSymbols::new(value["prefix"].as_str().unwrap_or_default());
    let name = own(value["name"].as_str().unwrap_or_default());
    let found = match value["before"].as_str() {
        Some(before) => symbols.function(before, &name),
        None => symbols.address(Name::of(&name)),
    };
    let known = ["f", "__tvm_ffi_f", "p_f", "__tvm_ffi_p_f", "main"];
    let found = found.and_then(|found| {
        known
            .into_iter()
            .find(|code| probe::address(code) == found.as_ptr().cast_const())
    });
    for pair in value["register"].as_array().into_iter().flatten() {
        let name = own(pair[0].as_str().unwrap_or_default());
        // SAFETY: takes the name away.
        unsafe { system::register(&name, std::ptr::null_mut()) };
    }
    Ok(plain(json!({"found": found, "replaced": replaced})))
}
