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
//! Neither magic nor version distinguishes the releases before 0.22, although the constant tags differ between three eras. Only the layout
//! of the library distinguishes them (PAY-86).

use super::kinds::PayloadForm;
use super::name_set::note_repeats;
use super::relax_code::RelaxCode;
pub use super::relax_function::{FunctionKind, RelaxFunction};
pub use super::relax_instruction::{RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER};
use super::slot::{FieldShape, FormSlot};
use super::strings::text;
use super::{PAY_81, PAY_82, PAY_83, PAY_85, PAY_86, PAY_87, PAY_95, Text};
use crate::release::{Layout, Releases};
use crate::rule::{Detail, Findings, Kind, Violation};
use crate::tensor::{Dtype, Sizing, TensorRecord};
use crate::wire::{Cursor, Words, Writer};

/// The only slot of the kind, under both of its names (PAY-81).
const SLOTS: &[FormSlot] = &[FormSlot::new("executable", FieldShape::Relax, PAY_81)];

/// The form of `relax.Executable`.
pub(super) const OLD_FORMS: &[PayloadForm] =
    &[PayloadForm::new("0.16", Releases::between(16, 19), SLOTS)];
/// The form of `relax.VMExecutable`, with the same bytes.
pub(super) const FORMS: &[PayloadForm] = &[PayloadForm::new("0.20", Releases::from(20), SLOTS)];

/// The magic of 0.16 to 0.22, without memory scopes.
pub const MAGIC: u64 = 0xD225_DE2F_4214_151D;
/// The magic from 0.23 on.
pub const MAGIC_WITH_SCOPES: u64 = 0xD225_DE2F_4214_151E;

// PAY-83: the version never changed, although the format changed four times.
/// The version that every release writes and expects.
const VERSION: &str = "0.14";

