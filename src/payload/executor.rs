//! Executor factories: a graph, its parameters, the name of the model.
//!
//! | kind | fields, in order | rule |
//! |---|---|---|
//! | GraphRuntimeFactory, GraphExecutorFactory | string `graph_json`, `params`, string `module_name` | PAY-40 |
//! | AotExecutorFactory | `params`, string `module_name` | PAY-41 |
//!
//! `params` is a u64 count, a vector of as many names (PAY-42), and that many tensor records, one behind the other.

use super::kinds::PayloadForm;
use super::name_set::note_repeats;
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, places};
use super::{PAY_40, PAY_41, PAY_42, PAY_43, Text};
use crate::release::Releases;
use crate::rule::{Findings, Rule, Violation};
use crate::tensor::{Sizing, TensorRecord};
use crate::wire::{Cursor, Writer};

/// What both names of the graph executor store (PAY-40).
const GRAPH: &[FormSlot] = &[
    FormSlot::new("graph_json", FieldShape::Text, PAY_40),
    FormSlot::new("params", FieldShape::Params, PAY_40),
    FormSlot::new("module_name", FieldShape::Text, PAY_40),
];

/// PAY-99: 0.7 writes this kind. 0.8 renamed it, and runtimes up to 0.19 load both.
pub(super) const GRAPH_RUNTIME: &[PayloadForm] =
    &[PayloadForm::new("0.7", Releases::between(7, 7), GRAPH)];
/// The form of `GraphExecutorFactory`, from 0.8 on.
pub(super) const GRAPH_EXECUTOR: &[PayloadForm] =
    &[PayloadForm::new("0.8", Releases::between(8, 19), GRAPH)];

// PAY-41: the graph of PAY-40 is compiled into the host code, so only parameters and the name are left.
/// The form of `AotExecutorFactory`.
pub(super) const AOT: &[PayloadForm] = &[PayloadForm::new(
    "0.9",
    Releases::between(9, 19),
    &[
        FormSlot::new("params", FieldShape::Params, PAY_41),
        FormSlot::new("module_name", FieldShape::Text, PAY_41),
    ],
)];

/// A number, that many names (PAY-42), that many tensors.
pub(super) fn read_params<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Vec<(Text<'a>, TensorRecord<'a>)>, Violation> {
    let count = cursor.u64("param_count", rule)?;
    let names_at = cursor.offset();
    let names = names(cursor, "param_names", rule)?;
    // PAY-42: written twice, because the vector of names has its own count; every release rejects two counts that differ.
    count.require(
        PAY_42,
        |count| *count == names.len() as u64,
        |count| format!("{count} parameters with {} names", names.len()),
    )?;
    note_repeats(
        &mut places(&names, names_at),
        PAY_43,
        "parameter",
        "the last one counts",
        findings,
    )?;
    // PAY-43: both of a repeated name are kept here, so that the file is written back as it was. In releases the last counts.
    let mut list = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        // PAY-40: the records have no count of their own.
        let tensor = cursor.within("params", index as u64, |cursor| {
            // Factories exist from 0.7 on, and with them only one way to count (TEN-31).
            TensorRecord::read(cursor, Sizing::V0_7, findings)
        })?;
        list.push((name, tensor));
    }
    Ok(list)
}

/// The inverse of [`read_params`].
pub(super) fn write_params(list: &[(Text<'_>, TensorRecord<'_>)], out: &mut Writer) {
    // PAY-42: the count in front, and then that of the vector of names.
    out.count(list.len());
    out.vector(list, |out, (name, _)| out.str(name));
    for (_, tensor) in list {
        tensor.write(out);
    }
}
