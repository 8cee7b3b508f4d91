//! Instructions of the Relay VM: an opcode, its fields, and a hash of both.
//!
//! An instruction is a vector of i64: hash, opcode, fields. The table [`OPCODES`] has the meaning of each field. The fields of some opcodes
//! changed in 0.7 and 0.14.

use super::{PAY_71, PAY_72, PAY_73, PAY_75, PAY_76, PAY_77};
use crate::rule::{Kind, Rule, Violation};
use crate::wire::Cursor;

/// One instruction. Its hash is computed, not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayInstruction {
    /// Its opcode, a row of [`OPCODES`].
    pub opcode: i64,
    /// Its fields, in the order of that row.
    pub fields: Vec<i64>,
}

/// The meaning of a field of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayOperand {
    /// A register of the frame.
    Register,
    /// An index into the constant pool.
    Constant,
    /// An index into the function table.
    Function,
    /// An index into the primitives.
    Primitive,
    /// A distance in instructions, starting at this instruction.
    Jump,
    /// A plain number.
    Number,
    /// The number of additional fields at the end.
    Count,
    /// A register, unless the count is not zero. Then the dimensions at the end are the size (PAY-75).
    RegisterUnlessShaped,
}
use RelayOperand::{
    Constant, Count, Function, Jump, Number, Primitive, Register, RegisterUnlessShaped,
};

/// One opcode.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opcode {
    /// Its number.
    pub code: i64,
    /// Its name.
    pub name: &'static str,
    /// The first release that has the opcode with these fields.
    pub since: u8,
    /// Its fields.
    pub fields: &'static [RelayOperand],
    /// The names of the fields: `to` is the destination register, `n` the number of fields at the end.
    pub names: &'static [&'static str],
    /// The meaning of the fields at the end, whose number is in the field `Count`.
    pub tail: RelayOperand,
}

/// Creates an opcode of 0.`since` with these fields and their names.
const fn op(
    code: i64,
    name: &'static str,
    since: u8,
    fields: &'static [RelayOperand],
    names: &'static [&'static str],
) -> Opcode {
    Opcode {
        code,
        name,
        since,
        fields,
        names,
        tail: Number,
    }
}

/// Sets the meaning of the fields at the end, whose number is in the field `Count`.
const fn over(mut opcode: Opcode, tail: RelayOperand) -> Opcode {
    opcode.tail = tail;
    opcode
}

/// Every opcode. An opcode whose fields changed has a row for each form, newest first.
#[rustfmt::skip]
pub const OPCODES: &[Opcode] = &[
    op(0, "Move", 6, &[Register, Register], &["from", "to"]),
    op(1, "Ret", 6, &[Register], &["register"]),
    over(op(2, "Invoke", 6, &[Function, Count, Register], &["function", "n", "to"]), Register),
    over(op(3, "InvokeClosure", 6, &[Register, Count, Register], &["closure", "n", "to"]), Register),
    over(op(4, "InvokePacked", 6, &[Primitive, Count, Number], &["primitive", "n", "outputs"]), Register),
    op(5, "AllocTensor", 7, &[Register, Register, Number, Number, Number, Count, Register],
        &["storage", "offset", "code", "bits", "lanes", "n", "to"]),
    op(5, "AllocTensor", 6, &[Register, Number, Number, Number, Count, Register],
        &["storage", "code", "bits", "lanes", "n", "to"]),
    op(6, "AllocTensorReg", 7, &[Register, Register, Register, Number, Number, Number, Register],
        &["storage", "offset", "shape", "code", "bits", "lanes", "to"]),
    op(6, "AllocTensorReg", 6, &[Register, Register, Number, Number, Number, Register],
        &["storage", "shape", "code", "bits", "lanes", "to"]),
    over(op(7, "AllocADT", 6, &[Number, Count, Register], &["tag", "n", "to"]), Register),
    over(op(8, "AllocClosure", 6, &[Function, Count, Register], &["function", "n", "to"]), Register),
    op(9, "GetField", 6, &[Register, Number, Register], &["object", "index", "to"]),
    // PAY-73: both outcomes are jumps, so control never continues with the next instruction (PAY-76).
    op(10, "If", 6, &[Register, Register, Jump, Jump], &["test", "target", "equal", "else"]),
    // PAY-73: from 0.14 on, the field in the middle is the device.
    op(11, "LoadConst", 14, &[Constant, Number, Register], &["constant", "device", "to"]),
    op(11, "LoadConst", 6, &[Constant, Register], &["constant", "to"]),
    op(12, "Goto", 6, &[Jump], &["goto"]),
    op(13, "GetTag", 6, &[Register, Register], &["object", "to"]),
    // PAY-73: the value itself, which needs no constant in the pool (PAY-77).
    op(14, "LoadConsti", 6, &[Number, Register], &["value", "to"]),
    // PAY-73: an instruction without fields, which a match jumps to if no case fits.
    op(15, "Fatal", 6, &[], &[]),
    op(16, "AllocStorage", 14,
        &[RegisterUnlessShaped, Number, Number, Number, Number, Number, Count, Register],
        &["size", "alignment", "code", "bits", "lanes", "device", "n", "to"]),
    op(16, "AllocStorage", 7, &[Register, Number, Number, Number, Number, Number, Register],
        &["size", "alignment", "code", "bits", "lanes", "device", "to"]),
    op(16, "AllocStorage", 6, &[Register, Register, Number, Number, Number, Register],
        &["size", "alignment", "code", "bits", "lanes", "to"]),
    // PAY-72: added in 0.7, like 18 and 19.
    op(17, "ShapeOf", 7, &[Register, Register], &["tensor", "to"]),
    op(18, "ReshapeTensor", 7, &[Register, Register, Register], &["tensor", "shape", "to"]),
    op(19, "DeviceCopy", 7, &[Register, Number, Number, Register],
        &["from", "from device", "to device", "to"]),
    // PAY-72: added in 0.9, to release a register before its frame ends.
    op(20, "KillRegister", 9, &[Register], &["register"]),
];

