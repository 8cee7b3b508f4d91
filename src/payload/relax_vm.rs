//! The Relax VM executable: functions, constants, instructions.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | length | u64; layouts before 0.22 only | PAY-81 |
//! | magic | u64, 0xD225DE2F4214151D, or ..1E from 0.23 on | PAY-82 |
//! | version | string, `0.14` | PAY-83 |
//! | functions | vector of: i32 kind, string name, i64 start, end, arguments, registers, vector of names | PAY-84, PAY-97 |
//! | memory scopes | vector of: i64 constant, string scope; magic ..1E only | PAY-85, PAY-87 |
//! | constants | vector of: i32 tag and a value of that type | PAY-86 |
//! | instruction offsets | vector of i64 | PAY-88, PAY-96 |
//! | instruction words | vector of i64 | PAY-88 .. PAY-94 |
//!
//! Neither magic nor version distinguishes the releases before 0.22; the constant tags of three eras differ all the same.
//! Only the layout of the library distinguishes them (PAY-86).

use super::kinds::PayloadForm;
use super::name_set::note_repeats;
use super::relax_code::RelaxCode;
pub use super::relax_function::{FunctionKind, RelaxFunction};
pub use super::relax_instruction::{RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER};
use super::slot::{FieldShape, FormSlot};
use super::strings::text;
use super::{PAY_81, PAY_82, PAY_83, PAY_85, PAY_86, PAY_87, PAY_95, Text};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Dtype, Sizing, TensorRecord};
use crate::wire::{Cursor, Words, Writer};

/// The one slot of both names of the kind (PAY-81).
const SLOTS: &[FormSlot] = &[FormSlot::new("executable", FieldShape::Relax, PAY_81)];

/// The form of `relax.Executable`.
pub(super) const OLD_FORMS: &[PayloadForm] =
    &[PayloadForm::new("0.16", Releases::between(16, 19), SLOTS)];
/// The form of `relax.VMExecutable`, of the same bytes.
pub(super) const FORMS: &[PayloadForm] = &[PayloadForm::new("0.20", Releases::from(20), SLOTS)];

/// The magic of 0.16 to 0.22, which has no memory scopes.
pub const MAGIC: u64 = 0xD225_DE2F_4214_151D;
/// The magic of 0.23 on.
pub const MAGIC_WITH_SCOPES: u64 = 0xD225_DE2F_4214_151E;

// PAY-83: never changed, although the format did four times.
/// The version that every release writes and expects.
const VERSION: &str = "0.14";

/// A Relax VM executable. Offsets and words are the file's own bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct RelaxExecutable<'a> {
    /// The function table, which calls and operands index.
    pub functions: Vec<RelaxFunction<'a>>,
    /// The memory scopes of constants, by index of the constant (PAY-85); `None` under the magic that has no section for them.
    pub memory_scopes: Option<Vec<(i64, Text<'a>)>>,
    /// The constant pool.
    pub constants: Vec<RelaxConstant<'a>>,
    /// For each instruction the index of its first word.
    pub offsets: Words<'a>,
    /// The words of all instructions.
    pub words: Words<'a>,
}