/// A Relax VM executable. Offsets and words borrow the bytes of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct RelaxExecutable<'a> {
    /// The function table, to which calls and operands refer by index.
    pub functions: Vec<RelaxFunction<'a>>,
    /// The memory scopes of constants, with the index of the constant (PAY-85); `None` for the magic without such a section.
    pub memory_scopes: Option<Vec<(i64, Text<'a>)>>,
    /// The constant pool.
    pub constants: Vec<RelaxConstant<'a>>,
    /// The index of the first word of each instruction.
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

/// Returns the tags of `layout`, in the order tensor, dtype, shape, text, int, float (PAY-86).
const fn tags(layout: Layout) -> [i32; 6] {
    match layout {
        // Up to 0.20, tags are an enumeration of the VM. From 0.21 on, they are type indices of tvm-ffi, which renumbered objects in 0.22.
        Layout::V0_2 | Layout::V0_7 => [0, 1, 2, 3, 4, 5],
        Layout::V0_21 => [72, 5, 71, 65, 1, 3],
        Layout::V0_22 => [70, 5, 69, 65, 1, 3],
    }
}

impl<'a> RelaxExecutable<'a> {
    /// Reads an executable in the form of `layout`: before 0.22 with a length at its start, later without (PAY-81). `.vmexec` files have
    /// the same bytes.
    ///
    /// # Errors
    ///
    /// At the byte of the field: PAY-82 to PAY-84 and PAY-86 to PAY-97 except PAY-95; the rules of [`wire`](crate::wire); for tensors the
    /// errors of [`TensorRecord::read`]. Under strict findings, also PAY-95 for two functions with one name, and WIRE-08 for bytes after
    /// the code.
    pub fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxExecutable<'a>, Violation> {
        // PAY-81: from 0.22 on, the library stores the length of the payload, so the executable does not repeat it.
        if layout >= Layout::V0_22 {
            return RelaxExecutable::read_code(layout, cursor, findings);
        }
        let mut window = cursor.window("code")?;
        let executable = RelaxExecutable::read_code(layout, &mut window, findings)?;
        window.finish("the VM code", findings)?;
        Ok(executable)
    }

    /// Reads the code after its length, if it has one.
    fn read_code(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxExecutable<'a>, Violation> {
        let with_scopes = read_header(layout, cursor)?;
        let mut starts = Vec::new();
        // WIRE-06: the smallest function has an i32 kind, the length of a name, four i64 and the count of parameters.
        let functions = cursor.vector(52, "functions", |cursor| {
            starts.push(cursor.offset());
            RelaxFunction::read(cursor)
        })?;
        // PAY-95: releases accept two functions with one name, and the last one counts, so the file can still be read.
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
        // PAY-85: an absent section and an empty list are kept apart, so that the file is written back unchanged.
        let memory_scopes = if with_scopes {
            // WIRE-06: the smallest scope has an index and the length of a string.
            Some(cursor.vector(16, "memory_scopes", |cursor| {
                scope_starts.push(cursor.offset());
                let constant = *cursor.i64("constant", PAY_85)?;
                Ok((constant, text(cursor, "scope", PAY_85)?))
            })?)
        } else {
            None
        };
        // WIRE-06: the smallest constant has a tag and a dtype.
        let constants = cursor.vector(8, "constants", |cursor| {
            RelaxConstant::read(layout, cursor, findings)
        })?;
        let scopes = memory_scopes.as_deref().unwrap_or_default();
        check_scopes(scopes, &scope_starts, constants.len())?;
        // The code is checked as a whole, because jumps and calls can refer to any part of the tables.
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

    /// Writes the executable in the form of `layout`: the inverse of [`RelaxExecutable::read`].
    ///
    /// # Errors
    ///
    /// Returns PAY-85 for memory scopes in a layout before 0.22, which cannot store them.
    pub fn write(&self, layout: Layout, out: &mut Writer) -> Result<(), Violation> {
        if layout >= Layout::V0_22 {
            return self.write_code(layout, out);
        }
        // PAY-81: the length is known after the code is written.
        let mut code = Writer::new();
        self.write_code(layout, &mut code)?;
        out.bytes(&code.into_bytes());
        Ok(())
    }

    /// Decodes instruction `index` of the table.
    ///
    /// # Errors
    ///
    /// Returns PAY-88 if it does not lie inside the words; PAY-89 if its opcode or an operand kind is unknown.
    pub fn instruction(&self, index: usize) -> Result<RelaxInstruction, Violation> {
        self.code().instruction(index)
    }

    /// Replaces instruction number `index`.
    ///
    /// All words are written again. If the length of the instruction changes, the words after it move. Jumps and functions count
    /// instructions, so their numbers stay valid. The operands are checked when the code is read again (PAY-92 to PAY-94), for example
    /// by [`StoredModule::edit`](crate::blob::StoredModule::edit).
    ///
    /// # Errors
    ///
    /// Returns PAY-88 and PAY-89 if there is no such instruction; PAY-89 for an operand of more than 56 bits. After an error nothing
    /// has changed.
    pub fn replace_instruction(
        &mut self,
        index: usize,
        instruction: &RelaxInstruction,
    ) -> Result<(), Violation> {
        let new = instruction.encode()?;
        // PAY-88: all words of the old instruction exist, from its offset on.
        let old = self.instruction(index)?.length();
        let start = self.offsets.get(index).unwrap_or_default();
        let behind = start.saturating_add(old as u64);
        let offsets = self.offsets.iter().map(|offset| {
            if offset < behind {
                offset
            } else {
                // PAY-96: the next instruction starts where this one ends.
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

    /// Returns the code with its tables, for the checks and the disassembly.
    fn code(&self) -> RelaxCode<'_, 'a> {
        RelaxCode {
            functions: &self.functions,
            constants: self.constants.len(),
            offsets: &self.offsets,
            words: &self.words,
        }
    }

    /// Writes the code without a length, with the older magic if it stores no scopes.
    fn write_code(&self, layout: Layout, out: &mut Writer) -> Result<(), Violation> {
        let scopes = self.memory_scopes.as_deref();
        // PAY-85: the old magic has no section for scopes. An empty list has no meaning there and is left out.
        if layout < Layout::V0_22 && scopes.is_some_and(|scopes| !scopes.is_empty()) {
            let message =
                format!("layout {layout} has no place for the memory scopes of constants");
            return Err(PAY_85.rejected(Kind::Unsupported, message));
        }
        // PAY-82: the magic shows whether the section exists, so an executable without scopes keeps the older magic.
        let scopes = scopes.filter(|_| layout >= Layout::V0_22);
        out.u64(if scopes.is_some() {
            MAGIC_WITH_SCOPES
        } else {
            MAGIC
        });
        // PAY-83: the version is neither the writing release nor a version of the format, which changed four times under it.
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

/// The end of a message about a header that no release writes, but that looks valid otherwise.
pub(crate) const LATER: &str = "; a release after 0.27 may have written it";

/// Reads magic and version; returns whether memory scopes follow the functions.
fn read_header(layout: Layout, cursor: &mut Cursor<'_>) -> Result<bool, Violation> {
    let magic = cursor.u64("magic", PAY_82)?;
    // PAY-82: 0.23 changed the magic, but 0.22 did not, so layout 0.22 has both magics; older layouts have the old one.
    let with_scopes = *magic == MAGIC_WITH_SCOPES && layout >= Layout::V0_22;
    // PAY-82: 0.23 increased the lowest byte.
    let is_later = *magic > MAGIC_WITH_SCOPES && *magic >> 8 == MAGIC >> 8;
    magic
        .require(
            PAY_82,
            |magic| with_scopes || *magic == MAGIC,
            |magic| {
                let later = if is_later { LATER } else { "" };
                format!(
                    "{magic:#018x} is not the magic of a Relax VM executable of layout {layout}{later}"
                )
            },
        )
        .map_err(|broken| broken.with_detail(is_later.then_some(Detail::LaterRelease)))?;
    cursor
        .str("version", PAY_83)?
        .require_as(
            Kind::Unsupported,
            PAY_83,
            |version| *version == VERSION,
            |version| {
                let version = version.escape_debug();
                format!("code version `{version}`: expected `{VERSION}`, as every release up to 0.27 writes{LATER}")
            },
        )
        .map_err(|broken| broken.with_detail(Some(Detail::LaterRelease)))?;
    Ok(with_scopes)
}

/// Checks that every scope refers to an existing constant, and that a constant has at most one scope (PAY-87).
fn check_scopes(
    scopes: &[(i64, Text<'_>)],
    starts: &[u64],
    constants: usize,
) -> Result<(), Violation> {
    // PAY-87: a flag for each constant, so that a list of scopes of any length is read once.
    let mut scoped = vec![false; if scopes.is_empty() { 0 } else { constants }];
    for (index, ((constant, scope), start)) in scopes.iter().zip(starts).enumerate() {
        let at = usize::try_from(*constant).ok();
        let place = at.and_then(|at| scoped.get_mut(at));
        let listed = PAY_87.require(place.is_some(), *start, || {
            format!("memory scope `{scope}` is for constant {constant}, but the number of constants is {constants}")
        });
        // PAY-87: released readers accept any index, and of two scopes for one constant they use the last.
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
    /// Reads a tag of `layout` and a value of its type (PAY-86).
    fn read(
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelaxConstant<'a>, Violation> {
        let tag = cursor.i32("tag", PAY_86)?;
        let position = tags(layout).iter().position(|known| *known == *tag);
        Ok(match position {
            // PAY-86: the kind exists since 0.16, so only one way to count bytes is needed (TEN-31).
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
                    "unknown constant tag {} in layout {layout}: the tags were renumbered in 0.21 and 0.22, so the layout may be wrong",
                    *tag
                );
                return Err(tag.broken(PAY_86, Kind::UnknownKind, message));
            }
        })
    }

    /// Writes a constant with the tag of `layout`: the inverse of [`RelaxConstant::read`].
    fn write(&self, layout: Layout, out: &mut Writer) {
        let [tensor, dtype, shape, text, int, float] = tags(layout);
        // PAY-86: the type decides the tag, because tags differ between layouts.
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

/// An empty executable, which was not read from a file.
impl Default for RelaxExecutable<'_> {
    fn default() -> Self {
        RelaxExecutable {
            functions: Vec::new(),
            // PAY-82: the latest release writes the newer magic even without scopes.
            memory_scopes: Some(Vec::new()),
            constants: Vec::new(),
            offsets: Words::default(),
            words: Words::default(),
        }
    }
}
