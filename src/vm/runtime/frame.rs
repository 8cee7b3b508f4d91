//! Frames of running functions, and how many of them a thread may have (VM-24, VM-25).

use crate::function::Error;
use crate::rule::Kind;
use crate::value::{Any, RawAny};
use crate::vm::VM_25;
use std::cell::Cell;

/// The registers and arguments of one running function.
#[derive(Default)]
pub(super) struct VmFrame {
    /// By their numbers: the arguments, then None (VM-24).
    pub(super) registers: Vec<Any>,
    /// The cells of the call that is being made, borrowed from registers, constants and the machine.
    pub(super) arguments: Vec<RawAny>,
}

/// How deep functions of a VM may call each other on one thread (VM-25). In releases the stack overflows, which ends the process.
const DEEPEST: u32 = 1000;

/// How many registers all functions that are running on one thread may have, but for the outermost: 32 MiB of them.
pub(super) const MOST_REGISTERS: usize = 1 << 21;

thread_local! {
    /// A count for each thread: a stack overflows on its own thread.
    static RUNNING: Cell<Running> = const { Cell::new(Running { functions: 0, registers: 0 }) };
}

/// What is running on a thread.
#[derive(Clone, Copy)]
struct Running {
    /// All that run, the outermost among them.
    functions: u32,
    /// Of all but the outermost (VM-25).
    registers: usize,
}

/// Counts one function that is running on this thread; what ran before it runs again when this goes.
#[must_use = "the call counts until it is dropped"]
pub(super) struct CallDepth(Running);

impl CallDepth {
    /// Counts a function with so many registers.
    pub(super) fn enter(registers: u32) -> Result<CallDepth, Error> {
        // VM-25: of all machines on the thread together: they share its stack.
        let before = RUNNING.get();
        if before.functions >= DEEPEST {
            let message = format!("functions of the VM call each other more than {DEEPEST} deep");
            return Err(VM_25.rejected(Kind::Limit, message).into());
        }
        // VM-25: not the outermost, which costs once what its executable says; what recurses would cost that a thousand times.
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
        // VM-25: what was there before. Nothing is subtracted, for the outermost has counted no registers.
        RUNNING.set(self.0);
    }
}