/// One constant of the pool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RelaxConstant<'a> {
    /// A tensor.
    Tensor(TensorRecord<'a>),
    /// A shape.
    Shape(Vec<i64>),
    /// A text.
    Text(Text<'a>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A dtype.
    Dtype(Dtype),
}

/// PAY-86: the tags of `layout`, in the order tensor, dtype, shape, text, int, float.
const fn tags(layout: Layout) -> [i32; 6] {
    match layout {
        // An enumeration of the VM up to 0.20; from 0.21 on the type indices of tvm-ffi, which renumbered those of objects in 0.22.
        Layout::V0_2 | Layout::V0_7 => [0, 1, 2, 3, 4, 5],
        Layout::V0_21 => [72, 5, 71, 65, 1, 3],
        Layout::V0_22 => [70, 5, 69, 65, 1, 3],
    }
}

impl<'a> RelaxExecutable<'a> {
    /// Reads an executable as `layout` stores it: with its length in front before 0.22 (PAY-81), without from then on.
    /// `.vmexec` files have the same bytes.
    ///
    /// # Errors
    ///
    /// At the byte of the field: PAY-82 to PAY-84 and PAY-86 to PAY-97 except PAY-95, the rules of [`wire`](crate::wire), and in
    /// tensors those of [`TensorRecord::read`]. Under strict findings, PAY-95 for two functions of one name and WIRE-08 for bytes
    /// behind the code.
    pub fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxExecutable<'a>, Violation> {
        // PAY-81: from 0.22 on the library has the length, and it is not written again.
        if layout >= Layout::V0_22 {
            return RelaxExecutable::read_code(layout, cursor, findings);
        }
        let mut window = cursor.window("code")?;
        let executable = RelaxExecutable::read_code(layout, &mut window, findings)?;
        window.finish("the VM code", findings)?;
        Ok(executable)
    }

    /// Reads the code, whose length, if it has one, is behind the cursor already.
    fn read_code(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxExecutable<'a>, Violation> {
        let with_scopes = read_header(layout, cursor)?;
        let mut starts = Vec::new();
        // WIRE-06: i32 kind, the length of a name, four i64 and the count of parameters.
        let functions = cursor.vector(52, "functions", |cursor| {
            starts.push(cursor.offset());
            RelaxFunction::read(cursor)
        })?;
        // PAY-95: releases read two functions of one name, and the last one counts; the file stays readable.
        let once = functions.iter().map(|function| &*function.name);
        let effect = "the last one counts";
        note_repeats(
            &mut once.zip(starts.iter().copied()),
            PAY_95,
            "function",
            effect,
            findings,
        )?;
        let mut scope_starts = Vec::new();
        // PAY-85: absent under the old magic, which is not the same as an empty list: the file is written back as it was.
        let memory_scopes = if with_scopes {
            // WIRE-06: an index and the length of a string.
            Some(cursor.vector(16, "memory_scopes", |cursor| {
                scope_starts.push(cursor.offset());
                let constant = *cursor.i64("constant", PAY_85)?;
                Ok((constant, text(cursor, "scope", PAY_85)?))
            })?)
        } else {
            None
        };
        // WIRE-06: a tag and the shortest value, a dtype.
        let constants = cursor.vector(8, "constants", |cursor| {
            RelaxConstant::read(layout, cursor, findings)
        })?;
        let scopes = memory_scopes.as_deref().unwrap_or_default();
        check_scopes(scopes, &scope_starts, constants.len())?;
        // Checked as a whole: jumps and calls go anywhere in the tables.
        let executable = RelaxExecutable {
            functions,
            memory_scopes,
            constants,
            offsets: cursor.signed_words("instr_offset", super::PAY_88)?,
            words: cursor.signed_words("instr_data", super::PAY_88)?,
        };
        let code = executable.code();
        code.check(&starts)
            .map_err(|broken| match broken.offset() {
                Some(at) => broken.in_field(code.field_at(at, &starts)),
                None => broken,
            })?;
        Ok(executable)
    }

    /// Writes it as `layout` stores it: the inverse of [`RelaxExecutable::read`].
    ///
    /// # Errors
    ///
    /// PAY-85 when there are memory scopes, which no layout before 0.22 has.
    pub fn write(&self, layout: Layout, out: &mut Writer) -> Result<(), Violation> {
        if layout >= Layout::V0_22 {
            return self.write_code(layout, out);
        }
        // PAY-81: the length is known when all is written.
        let mut code = Writer::new();
        self.write_code(layout, &mut code)?;
        out.bytes(&code.into_bytes());
        Ok(())
    }

    /// Instruction `index` of the table.
    ///
    /// # Errors
    ///
    /// PAY-88 when it does not lie inside the words, PAY-89 when its opcode or an operand kind is unknown.
    pub fn instruction(&self, index: usize) -> Result<RelaxInstruction, Violation> {
        self.code().instruction(index)
    }

    /// Puts `instruction` in the place of number `index`.
    ///
    /// All words are written anew, and those behind it move where it has more or fewer: jumps and functions count instructions and keep
    /// their numbers. What it names is held to the tables where the code is read (PAY-92 to PAY-94), as
    /// [`StoredModule::edit`](crate::blob::StoredModule::edit) does.
    ///
    /// # Errors
    ///
    /// PAY-88 and PAY-89 where there is no such instruction, PAY-89 for an operand of more than 56 bits; nothing changes then.
    pub fn replace_instruction(
        &mut self,
        index: usize,
        instruction: &RelaxInstruction,
    ) -> Result<(), Violation> {
        let new = instruction.encode()?;
        // PAY-88: all words of the old one are there, from its offset on.
        let old = self.instruction(index)?.length();
        let start = self.offsets.get(index).unwrap_or_default();
        let behind = start.saturating_add(old as u64);
        let offsets = self.offsets.iter().map(|offset| {
            if offset < behind {
                offset
            } else {
                // PAY-96: the next one begins where this one ends.
                offset
                    .saturating_sub(old as u64)
                    .saturating_add(new.len() as u64)
            }
        });
        let offsets: Vec<u64> = offsets.collect();
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let front = self.words.iter().take(start);
        let rest = self.words.iter().skip(start.saturating_add(old));
        let words: Vec<u64> = front.chain(new).chain(rest).collect();
        self.offsets = offsets.as_slice().into();
        self.words = words.as_slice().into();
        Ok(())
    }

    /// The code with its tables, as the checks and the disassembly see it.
    fn code(&self) -> RelaxCode<'_, 'a> {
        RelaxCode {
            functions: &self.functions,
            constants: self.constants.len(),
            offsets: &self.offsets,
            words: &self.words,
        }
    }

    /// Writes the code alone; under the older magic where there are no scopes to write.
    fn write_code(&self, layout: Layout, out: &mut Writer) -> Result<(), Violation> {
        let scopes = self.memory_scopes.as_deref();
        // PAY-85: no section for them under the old magic. An empty list has no meaning, and is left out.
        if layout < Layout::V0_22 && scopes.is_some_and(|scopes| !scopes.is_empty()) {
            let message =
                format!("layout {layout} has no place for the memory scopes of constants");
            return Err(PAY_85.rejected(Kind::Unsupported, message));
        }
        // PAY-82: the magic tells whether the section is there, so that one without scopes keeps the older.
        let scopes = scopes.filter(|_| layout >= Layout::V0_22);
        out.u64(if scopes.is_some() {
            MAGIC_WITH_SCOPES
        } else {
            MAGIC
        });
        // PAY-83: not the release that writes it, and not that of the format, which changed four times under it.
        out.str(VERSION);
        out.vector(&self.functions, |out, function| function.write(out));
        if let Some(scopes) = scopes {
            out.vector(scopes, |out, (constant, scope)| {
                out.i64(*constant);
                out.str(scope);
            });
        }
        out.vector(&self.constants, |out, constant| constant.write(layout, out));
        for words in [&self.offsets, &self.words] {
            out.count(words.len());
            out.raw(words.as_bytes());
        }
        Ok(())
    }
}

