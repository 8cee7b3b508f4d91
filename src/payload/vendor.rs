//! Vendor runtimes: subgraphs and models that another library runs.
//!
//! | kind | fields, in order | rule |
//! |---|---|---|
//! | JSON runtimes | string `symbol`, string `graph_json`, names `const_names` | PAY-45 |
//! | examplejson | string `graph_json` | PAY-46 |
//! | coreml | string `symbol`, string `model` | PAY-47 |
//! | ethos-n | vector of networks: name, code, u32 indices of inputs and outputs, with sizes from 0.10 on | PAY-48, PAY-49 |
//! | VitisAIRuntime | string `runtime_module`, string `export_path`, string `symbol`, names `const_names` | PAY-50 |
//! | torch | string `symbol`, string `archive` | PAY-51 |
//! | mrvl_sim | string `symbol`, string `nodes_json`, from 0.17 on base64 `binary` | PAY-52, PAY-98 |
//! | mrvl_hw | string `symbol`, string `nodes_json`, string `binary`, i32 `inputs`, `outputs`, `batches` | PAY-53 |

use super::field::Network;
use super::kinds::PayloadForm;
use super::slot::{FieldShape, FormSlot};
use super::strings::text;
use super::{
    Checked, Field, PAY_45, PAY_46, PAY_47, PAY_48, PAY_49, PAY_50, PAY_51, PAY_52, PAY_53, PAY_98,
    kind_info,
};
use crate::release::Releases;
use crate::rule::{Findings, Kind, Rule, Violation};
use crate::wire::{Cursor, Writer};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;

/// The slots of a JSON runtime (PAY-45). The symbol is the function that runs the subgraph. The names are the constants that
/// `__init_<symbol>` receives once.
pub(super) const JSON_RUNTIME: &[FormSlot] = &[
    FormSlot::new("symbol", FieldShape::Text, PAY_45),
    FormSlot::new("graph_json", FieldShape::Text, PAY_45),
    FormSlot::new("const_names", FieldShape::Names, PAY_45),
];

// PAY-46: symbol and constants are missing, because they were added in 0.7.
/// The form of `examplejson`.
pub(super) const EXAMPLE_JSON: &[PayloadForm] = &[PayloadForm::new(
    "0.6",
    Releases::between(6, 6),
    &[FormSlot::new("graph_json", FieldShape::Text, PAY_46)],
)];

// PAY-47: the model is not parsed, because only Core ML reads it.
/// The form of `coreml`.
pub(super) const COREML: &[PayloadForm] = &[PayloadForm::new(
    "0.7",
    Releases::from(7),
    &[
        FormSlot::new("symbol", FieldShape::Text, PAY_47),
        FormSlot::new("model", FieldShape::Binary, PAY_47),
    ],
)];

/// The forms of `ethos-n`, newest first.
pub(super) const ETHOS_N: &[PayloadForm] = &[
    PayloadForm::new(
        // PAY-48: sizes have no separate count, because there is one for each buffer.
        "0.10",
        Releases::between(10, 18),
        &[FormSlot::new(
            "networks",
            FieldShape::Networks { sizes: true },
            PAY_48,
        )],
    ),
    PayloadForm::new(
        "0.7",
        Releases::between(7, 9),
        &[FormSlot::new(
            "networks",
            FieldShape::Networks { sizes: false },
            PAY_48,
        )],
    ),
];

/// The form of `VitisAIRuntime`.
pub(super) const VITIS_AI: &[PayloadForm] = &[PayloadForm::new(
    "0.8",
    Releases::between(8, 19),
    &[
        // PAY-50: the bytes have the vendor's own format, so they are not treated as text.
        FormSlot::new("runtime_module", FieldShape::Binary, PAY_50),
        FormSlot::new("export_path", FieldShape::Text, PAY_50),
        FormSlot::new("symbol", FieldShape::Text, PAY_50),
        FormSlot::new("const_names", FieldShape::Names, PAY_50),
    ],
)];

// PAY-51: the archive is a zip file from TorchScript.
/// The form of `torch`.
pub(super) const TORCH: &[PayloadForm] = &[PayloadForm::new(
    "0.9",
    Releases::between(9, 19),
    &[
        FormSlot::new("symbol", FieldShape::Text, PAY_51),
        FormSlot::new("archive", FieldShape::Binary, PAY_51),
    ],
)];

// PAY-52: 0.17 added a string at the end, under the same kind.
/// The forms of `mrvl_sim`, newest first.
pub(super) const MRVL_SIM: &[PayloadForm] = &[
    PayloadForm::new(
        "0.17",
        Releases::between(17, 23),
        &[
            FormSlot::new("symbol", FieldShape::Text, PAY_52),
            FormSlot::new("nodes_json", FieldShape::Text, PAY_52),
            FormSlot::new("binary", FieldShape::Base64, PAY_52),
        ],
    )
    .checked(check_simulator),
    PayloadForm::new(
        "0.16",
        Releases::between(16, 16),
        &[
            FormSlot::new("symbol", FieldShape::Text, PAY_52),
            FormSlot::new("nodes_json", FieldShape::Text, PAY_52),
        ],
    ),
];

