//! Checks of a reader, which the machine does not repeat while it runs (VM-01 to VM-05).
//!
//! Upstream's readers check none of these rules. A broken executable fails, crashes or hangs when the faulty instruction is reached.
//! Here the machine relies on jumps, registers and counts, because an executable that breaks a rule is rejected before it runs.

use crate::payload::relax_vm::{
    self, FunctionKind, RelaxFunction, RelaxInstruction, VM_REGISTER, VOID_REGISTER,
};
use crate::rule::{Kind, Violation};
use crate::vm::{VM_01, VM_02, VM_03, VM_04, VM_05};

/// Checks VM-01 to VM-05 for a function of kind `vm`. An error has the offset of its instructions.
pub(super) fn check_function(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
) -> Result<(), Violation> {
    let range = range(function);
    let first = offset(code, range.start);
    let named = i64::try_from(function.params.len()).unwrap_or(i64::MAX);
    // VM-04: frontends find inputs by their names, and use the number of names as the number of arguments. Upstream does not check
    // this.
    VM_04.require(named == 0 || named == function.num_args, first, || {
        format!(
            "function `{}` takes {} arguments but has {named} parameter names",
            function.name, function.num_args
        )
    })?;
    // VM-01: without this filter, a function without instructions would use the last instruction of the previous function.
    let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
    let ends = match last {
        Some(last) => matches!(
            code.instruction(last)?,
            RelaxInstruction::Ret { .. } | RelaxInstruction::Goto { .. }
        ),
        None => false,
    };
    // VM-01: upstream stops only at the end of the whole table, and runs into the next function.
    VM_01.require(ends, last.map_or(first, |last| offset(code, last)), || {
        format!(
            "function `{}` runs off its end: its last instruction is neither ret nor goto",
            function.name
        )
    })?;
    // PAY-90 and PAY-91 have already checked that the range and every register are valid.
    for index in range {
        check_instruction(code, function, index)?;
    }
    Ok(())
}

/// Checks VM-02, VM-03 and VM-05 for instruction `index`, which keeps the PAY rules.
fn check_instruction(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
    index: usize,
) -> Result<(), Violation> {
    let at = offset(code, index);
    let plain = |register: i64, what: &str| {
        // VM-05: the void register may be returned, as None. Only a test of it is meaningless.
        let special = register == VM_REGISTER || (register == VOID_REGISTER && what == "tests");
        // VM-05: upstream fails if an instruction tests the machine, and returns the machine's address as a value.
        VM_05.require(!special, at, || {
            format!(
                "instruction {index} of `{}` {what} a special register: expected an ordinary one, because only arguments of calls may be special",
                function.name
            )
        })
    };
    match code.instruction(index)? {
        RelaxInstruction::Ret { register } => plain(register, "returns"),
        // PAY-94 has checked that the target is inside the function.
        RelaxInstruction::Goto { .. } => Ok(()),
        RelaxInstruction::If {
            condition,
            false_offset,
        } => {
            plain(condition, "tests")?;
            // VM-02: upstream finds this only when the jump is taken.
            VM_02.require(false_offset > 1, at, || {
                format!(
                    "instruction {index} of `{}` jumps by {false_offset} if its condition is false: expected more than 1, forward over the other branch",
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
            // VM-03: a packed function takes any number of operands.
            let Some(callee) = callee.filter(|callee| callee.kind != FunctionKind::Packed) else {
                return Ok(());
            };
            let passed = i64::try_from(operands.len()).unwrap_or(i64::MAX);
            // VM-03: upstream counts when the call is made, so a branch that is never taken may be wrong there.
            VM_03.require_as(Kind::Type, passed == callee.num_args, at, || {
                format!(
                    "instruction {index} of `{}` calls `{}` with {passed} arguments: expected {}",
                    function.name, callee.name, callee.num_args
                )
            })
        }
    }
}

/// Returns the byte offset of instruction `index`. An index past the table gives the first word, because a function without
/// instructions may start there (PAY-90).
fn offset(code: &relax_vm::RelaxExecutable<'_>, index: usize) -> u64 {
    let word = code
        .offsets
        .get(index)
        .and_then(|at| usize::try_from(at).ok());
    code.words.offset_of(word.unwrap_or(0))
}

/// Returns the range of the instructions of `function`. PAY-90 has checked that they are in the table.
pub(super) fn range(function: &RelaxFunction<'_>) -> std::ops::Range<usize> {
    let number = |position: i64| usize::try_from(position).unwrap_or(usize::MAX);
    number(function.start)..number(function.end)
}
