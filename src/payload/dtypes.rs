//! The element types that occur in a payload.

use super::relax_vm::RelaxConstant;
use super::relay_vm::RelayConstant;
use super::{Field, Payload};
use crate::tensor::Dtype;
use std::collections::HashSet;

impl Payload<'_> {
    /// Returns the types of arguments, stored tensors and constants, without repetition. Types inside instructions are left out.
    pub fn dtypes(&self) -> HashSet<Dtype> {
        let mut found = HashSet::new();
        for field in self.fields() {
            match field {
                Field::Functions(list) => {
                    found.extend(list.iter().flat_map(|function| &function.info.arg_types));
                }
                Field::Tensors(list) => found.extend(list.iter().map(|(_, record)| record.dtype())),
                Field::Relay(executable) => {
                    found.extend(executable.constants.iter().filter_map(
                        |constant| match constant {
                            RelayConstant::Tensor(record) => Some(record.dtype()),
                            RelayConstant::Late(_) => None,
                        },
                    ));
                }
                Field::Relax(executable) => {
                    found.extend(executable.constants.iter().filter_map(
                        |constant| match constant {
                            RelaxConstant::Tensor(record) => Some(record.dtype()),
                            RelaxConstant::Dtype(dtype) => Some(*dtype),
                            _ => None,
                        },
                    ));
                }
                Field::Imports(list) => found.extend(list.iter().flat_map(Payload::dtypes)),
                _ => {}
            }
        }
        found
    }
}
