//! An executor as a module (`GraphExecutor`). Which functions it has is for the tables that it is made with.

use super::arguments::enough;
use super::debug::Stepper;
use super::executor::Executor;
use crate::function::{self, Function};
use crate::module::{Module, ModuleKind};
use crate::value::AnyView;
use std::sync::{Arc, Mutex, PoisonError};

/// A function of the module: its name, how many arguments it has at least, and what it does.
pub(super) type ExecutorMethod = (
    &'static str,
    usize,
    fn(&mut ExecutorState, &[AnyView<'_>]) -> function::Result,
);

/// An executor as a module.
pub(crate) struct GraphExecutor {
    /// Shared with every function that was looked up.
    pub(super) state: Arc<Mutex<ExecutorState>>,
    /// Tables of functions, in which a name is looked for in order.
    methods: &'static [&'static [ExecutorMethod]],
}

/// What the functions of an executor's module work on.
pub(super) struct ExecutorState {
    pub(super) executor: Executor,
    /// How far `execute_node` has come; of use in a debug executor alone.
    pub(super) stepper: Stepper,
}

impl GraphExecutor {
    /// `executor` as a module with the functions of these tables.
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

    /// The executor that `module` is, if it is one.
    pub(crate) fn of(module: &Module) -> Option<&GraphExecutor> {
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
        // A function may outlive the handle that it was looked up by, and its kernels are in what the module keeps.
        let (state, alive) = (Arc::clone(&self.state), module.clone());
        Ok(Some(Function::from_packed(move |args| {
            let _alive = &alive;
            let (name, least, body) = *method;
            enough(name, least, args)?;
            body(
                // One call at a time: a run writes to the memory that all other functions show.
                &mut state.lock().unwrap_or_else(PoisonError::into_inner),
                args,
            )
        })))
    }
}
