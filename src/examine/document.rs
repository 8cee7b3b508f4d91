//! Files that are of one format from the first byte to the last: the JSON of models and of objects, parameter files, tensors,
//! executables.

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

/// Holds `bytes` to the rules of its form; `None` where the form is that of a container, or none.
pub fn read(
    form: FileForm,
    name: &str,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<Result<(), Violation>> {
    let mut cursor = Cursor::new(bytes);
    Some(match form {
        // Some rules of chapter graph span all nodes: they are checked where the graph is planned, and the plan is dropped.
        FileForm::GraphJson => Graph::read_bytes(bytes, findings)
            .and_then(|graph| Plan::of(&graph))
            .map(drop),
        FileForm::ObjectJson => LegacyGraph::verify(bytes, findings).map(drop),
        FileForm::FfiJson => ffi::check(bytes, findings).map_err(|fault| fault.violation),
        FileForm::TensorCache => TensorCache::read(bytes, newest_of(name), findings).map(drop),
        // TEN-45: a parameter file does not say which release counted its bytes.
        FileForm::Params => Params::detect(&mut cursor, findings)
            .and_then(|_| cursor.finish("the parameter file", findings)),
        // TEN-31: a lone record is read by the newest count; TEN-45 is about parameter files only.
        FileForm::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, findings)
            .and_then(|_| cursor.finish("the tensor", findings)),
        // PAY-60: the file that `save` returns is the code alone, and only a payload has a length in front.
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

/// The newest release that may have written the index of a tensor cache of this name (TEN-50).
pub fn newest_of(name: &str) -> Release {
    let name = super::base_name(name);
    if name.starts_with("ndarray-cache") {
        Release::of(21)
    } else {
        Release::LAST
    }
}

/// What the content of a library binary that keeps its own rules breaks, of the first module that breaks one: releases find out when the
/// model runs.
///
/// Offsets count from the start of the library binary.
pub(super) fn fault_in(blob: &Blob<'_>) -> Option<Violation> {
    let modules = blob.modules.iter().enumerate();
    let mut held = modules.filter(|(_, module)| is_held(&module.kind));
    held.find_map(|(index, module)| {
        let payload = module.decode(blob.layout, &mut Findings::default());
        let broken = fault_of(&payload.ok()??, module.offset)?;
        // The grammars of the layouts have two names for a module (BLOB-04, BLOB-10).
        let list = match blob.layout {
            Layout::V0_22 => "module",
            _ => "entry",
        };
        match broken.field().to_owned() {
            // A violation of code has its offset, by which its field is found.
            field if field.is_empty() => Some(broken),
            field => Some(broken.in_field(format!("{list}[{index}].{field}"))),
        }
    })
}

/// The kind of module whose payload a file of this form is, and the layout of the era that wrote it.
///
/// `None` for every form that is read in another way. Relax VM code with its length in front is that of layout 0.21 where only its tags
/// fit the constants (PAY-86), else that of 0.7: no byte of it states which.
pub fn payload(form: FileForm, bytes: &[u8]) -> Option<(&'static str, Layout)> {
    Some(match form {
        // The file has what the payload of its era has: the code with its length up to 0.21, the code alone after.
        FileForm::RelaxVm if magic_first(bytes) => ("relax.VMExecutable", Layout::V0_22),
        FileForm::RelaxVm => ("relax.VMExecutable", relax_layout(bytes)),
        FileForm::RelayVm => ("VMExecutable", Layout::V0_7),
        // PAY-55: a file of 0.4 to 0.19, whose imports are stored as layout 0.7 stores them (PAY-57).
        FileForm::StackVm => ("stackvm", Layout::V0_7),
        _ => return None,
    })
}

/// The layout whose tags the constants of a Relax VM executable with its length in front have.
fn relax_layout(bytes: &[u8]) -> Layout {
    let reads = |layout| {
        let mut findings = Findings::default();
        RelaxExecutable::read(layout, &mut Cursor::new(bytes), &mut findings).is_ok()
    };
    // A file that is broken in either layout is held to the older one.
    if !reads(Layout::V0_7) && reads(Layout::V0_21) {
        Layout::V0_21
    } else {
        Layout::V0_7
    }
}

/// Whether an executable starts with its magic and not with a length.
///
/// A length has zeros in its upper bytes, so that seven bytes distinguish them. The first byte is left out: it is what the two magics
/// differ in (PAY-82).
pub fn magic_first(bytes: &[u8]) -> bool {
    // The last seven bytes of both executable magics, 0xD225DE2F4214151D and ..1E.
    bytes.get(1..8) == Some(&[0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2])
}
