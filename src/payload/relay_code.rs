//! Instructions of the Relay VM: an opcode, its fields, and a hash over both.
//!
//! An instruction is a vector of i64: hash, opcode, fields. What each field means is the table [`OPCODES`]; the fields of
//! some opcodes changed in 0.7 and 0.14.

use super::{PAY_71, PAY_72, PAY_73, PAY_75, PAY_76, PAY_77};
use crate::rule::{Kind, Rule, Violation};
use crate::wire::Cursor;

/// One instruction. Its hash is computed, not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayInstruction {
    /// Its opcode, a row of [`OPCODES`].
    pub opcode: i64,
    /// Its fields, in the order of that row.
    pub fields: Vec<i64>,
}

/// What a field of an instruction means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayOperand {
    /// A register of the frame.
    Register,
    /// An index of the constant pool.
    Constant,
    /// An index of the function table.
    Function,
    /// An index of the primitives.
    Primitive,
    /// A distance in instructions, from this one.
    Jump,
    /// A plain number.
    Number,
    /// How many more fields are at the end.
    Count,
    /// A register, unless the count is not zero: then the dimensions at the end are the size (PAY-75).
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
    /// The first release that has it, or has it with these fields.
    pub since: u8,
    /// Its fields.
    pub fields: &'static [RelayOperand],
    /// What each of them is called: `to` is the register that is written, `n` the number of fields at the end.
    pub names: &'static [&'static str],
    /// What the fields at the end are, whose number is the field `Count`.
    pub tail: RelayOperand,
}

/// An opcode that 0.`since` has with these fields, and what they are called.
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

/// The same opcode, with fields of the meaning `tail` at the end, as many as its field `Count` has.
const fn over(mut opcode: Opcode, tail: RelayOperand) -> Opcode {
    opcode.tail = tail;
    opcode
}

/// Every opcode; one whose fields changed has a row for each form, newest first.
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
    // PAY-73: equal and not: both ways are jumps here, so nothing falls through (PAY-76).
    op(10, "If", 6, &[Register, Register, Jump, Jump], &["test", "target", "equal", "else"]),
    // PAY-73: from 0.14 on the field in the middle names the device.
    op(11, "LoadConst", 14, &[Constant, Number, Register], &["constant", "device", "to"]),
    op(11, "LoadConst", 6, &[Constant, Register], &["constant", "to"]),
    op(12, "Goto", 6, &[Jump], &["goto"]),
    op(13, "GetTag", 6, &[Register, Register], &["object", "to"]),
    // PAY-73: the value itself, which needs no entry of the pool (PAY-77).
    op(14, "LoadConsti", 6, &[Number, Register], &["value", "to"]),
    // PAY-73: no fields: what a match that nothing matched jumps to.
    op(15, "Fatal", 6, &[], &[]),
    op(16, "AllocStorage", 14,
        &[RegisterUnlessShaped, Number, Number, Number, Number, Number, Count, Register],
        &["size", "alignment", "code", "bits", "lanes", "device", "n", "to"]),
    op(16, "AllocStorage", 7, &[Register, Number, Number, Number, Number, Number, Register],
        &["size", "alignment", "code", "bits", "lanes", "device", "to"]),
    op(16, "AllocStorage", 6, &[Register, Register, Number, Number, Number, Register],
        &["size", "alignment", "code", "bits", "lanes", "to"]),
    // PAY-72: came with 0.7, as 18 and 19 did.
    op(17, "ShapeOf", 7, &[Register, Register], &["tensor", "to"]),
    op(18, "ReshapeTensor", 7, &[Register, Register, Register], &["tensor", "shape", "to"]),
    op(19, "DeviceCopy", 7, &[Register, Number, Number, Register],
        &["from", "from device", "to device", "to"]),
    // PAY-72: came with 0.9, so that a register is let go before its frame is.
    op(20, "KillRegister", 9, &[Register], &["register"]),
];

/// What an instruction is checked against.
pub(super) struct RelayFrame {
    /// The minor number of the release whose opcodes the code has.
    pub(super) era: u8,
    /// Registers of the function at hand (PAY-75).
    pub(super) registers: u64,
    /// Instructions of the function at hand, which jumps stay in (PAY-76).
    pub(super) instructions: u64,
    /// Constants of the pool (PAY-77).
    pub(super) constants: usize,
    /// Globals, which name the functions (PAY-77).
    pub(super) functions: usize,
    /// Primitives (PAY-77).
    pub(super) primitives: usize,
}

