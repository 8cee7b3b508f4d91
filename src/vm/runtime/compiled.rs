//! Compiled functions: code of a library that works on lists of values (VM-12).

use super::frame::{MOST_REGISTERS, VmFrame};
use super::loaded_executable::LoadedExecutable;
use super::machine::VirtualMachineImpl;
use crate::function::{Error, Function};
use crate::module::any_list::RunningLists;
use crate::module::{Convention, Library, Module};
use crate::payload::relax_vm::{FunctionKind, RelaxFunction};
use crate::rule::Kind;
use crate::value::Any;
use crate::vm::VM_12;

/// The code of a compiled function.
pub(super) struct CompiledFunction {
    code: Function,
    convention: Convention,
    /// The register of the result: the first after the arguments.
    result: usize,
}

/// Finds the code of all compiled functions, by their numbers in the table.
pub(super) fn compiled_functions(
    loaded: &LoadedExecutable,
    imports: &[Module],
) -> Result<Vec<(usize, CompiledFunction)>, Error> {
    let all = loaded.executable().code().functions.iter().enumerate();
    all.filter(|(_, function)| function.kind == FunctionKind::VmTir)
        .map(|(index, function)| Ok((index, CompiledFunction::find(function, imports)?)))
        .collect()
}

impl CompiledFunction {
    fn find(function: &RelaxFunction<'_>, imports: &[Module]) -> Result<CompiledFunction, Error> {
        let RelaxFunction {
            num_args,
            registers,
            ..
        } = *function;
        let result = usize::try_from(num_args).ok();
        let result = result.filter(|_| num_args < registers).ok_or_else(|| {
            let message = format!(
                "function `{}` has {registers} registers for {num_args} arguments and a result",
                function.name
            );
            Error::from(VM_12.rejected(Kind::Malformed, message))
        })?;
        VM_12.demand(Kind::Limit, registers <= MOST_REGISTERS as i64, || {
            format!(
                "function `{}` has {registers} registers, a compiled function has {MOST_REGISTERS} at most",
                function.name
            )
        })?;
        let name = format!("__vmtir__{}", function.name);
        // Only a library states the calling convention of its code for lists.
        for module in imports.iter().flat_map(Module::walk) {
            let Some(library) = Library::of(&module) else {
                continue;
            };
            let convention = library.names().convention;
            if let Some(code) = module.function(&name, false)? {
                return Ok(CompiledFunction {
                    code,
                    convention,
                    result,
                });
            }
        }
        let message = format!(
            "no library that the executable imports has `{name}`, the code of function `{}`: load the model as one library",
            function.name
        );
        Err(VM_12.rejected(Kind::Missing, message).into())
    }
}

impl VirtualMachineImpl {
    /// Calls `compiled` with the lists. `frame` holds the arguments, and the result after the call.
    pub(super) fn run_compiled(
        &self,
        compiled: &CompiledFunction,
        frame: &mut VmFrame,
    ) -> Result<Any, Error> {
        let lists = RunningLists::new(
            &mut frame.registers,
            &self.constants,
            &self.functions,
            compiled.convention,
        );
        let [registers, constants, functions] = lists.handles();
        let args = [self.handle(), registers, constants, functions];
        let returned = compiled.code.call_packed(&args);
        // This error comes first, because a missing value may have caused the other.
        lists.check()?;
        returned?;
        drop(lists);
        Ok(frame.registers[compiled.result].take())
    }
}
