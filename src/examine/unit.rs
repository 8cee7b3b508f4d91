//! A part of a file that has one format, and the result of reading it field by field.

use super::document;
use super::loading::tensor_types;
use crate::blob::{Blob, ForeignKinds, PartialBlob};
use crate::content;
use crate::payload::file::{FileFormat, SideFile};
use crate::payload::{self, relay_vm};
use crate::release::Layout;
use crate::rule::{Finding, Findings, Violation};
use crate::tensor::{Params, Sizing, TEN_32, TensorRecord};
use crate::wire::{Cursor, Span, Trace, WIRE_01};
use std::borrow::Cow;

/// A run of bytes of one format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unit<'a> {
    /// The name for messages: `model.so, symbol __tvm_dev_mblob`.
    pub name: String,
    /// The offset of the bytes in the file; `None` if the file does not contain them unchanged.
    pub offset: Option<u64>,
    /// The format of the bytes.
    pub format: Format,
    /// The bytes. Offsets of fields, violations and findings count from their start.
    pub bytes: Cow<'a, [u8]>,
    /// The part of the container that holds them, in [`ContainerFile::parts`](crate::blob::container::ContainerFile::parts).
    pub part: usize,
    /// The stated grammars of kinds that no release has.
    pub foreign: ForeignKinds,
}

/// The format of a [`Unit`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A library binary.
    Library {
        /// Its layout.
        layout: Layout,
        /// Its symbol; empty for a raw blob.
        symbol: String,
    },
    /// A parameter file.
    Params,
    /// One tensor.
    Tensor,
    /// Relay VM code, as `save()` of 0.6 to 0.19 returns it.
    RelayCode,
    /// The payload of a module of this kind, as a separate file.
    Payload {
        /// The kind of the module.
        kind: &'static str,
        /// The layout of the era that wrote it.
        layout: Layout,
    },
    /// The side file of a device module (PAY-24).
    SideFile,
    /// Host code as LLVM text or bitcode, which has no fields (PAY-28).
    HostFile {
        /// The row of the table of formats for its extension.
        format: &'static FileFormat,
    },
    /// A device module in a file with a side file (PAY-23). The bytes of the unit are the payload that both files form.
    ModuleFile {
        /// The kind of the module.
        kind: &'static str,
        /// The layout of the payload.
        layout: Layout,
    },
}

/// The result of reading a unit to its end or to the first broken rule.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reading {
    /// Every field, by offset.
    pub spans: Vec<Span>,
    /// The start of the first field that did not fit into `spans`.
    pub left_out: Option<u64>,
    /// The oddities.
    pub findings: Vec<Finding>,
    /// The number of further oddities.
    pub omitted: usize,
    /// The violation that ended reading early.
    pub broken: Option<Violation>,
}

impl Reading {
    /// Creates the reading of bytes whose fields were not recorded.
    pub(super) fn without_spans(findings: Findings, broken: Option<Violation>) -> Reading {
        Reading {
            omitted: findings.omitted(),
            findings: findings.into_iter().collect(),
            broken,
            ..Reading::default()
        }
    }

    /// Creates the reading of a container, whose oddities were recorded when it was opened.
    pub(super) fn from_container(findings: &Findings) -> Reading {
        Reading {
            omitted: findings.omitted(),
            findings: findings.as_slice().to_vec(),
            ..Reading::default()
        }
    }
}

impl<'a> Unit<'a> {
    /// Treats the whole of `bytes` as the payload of a module of `kind`. Returns `None` if no kind of this name has a known payload.
    pub fn payload(name: &str, bytes: &'a [u8], kind: &str, layout: Layout) -> Option<Unit<'a>> {
        let info = payload::kind_info(kind)?;
        Some(Unit {
            name: name.to_owned(),
            offset: Some(0),
            format: Format::Payload {
                kind: info.kind,
                layout,
            },
            bytes: Cow::Borrowed(bytes),
            part: 0,
            foreign: ForeignKinds::default(),
        })
    }
}

impl Unit<'_> {
    /// Reads everything and reports faults and oddities, without recording fields.
    ///
    /// [`Reading::spans`] is empty. The rest equals the result of [`Unit::trace`].
    pub fn judge(&self) -> Reading {
        self.read(None)
    }

    /// Reads everything and records fields up to a memory limit.
    ///
    /// If some fields do not fit, [`Reading::left_out`] is the offset of the first of them.
    pub fn trace(&self) -> Reading {
        self.trace_from(0)
    }

