//! A function of the Relax VM: a row of the function table (PAY-84).
//!
//! | field | bytes |
//! |---|---|
//! | kind | i32: 0 packed, 1 VM, 2 VMTIR |
//! | name | string |
//! | start, end | i64 each: the first instruction, and the one after the last |
//! | num_args, registers | i64 each |
//! | params | vector of strings |

use super::strings::{names, text, write_names};
use super::{PAY_84, Text};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};

/// One row of the function table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaxFunction<'a> {
    /// The way in which it is run.
    pub kind: FunctionKind,
    /// Its global name.
    pub name: Text<'a>,
    /// Index of its first instruction.
    pub start: i64,
    /// Index after its last instruction.
    pub end: i64,
    /// Number of arguments; -2 for a packed function, which takes any number. An i64 as in the file, because a number that breaks a
    /// rule is kept for the violation.
    pub num_args: i64,
    /// Number of registers in its frame. The arguments are in the first registers.
    pub registers: i64,
    /// Names of the arguments.
    pub params: Vec<Text<'a>>,
}

/// The way in which a function is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FunctionKind {
    /// A packed function from the imports or the global registry.
    Packed,
    /// Instructions of this executable.
    Vm,
    /// A compiled function that works on the VM's registers.
    VmTir,
}

impl FunctionKind {
    /// Every kind; the position of a kind is its number in the file.
    pub const ALL: [FunctionKind; 3] =
        [FunctionKind::Packed, FunctionKind::Vm, FunctionKind::VmTir];

    /// Returns the number in the file.
    pub const fn code(self) -> i32 {
        match self {
            FunctionKind::Packed => 0,
            FunctionKind::Vm => 1,
            FunctionKind::VmTir => 2,
        }
    }

    /// Returns the name in JSON: `packed`, `vm`, `vmtir`.
    pub const fn name(self) -> &'static str {
        match self {
            FunctionKind::Packed => "packed",
            FunctionKind::Vm => "vm",
            FunctionKind::VmTir => "vmtir",
        }
    }
}

impl<'a> RelaxFunction<'a> {
    /// Reads a row (PAY-84), and rejects a kind with another number than 0, 1 or 2.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<RelaxFunction<'a>, Violation> {
        // PAY-84: readers of all releases accept any kind.
        let code = cursor.i32("kind", PAY_84)?;
        let kind = FunctionKind::ALL
            .into_iter()
            .find(|kind| kind.code() == *code);
        let Some(kind) = kind else {
            let message = format!("unknown function kind {}: expected 0, 1 or 2", *code);
            return Err(code.broken(PAY_84, Kind::UnknownKind, message));
        };
        // PAY-90: start and end refer to the table of instructions, which comes later in the file, and are checked there. PAY-91,
        // PAY-97: only functions of the VM have a frame. A packed function may have -2 arguments, which means any number.
        Ok(RelaxFunction {
            kind,
            name: text(cursor, "name", PAY_84)?,
            start: *cursor.i64("start", PAY_84)?,
            end: *cursor.i64("end", PAY_84)?,
            num_args: *cursor.i64("num_args", PAY_84)?,
            registers: *cursor.i64("registers", PAY_84)?,
            params: names(cursor, "params", PAY_84)?,
        })
    }

    /// Writes a row: the inverse of [`RelaxFunction::read`].
    pub(super) fn write(&self, out: &mut Writer) {
        out.i32(self.kind.code());
        out.str(&self.name);
        out.i64(self.start);
        out.i64(self.end);
        out.i64(self.num_args);
        out.i64(self.registers);
        write_names(&self.params, out);
    }
}
