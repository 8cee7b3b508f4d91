//! Decoded code, which the machine uses instead of the words of the file.
//!
//! It is decoded once, when the machine is created. After that, constant operands are complete cells, callees are resolved, and jumps
//! are absolute.

use super::builtin::Builtin;
use super::compiled::CompiledFunction;
use super::loaded_executable::LoadedExecutable;
use crate::function::Function;
use crate::payload::relax_vm::{self, FunctionKind, RelaxInstruction, VM_REGISTER, VOID_REGISTER};
use crate::payload::{PAY_88, PAY_97};
use crate::rule::{Kind, Violation};
use crate::value::{Any, AnyView, RawAny};

/// The target of an entry of the function table, found before anything runs (VM-11).
pub(super) enum Callee {
    /// A function of a library or of the registry.
    Packed(Function),
    /// A function of this crate, called directly.
    Builtin(Builtin),
    /// Instructions of this executable.
    Vm(usize),
    /// Code of a library that works on the registers of a frame.
    Compiled(usize, CompiledFunction),
}

/// Decoded code of an executable.
pub(super) struct DecodedCode {
    /// The instructions, with the same numbers as in the table, because offsets of jumps count them (VM-22).
    pub(super) steps: Vec<DecodedInstruction>,
    /// The operands of all calls, one after the other.
    pub(super) operands: Vec<DecodedOperand>,
    /// The frames, by the numbers of the function table.
    pub(super) functions: Vec<FrameLayout>,
}

/// The first instruction of a function and the size of its frame; the default for packed functions.
#[derive(Clone, Copy, Default)]
pub(super) struct FrameLayout {
    /// The number of its first instruction in the table.
    pub(super) start: u32,
    /// The number of registers of a call, including the arguments (PAY-91).
    pub(super) registers: u32,
    /// The number of arguments that a call passes (VM-60).
    pub(super) arguments: u32,
}

/// An instruction with absolute targets. Numbers have 32 bits, which is enough for the words of a file (PAY-88, `decode`).
pub(super) enum DecodedInstruction {
    Call {
        /// The register of the result; [`NOWHERE`] drops it.
        destination: u32,
        /// The entry of the function table.
        callee: u32,
        /// The index of its first operand in [`DecodedCode::operands`]; it has `count` of them.
        first: u32,
        count: u32,
    },
    Return {
        /// The register of the result; [`NOWHERE`] returns None (VM-05).
        register: u32,
    },
    Goto {
        /// The number of an instruction of the whole table.
        target: u32,
    },
    If {
        condition: u32,
        /// The next instruction if the condition is 0 or false (VM-21).
        otherwise: u32,
    },
}

/// The source of an argument of a call (VM-20).
pub(super) enum DecodedOperand {
    Register(u32),
    Machine,
    /// A constant cell: an immediate, or a borrowed constant or function of the machine.
    Fixed(RawAny),
}

/// The void register (PAY-92): the result is dropped, or None is returned. No frame has a register of this number (PAY-97).
pub(super) const NOWHERE: u32 = u32::MAX;

impl DecodedCode {
    /// Decodes `loaded`. The code borrows cells of `constants` and `functions`, which must not change while the code is used.
    pub(super) fn decode(
        loaded: &LoadedExecutable,
        constants: &[Any],
        functions: &[Any],
    ) -> Result<DecodedCode, Violation> {
        let code = loaded.executable().code();
        // Instructions and operands are counted in 32 bits; there are not more of either than words.
        if u32::try_from(code.words.len()).is_err() {
            let message = format!("{} words of code", code.words.len());
            return Err(PAY_88.rejected(Kind::Limit, message));
        }
        let frames = code.functions.iter().map(FrameLayout::from_function);
        let mut decoded = DecodedCode {
            steps: Vec::with_capacity(code.offsets.len()),
            operands: Vec::new(),
            functions: frames.collect::<Result<_, _>>()?,
        };
        for index in 0..code.offsets.len() {
            // PAY-96: instructions do not overlap, so the time is linear in the words of the file.
            let step = decoded.decode_one(index, code.instruction(index)?, constants, functions);
            decoded.steps.push(step);
        }
        Ok(decoded)
    }