/// What a header says that no release writes, and that looks like one.
const LATER: &str = "; it looks as if a TVM after 0.27 wrote it";

/// Magic and version; whether memory scopes follow the functions.
fn read_header(layout: Layout, cursor: &mut Cursor<'_>) -> Result<bool, Violation> {
    let magic = cursor.u64("magic", PAY_82)?;
    // PAY-82: 0.23 changed the magic and 0.22 did not, so layout 0.22 has both; older layouts have the old one.
    let with_scopes = *magic == MAGIC_WITH_SCOPES && layout >= Layout::V0_22;
    magic.require(
        PAY_82,
        |magic| with_scopes || *magic == MAGIC,
        |magic| {
            // PAY-82: 0.23 counted the lowest byte up.
            let later = *magic > MAGIC_WITH_SCOPES && *magic >> 8 == MAGIC >> 8;
            let later = if later { LATER } else { "" };
            format!("{magic:#018x} does not start a Relax VM executable of layout {layout}{later}")
        },
    )?;
    cursor.str("version", PAY_83)?.require_as(
        Kind::Unsupported,
        PAY_83,
        |version| *version == VERSION,
        |version| {
            let version = version.escape_debug();
            format!("code version `{version}`, every release up to 0.27 writes `{VERSION}`{LATER}")
        },
    )?;
    Ok(with_scopes)
}

