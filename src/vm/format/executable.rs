//! The executable, held to what the machine relies on beyond chapter payload.

use super::checks::check_function;
use crate::payload::relax_vm::{self, FunctionKind, RelaxFunction};
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use crate::wire::Cursor;

/// An executable that keeps every rule of its format (chapter payload) and VM-01 to VM-05: nothing that the machine
/// follows without looking leads anywhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct Executable<'a>(relax_vm::RelaxExecutable<'a>);

impl<'a> Executable<'a> {
    /// Reads an executable as libraries of `layout` store it.
    ///
    /// # Errors
    ///
    /// PAY-81 to PAY-97, VM-01 to VM-05, each with the byte that breaks it.
    pub fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<Executable<'a>, Violation> {
        Executable::new(relax_vm::RelaxExecutable::read(layout, cursor, findings)?)
    }

    /// Holds decoded code to VM-01 to VM-05.
    ///
    /// # Errors
    ///
    /// The first of VM-01 to VM-05 that a function breaks, at the byte of its instruction, and PAY rules of an instruction that
    /// cannot be decoded.
    pub fn new(code: relax_vm::RelaxExecutable<'a>) -> Result<Executable<'a>, Violation> {
        for function in &code.functions {
            // VM-12: a compiled function has its code in a library, and a packed one has none: nothing is followed there.
            if function.kind == FunctionKind::Vm {
                check_function(&code, function)?;
            }
        }
        Ok(Executable(code))
    }

    /// The decoded code.
    pub fn code(&self) -> &relax_vm::RelaxExecutable<'a> {
        &self.0
    }

    /// The functions that can be called from outside: those with instructions, and compiled ones on registers.
    pub fn functions(&self) -> impl Iterator<Item = &RelaxFunction<'a>> {
        self.0
            .functions
            .iter()
            .filter(|function| function.kind != FunctionKind::Packed)
    }
}

/// The names that packed functions are looked up by, each once, in the order of the table.
pub(super) fn packed_names<'c>(code: &'c relax_vm::RelaxExecutable<'_>) -> Vec<&'c str> {
    // PAY-95: names may repeat, and one lookup serves all of a name.
    let mut seen = std::collections::HashSet::new();
    code.functions
        .iter()
        .filter(|function| function.kind == FunctionKind::Packed)
        .map(|function| &*function.name)
        .filter(|name| seen.insert(*name))
        .collect()
}