    /// Like [`Unit::trace`], but records only the fields after offset `from`.
    pub fn trace_from(&self, from: u64) -> Reading {
        /// The number of fields that are recorded for a small unit. A field takes about 300 bytes, including its place in a dump.
        const FREE: usize = 48 << 10;
        /// One more field may be recorded for each of this many bytes of the unit.
        const BYTES: usize = 24;
        // The size of the file limits the memory of a trace, because a hostile file may have a field for each byte. `left_out` is the
        // offset at which the trace ended.
        let most = (self.bytes.len() / BYTES).saturating_add(FREE);
        let trace = Trace::bounded(from, most);
        let reading = self.read(Some(&trace));
        Reading {
            left_out: trace.left_out(),
            spans: trace.into_spans(),
            ..reading
        }
    }

    /// Returns the library binary, up to the first broken rule.
    ///
    /// Returns `None` for a unit of another format. Nothing is read after a broken rule (BLOB-06). Relax VM code and graphs in payloads
    /// belong to other chapters, and only [`Unit::judge`] checks them.
    pub fn library(&self) -> Option<PartialBlob<'_>> {
        match &self.format {
            Format::Library { layout, .. } => Some(Blob::read_foreign(
                &self.bytes,
                *layout,
                None,
                &self.foreign,
            )),
            _ => None,
        }
    }

    /// Returns the name of the format.
    pub fn title(&self) -> String {
        match &self.format {
            Format::Library { layout, .. } => format!("library binary, layout {layout}"),
            Format::Params => "parameter file".into(),
            Format::Tensor => "tensor file".into(),
            Format::RelayCode => "Relay VM code".into(),
            Format::Payload { kind, .. } => format!("file of a `{kind}` module"),
            Format::ModuleFile { kind, .. } => format!("`{kind}` module with its side file"),
            Format::SideFile => "side file of a device module".into(),
            Format::HostFile { format } => match format.extension {
                "bc" => "bitcode of LLVM, host code".into(),
                _ => "text of LLVM, host code".into(),
            },
        }
    }

    /// Reads the unit by the rules of its format. Records every field in `trace` if there is one.
    fn read(&self, trace: Option<&Trace>) -> Reading {
        let mut findings = Findings::default();
        let bytes: &[u8] = &self.bytes;
        let mut cursor = match trace {
            Some(trace) => Cursor::traced(bytes, trace),
            None => Cursor::new(bytes),
        };
        let broken = match &self.format {
            Format::Library { layout, .. } => {
                // A trace also records the fields of payloads, each at its offset in the library binary.
                let partial = Blob::read_foreign(bytes, *layout, trace, &self.foreign);
                findings = partial.findings;
                let content = || document::fault_in(&partial.blob);
                partial.broken.or_else(content)
            }
            // TEN-45: the release is unknown, so that all three ways to count bytes are tried.
            Format::Params => match Params::detect(&mut cursor, &mut findings) {
                Ok((params, _)) => {
                    tensor_types::note(&tensor_types::of_params(&params), &mut findings)
                        .and_then(|()| cursor.finish("the parameter file", &mut findings))
                        .err()
                }
                Err(broken) => Some(cut_data(broken)),
            },
            // TEN-31: the newest byte count. TEN-45 applies to parameter files only.
            Format::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, &mut findings)
                .and_then(|_| cursor.finish("the tensor", &mut findings))
                .map_err(cut_data)
                .err(),
            Format::RelayCode => relay_vm::RelayExecutable::read_code(&mut cursor, &mut findings)
                .and_then(|_| cursor.finish("the VM code", &mut findings))
                .err(),
            Format::SideFile => SideFile::read(bytes, &mut findings).err(),
            Format::HostFile { .. } => None,
            Format::Payload { kind, layout } | Format::ModuleFile { kind, layout } => {
                match payload::read(kind, *layout, &mut cursor, &mut findings) {
                    Ok(payload) => content::fault_of(&payload, 0),
                    Err(broken) => Some(broken),
                }
            }
        };
        Reading::without_spans(findings, broken)
    }
}

/// Returns TEN-32 if the data of a tensor end early, and `broken` otherwise. Loaders of tensor files accept data that end early.
/// Elsewhere such data are rejected (WIRE-01).
fn cut_data(broken: Violation) -> Violation {
    let field = broken.field();
    let is_data = field.rsplit('.').next() == Some("data");
    match broken.offset() {
        Some(offset) if is_data && broken.rule() == WIRE_01 => TEN_32
            .broken(broken.kind(), offset, broken.message())
            .in_field(field),
        _ => broken,
    }
}