/// PAY-87: a scope is about a constant that is there, and there is one scope for it.
fn check_scopes(
    scopes: &[(i64, Text<'_>)],
    starts: &[u64],
    constants: usize,
) -> Result<(), Violation> {
    // PAY-87: a mark for each constant, so that a list of scopes is read once, however long.
    let mut scoped = vec![false; if scopes.is_empty() { 0 } else { constants }];
    for (index, ((constant, scope), start)) in scopes.iter().zip(starts).enumerate() {
        let at = usize::try_from(*constant).ok();
        let place = at.and_then(|at| scoped.get_mut(at));
        let listed = PAY_87.require(place.is_some(), *start, || {
            format!("memory scope `{scope}` is for constant {constant} of {constants}")
        });
        // PAY-87: released readers take any index, and of two scopes for one constant the last.
        let second = place.is_some_and(|place| std::mem::replace(place, true));
        let once = PAY_87.require_as(Kind::Duplicate, !second, *start, || {
            format!("constant {constant} has a second memory scope `{scope}`")
        });
        listed
            .and(once)
            .map_err(|broken| broken.in_field(format!("memory_scopes[{index}]")))?;
    }
    Ok(())
}

impl<'a> RelaxConstant<'a> {
    /// A tag of `layout` (PAY-86), and a value of its type.
    fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxConstant<'a>, Violation> {
        let tag = cursor.i32("tag", PAY_86)?;
        let position = tags(layout).iter().position(|known| *known == *tag);
        Ok(match position {
            // PAY-86: the kind came with 0.16, and with it one way to count the bytes (TEN-31).
            Some(0) => RelaxConstant::Tensor(TensorRecord::read(cursor, Sizing::V0_7, findings)?),
            Some(1) => RelaxConstant::Dtype(Dtype::read(cursor)?),
            Some(2) => RelaxConstant::Shape(
                cursor.vector(8, "shape", |cursor| Ok(*cursor.i64("shape", PAY_86)?))?,
            ),
            Some(3) => RelaxConstant::Text(text(cursor, "text", PAY_86)?),
            Some(4) => RelaxConstant::Int(*cursor.i64("int", PAY_86)?),
            Some(5) => RelaxConstant::Float(*cursor.f64("float", PAY_86)?),
            _ => {
                let message = format!(
                    "constant tag {} means nothing in layout {layout}: the tags were renumbered in 0.21 and 0.22",
                    *tag
                );
                return Err(tag.broken(PAY_86, Kind::UnknownKind, message));
            }
        })
    }

    /// The inverse of [`RelaxConstant::read`], under the tags of `layout`.
    fn write(&self, layout: Layout, out: &mut Writer) {
        let [tensor, dtype, shape, text, int, float] = tags(layout);
        // By its type and not by the tag it was read with: tags differ between layouts (PAY-86).
        match self {
            RelaxConstant::Tensor(value) => {
                out.i32(tensor);
                value.write(out);
            }
            RelaxConstant::Dtype(value) => {
                out.i32(dtype);
                value.write(out);
            }
            RelaxConstant::Shape(value) => {
                out.i32(shape);
                out.vector(value, |out, dim| out.i64(*dim));
            }
            RelaxConstant::Text(value) => {
                out.i32(text);
                out.str(value);
            }
            RelaxConstant::Int(value) => {
                out.i32(int);
                out.i64(*value);
            }
            RelaxConstant::Float(value) => {
                out.i32(float);
                out.f64(*value);
            }
        }
    }
}

/// An executable that was built, not read.
impl Default for RelaxExecutable<'_> {
    fn default() -> Self {
        RelaxExecutable {
            functions: Vec::new(),
            // PAY-82: the newer magic, as the latest release writes it, whether there are scopes or not.
            memory_scopes: Some(Vec::new()),
            constants: Vec::new(),
            offsets: Words::default(),
            words: Words::default(),
        }
    }
}
