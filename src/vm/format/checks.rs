//! What a reader checks so that the machine need not look while it runs (VM-01 to VM-05).
//!
//! Released readers check none of it: a broken executable fails, crashes or hangs when the place is reached. Here the machine takes
//! jumps, registers and counts as they are, because no executable that breaks a rule gets that far.

use crate::payload::relax_vm::{
    self, FunctionKind, RelaxFunction, RelaxInstruction, VM_REGISTER, VOID_REGISTER,
};
use crate::rule::{Kind, Violation};
use crate::vm::{VM_01, VM_02, VM_03, VM_04, VM_05};

/// VM-01 to VM-05 for a function of kind `vm`, at the bytes of its instructions.
pub(super) fn check_function(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
) -> Result<(), Violation> {
    let range = range(function);
    let first = offset(code, range.start);
    let named = i64::try_from(function.params.len()).unwrap_or(i64::MAX);
    // VM-04: frontends find inputs by the names, and count arguments by their number. Upstream checks nothing here.
    VM_04.require(named == 0 || named == function.num_args, first, || {
        format!(
            "function `{}` takes {} arguments and names {named}",
            function.name, function.num_args
        )
    })?;
    // VM-01: of a function without instructions the one in front of `start` is another function's.
    let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
    let ends = match last {
        Some(last) => matches!(
            code.instruction(last)?,
            RelaxInstruction::Ret { .. } | RelaxInstruction::Goto { .. }
        ),
        None => false,
    };
    // VM-01: upstream stops at the end of the whole table alone, and runs into the next function.
    VM_01.require(ends, last.map_or(first, |last| offset(code, last)), || {
        format!(
            "function `{}` runs off its end: its last instruction is neither ret nor goto",
            function.name
        )
    })?;
    // PAY-90 and PAY-91 hold the range and every register inside the table by now.
    for index in range {
        check_instruction(code, function, index)?;
    }
    Ok(())
}

/// VM-02, VM-03 and VM-05 for instruction `index`, which PAY rules have let through.
fn check_instruction(
    code: &relax_vm::RelaxExecutable<'_>,
    function: &RelaxFunction<'_>,
    index: usize,
) -> Result<(), Violation> {
    let at = offset(code, index);
    let plain = |register: i64, what: &str| {
        // VM-05: the void register may be returned, as None, and only a test of it has no meaning.
        let special = register == VM_REGISTER || (register == VOID_REGISTER && what == "tests");
        // VM-05: a release fails where it tests the machine, and returns the machine's address as a value.
        VM_05.require(!special, at, || {
            format!(
                "instruction {index} of `{}` {what} a special register: only arguments of calls may be one",
                function.name
            )
        })
    };
    match code.instruction(index)? {
        RelaxInstruction::Ret { register } => plain(register, "returns"),
        // PAY-94 has held the target inside the function.
        RelaxInstruction::Goto { .. } => Ok(()),
        RelaxInstruction::If {
            condition,
            false_offset,
        } => {
            plain(condition, "tests")?;
            // VM-02: releases find out when the jump is taken.
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
            // VM-03: a packed function takes any number of operands.
            let Some(callee) = callee.filter(|callee| callee.kind != FunctionKind::Packed) else {
                return Ok(());
            };
            let passed = i64::try_from(operands.len()).unwrap_or(i64::MAX);
            // VM-03: releases count when the call is made: a branch that is never taken may be wrong.
            VM_03.require_as(Kind::Type, passed == callee.num_args, at, || {
                format!(
                    "instruction {index} of `{}` calls `{}` with {passed} arguments, it takes {}",
                    function.name, callee.name, callee.num_args
                )
            })
        }
    }
}

/// Byte offset of instruction `index`.
/// For an index behind the table it is that of the first word: a function without instructions may start there (PAY-90).
fn offset(code: &relax_vm::RelaxExecutable<'_>, index: usize) -> u64 {
    let word = code
        .offsets
        .get(index)
        .and_then(|at| usize::try_from(at).ok());
    code.words.offset_of(word.unwrap_or(0))
}

/// The instructions of `function`, as numbers. PAY-90 has seen that they are in the table.
pub(super) fn range(function: &RelaxFunction<'_>) -> std::ops::Range<usize> {
    let number = |position: i64| usize::try_from(position).unwrap_or(usize::MAX);
    number(function.start)..number(function.end)
}