    /// Decodes instruction `index`, and adds its operands to the common list.
    fn decode_one(
        &mut self,
        index: usize,
        instruction: RelaxInstruction,
        constants: &[Any],
        functions: &[Any],
    ) -> DecodedInstruction {
        // VM-22: an offset counts from the jump itself. PAY-94 has checked that the target is inside the function, so it fits.
        let target = |offset: i64| (index as i64 + offset) as u32;
        match instruction {
            RelaxInstruction::Ret { register } => DecodedInstruction::Return {
                register: register_of(register),
            },
            RelaxInstruction::Goto { offset } => DecodedInstruction::Goto {
                target: target(offset),
            },
            RelaxInstruction::If {
                condition,
                false_offset,
            } => DecodedInstruction::If {
                condition: register_of(condition),
                otherwise: target(false_offset),
            },
            RelaxInstruction::Call {
                destination,
                function,
                operands,
            } => {
                // All calls share one list. A run reads it from front to back, and a call needs no allocation.
                let first = self.operands.len() as u32;
                let count = operands.len() as u32;
                let cell = |list: &[Any], at: i64| {
                    // PAY-93 has checked that the index is in its table.
                    list.get(at as usize)
                        .map_or(RawAny::NONE, |value| *value.as_raw())
                };
                self.operands
                    .extend(operands.into_iter().map(|operand| match operand {
                        // VM-05: only as an operand. The machine is created after its code, so its address is not known yet.
                        relax_vm::RelaxOperand::Register(VM_REGISTER) => DecodedOperand::Machine,
                        // VM-20: the void register as an operand is None.
                        relax_vm::RelaxOperand::Register(VOID_REGISTER) => {
                            DecodedOperand::Fixed(RawAny::NONE)
                        }
                        relax_vm::RelaxOperand::Register(register) => {
                            // PAY-92: it is smaller than the register count of the frame, which fits into 32 bits.
                            DecodedOperand::Register(register as u32)
                        }
                        relax_vm::RelaxOperand::Immediate(value) => {
                            DecodedOperand::Fixed(*AnyView::from(value).as_raw())
                        }
                        // VM-13: the constant is already on the first device, and the cell refers to that copy.
                        relax_vm::RelaxOperand::Constant(at) => {
                            DecodedOperand::Fixed(cell(constants, at))
                        }
                        relax_vm::RelaxOperand::Function(at) => {
                            DecodedOperand::Fixed(cell(functions, at))
                        }
                    }));
                DecodedInstruction::Call {
                    destination: register_of(destination),
                    callee: function as u32,
                    first,
                    count,
                }
            }
        }
    }
}

/// Returns a register in 32 bits. Special registers exceed 32 bits (PAY-92) and become [`NOWHERE`]; VM-05 excludes `%vm` from rets
/// and conditions.
fn register_of(register: i64) -> u32 {
    u32::try_from(register).unwrap_or(NOWHERE)
}

impl FrameLayout {
    /// Returns the frame of a function. PAY-90, PAY-91 and PAY-97 have checked that the numbers match the file.
    fn from_function(function: &relax_vm::RelaxFunction<'_>) -> Result<FrameLayout, Violation> {
        if function.kind == FunctionKind::Packed {
            // A packed function has no frame, and its numbers mean something else, like the -2 of PAY-84.
            return Ok(FrameLayout::default());
        }
        // PAY-97: at most the number of words of the code, which fits into 32 bits.
        let number = |count: i64, what: &str| {
            u32::try_from(count).map_err(|_| {
                let message = format!("function `{}` has {count} {what}", function.name);
                PAY_97.rejected(Kind::Limit, message)
            })
        };
        Ok(FrameLayout {
            start: number(function.start, "as its first instruction")?,
            registers: number(function.registers, "registers in all")?,
            arguments: number(function.num_args, "arguments in all")?,
        })
    }
}
