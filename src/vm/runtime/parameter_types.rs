//! Types of tensor parameters, as far as the code of a function checks them (VM-40).

use super::machine::VirtualMachine;
use crate::function::Error;
use crate::payload::relax_vm::{RelaxConstant, RelaxInstruction, RelaxOperand};
use crate::tensor::Dtype;
use std::collections::HashMap;

impl VirtualMachine {
    /// Returns the types of the tensors that `function` takes, by name: `x`, and `x.0` for the first element of a tuple `x`.
    ///
    /// An executable has no list of types. They are derived from the checks that a compiler writes, so a function without checks has no
    /// types here.
    ///
    /// # Errors
    ///
    /// Returns VM-61 for an unknown function.
    pub fn parameter_types(&self, function: &str) -> Result<Vec<(String, Dtype)>, Error> {
        let index = self.0.index(function)?;
        let code = self.0.loaded.executable().code();
        let function = &code.functions[index];
        // The names of registers that hold a parameter or an element of one.
        let mut names: HashMap<i64, String> = HashMap::new();
        for (register, name) in function.params.iter().enumerate() {
            names.insert(register as i64, name.to_string());
        }
        let mut types = Vec::new();
        for at in function.start..function.end {
            let RelaxInstruction::Call {
                destination,
                function: callee,
                operands,
            } = code.instruction(at as usize)?
            else {
                // A branch: a check after it may not be reached.
                break;
            };
            let callee = &*code.functions[callee as usize].name;
            match (callee, &*operands) {
                (
                    "vm.builtin.check_tensor_info",
                    [
                        RelaxOperand::Register(register),
                        _,
                        RelaxOperand::Constant(dtype),
                        ..,
                    ],
                ) => {
                    let name = names.get(register);
                    let dtype = code.constants.get(*dtype as usize);
                    if let (Some(name), Some(RelaxConstant::Dtype(dtype))) = (name, dtype) {
                        types.push((name.clone(), *dtype));
                    }
                }
                (
                    "vm.builtin.tuple_getitem",
                    [
                        RelaxOperand::Register(register),
                        RelaxOperand::Immediate(element),
                        ..,
                    ],
                ) => {
                    let name = names.get(register).map(|name| format!("{name}.{element}"));
                    names.remove(&destination);
                    names.extend(name.map(|name| (destination, name)));
                }
                _ => {
                    names.remove(&destination);
                }
            }
        }
        Ok(types)
    }
}
