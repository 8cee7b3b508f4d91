//! Host code and constants.
//!
//! | kind | fields, in order | rule |
//! |---|---|---|
//! | c | string `code`, string `format`, names `function_names`, names `const_vars` | PAY-30, PAY-31 |
//! | static_library | string `object`, names `function_names` | PAY-32, PAY-33 |
//! | metadata, const_loader | names, their count, a tensor for each; names, their count, a list of names for each | PAY-34 .. PAY-38 |
//! | metadata_module | empty | PAY-99 |

use super::kinds::PayloadForm;
use super::name_set::{NameSet, note_repeats};
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, places, write_names};
use super::{
    Checked, Field, PAY_30, PAY_31, PAY_32, PAY_33, PAY_34, PAY_35, PAY_36, PAY_37, PAY_38, Text,
};
use crate::release::Releases;
use crate::rule::{Findings, Kind, Rule, Violation};
use crate::tensor::{Sizing, TensorRecord};
use crate::wire::{Cursor, Writer};

// PAY-30, PAY-32: before 0.14, host code was only exported as files and linked. From then on it can also be stored.
/// The form of `c`.
pub(super) const C: &[PayloadForm] = &[PayloadForm::new(
    "0.14",
    Releases::from(14),
    &[
        FormSlot::new("code", FieldShape::Code, PAY_30),
        FormSlot::new("format", FieldShape::Text, PAY_30),
        FormSlot::new("function_names", FieldShape::Names, PAY_30),
        // PAY-30: names of constants that the source uses, and that a `const_loader` in the same library contains.
        FormSlot::new("const_vars", FieldShape::Names, PAY_30),
    ],
)
.checked(check_c)];

/// The form of `static_library`.
pub(super) const STATIC_LIBRARY: &[PayloadForm] = &[PayloadForm::new(
    "0.14",
    Releases::from(14),
    &[
        FormSlot::new("object", FieldShape::Binary, PAY_32),
        // PAY-32: the symbols that the object defines; a loader can find these functions only after linking.
        FormSlot::new("function_names", FieldShape::Names, PAY_32),
    ],
)
.checked(check_object)];

/// The slots of the kind for constants, under both of its names (PAY-34).
const CONSTANTS: &[FormSlot] = &[
    FormSlot::new("variables", FieldShape::Variables, PAY_34),
    FormSlot::new("symbols", FieldShape::Symbols, PAY_34),
];

// PAY-34: 0.9 renamed it to `const_loader`, with the same bytes. Runtimes up to 0.19 load both.
/// The form of `metadata`, without the check of PAY-38: up to 0.8, a function with a missing variable fails when it is called.
pub(super) const METADATA: &[PayloadForm] =
    &[PayloadForm::new("0.7", Releases::between(7, 8), CONSTANTS)];

/// The form of `const_loader`.
pub(super) const CONST_LOADER: &[PayloadForm] =
    &[PayloadForm::new("0.9", Releases::from(9), CONSTANTS).checked(check_listed)];

/// Reads names, their count (PAY-35), and a tensor for each (PAY-34).
pub(super) fn read_variables<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Vec<(Text<'a>, TensorRecord<'a>)>, Violation> {
    let start = cursor.offset();
    // PAY-34: all names come first, and then all tensors.
    let names = names(cursor, "variables", rule)?;
    // PAY-35: the count repeats the number of names before it.
    same_count(cursor, "variable_count", names.len())?;
    // Repetitions are found before the tensors are read, but reported in the order of the bytes.
    let repeats = NameSet::of(&mut names.iter().map(|name| &**name)).repeats();
    let mut list = Vec::with_capacity(names.len());
    let starts: Vec<u64> = places(&names, start).map(|(_, at)| at).collect();
    for ((index, name), at) in names.into_iter().enumerate().zip(starts) {
        // PAY-36: every release rejects a repeated name.
        let fresh = repeats.binary_search(&index).is_err();
        PAY_36
            .require_as(Kind::Duplicate, fresh, at, || {
                format!("variable `{name}` is there twice")
            })
            .map_err(|broken| broken.in_field(format!("variables[{index}]")))?;
        let tensor = cursor.read_within("tensors", index as u64, |cursor| {
            // PAY-34: the kind exists since 0.7, so only one way to count bytes is needed (TEN-31).
            TensorRecord::read(cursor, Sizing::V0_7, findings)
        })?;
        list.push((name, tensor));
    }
    Ok(list)
}

/// Writes variables: the inverse of [`read_variables`].
pub(super) fn write_variables(list: &[(Text<'_>, TensorRecord<'_>)], out: &mut Writer) {
    out.vector(list, |out, (name, _)| out.str(name));
    out.vector(list, |out, (_, tensor)| tensor.write(out));
}

