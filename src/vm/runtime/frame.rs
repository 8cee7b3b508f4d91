//! Frames of running functions, and their limit per thread (VM-24, VM-25).

use crate::function::Error;
use crate::rule::Kind;
use crate::value::{Any, RawAny};
use crate::vm::VM_25;
use std::cell::Cell;

/// The registers and arguments of one running function.
#[derive(Default)]
pub(super) struct VmFrame {
    /// The registers by their numbers: the arguments, then None (VM-24).
    pub(super) registers: Vec<Any>,
    /// The cells of the current call, borrowed from registers, constants and the machine.
    pub(super) arguments: Vec<RawAny>,
}

/// The maximum depth of calls between VM functions on one thread (VM-25). In upstream the stack overflows, which crashes the
/// process.
const DEEPEST: u32 = 1000;

/// The maximum number of registers of all functions that are running on one thread, except the outermost: 32 MiB of them.
pub(super) const MOST_REGISTERS: usize = 1 << 21;

thread_local! {
    /// The counts of this thread. They are per thread because a stack overflows per thread.
    static RUNNING: Cell<Running> = const { Cell::new(Running { functions: 0, registers: 0 }) };
}

/// The running functions of a thread.
#[derive(Clone, Copy)]
struct Running {
    /// The number of running functions, including the outermost.
    functions: u32,
    /// The number of their registers, without the outermost (VM-25).
    registers: usize,
}

/// Counts one running function on this thread. Dropping it restores the previous counts.
#[must_use = "the call counts until it is dropped"]
pub(super) struct CallDepth(Running);

impl CallDepth {
    /// Counts a function with this number of registers.
    pub(super) fn enter(registers: u32) -> Result<CallDepth, Error> {
        // VM-25: counted for all machines on the thread together, because they share its stack.
        let before = RUNNING.get();
        if before.functions >= DEEPEST {
            let message = format!("functions of the VM call each other more than {DEEPEST} deep");
            return Err(VM_25.rejected(Kind::Limit, message).into());
        }
        // VM-25: the outermost function is not counted, because it has only one set of registers. A recursive function may have
        // thousands of sets.
        let registers = match before.functions {
            0 => 0,
            _ => before.registers.saturating_add(registers as usize),
        };
        if registers > MOST_REGISTERS {
            let message = format!(
                "functions of the VM that call each other have more than {MOST_REGISTERS} registers"
            );
            return Err(VM_25.rejected(Kind::Limit, message).into());
        }
        RUNNING.set(Running {
            functions: before.functions + 1,
            registers,
        });
        Ok(CallDepth(before))
    }
}

impl Drop for CallDepth {
    fn drop(&mut self) {
        // VM-25: restores the previous counts. Subtracting would be wrong, because the outermost has counted no registers.
        RUNNING.set(self.0);
    }
}
