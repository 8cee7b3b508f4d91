//! An executor as a module (`GraphExecutor`). The tables that it is created with define its functions.

use super::arguments::check_argument_count;
use super::debug::Stepper;
use super::executor::Executor;
use crate::function::{self, Function};
use crate::module::{Module, ModuleKind};
use crate::value::AnyView;
use std::sync::{Arc, Mutex, PoisonError};

/// A function of the module: its name, the minimum number of arguments, and the implementation.
pub(super) type ExecutorMethod = (
    &'static str,
    usize,
    fn(&mut ExecutorState, &[AnyView<'_>]) -> function::Result,
);

/// An executor as a module.
pub(crate) struct GraphExecutor {
    /// The state, shared with every function that was looked up.
    pub(super) state: Arc<Mutex<ExecutorState>>,
    /// The tables of functions, which are searched in order.
    methods: &'static [&'static [ExecutorMethod]],
}

/// The state that the functions of an executor's module use.
pub(super) struct ExecutorState {
    pub(super) executor: Executor,
    /// The progress of `execute_node`; only a debug executor uses it.
    pub(super) stepper: Stepper,
}

impl GraphExecutor {
    /// Returns `executor` as a module with the functions of these tables.
    pub(super) fn with_methods(
        executor: Executor,
        methods: &'static [&'static [ExecutorMethod]],
    ) -> GraphExecutor {
        let state = ExecutorState {
            executor,
            stepper: Stepper::default(),
        };
        GraphExecutor {
            state: Arc::new(Mutex::new(state)),
            methods,
        }
    }

    /// Returns the executor of `module`, if it is one.
    pub(crate) fn from_module(module: &Module) -> Option<&GraphExecutor> {
        let kind: &dyn std::any::Any = module.implementation()?;
        kind.downcast_ref()
    }
}

impl ModuleKind for GraphExecutor {
    fn kind(&self) -> &str {
        "GraphExecutor"
    }

    fn function(&self, module: &Module, name: &str) -> function::Result<Option<Function>> {
        let mut methods = self.methods.iter().copied().flatten();
        let Some(method) = methods.find(|method| method.0 == name) else {
            return Ok(None);
        };
        // A function may outlive the handle that it was looked up with, and the module keeps its kernels alive.
        let (state, alive) = (Arc::clone(&self.state), module.clone());
        Ok(Some(Function::from_packed(move |args| {
            let _alive = &alive;
            let (name, least, body) = *method;
            check_argument_count(name, least, args)?;
            body(
                // One call at a time, because a run writes to the memory that all other functions return.
                &mut state.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            )
        })))
    }
}
