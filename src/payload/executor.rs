//! Executor factories: a graph, its parameters, and the name of the model.
//!
//! | kind | fields, in order | rule |
//! |---|---|---|
//! | GraphRuntimeFactory, GraphExecutorFactory | string `graph_json`, `params`, string `module_name` | PAY-40 |
//! | AotExecutorFactory | `params`, string `module_name` | PAY-41 |
//!
//! `params` is a u64 count, a vector of names (PAY-42), and as many tensor records, one after the other.

use super::kinds::PayloadForm;
use super::name_set::note_repeats;
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, places};
use super::{PAY_40, PAY_41, PAY_42, PAY_43, Text};
use crate::release::Releases;
use crate::rule::{Findings, Rule, Violation};
use crate::tensor::{Sizing, TensorRecord};
use crate::wire::{Cursor, Writer};

/// The slots of the graph executor, under both of its names (PAY-40).
const GRAPH: &[FormSlot] = &[
    FormSlot::new("graph_json", FieldShape::Text, PAY_40),
    FormSlot::new("params", FieldShape::Params, PAY_40),
    FormSlot::new("module_name", FieldShape::Text, PAY_40),
];

/// The form of `GraphRuntimeFactory`. PAY-99: 0.7 writes this kind. 0.8 renamed it, and runtimes up to 0.19 load both.
pub(super) const GRAPH_RUNTIME: &[PayloadForm] =
    &[PayloadForm::new("0.7", Releases::between(7, 7), GRAPH)];
/// The form of `GraphExecutorFactory`, from 0.8 on.
pub(super) const GRAPH_EXECUTOR: &[PayloadForm] =
    &[PayloadForm::new("0.8", Releases::between(8, 19), GRAPH)];

// PAY-41: the graph of PAY-40 is compiled into the host code, so only the parameters and the name remain.
/// The form of `AotExecutorFactory`.
pub(super) const AOT: &[PayloadForm] = &[PayloadForm::new(
    "0.9",
    Releases::between(9, 19),
    &[
        FormSlot::new("params", FieldShape::Params, PAY_41),
        FormSlot::new("module_name", FieldShape::Text, PAY_41),
    ],
)];

/// Reads a count, the names (PAY-42), and the tensors.
pub(super) fn read_params<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Vec<(Text<'a>, TensorRecord<'a>)>, Violation> {
    let count = cursor.u64("param_count", rule)?;
    let names_at = cursor.offset();
    let names = names(cursor, "param_names", rule)?;
    // PAY-42: the count is stored twice, because the vector of names has its own count. Every release rejects two counts that differ.
    count.require(
        PAY_42,
        |count| *count == names.len() as u64,
        |count| {
            format!(
                "expected one name for each of {count} parameters, found {} names",
                names.len()
            )
        },
    )?;
    note_repeats(
        &mut places(&names, names_at),
        PAY_43,
        "parameter",
        "the last one counts",
        findings,
    )?;
    // PAY-43: both parameters with a repeated name are kept, so that the file is written back unchanged. In releases the last one counts.
    let mut list = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        // PAY-40: the records have no separate count.
        let tensor = cursor.read_within("params", index as u64, |cursor| {
            // Factories exist only from 0.7 on, so only one way to count bytes is needed (TEN-31).
            TensorRecord::read(cursor, Sizing::V0_7, findings)
        })?;
        list.push((name, tensor));
    }
    Ok(list)
}

/// Writes parameters: the inverse of [`read_params`].
pub(super) fn write_params(list: &[(Text<'_>, TensorRecord<'_>)], out: &mut Writer) {
    // PAY-42: the count comes first, and then the count of the vector of names.
    out.count(list.len());
    out.vector(list, |out, (name, _)| out.str(name));
    for (_, tensor) in list {
        tensor.write(out);
    }
}
