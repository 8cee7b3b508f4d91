//! Operations of chapter module: loading, lookup, imports, properties.

use super::symbol_memory::SymbolMemory;
use super::{compiled, constants, environment, linked_library, loading, lookup, probe};
use crate::conformance::function::script;
use crate::conformance::op::{self, Answer, Handler, Op, OpError};
use crate::function::Error;
use crate::module::{self, Dialect, Module, load_symbols};
use crate::release::Layout;
use crate::rule::{Findings, Strictness};
use serde_json::{Value, json};
use std::sync::Arc;

/// The operations on a library in memory.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "module.load",
        help: "data: a blob, symbol: its name: modules in the order of a walk, the context, the findings",
        run: Handler::Partly(load, loading::walk),
    },
    Op {
        name: "module.symbols",
        help: "value {exports, needs, slots, text, name}: layout, convention, the function found, slots filled",
        run: Handler::Partly(symbols, compiled::symbols),
    },
    Op {
        name: "module.call",
        help: "value {layout, args}: the type of each argument as the compiled function sees it",
        run: Handler::Driven(compiled::call),
    },
    Op {
        name: "module.find",
        help: "value {modules, name, query_imports}: which module has the function, and which were searched",
        run: Handler::Driven(lookup::find),
    },
    Op {
        name: "module.import",
        help: "value [[importer, imported], ...]: the imports of each module",
        run: Handler::Driven(lookup::import),
    },
    Op {
        name: "module.environment",
        help: "value {release, steps}: the result of each lookup from compiled code",
        run: Handler::Driven(environment::environment),
    },
    Op {
        name: "module.properties",
        help: "value {kind, release, runs}: the property mask",
        run: Handler::Driven(lookup::properties),
    },
    Op {
        name: "module.life",
        help: "value {layout, globals: [\"add\" | \"remove\", ...]}: whether the library is there while a function of it is, and after",
        run: Handler::Driven(compiled::life),
    },
    Op {
        name: "module.open",
        help: "data: a library, value {import, lookups, calls}: its modules, slots and functions, and the results of the calls",
        run: Handler::Partly(linked_library::open, linked_library::drive),
    },
    Op {
        name: "module.script",
        help: "data: a library in the file case.so, value: as for function.script: the result or error of each call",
        run: Handler::Driven(script::script_of_library),
    },
    Op {
        name: "module.constants",
        help: "data: a const_loader payload, name, times: the initialisers that were called and with what; the names of all constants, sorted, for a name that begins with get_const_var_",
        run: Handler::Driven(constants::constants),
    },
];

/// Converts an error of the loader to a rejection.
pub(super) fn broken(error: Error) -> OpError {
    error.into()
}

/// Returns the value of a request; null without one.
pub(super) fn value(args: &Value) -> &Value {
    args.get("value").unwrap_or(&Value::Null)
}

/// Returns the texts of a list; other values in it are skipped.
pub(super) fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Runs `module.load`: loads a library in memory around the blob.
fn load(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let blob = args
        .get("symbol")
        .and_then(Value::as_str)
        .unwrap_or("__tvm_ffi__library_bin");
    // Two layouts may use one name for the blob; the newest of them is taken.
    let named = Layout::ALL
        .into_iter()
        .rev()
        .find(|layout| Dialect::of(*layout).blob.text() == blob);
    let names = Dialect::of(named.unwrap_or(Layout::V0_22));
    let memory = Arc::new(
        SymbolMemory::default()
            .data(blob, &data)
            .slot(names.context.text()),
    );
    // SAFETY: the symbols are in memory, and their code is that of the probe, which takes any arguments.
    let loaded = unsafe { load_symbols(memory.clone(), Strictness::Lenient) }.map_err(broken)?;
    let all = loaded.module.walk();
    let modules: Vec<Value> = all
        .iter()
        .map(|module| {
            let imports = imports(&all, module);
            let kind = module.kind();
            let hindrance = module
                .implementation()
                .and_then(|own| own.why_not_runnable());
            let hindrance = hindrance.as_deref().and_then(|text| text.split('`').nth(3));
            // The build decides whether kinds of devices have a loader, but not the name of the loader.
            let everywhere = ["library", "const_loader", "metadata"].contains(&kind.as_str());
            let loads = !everywhere && module::has_loader(&kind, loaded.layout);
            let wants = hindrance.map(str::to_owned);
            let wants = wants.or(loads.then(|| module::global_name(&kind, loaded.layout)));
            json!({"kind": kind, "imports": imports, "wants": wants})
        })
        .collect();
    let context = match memory.written(names.context.text()) {
        None => json!("untouched"),
        Some(0) => Value::Null,
        Some(written) => json!(
            all.iter()
                .position(|module| module.context() as usize == written)
        ),
    };
    let mut answer = Answer::new(
        json!({"layout": loaded.layout.name(), "modules": modules, "context": context}),
        Findings::default(),
    );
    answer.findings = loaded.findings;
    Ok(answer)
}

/// Returns the indices of the imports of `module` among all modules.
pub(super) fn imports(all: &[Module], module: &Module) -> Vec<Option<usize>> {
    let place = |module: &Module| all.iter().position(|other| other == module);
    module.imports().iter().map(place).collect()
}

/// Runs `module.symbols`: loads a library in memory with these symbols, and looks up a function.
fn symbols(args: &Value) -> Result<Answer, OpError> {
    let value = value(args);
    let mut memory = SymbolMemory::default();
    for name in texts(&value["exports"]) {
        memory = memory.code(name, probe::address(name));
    }
    for name in texts(&value["needs"]) {
        memory = memory.need(name);
    }
    for name in texts(&value["slots"]) {
        memory = memory.slot(name);
    }
    for (name, text) in value["text"].as_object().into_iter().flatten() {
        // MOD-04: the entry point of old libraries is data: the name of a function with a NUL.
        let mut bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        bytes.push(0);
        memory = memory.data(name, &bytes);
    }
    // SAFETY: the symbols are in memory, and their code is that of the probe, which takes any arguments.
    let loaded = unsafe { load_symbols(Arc::new(memory), Strictness::Lenient) }.map_err(broken)?;
    let name = value["name"].as_str().unwrap_or("f");
    let found = loaded.module.function(name, false).map_err(failed)?;
    let found = found
        .map(|function| probe::name_of(&function))
        .transpose()
        .map_err(failed)?;
    let mut slots = loaded.slots;
    slots.sort();
    Ok(plain(
        json!({"layout": loaded.layout.name(), "function": found, "slots": slots}),
    ))
}

/// Creates an answer without findings.
pub(super) fn plain(value: Value) -> Answer {
    Answer::new(value, Findings::default())
}

/// Converts an error of a lookup or a call, which makes the case unsupported.
pub(super) fn failed(error: Error) -> OpError {
    OpError::Unsupported(error.to_string())
}
