//! The state of a machine between calls: inputs, outputs and saved functions, by the names of functions.

use super::copies::on_device;
use super::machine::VirtualMachineImpl;
use super::machine_interface::CallingMachine;
use crate::function::Error;
use crate::object::sequence_of;
use crate::rule::Kind;
use crate::value::{Any, AnyView, cast};
use crate::vm::{VM_62, VM_63};

impl VirtualMachineImpl {
    /// Keeps arguments for [`VirtualMachineImpl::invoke_stateful`] (VM-62).
    pub(super) fn set_input(&self, name: &str, args: &[AnyView<'_>]) -> Result<(), Error> {
        let index = self.index(name)?;
        // VM-60: checked here rather than in `invoke_stateful`, so that the caller that passes the arguments gets the error.
        if args.len() as i64 != self.loaded.executable().code().functions[index].num_args {
            return Err(self.wrong_count(index, args));
        }
        let first = self.device(0)?;
        let kept: Result<Vec<Any>, Error> = args.iter().map(|arg| on_device(*arg, first)).collect();
        self.state().inputs.insert(name.to_owned(), kept?);
        Ok(())
    }

    /// Runs `name` with the kept inputs and keeps the result (VM-62).
    pub(super) fn invoke_stateful(&self, name: &str) -> Result<(), Error> {
        let index = self.index(name)?;
        // VM-62: cloned, because they stay for the next run, and the lock must not be held while the function runs.
        let inputs = self.state().inputs.get(name).cloned();
        let Some(inputs) = inputs else {
            let message =
                format!("No inputs set for stateful call of {name}; use `set_input` first.");
            return Err(VM_62.rejected(Kind::Missing, message).into());
        };
        let views: Vec<AnyView<'_>> = inputs.iter().map(Any::view).collect();
        let output = self.run(index, &views)?;
        self.state().outputs.insert(name.to_owned(), output);
        Ok(())
    }

    /// Returns the kept result of `name`, or a part of it: each of `path` is an index into a tuple (VM-63).
    pub(super) fn output(&self, name: &str, path: &[AnyView<'_>]) -> Result<Any, Error> {
        let Some(mut value) = self.state().outputs.get(name).cloned() else {
            let message = format!(
                "No output saved for call of \"{name}\"; use `invoke_stateful` to call it first."
            );
            return Err(VM_63.rejected(Kind::Missing, message).into());
        };
        for step in path {
            let at = cast::<i64>(*step)?;
            // VM-63: also missing if the value is not a tuple, and for a negative index.
            let next = sequence_of(value.view())
                .and_then(|items| items.get(usize::try_from(at).ok()?).cloned());
            value = next.ok_or_else(|| {
                VM_63.rejected(
                    Kind::Missing,
                    format!("the output of `{name}` has no element {at} there"),
                )
            })?;
        }
        Ok(value)
    }

    /// Binds arguments to `name` and keeps the result as `save_as` (VM-65).
    pub(super) fn save(
        &self,
        name: &str,
        save_as: &str,
        returns: bool,
        args: &[AnyView<'_>],
    ) -> Result<(), Error> {
        let closure = self.closure(name)?;
        let first = self.device(0)?;
        // VM-65: kept on the first device, as for `set_input`.
        let last: Result<Vec<Any>, Error> = args.iter().map(|arg| on_device(*arg, first)).collect();
        // VM-64: a saved function may be bound again; its earlier arguments then come last.
        let bound = closure.bind(save_as, last?, returns);
        self.state().saved.insert(save_as.to_owned(), bound);
        Ok(())
    }
}