/// The limits that an instruction is checked against.
pub(super) struct RelayFrame {
    /// The minor number of the release whose opcodes the code uses.
    pub(super) era: u8,
    /// Number of registers of the current function (PAY-75).
    pub(super) registers: u64,
    /// Number of instructions of the current function, which jumps must not leave (PAY-76).
    pub(super) instructions: u64,
    /// Number of constants in the pool (PAY-77).
    pub(super) constants: usize,
    /// Number of globals, which name the functions (PAY-77).
    pub(super) functions: usize,
    /// Number of primitives (PAY-77).
    pub(super) primitives: usize,
}

impl RelayInstruction {
    /// Returns the row of its opcode in code of release 0.`era`; `None` if the release does not have the opcode (PAY-72).
    pub(crate) fn opcode_in(&self, era: u8) -> Option<&'static Opcode> {
        let mut rows = OPCODES.iter();
        // PAY-73: the rows of an opcode are listed newest first, so the first row that is not newer than the release is the right one.
        rows.find(|row| row.code == self.opcode && row.since <= era)
    }

    /// Computes the hash (PAY-71). It starts with the opcode and mixes in each field, in wrapping 64-bit arithmetic. The hash of an
    /// instruction without fields is its opcode.
    pub fn hash(&self) -> u64 {
        let mix = |key: u64, field: &i64| {
            // PAY-71: the arithmetic is unsigned, although fields are stored as signed numbers.
            let field = field.cast_unsigned();
            let step = field
                .wrapping_add(0x9e37_79b9)
                .wrapping_add(key << 6)
                .wrapping_add(key >> 2);
            // PAY-71: a right shift of a signed number would insert copies of its sign.
            key ^ step
        };
        self.fields.iter().fold(self.opcode.cast_unsigned(), mix)
    }

    /// Reads instruction `index` of a function and checks PAY-71 to PAY-77.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        frame: &RelayFrame,
        index: u64,
    ) -> Result<RelayInstruction, Violation> {
        let words = cursor.read("words", |cursor| cursor.count(8, "words"))?;
        // PAY-71: the count includes hash and opcode.
        let Some(count) = words.checked_sub(2) else {
            let message = "an instruction has at least a hash and an opcode";
            return Err(words.broken(PAY_71, Kind::Malformed, message));
        };
        // PAY-71: the file stores the unsigned hash as an i64 with the same bits.
        let hash = cursor.u64("hash", PAY_71)?;
        let opcode = *cursor.i64("opcode", PAY_71)?;
        let first = cursor.offset();
        // WIRE-06: the count was compared with the bytes, 8 for each word.
        let mut fields = Vec::with_capacity(count.min(cursor.remaining()));
        for position in 0..count {
            fields.push(cursor.read_within("fields", position as u64, |cursor| {
                Ok(*cursor.i64("fields", PAY_71)?)
            })?);
        }
        let instruction = RelayInstruction { opcode, fields };
        // PAY-71: the hash comes before every instruction, and every release compares it.
        let expected = instruction.hash();
        hash.require(
            PAY_71,
            |hash| *hash == expected,
            |hash| {
                format!("the hash is {hash:#x}: expected {expected:#x}, the hash of these fields")
            },
        )?;
        instruction.check(frame, index, first)?;
        Ok(instruction)
    }

    /// Checks PAY-72 to PAY-77 for the instruction, which has number `index` in its function and its first field at offset `first`.
    fn check(&self, frame: &RelayFrame, index: u64, first: u64) -> Result<(), Violation> {
        let Some(row) = self.opcode_in(frame.era) else {
            let message = format!("release 0.{} has no opcode {}", frame.era, self.opcode);
            let broken = PAY_72.broken(Kind::UnknownKind, first.saturating_sub(8), message);
            return Err(broken.in_field("opcode"));
        };
        // PAY-73: a release build of any runtime reads past the existing fields; debug builds check them.
        let fixed = row.fields.len();
        // PAY-73: the count is one of the fixed fields, and other fixed fields may follow it.
        let counted = row.fields.iter().position(|field| *field == Count);
        let tail = counted.and_then(|position| self.fields.get(position).copied());
        let tail = tail.map_or(Some(0), |tail| usize::try_from(tail).ok());
        let complete = tail.and_then(|tail| fixed.checked_add(tail)) == Some(self.fields.len());
        PAY_73
            .require(complete && self.fields.len() >= fixed, first, || {
                let variable = if counted.is_some() {
                    " and as many as it counts"
                } else {
                    ""
                };
                format!(
                    "{}: expected {fixed} fields{variable}, found {}",
                    row.name,
                    self.fields.len()
                )
            })
            .map_err(|broken| broken.in_field("fields"))?;
        // PAY-75: since 0.14 the instruction has two meanings: the size is in a register, or the dimensions follow.
        let shaped = tail.is_some_and(|tail| tail > 0);
        let meanings = row
            .fields
            .iter()
            .copied()
            .chain(std::iter::repeat(row.tail));
        for (position, (field, meaning)) in self.fields.iter().zip(meanings).enumerate() {
            let at = first.saturating_add((position as u64).saturating_mul(8));
            check_field(row.name, *field, meaning, shaped, frame, index, at)
                .map_err(|broken| broken.in_field(format!("fields[{position}]")))?;
        }
        Ok(())
    }
}

