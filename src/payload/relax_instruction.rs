//! Instructions of the Relax VM: words of 64 bits.
//!
//! | instruction | words |
//! |---|---|
//! | call | 1, destination, function, n, n operands |
//! | ret | 2, register |
//! | goto | 3, offset |
//! | if | 4, condition, offset when false |
//!
//! An operand has its kind in the top byte (0 register, 1 immediate, 2 constant, 3 function) and a signed 56-bit value
//! below. Jumps count in instructions, from the jump itself.

use super::PAY_89;
use crate::rule::{Kind, Violation};

/// Nothing: the destination of a call whose result is not used, and the operand that is no value.
pub const VOID_REGISTER: i64 = 1 << 54;
/// The operand that stands for the VM itself.
pub const VM_REGISTER: i64 = VOID_REGISTER + 1;

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelaxInstruction {
    /// Calls a function of the table.
    Call {
        /// Where the result goes; [`VOID_REGISTER`] for nowhere.
        destination: i64,
        /// Index into the function table.
        function: i64,
        /// The arguments, in order.
        operands: Vec<RelaxOperand>,
    },
    /// Returns a register's value.
    Ret {
        /// The register that is returned.
        register: i64,
    },
    /// Goes `offset` instructions on.
    Goto {
        /// May be negative.
        offset: i64,
    },
    /// Goes on when the register is true, and `false_offset` instructions on when not.
    If {
        /// The register that decides: 0 goes on at `false_offset`.
        condition: i64,
        /// May be negative.
        false_offset: i64,
    },
}

impl RelaxInstruction {
    /// How many words it takes.
    pub fn length(&self) -> usize {
        match self {
            RelaxInstruction::Call { operands, .. } => operands.len().saturating_add(4),
            RelaxInstruction::Ret { .. } | RelaxInstruction::Goto { .. } => 2,
            RelaxInstruction::If { .. } => 3,
        }
    }

    /// Its words, in the order of the code: the inverse of
    /// [`RelaxExecutable::instruction`](super::relax_vm::RelaxExecutable::instruction).
    ///
    /// # Errors
    ///
    /// As [`RelaxOperand::encode`].
    pub fn encode(&self) -> Result<Vec<u64>, Violation> {
        let (opcode, fields) = match self {
            RelaxInstruction::Call {
                destination,
                function,
                operands,
            } => {
                // PAY-89: the operands follow their number.
                let mut words = vec![
                    1,
                    destination.cast_unsigned(),
                    function.cast_unsigned(),
                    operands.len() as u64,
                ];
                for operand in operands {
                    words.push(operand.encode()?);
                }
                return Ok(words);
            }
            RelaxInstruction::Ret { register } => (2, vec![*register]),
            RelaxInstruction::Goto { offset } => (3, vec![*offset]),
            RelaxInstruction::If {
                condition,
                false_offset,
            } => (4, vec![*condition, *false_offset]),
        };
        let fields = fields.into_iter().map(i64::cast_unsigned);
        Ok(std::iter::once(opcode).chain(fields).collect())
    }
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelaxOperand {
    /// The value of a register, or [`VM_REGISTER`], or [`VOID_REGISTER`].
    Register(i64),
    /// The number itself.
    Immediate(i64),
    /// A constant, by index.
    Constant(i64),
    /// A function, by index.
    Function(i64),
}

impl RelaxOperand {
    /// From a word of the code; `None` when the top byte is no kind.
    /// Any value of 56 bits is kept, whatever it names (PAY-89).
    pub fn decode(word: u64) -> Option<RelaxOperand> {
        // PAY-89: the kind is the top byte.
        // The value is the low 56 bits with their sign.
        let value = (word << 8).cast_signed() >> 8;
        Some(match word >> 56 {
            0 => RelaxOperand::Register(value),
            1 => RelaxOperand::Immediate(value),
            2 => RelaxOperand::Constant(value),
            3 => RelaxOperand::Function(value),
            _ => return None,
        })
    }

    /// The word of the code: the inverse of [`RelaxOperand::decode`].
    ///
    /// # Errors
    ///
    /// PAY-89 for a value of more than 56 bits, which would be another operand.
    pub fn encode(self) -> Result<u64, Violation> {
        let (kind, value) = match self {
            RelaxOperand::Register(value) => (0, value),
            RelaxOperand::Immediate(value) => (1, value),
            RelaxOperand::Constant(value) => (2, value),
            RelaxOperand::Function(value) => (3_u64, value),
        };
        let word = kind << 56 | (value.cast_unsigned() & (u64::MAX >> 8));
        if RelaxOperand::decode(word) != Some(self) {
            let message = format!("an operand has a value of 56 bits, which {value} is not");
            return Err(PAY_89.rejected(Kind::UnknownKind, message));
        }
        Ok(word)
    }
}
