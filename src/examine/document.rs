//! Files that are of one format from the first byte to the last: the JSON of models and of objects, parameter files, tensors,
//! executables.

use crate::blob::container::FileForm;
use crate::graph::{Graph, Plan};
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::LegacyGraph;
use crate::payload::{self, relay_vm};
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use crate::tensor::{Params, Sizing, TensorRecord};
use crate::wire::Cursor;

/// Holds `bytes` to the rules of its form; `None` where the form is that of a container, or none.
///
/// # Errors
///
/// The first rule of the form that is broken; where `findings` are strict, the first oddity, too.
pub fn read(
    form: FileForm,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<Result<(), Violation>> {
    let mut cursor = Cursor::new(bytes);
    Some(match form {
        FileForm::GraphJson => Graph::read_bytes(bytes, findings)
            .and_then(|graph| Plan::of(&graph))
            .map(drop),
        FileForm::ObjectJson => LegacyGraph::verify(bytes, findings).map(drop),
        FileForm::FfiJson => ffi::check(bytes).map_err(|fault| fault.violation),
        FileForm::Params => Params::detect(&mut cursor, findings)
            .and_then(|_| cursor.finish("the parameter file", findings)),
        FileForm::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, findings)
            .and_then(|_| cursor.finish("the tensor", findings)),
        FileForm::RelayVm if magic_first(bytes) => {
            relay_vm::RelayExecutable::read_code(&mut cursor, findings)
                .and_then(|_| cursor.finish("the VM code", findings))
        }
        _ => {
            let (kind, layout) = payload(form, bytes)?;
            payload::read(kind, layout, &mut cursor, findings).map(drop)
        }
    })
}

/// The kind of module whose payload a file of this form is, and the layout of the era that wrote it.
pub fn payload(form: FileForm, bytes: &[u8]) -> Option<(&'static str, Layout)> {
    Some(match form {
        // The file has what the payload of its era has: the code with its length up to 0.21, the code alone after.
        FileForm::RelaxVm if magic_first(bytes) => ("relax.VMExecutable", Layout::V0_22),
        FileForm::RelaxVm => ("relax.VMExecutable", Layout::V0_7),
        FileForm::RelayVm => ("VMExecutable", Layout::V0_7),
        FileForm::StackVm => ("stackvm", Layout::V0_7),
        _ => return None,
    })
}

/// Whether an executable starts with its magic and not with a length.
pub fn magic_first(bytes: &[u8]) -> bool {
    // The last seven bytes of both executable magics, 0xD225DE2F4214151D and ..1E.
    bytes.get(1..8) == Some(&[0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2])
}
