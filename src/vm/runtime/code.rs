//! Decoded code: what the machine reads in place of the words of the file.
//!
//! It is decoded once, when the machine is made: operands that never change are ready-made cells, callees are resolved,
//! jumps are absolute.

use super::builtin::Builtin;
use super::compiled::CompiledFunction;
use super::loaded::LoadedExecutable;
use crate::function::Function;
use crate::payload::relax_vm::{self, FunctionKind, RelaxInstruction, VM_REGISTER, VOID_REGISTER};
use crate::payload::{PAY_88, PAY_97};
use crate::rule::{Kind, Violation};
use crate::value::{Any, AnyView, RawAny};

/// What an entry of the function table calls, found before anything runs (VM-11).
pub(super) enum Callee {
    /// A function of a library or of the registry.
    Packed(Function),
    /// A function of this crate, without a boundary in between.
    Builtin(Builtin),
    /// Instructions of this executable.
    Vm(usize),
    /// Code of a library that works on the registers of a frame.
    Compiled(usize, CompiledFunction),
}

/// Decoded code of an executable.
pub(super) struct DecodedCode {
    /// One for each instruction of the table, by the same numbers: offsets of jumps count them (VM-22).
    pub(super) steps: Vec<DecodedInstruction>,
    /// The operands of all calls, one behind the other.
    pub(super) operands: Vec<DecodedOperand>,
    /// By the numbers of the function table.
    pub(super) functions: Vec<FrameLayout>,
}

/// Where a function begins and how large its frame is; nothing for packed functions.
#[derive(Clone, Copy, Default)]
pub(super) struct FrameLayout {
    /// Number of its first instruction in the table.
    pub(super) start: u32,
    /// Registers of a call, the arguments among them (PAY-91).
    pub(super) registers: u32,
    /// How many arguments a call passes (VM-60).
    pub(super) arguments: u32,
}

/// An instruction with absolute targets. Numbers are of 32 bits, for a file has fewer words than that counts (PAY-88, `decode`).
pub(super) enum DecodedInstruction {
    Call {
        /// Register of the result; [`NOWHERE`] drops it.
        destination: u32,
        /// Entry of the function table.
        callee: u32,
        /// Its operands are `count` of [`DecodedCode::operands`], from here on.
        first: u32,
        count: u32,
    },
    Return {
        /// [`NOWHERE`] returns None (VM-05).
        register: u32,
    },
    Goto {
        /// Number of an instruction of the whole table.
        target: u32,
    },
    If {
        condition: u32,
        /// Where it goes on if the condition is 0 or false (VM-21).
        otherwise: u32,
    },
}

/// Where an argument of a call comes from (VM-20).
pub(super) enum DecodedOperand {
    Register(u32),
    Machine,
    /// A cell that stays as it is: an immediate, or a borrowed constant or function of the machine.
    Fixed(RawAny),
}

/// No register (the void register of PAY-92): the result is dropped, or None is returned.
/// No frame has a register of this number (PAY-97).
pub(super) const NOWHERE: u32 = u32::MAX;

impl DecodedCode {
    /// Decodes `loaded`. Cells of `constants` and `functions` are borrowed: both must stay as they are while the code is
    /// used.
    pub(super) fn decode(
        loaded: &LoadedExecutable,
        constants: &[Any],
        functions: &[Any],
    ) -> Result<DecodedCode, Violation> {
        let code = loaded.executable().code();
        // What follows counts instructions and operands in 32 bits; there is no more of either than words.
        if u32::try_from(code.words.len()).is_err() {
            let message = format!("{} words of code", code.words.len());
            return Err(PAY_88.rejected(Kind::Limit, message));
        }
        let frames = code.functions.iter().map(FrameLayout::of);
        let mut decoded = DecodedCode {
            steps: Vec::with_capacity(code.offsets.len()),
            operands: Vec::new(),
            functions: frames.collect::<Result<_, _>>()?,
        };
        for index in 0..code.offsets.len() {
            // PAY-96: instructions do not overlap, so that this takes as long as the file has words.
            let step = decoded.decode_one(index, code.instruction(index)?, constants, functions);
            decoded.steps.push(step);
        }
        Ok(decoded)
    }

    /// Instruction `index`, with its operands added to the list of all.
    fn decode_one(
        &mut self,
        index: usize,
        instruction: RelaxInstruction,
        constants: &[Any],
        functions: &[Any],
    ) -> DecodedInstruction {
        // VM-22: an offset counts from the jump itself. PAY-94 has held it inside the function, so that nothing is cut off.
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
                // One list for all calls: a run reads it from front to back, and a call has no memory of its own.
                let first = self.operands.len() as u32;
                let count = operands.len() as u32;
                let cell = |list: &[Any], at: i64| {
                    // PAY-93 has seen that the index is in its table.
                    list.get(at as usize)
                        .map_or(RawAny::NONE, |value| *value.as_raw())
                };
                self.operands
                    .extend(operands.into_iter().map(|operand| match operand {
                        // VM-05: as an operand alone. The machine is made after its code, so that its address is not known yet.
                        relax_vm::RelaxOperand::Register(VM_REGISTER) => DecodedOperand::Machine,
                        // VM-20: the void register as an operand is None.
                        relax_vm::RelaxOperand::Register(VOID_REGISTER) => {
                            DecodedOperand::Fixed(RawAny::NONE)
                        }
                        relax_vm::RelaxOperand::Register(register) => {
                            // PAY-92: less than the registers of the frame, which 32 bits count.
                            DecodedOperand::Register(register as u32)
                        }
                        relax_vm::RelaxOperand::Immediate(value) => {
                            DecodedOperand::Fixed(*AnyView::from(value).as_raw())
                        }
                        // VM-13: on the first device by now: the cell is that of the copy.
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

/// A register in 32 bits. Special ones are above 32 bits (PAY-92) and become [`NOWHERE`]; VM-05 keeps `%vm` out of rets and
/// conditions.
fn register_of(register: i64) -> u32 {
    u32::try_from(register).unwrap_or(NOWHERE)
}

impl FrameLayout {
    /// PAY-90, PAY-91 and PAY-97 have seen that the numbers are sizes of things in the file.
    fn of(function: &relax_vm::RelaxFunction<'_>) -> Result<FrameLayout, Violation> {
        if function.kind == FunctionKind::Packed {
            // It has no frame; its numbers mean something else, like the -2 of PAY-84.
            return Ok(FrameLayout::default());
        }
        // PAY-97: at most as many as the code has words, which 32 bits count.
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