/// Checks one field at `at` against the rule for its meaning. `shaped`: dimensions follow (PAY-75).
fn check_field(
    name: &str,
    field: i64,
    meaning: RelayOperand,
    shaped: bool,
    frame: &RelayFrame,
    index: u64,
    at: u64,
) -> Result<(), Violation> {
    // PAY-75, PAY-77: a negative field is never below the limit. Upstream it becomes a large index.
    let below = |rule: Rule, limit: u64, what: &str| {
        let kept = u64::try_from(field).is_ok_and(|field| field < limit);
        rule.require(kept, at, || {
            format!("{name} uses {what} {field}, but the number of {what}s is {limit}")
        })
    };
    match meaning {
        // PAY-75: if dimensions follow, the size register is ignored.
        RegisterUnlessShaped if shaped => Ok(()),
        Register | RegisterUnlessShaped => below(PAY_75, frame.registers, "register"),
        Constant => below(PAY_77, frame.constants as u64, "constant"),
        Function => below(PAY_77, frame.functions as u64, "function"),
        Primitive => below(PAY_77, frame.primitives as u64, "primitive"),
        // PAY-76: jumps count instructions, starting at the jump itself. No released reader checks them.
        Jump => {
            let target = i64::try_from(index)
                .ok()
                .and_then(|from| from.checked_add(field));
            let target = target.and_then(|target| u64::try_from(target).ok());
            let kept = target.is_some_and(|target| target < frame.instructions);
            PAY_76.require(kept, at, || {
                format!(
                    "{name} jumps by {field}: expected a target inside the {} instructions",
                    frame.instructions
                )
            })
        }
        Number | Count => Ok(()),
    }
}
