//! Readers for files that have one format from the first byte to the last: graph JSON, saved objects, parameters, tensors, executables.

use crate::blob::Blob;
use crate::blob::container::FileForm;
use crate::content::{fault_of, is_held};
use crate::graph::{Graph, Plan};
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::LegacyGraph;
use crate::payload::relax_vm::RelaxExecutable;
use crate::payload::{self, relay_vm};
use crate::release::{Layout, Release};
use crate::rule::{Findings, Violation};
use crate::tensor::{Params, Sizing, TensorCache, TensorRecord};
use crate::wire::Cursor;

/// Checks `bytes` against the rules of `form`. Returns `None` if the form is a container, or is unknown.
pub fn read(
    form: FileForm,
    name: &str,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<Result<(), Violation>> {
    let mut cursor = Cursor::new(bytes);
    Some(match form {
        // Some rules of chapter graph span all nodes. Planning the graph checks them; the plan is dropped.
        FileForm::GraphJson => Graph::read_bytes(bytes, findings)
            .and_then(|graph| Plan::from_graph(&graph))
            .map(drop),
        FileForm::ObjectJson => LegacyGraph::verify(bytes, findings).map(drop),
        FileForm::FfiJson => ffi::check(bytes, findings).map_err(|fault| fault.violation),
        FileForm::TensorCache => TensorCache::read(bytes, newest_of(name), findings).map(drop),
        // TEN-45: a parameter file does not say which release counted its bytes.
        FileForm::Params => Params::detect(&mut cursor, findings)
            .and_then(|_| cursor.finish("the parameter file", findings)),
        // TEN-31: a single record is read by the newest byte count; TEN-45 applies to parameter files only.
        FileForm::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, findings)
            .and_then(|_| cursor.finish("the tensor", findings)),
        // PAY-60: the file that `save` returns is the code alone. Only a payload starts with a length.
        FileForm::RelayVm if magic_first(bytes) => {
            relay_vm::RelayExecutable::read_code(&mut cursor, findings)
                .and_then(|_| cursor.finish("the VM code", findings))
        }
        _ => {
            let (kind, layout) = payload(form, bytes)?;
            let payload = payload::read(kind, layout, &mut cursor, findings);
            payload.and_then(|payload| fault_of(&payload, 0).map_or(Ok(()), Err))
        }
    })
}

/// Returns the newest release that may have written the index of a tensor cache of this name (TEN-50).
pub fn newest_of(name: &str) -> Release {
    let name = super::base_name(name);
    if name.starts_with("ndarray-cache") {
        Release::of(21)
    } else {
        Release::LAST
    }
}

/// Checks the content of the modules of a valid library binary, and returns the first violation. Releases notice such a fault only when
/// the model runs.
///
/// Offsets count from the start of the library binary.
pub(super) fn fault_in(blob: &Blob<'_>) -> Option<Violation> {
    let modules = blob.modules.iter().enumerate();
    let stored = modules.filter_map(|(index, module)| Some((index, module.stored()?)));
    let mut held = stored.filter(|(_, module)| is_held(&module.kind));
    held.find_map(|(index, module)| {
        let payload = module.decode().ok()?.value;
        let broken = fault_of(&payload, module.offset)?;
        // A module has a different name in the grammars of different layouts (BLOB-04, BLOB-10).
        let list = match blob.layout {
            Layout::V0_22 => "module",
            _ => "entry",
        };
        match broken.field().to_owned() {
            // A violation in code has an offset instead, and its field is found by that.
            field if field.is_empty() => Some(broken),
            field => Some(broken.in_field(format!("{list}[{index}].{field}"))),
        }
    })
}

/// Returns the kind of module whose payload a file of this form is, and the layout of the era that wrote it.
///
/// Returns `None` for every form that is read in another way. No byte of Relax VM code that starts with its length states a layout. The
/// code has layout 0.21 if the constants can be read only with the tags of that layout (PAY-86), otherwise layout 0.7.
pub fn payload(form: FileForm, bytes: &[u8]) -> Option<(&'static str, Layout)> {
    Some(match form {
        // The file has the same bytes as the payload of its era: the code with its length up to 0.21, the code alone afterwards.
        FileForm::RelaxVm if magic_first(bytes) => ("relax.VMExecutable", Layout::V0_22),
        FileForm::RelaxVm => ("relax.VMExecutable", relax_layout(bytes)),
        FileForm::RelayVm => ("VMExecutable", Layout::V0_7),
        // PAY-55: a file of 0.4 to 0.19. Its imports are stored as in layout 0.7 (PAY-57).
        FileForm::StackVm => ("stackvm", Layout::V0_7),
        _ => return None,
    })
}

/// Returns the layout that defines the tags of the constants, for a Relax VM executable that starts with its length.
fn relax_layout(bytes: &[u8]) -> Layout {
    let reads = |layout| {
        let mut findings = Findings::default();
        RelaxExecutable::read(layout, &mut Cursor::new(bytes), &mut findings).is_ok()
    };
    // A file that is broken in both layouts is checked against the older one.
    if !reads(Layout::V0_7) && reads(Layout::V0_21) {
        Layout::V0_21
    } else {
        Layout::V0_7
    }
}

/// Returns whether an executable starts with its magic and not with a length.
///
/// The upper bytes of a length are zero, so that seven bytes are enough to tell. The first byte is left out because the two magics
/// differ in it (PAY-82).
pub fn magic_first(bytes: &[u8]) -> bool {
    // The last seven bytes of both executable magics, 0xD225DE2F4214151D and ..1E.
    bytes.get(1..8) == Some(&[0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2])
}