/// Reads names of functions, their count (PAY-35), and the variables of each (PAY-34).
pub(super) fn read_symbols<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Vec<(Text<'a>, Vec<Text<'a>>)>, Violation> {
    let start = cursor.offset();
    let symbols = names(cursor, "symbols", rule)?;
    // PAY-37: upstream fills a map in the order of the file.
    let effect = "the last one counts";
    note_repeats(
        &mut places(&symbols, start),
        PAY_37,
        "symbol",
        effect,
        findings,
    )?;
    same_count(cursor, "symbol_count", symbols.len())?;
    let mut list = Vec::with_capacity(symbols.len());
    for (index, symbol) in symbols.into_iter().enumerate() {
        let variables = cursor.read_within("symbol_variables", index as u64, |cursor| {
            names(cursor, "variables", rule)
        })?;
        list.push((symbol, variables));
    }
    Ok(list)
}

/// Writes symbols: the inverse of [`read_symbols`].
pub(super) fn write_symbols(list: &[(Text<'_>, Vec<Text<'_>>)], out: &mut Writer) {
    out.vector(list, |out, (symbol, _)| out.str(symbol));
    out.vector(list, |out, (_, variables)| write_names(variables, out));
}

/// Checks the count that follows a list of names (PAY-35).
fn same_count(cursor: &mut Cursor<'_>, field: &str, names: usize) -> Result<u64, Violation> {
    let count = cursor.u64(field, PAY_34)?;
    count.require(
        PAY_35,
        |count| *count == names as u64,
        |count| format!("{names} names and {count} things that they name"),
    )
}

/// Checks that the variables of every function exist (PAY-38).
fn check_listed(checked: &Checked<'_, '_>, _: &mut Findings) -> Result<(), Violation> {
    let Some((Field::Tensors(variables), _)) = checked.field("variables") else {
        return Ok(());
    };
    let Some((Field::Symbols(symbols), start)) = checked.field("symbols") else {
        return Ok(());
    };
    // PAY-38: the names are sorted once, because a function may list thousands, and a hostile file may repeat them for each function.
    let known = NameSet::of(&mut variables.iter().map(|(name, _)| &**name));
    for (symbol, listed) in symbols {
        // PAY-38: from 0.10 on, loading fails; in 0.9 the function fails when it is first called.
        let missing = listed.iter().find(|name| !known.has(name));
        PAY_38
            .require_as(Kind::Missing, missing.is_none(), start, || {
                let missing = missing.map(|name| &**name).unwrap_or_default();
                format!("function `{symbol}` needs variable `{missing}`, which is not stored")
            })
            .map_err(|broken| broken.in_field("symbols"))?;
    }
    Ok(())
}

/// Notes a C module without function names (PAY-31): released readers return the first name without a check.
fn check_c(checked: &Checked<'_, '_>, findings: &mut Findings) -> Result<(), Violation> {
    let Some((Field::Names(names), start)) = checked.field("function_names") else {
        return Ok(());
    };
    // PAY-31: only a finding, because a release loads and runs the module if nobody asks for its symbol.
    findings.expect(PAY_31, Kind::Missing, !names.is_empty(), start, || {
        "the C module names no function; released readers read past the empty list when asked for its symbol".to_owned()
    })
}

/// Checks that the object is a file that a linker accepts (PAY-33).
fn check_object(checked: &Checked<'_, '_>, findings: &mut Findings) -> Result<(), Violation> {
    let Some((Field::Bytes(object), start)) = checked.field("object") else {
        return Ok(());
    };
    // PAY-33: only the first bytes are checked; linking shows the rest.
    let known = MAGICS.iter().any(|magic| object.starts_with(magic));
    findings.expect(PAY_33, Kind::Malformed, known, start, || {
        format!(
            "`{}` does not start an object file or archive",
            crate::wire::show(object.get(..8).unwrap_or(object))
        )
    })
}

/// ELF; archive; Mach-O in both widths and byte orders, and fat in both widths; COFF for x86-64, arm64, arm64ec, arm and i386, and with
/// many sections; WebAssembly; LLVM bitcode. A thin archive is not accepted, because its members are separate files (PAY-33).
const MAGICS: [&[u8]; 17] = [
    b"\x7fELF",
    b"!<arch>\n",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xfe\xed\xfa\xcf",
    b"\xfe\xed\xfa\xce",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
    b"\x64\x86",
    b"\x64\xaa",
    b"\x41\xa6",
    b"\xc4\x01",
    b"\x4c\x01",
    b"\0\0\xff\xff\x02\0",
    b"\0asm",
    b"BC\xc0\xde",
    b"\xde\xc0\x17\x0b",
];
