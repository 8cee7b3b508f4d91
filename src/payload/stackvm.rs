//! The StackVM file (`.stackvm`): functions in stack code, and imports with their payloads.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | functions | map of name to StackVM | PAY-55 |
//! | entry | string: the function that `__tvm_main__` calls | PAY-55 |
//! | imports | u64 count; kind and payload of each | PAY-57 |
//!
//! A StackVM is a vector of i32 (code), three vectors of strings (texts, external functions, heap names) and two u64
//! (heap and stack size).

use super::kinds::PayloadForm;
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, text, write_names};
use super::{PAY_55, PAY_56, PAY_57, Payload, Text};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Writer};

// PAY-55: there is no magic. The file is recognized by its name, or by its first fields (BLOB-69).
/// The form of `stackvm`.
pub(super) const FORMS: &[PayloadForm] = &[PayloadForm::new(
    "0.4",
    Releases::between(4, 19),
    &[
        FormSlot::new("functions", FieldShape::StackVms, PAY_55),
        FormSlot::new("entry", FieldShape::Text, PAY_55),
        FormSlot::new("imports", FieldShape::Imports, PAY_57),
    ],
)];

/// One function of stack code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackVm<'a> {
    /// Opcodes and their operands.
    pub code: Vec<i32>,
    /// String literals, by index.
    pub texts: Vec<Text<'a>>,
    /// Names of the functions that the code calls, by index.
    pub extern_functions: Vec<Text<'a>>,
    /// Names of its heap cells, by index.
    pub heap_names: Vec<Text<'a>>,
    /// Number of heap cells that it needs.
    pub heap_size: u64,
    /// Number of stack cells that it needs.
    pub stack_size: u64,
}

/// Reads the map of functions.
pub(super) fn read_functions<'a>(
    cursor: &mut Cursor<'a>,
) -> Result<Vec<(Text<'a>, StackVm<'a>)>, Violation> {
    // WIRE-06: the smallest function has the length of its name, four counts and two sizes.
    cursor.map(56, "functions", |cursor| {
        let name = text(cursor, "name", PAY_55)?;
        let function = StackVm {
            // PAY-56: opcodes and operands are in one vector, and only the interpreter can tell them apart.
            code: cursor.vector(4, "code", |cursor| Ok(*cursor.i32("code", PAY_56)?))?,
            texts: names(cursor, "texts", PAY_56)?,
            extern_functions: names(cursor, "extern_functions", PAY_56)?,
            heap_names: names(cursor, "heap_names", PAY_56)?,
            // PAY-56: this is the writer's `size_t`. A 32-bit writer wrote 4 bytes, which the file does not show.
            heap_size: *cursor.u64("heap_size", PAY_56)?,
            stack_size: *cursor.u64("stack_size", PAY_56)?,
        };
        Ok((name, function))
    })
}

/// Writes functions: the inverse of [`read_functions`].
pub(super) fn write_functions(list: &[(Text<'_>, StackVm<'_>)], out: &mut Writer) {
    out.vector(list, |out, (name, function)| {
        out.str(name);
        out.vector(&function.code, |out, word| out.i32(*word));
        write_names(&function.texts, out);
        write_names(&function.extern_functions, out);
        write_names(&function.heap_names, out);
        out.u64(function.heap_size);
        out.u64(function.stack_size);
    });
}

/// Reads kinds and payloads in the form of `layout`, one level deep (PAY-57).
pub(super) fn read_imports<'a>(
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<Payload<'a>>, Violation> {
    cursor.vector(8, "imports", |cursor| {
        // PAY-57: there is neither `_lib` nor a tree, because a StackVM file has no host library.
        let kind = cursor.str("kind", PAY_57)?;
        // PAY-57: writers reject an import that has imports. Without this check, a file could cause unlimited recursion.
        if *kind == "stackvm" {
            let message = "a StackVM module imports another: a StackVM file has one level";
            return Err(kind.broken(PAY_57, Kind::Unsupported, message));
        }
        // PAY-57: there is no length, so an import of an unknown kind ends the reading (PAY-01).
        super::read(&kind, layout, cursor, findings)
    })
}

/// Writes imports: the inverse of [`read_imports`].
pub(super) fn write_imports(
    list: &[Payload<'_>],
    layout: Layout,
    out: &mut Writer,
) -> Result<(), Violation> {
    out.count(list.len());
    for import in list {
        out.str(import.kind());
        import.write(layout, out)?;
    }
    Ok(())
}
