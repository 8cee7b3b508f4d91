//! A part of a file that is of one format, and what reading it field by field brings.

use super::document;
use super::loading::types;
use crate::blob::{Blob, ForeignKinds, PartialBlob};
use crate::content;
use crate::payload::file::{FileFormat, SideFile};
use crate::payload::{self, relay_vm};
use crate::release::Layout;
use crate::rule::{Finding, Findings, Violation};
use crate::tensor::{Params, Sizing, TensorRecord};
use crate::wire::{Cursor, Span, Trace};
use std::borrow::Cow;

/// A run of bytes of one format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unit<'a> {
    /// For messages: `model.so, symbol __tvm_dev_mblob`.
    pub name: String,
    /// Where the bytes start in the file; `None` where the file does not have them as they are.
    pub offset: Option<u64>,
    /// What they are.
    pub format: Format,
    /// The bytes. Offsets of fields, violations and findings count from their start.
    pub bytes: Cow<'a, [u8]>,
    /// The part of the container that holds them, in [`File::parts`](crate::blob::container::File::parts).
    pub part: usize,
    /// The grammars that are stated of kinds that no release has.
    pub foreign: ForeignKinds,
}

/// What a [`Unit`] is.
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
    /// What a module of this kind stores, as a file of its own.
    Payload {
        /// The kind of the module.
        kind: &'static str,
        /// The layout of the era that wrote it.
        layout: Layout,
    },
    /// The side file of a device module (PAY-24).
    SideFile,
    /// Code of the host as LLVM's text or bitcode, which has no fields (PAY-28).
    HostFile {
        /// The row of its extension.
        format: &'static FileFormat,
    },
    /// A device module in a file with a side file (PAY-23). The unit's bytes are the payload that both make.
    ModuleFile {
        /// The kind of the module.
        kind: &'static str,
        /// The layout of the payload.
        layout: Layout,
    },
}

/// A unit read to its end or to the first broken rule.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reading {
    /// Every field, by offset.
    pub spans: Vec<Span>,
    /// Where the first field starts that `spans` has no room for.
    pub left_out: Option<u64>,
    /// What is odd.
    pub findings: Vec<Finding>,
    /// How many more oddities there are.
    pub omitted: usize,
    /// Why reading stopped early.
    pub broken: Option<Violation>,
}

impl Reading {
    /// The reading of bytes whose fields were not recorded.
    pub(super) fn of(findings: Findings, broken: Option<Violation>) -> Reading {
        Reading {
            omitted: findings.omitted(),
            findings: findings.into_iter().collect(),
            broken,
            ..Reading::default()
        }
    }

    /// That of a container, whose oddities are noted already.
    pub(super) fn noted(findings: &Findings) -> Reading {
        Reading {
            omitted: findings.omitted(),
            findings: findings.as_slice().to_vec(),
            ..Reading::default()
        }
    }
}

impl<'a> Unit<'a> {
    /// The whole of `bytes` as the payload of a module of `kind`; `None` where no kind of this name has a known payload.
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
    /// Reads everything and says what is wrong and odd, without a record of the fields.
    ///
    /// [`Reading::spans`] is empty; everything else is as [`Unit::trace`] has it.
    pub fn judge(&self) -> Reading {
        self.read(None)
    }

    /// Reads everything and records every field, as far as memory goes.
    ///
    /// Where there is no room for all of them, [`Reading::left_out`] says from where on they are missing.
    pub fn trace(&self) -> Reading {
        self.trace_from(0)
    }

    /// [`Unit::trace`] of the fields behind offset `from`.
    pub fn trace_from(&self, from: u64) -> Reading {
        /// How many fields of a small unit are recorded. One takes some 300 bytes, with what a dump makes of it.
        const FREE: usize = 48 << 10;
        /// And one more for each so many bytes.
        const BYTES: usize = 24;
        // The memory of a trace is bounded by the file's size, however many fields a hostile file has; `left_out` says where it ended.
        let most = (self.bytes.len() / BYTES).saturating_add(FREE);
        let trace = Trace::bounded(from, most);
        let reading = self.read(Some(&trace));
        Reading {
            left_out: trace.left_out(),
            spans: trace.into_spans(),
            ..reading
        }
    }

    /// The library binary, as far as it is good.
    ///
    /// `None` for a unit of another format. Behind a broken rule nothing is read (BLOB-06). What the payloads store for other chapters,
    /// code of the Relax VM and graphs, is held to their rules by [`Unit::judge`] alone.
    pub fn library(&self) -> Option<PartialBlob<'_>> {
        match &self.format {
            Format::Library { layout, .. } => Some(Blob::read_foreign(
                &self.bytes,
                *layout,
                Findings::default(),
                None,
                &self.foreign,
            )),
            _ => None,
        }
    }

    /// What the format is called.
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

    /// Reads the unit by the rules of its format, with every field recorded in `trace` where there is one.
    fn read(&self, trace: Option<&Trace>) -> Reading {
        let mut findings = Findings::default();
        let bytes: &[u8] = &self.bytes;
        let mut cursor = match trace {
            Some(trace) => Cursor::traced(bytes, trace),
            None => Cursor::new(bytes),
        };
        let broken = match &self.format {
            Format::Library { layout, .. } => {
                // A trace records the fields of payloads as well, each at its offset in the library binary.
                let partial = Blob::read_foreign(bytes, *layout, findings, trace, &self.foreign);
                // The reading of a library binary takes the findings and returns them: what comes before a broken rule is kept.
                findings = partial.findings;
                let content = || document::fault_in(&partial.blob);
                partial.broken.or_else(content)
            }
            // TEN-45: no release is known, so that all three counts of bytes are tried.
            Format::Params => match Params::detect(&mut cursor, &mut findings) {
                Ok((params, _)) => types::note(&types::of_params(&params), &mut findings)
                    .and_then(|()| cursor.finish("the parameter file", &mut findings))
                    .err(),
                Err(broken) => Some(broken),
            },
            // TEN-31: the newest count; TEN-45 is about parameter files only.
            Format::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, &mut findings)
                .and_then(|_| cursor.finish("the tensor", &mut findings))
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
        Reading::of(findings, broken)
    }
}
