//! Instructions of the Relax VM: words of 64 bits.
//!
//! | instruction | words |
//! |---|---|
//! | call | 1, destination, function, n, n operands |
//! | ret | 2, register |
//! | goto | 3, offset |
//! | if | 4, condition, offset when false |
//!
//! The top byte of an operand is its kind: 0 register, 1 immediate, 2 constant, 3 function. The other 56 bits are a signed value. Jumps
//! count instructions, starting at the jump itself.

use super::PAY_89;
use crate::rule::{Kind, Violation};

/// The void register: the destination of a call whose result is not used, and an operand without a value.
pub const VOID_REGISTER: i64 = 1 << 54;
/// The operand that refers to the VM itself.
pub const VM_REGISTER: i64 = VOID_REGISTER + 1;

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelaxInstruction {
    /// Calls a function of the table.
    Call {
        /// The register for the result; [`VOID_REGISTER`] if the result is not used.
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
    /// Jumps by `offset` instructions.
    Goto {
        /// The distance of the jump, which may be negative.
        offset: i64,
    },
    /// Continues with the next instruction if the register is true, and otherwise jumps by `false_offset` instructions.
    If {
        /// The register that is tested; 0 means false.
        condition: i64,
        /// The distance of the jump, which may be negative.
        false_offset: i64,
    },
}

impl RelaxInstruction {
    /// Returns the number of words that the instruction takes.
    pub fn length(&self) -> usize {
        match self {
            RelaxInstruction::Call { operands, .. } => operands.len().saturating_add(4),
            RelaxInstruction::Ret { .. } | RelaxInstruction::Goto { .. } => 2,
            RelaxInstruction::If { .. } => 3,
        }
    }

    /// Returns the words of the instruction: the inverse of
    /// [`RelaxExecutable::instruction`](super::relax_vm::RelaxExecutable::instruction).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`RelaxOperand::encode`].
    pub fn encode(&self) -> Result<Vec<u64>, Violation> {
        let (opcode, fields) = match self {
            RelaxInstruction::Call {
                destination,
                function,
                operands,
            } => {
                // PAY-89: the operands follow their count.
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
    /// A register, [`VM_REGISTER`], or [`VOID_REGISTER`].
    Register(i64),
    /// A number.
    Immediate(i64),
    /// The index of a constant.
    Constant(i64),
    /// The index of a function.
    Function(i64),
}

impl RelaxOperand {
    /// Decodes a word of the code. Returns `None` if the top byte is not a kind. Any 56-bit value is accepted, even if it is not a
    /// valid index (PAY-89).
    pub fn decode(word: u64) -> Option<RelaxOperand> {
        // PAY-89: the kind is the top byte, and the value is the low 56 bits, sign-extended.
        let value = (word << 8).cast_signed() >> 8;
        Some(match word >> 56 {
            0 => RelaxOperand::Register(value),
            1 => RelaxOperand::Immediate(value),
            2 => RelaxOperand::Constant(value),
            3 => RelaxOperand::Function(value),
            _ => return None,
        })
    }

    /// Returns the word of the code: the inverse of [`RelaxOperand::decode`].
    ///
    /// # Errors
    ///
    /// Returns PAY-89 for a value of more than 56 bits, which would be another operand.
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
