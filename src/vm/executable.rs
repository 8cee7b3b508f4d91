//! The executable, held to what the machine relies on beyond chapter payload.

use super::{VM_01, VM_02, VM_03, VM_04, VM_05};
use crate::payload::relax_vm::{
    self, FunctionKind, RelaxFunction, RelaxInstruction, VM_REGISTER, VOID_REGISTER,
};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
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
    let mut seen = std::collections::HashSet::new();
    code.functions
        .iter()
        .filter(|function| function.kind == FunctionKind::Packed)
        .map(|function| &*function.name)
        .filter(|name| seen.insert(*name))
        .collect()
}

/// The instructions of `function`, as numbers. PAY-90 has seen that they are in the table.
pub(super) fn range(function: &RelaxFunction<'_>) -> std::ops::Range<usize> {
    let number = |position: i64| usize::try_from(position).unwrap_or(usize::MAX);
    number(function.start)..number(function.end)
}

/// Byte offset of instruction `index`.
fn offset(code: &relax_vm::RelaxExecutable<'_>, index: usize) -> u64 {
    let word = code
        .offsets
        .get(index)
        .and_then(|at| usize::try_from(at).ok());
    code.words.offset_of(word.unwrap_or(0))
}

fn check_function(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
) -> Result<(), Violation> {
    let range = range(function);
    let first = offset(code, range.start);
    let named = i64::try_from(function.params.len()).unwrap_or(i64::MAX);
    VM_04.require(named == 0 || named == function.num_args, first, || {
        format!(
            "function `{}` takes {} arguments and names {named}",
            function.name, function.num_args
        )
    })?;
    let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
    let ends = match last {
        Some(last) => matches!(
            code.instruction(last)?,
            RelaxInstruction::Ret { .. } | RelaxInstruction::Goto { .. }
        ),
        None => false,
    };
    VM_01.require(ends, last.map_or(first, |last| offset(code, last)), || {
        format!(
            "function `{}` runs off its end: its last instruction is neither ret nor goto",
            function.name
        )
    })?;
    for index in range {
        check_instruction(code, function, index)?;
    }
    Ok(())
}

fn check_instruction(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
    index: usize,
) -> Result<(), Violation> {
    let at = offset(code, index);
    let plain = |register: i64, what: &str| {
        let special = register == VM_REGISTER || (register == VOID_REGISTER && what == "tests");
        VM_05.require(!special, at, || {
            format!(
                "instruction {index} of `{}` {what} a special register: only arguments of calls may be one",
                function.name
            )
        })
    };
    match code.instruction(index)? {
        RelaxInstruction::Ret { register } => plain(register, "returns"),
        RelaxInstruction::Goto { .. } => Ok(()),
        RelaxInstruction::If {
            condition,
            false_offset,
        } => {
            plain(condition, "tests")?;
            VM_02.require(false_offset > 1, at, || {
                format!(
                    "instruction {index} of `{}` jumps by {false_offset} when false: a branch goes forward, over the other one",
                    function.name
                )
            })
        }
        RelaxInstruction::Call {
            function: callee,
            operands,
            ..
        } => {
            let callee = usize::try_from(callee)
                .ok()
                .and_then(|at| code.functions.get(at));
            let Some(callee) = callee.filter(|callee| callee.kind != FunctionKind::Packed) else {
                return Ok(());
            };
            let given = i64::try_from(operands.len()).unwrap_or(i64::MAX);
            VM_03.require_as(Kind::Type, given == callee.num_args, at, || {
                format!(
                    "instruction {index} of `{}` calls `{}` with {given} arguments, it takes {}",
                    function.name, callee.name, callee.num_args
                )
            })
        }
    }
}