impl RelayInstruction {
    /// The row of its opcode in code of release 0.`era`.
    /// `None` for one that the release does not have (PAY-72).
    pub(crate) fn opcode_in(&self, era: u8) -> Option<&'static Opcode> {
        let mut rows = OPCODES.iter();
        // PAY-73: the rows of an opcode come newest first, so the first that is not too new is that of the release.
        rows.find(|row| row.code == self.opcode && row.since <= era)
    }

    /// The hash: the opcode, mixed with each field in turn, in 64 bits that wrap around.
    /// PAY-71. The seed is the opcode, so that an instruction without fields hashes to its opcode.
    pub fn hash(&self) -> u64 {
        let mix = |key: u64, field: &i64| {
            // PAY-71: in unsigned 64 bits, although fields are stored signed.
            let field = field.cast_unsigned();
            let step = field
                .wrapping_add(0x9e37_79b9)
                .wrapping_add(key << 6)
                .wrapping_add(key >> 2);
            // PAY-71: a shift of a signed number would fill up with its sign.
            key ^ step
        };
        self.fields.iter().fold(self.opcode.cast_unsigned(), mix)
    }

    /// Reads instruction `index` of a function and holds it to PAY-71 to PAY-77.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        frame: &RelayFrame,
        index: u64,
    ) -> Result<RelayInstruction, Violation> {
        let words = cursor.read("words", |cursor| cursor.count(8, "words"))?;
        // PAY-71: hash and opcode are counted with the fields.
        let Some(count) = words.checked_sub(2) else {
            let message = "an instruction has at least a hash and an opcode";
            return Err(words.broken(PAY_71, Kind::Malformed, message));
        };
        // PAY-71: stored as the other words are, as an i64; its bits are those of the unsigned sum.
        let hash = cursor.u64("hash", PAY_71)?;
        let opcode = *cursor.i64("opcode", PAY_71)?;
        let first = cursor.offset();
        // WIRE-06: the count was held against the bytes, 8 for each word.
        let mut fields = Vec::with_capacity(count.min(cursor.remaining()));
        for position in 0..count {
            fields.push(cursor.within("fields", position as u64, |cursor| {
                Ok(*cursor.i64("fields", PAY_71)?)
            })?);
        }
        let instruction = RelayInstruction { opcode, fields };
        // PAY-71: stored in front of every instruction, and compared by every release.
        let expected = instruction.hash();
        hash.require(
            PAY_71,
            |hash| *hash == expected,
            |hash| format!("the hash is {hash:#x}, over these fields it is {expected:#x}"),
        )?;
        instruction.check(frame, index, first)?;
        Ok(instruction)
    }

    /// Holds the instruction, number `index` of its function and with its first field at `first`, to PAY-72 to PAY-77.
    fn check(&self, frame: &RelayFrame, index: u64, first: u64) -> Result<(), Violation> {
        let Some(row) = self.opcode_in(frame.era) else {
            let message = format!("release 0.{} has no opcode {}", frame.era, self.opcode);
            let broken = PAY_72.broken(Kind::UnknownKind, first.saturating_sub(8), message);
            return Err(broken.in_field("opcode"));
        };
        // PAY-73: a release build of any runtime reads past the fields that are there; debug builds check.
        let fixed = row.fields.len();
        // PAY-73: the count is among the fields, in front of some that are always there.
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
                    "{} has {fixed} fields{variable}, here are {}",
                    row.name,
                    self.fields.len()
                )
            })
            .map_err(|broken| broken.in_field("fields"))?;
        // PAY-75: one instruction with two meanings since 0.14: the size in a register, or the dimensions behind it.
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

/// Holds one field at `at` to the rule of what it means. `shaped`: dimensions follow (PAY-75).
fn check_field(
    name: &str,
    field: i64,
    meaning: RelayOperand,
    shaped: bool,
    frame: &RelayFrame,
    index: u64,
    at: u64,
) -> Result<(), Violation> {
    // PAY-75, PAY-77: a negative field is below no limit: upstream it becomes a large index.
    let below = |rule: Rule, limit: u64, what: &str| {
        let kept = u64::try_from(field).is_ok_and(|field| field < limit);
        rule.require(kept, at, || {
            format!("{name} uses {what} {field} of {limit}")
        })
    };
    match meaning {
        // PAY-75: with dimensions at the end the size register does not count.
        RegisterUnlessShaped if shaped => Ok(()),
        Register | RegisterUnlessShaped => below(PAY_75, frame.registers, "register"),
        Constant => below(PAY_77, frame.constants as u64, "constant"),
        Function => below(PAY_77, frame.functions as u64, "function"),
        Primitive => below(PAY_77, frame.primitives as u64, "primitive"),
        // PAY-76: counted in instructions, from the jump itself. No released reader checks.
        Jump => {
            let target = i64::try_from(index)
                .ok()
                .and_then(|from| from.checked_add(field));
            let target = target.and_then(|target| u64::try_from(target).ok());
            let kept = target.is_some_and(|target| target < frame.instructions);
            PAY_76.require(kept, at, || {
                format!(
                    "{name} jumps by {field}, out of the {} instructions",
                    frame.instructions
                )
            })
        }
        Number | Count => Ok(()),
    }
}