// PAY-98: in layout 0.7 the next module follows without a length, and its kind is a string as well.
/// The base64 decoder. It ignores the unused bits of the last digit, because no rule mentions them.
const DIGITS: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Checks that the binary of form 0.17 is not the kind of the next module, which follows in form 0.16 (PAY-98).
fn check_simulator(checked: &Checked<'_, '_>, _: &mut Findings) -> Result<(), Violation> {
    let Some((Field::Text(binary), start)) = checked.field("binary") else {
        return Ok(());
    };
    // PAY-98: base64 alone is not enough, because the kind of the next module may consist of its digits.
    let base64 = DIGITS.decode(binary.as_bytes()).is_ok();
    // PAY-98: also checked in layout 0.22, where no module follows, so that a form is read in one way in all layouts.
    let kept = base64 && kind_info(binary).is_none();
    PAY_98
        .require(kept, start, || {
            format!("`{binary:.40}` is not the base64 of a binary")
        })
        .map_err(|broken| broken.in_field("binary"))
}

/// The form of `mrvl_hw`.
pub(super) const MRVL_HW: &[PayloadForm] = &[PayloadForm::new(
    "0.19",
    Releases::between(19, 23),
    &[
        FormSlot::new("symbol", FieldShape::Text, PAY_53),
        FormSlot::new("nodes_json", FieldShape::Text, PAY_53),
        // PAY-53: the binary is stored as bytes, while the simulator uses base64 (PAY-98).
        FormSlot::new("binary", FieldShape::Binary, PAY_53),
        FormSlot::new("inputs", FieldShape::Int, PAY_53),
        FormSlot::new("outputs", FieldShape::Int, PAY_53),
        FormSlot::new("batches", FieldShape::Int, PAY_53),
    ],
)];

/// Reads a count and the networks (PAY-48). Sizes have no separate count.
pub(super) fn read_networks<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    sizes: bool,
) -> Result<Vec<Network<'a>>, Violation> {
    // WIRE-06: the smallest network has the lengths of name and code, and the counts of both vectors, which may be empty here.
    cursor.vector(32, "networks", |cursor| {
        let name = text(cursor, "name", rule)?;
        let compiled = Cow::Borrowed(cursor.bytes("compiled", rule)?);
        let (inputs, input_sizes) = read_buffers(cursor, "inputs", "input_sizes", rule, sizes)?;
        let (outputs, output_sizes) = read_buffers(cursor, "outputs", "output_sizes", rule, sizes)?;
        Ok(Network {
            name,
            compiled,
            inputs,
            input_sizes,
            outputs,
            output_sizes,
        })
    })
}

/// Reads one of the two vectors of a network, which must not be empty (PAY-49), and with `sizes` as many sizes after it (PAY-48).
fn read_buffers(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    sizes_field: &'static str,
    rule: Rule,
    sizes: bool,
) -> Result<(Vec<u32>, Vec<u32>), Violation> {
    // PAY-49: released readers accept an empty vector. A payload that is read in the wrong form may contain one.
    let order = cursor.read(field, |cursor| {
        cursor.vector(4, field, |cursor| Ok(*cursor.u32(field, rule)?))
    })?;
    let order = order.require_as(
        Kind::Missing,
        PAY_49,
        |order| !order.is_empty(),
        |_| format!("a network without {field}"),
    )?;
    let mut list = Vec::new();
    if sizes {
        // PAY-48: their number is that of `order`, which was compared with the bytes (WIRE-06).
        for index in 0..order.len() {
            list.push(cursor.read_within(sizes_field, index as u64, |cursor| {
                Ok(*cursor.u32(sizes_field, rule)?)
            })?);
        }
    }
    Ok((order, list))
}

/// Writes networks: the inverse of [`read_networks`].
pub(super) fn write_networks(
    list: &[Network<'_>],
    sizes: bool,
    out: &mut Writer,
) -> Result<(), Violation> {
    // PAY-48: this is not `Writer::vector`, because writing a network may fail.
    out.count(list.len());
    for network in list {
        out.str(&network.name);
        out.bytes(&network.compiled);
        write_buffers(&network.inputs, &network.input_sizes, sizes, out)?;
        write_buffers(&network.outputs, &network.output_sizes, sizes, out)?;
    }
    Ok(())
}

/// Writes buffers: the inverse of [`read_buffers`].
fn write_buffers(
    order: &[u32],
    list: &[u32],
    sizes: bool,
    out: &mut Writer,
) -> Result<(), Violation> {
    // PAY-48: a reader of the other form would read the sizes as the next field.
    if list.len() != if sizes { order.len() } else { 0 } {
        let message = format!("{} buffers with {} sizes", order.len(), list.len());
        return Err(PAY_48.rejected(Kind::Malformed, message));
    }
    out.vector(order, |out, word| out.u32(*word));
    list.iter().for_each(|word| out.u32(*word));
    Ok(())
}
