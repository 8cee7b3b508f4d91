//! The executable, checked against the rules that the machine relies on in addition to chapter payload.

use super::checks::check_function;
use crate::payload::relax_vm::{self, FunctionKind, RelaxFunction};
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use crate::wire::Cursor;

/// An executable that keeps every rule of its format (chapter payload) and VM-01 to VM-05. All indices that the machine follows
/// without a check are therefore valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Executable<'a>(relax_vm::RelaxExecutable<'a>);

impl<'a> Executable<'a> {
    /// Reads an executable, as libraries of `layout` store it.
    ///
    /// # Errors
    ///
    /// Returns PAY-81 to PAY-97 and VM-01 to VM-05, each with the offset of the faulty byte.
    pub fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<Executable<'a>, Violation> {
        Executable::new(relax_vm::RelaxExecutable::read(layout, cursor, findings)?)
    }

    /// Checks decoded code against VM-01 to VM-05.
    ///
    /// # Errors
    ///
    /// The first of VM-01 to VM-05 that a function breaks, at the byte of its instruction. An instruction that cannot be decoded
    /// breaks a PAY rule.
    pub fn new(code: relax_vm::RelaxExecutable<'a>) -> Result<Executable<'a>, Violation> {
        for function in &code.functions {
            // VM-12: a compiled function has its code in a library, and a packed one has no code, so neither has instructions to
            // check.
            if function.kind == FunctionKind::Vm {
                check_function(&code, function)?;
            }
        }
        Ok(Executable(code))
    }

    /// Returns the decoded code.
    pub fn code(&self) -> &relax_vm::RelaxExecutable<'a> {
        &self.0
    }

    /// Returns the functions that can be called from outside: those with instructions, and compiled ones.
    pub fn functions(&self) -> impl Iterator<Item = &RelaxFunction<'a>> {
        self.0
            .functions
            .iter()
            .filter(|function| function.kind != FunctionKind::Packed)
    }
}

/// Returns the names of packed functions for the lookup, each once, in the order of the table.
pub(super) fn packed_names<'c>(code: &'c relax_vm::RelaxExecutable<'_>) -> Vec<&'c str> {
    // PAY-95: names may repeat, and one lookup is enough for a name.
    let mut seen = std::collections::HashSet::new();
    code.functions
        .iter()
        .filter(|function| function.kind == FunctionKind::Packed)
        .map(|function| &*function.name)
        .filter(|name| seen.insert(*name))
        .collect()
}
