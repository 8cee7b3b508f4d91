//! Operations of chapter module on the functions that compiled code calls.

use super::{backend, lookup};
use crate::conformance::op::{Handler, Op};

/// The operations on the functions that compiled code calls.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "module.launch",
        help: "value {workers, tasks, fail}: which tasks ran, in a group of how many, and the error",
        run: Handler::Driven(backend::launch),
    },
    Op {
        name: "module.barrier",
        help: "nothing: how many of two tasks had come when the barrier let one pass",
        run: Handler::Driven(backend::barrier),
    },
    Op {
        name: "module.once",
        help: "value {times, failures}: how often the initialiser ran, and what each run returned",
        run: Handler::Driven(backend::once),
    },
    Op {
        name: "module.workspace",
        help: "value [bytes, ...]: whether each is aligned",
        run: Handler::Driven(backend::workspace),
    },
    Op {
        name: "module.system",
        help: "value {register, prefix, before, name}: which registered symbol is found",
        run: Handler::Driven(lookup::system),
    },
];
