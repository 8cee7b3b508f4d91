//! What a file holds that can be read field by field: library binaries, parameter files, tensors, executables.

use super::document;
use super::named::NamedFile;
use super::shards::ReadShard;
use super::unit::{Format, Reading, Unit};
use crate::blob::container::{self, FileForm, Part};
use crate::blob::{ForeignKinds, detect};
use crate::payload;
use crate::payload::file::{self, FileFormat, ModuleFile};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Violation};
use std::borrow::Cow;

/// A file whose container was read.
#[derive(Debug)]
pub struct Subject<'a> {
    /// What it is called in names and messages: its path.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its container.
    pub file: container::File<'a>,
    /// Overrides what symbols and bytes say of the layout of library binaries and payloads.
    pub layout: Option<Layout>,
    /// The module that the file and its side file are, put together as a payload; [`Subject::with_side_file`] sets it.
    pub(crate) module: Option<Assembled>,
    /// What the name says that the whole file is, where no bytes do; [`Subject::of_files`] and [`Subject::of_payload`] set it.
    pub(crate) named: Option<NamedFile>,
    /// What the caller states of kinds that no release has (BLOB-06).
    pub foreign: ForeignKinds,
    /// What was found in the shards of a tensor cache; [`Subject::read_shards`] fills it.
    pub(crate) shards: Vec<ReadShard>,
}

/// A device module that was read from its two files (PAY-23).
#[derive(Debug)]
pub(crate) struct Assembled {
    /// The row of its extension.
    pub(crate) format: &'static FileFormat,
    /// The layout of `payload`.
    layout: Layout,
    /// What a library stores of the same module.
    payload: Vec<u8>,
    /// Releases whose readers reject the side file, and why.
    pub(crate) rejected: Vec<(Releases, String)>,
}

impl<'a> Subject<'a> {
    /// Looks into the container of `bytes`. `layout` overrides what symbols and bytes say.
    ///
    /// # Errors
    ///
    /// A violation of the container itself, at an offset into the file.
    pub fn open(
        name: &'a str,
        bytes: &'a [u8],
        layout: Option<Layout>,
    ) -> Result<Subject<'a>, Violation> {
        Ok(Subject {
            name,
            bytes,
            file: container::open(bytes)?,
            layout,
            module: None,
            named: None,
            foreign: ForeignKinds::default(),
            shards: Vec::new(),
        })
    }

    /// [`Subject::with_side_file`] where the extension of `name` is one of device modules and there is a side file, or the bytes are of
    /// no other form; a side file, and LLVM's text and bitcode, by their names; otherwise [`Subject::open`].
    ///
    /// # Errors
    ///
    /// What [`Subject::open`] and [`Subject::with_side_file`] reject.
    pub fn of_files(
        name: &'a str,
        bytes: &'a [u8],
        side: Option<&[u8]>,
        layout: Option<Layout>,
    ) -> Result<Subject<'a>, Violation> {
        if let Some(named) = NamedFile::of(name, bytes) {
            return Ok(Subject {
                named: Some(named),
                ..Subject::without_container(name, bytes, Findings::default())
            });
        }
        let known = file::extension(name).is_some_and(|last| file::file_format(last).is_some());
        // PAY-23: some code objects are ELF, and read as libraries without a side file.
        let bare = || matches!(FileForm::of(bytes), FileForm::Unknown | FileForm::CText);
        if known && (side.is_some() || bare()) {
            Subject::with_side_file(name, bytes, side)
        } else {
            Subject::open(name, bytes, layout)
        }
    }

    /// The device module whose code is `bytes`, and `side` what its side file holds (PAY-23); `name` has the extension.
    ///
    /// # Errors
    ///
    /// The rules PAY-23 to PAY-29, at an offset into `bytes` where they have one.
    pub fn with_side_file(
        name: &'a str,
        bytes: &'a [u8],
        side: Option<&[u8]>,
    ) -> Result<Subject<'a>, Violation> {
        let mut findings = Findings::default();
        let read = ModuleFile::read(name, "", bytes, side, &mut findings)?;
        let module = Assembled {
            format: read.format,
            layout: read.layout,
            payload: read.payload.to_bytes(read.layout)?,
            rejected: read.rejected,
        };
        Ok(Subject {
            module: Some(module),
            ..Subject::without_container(name, bytes, findings)
        })
    }

    /// The whole of `bytes` as the payload of a module of `kind`, as `layout` stores it; `None` where no kind of this name has a
    /// known payload.
    pub fn of_payload(
        name: &'a str,
        bytes: &'a [u8],
        kind: &str,
        layout: Layout,
    ) -> Option<Subject<'a>> {
        let info = payload::kind_info(kind)?;
        Some(Subject {
            named: Some(NamedFile::Payload(info.kind, layout)),
            ..Subject::without_container(name, bytes, Findings::default())
        })
    }

    /// A file that is one thing, without parts.
    fn without_container(name: &'a str, bytes: &'a [u8], findings: Findings) -> Subject<'a> {
        Subject {
            name,
            bytes,
            file: container::File {
                form: FileForm::Unknown,
                parts: Vec::new(),
                findings,
            },
            layout: None,
            module: None,
            named: None,
            foreign: ForeignKinds::default(),
            shards: Vec::new(),
        }
    }

    /// Every unit, in the order of the parts.
    ///
    /// The layout of a library binary is the stated one, otherwise that of its symbol and bytes (BLOB-18). Where a layout is stated and
    /// the file is no container and shows neither library binary nor payload, all of it is taken for one library binary.
    pub fn units(&self) -> Vec<Unit<'_>> {
        if let Some(module) = &self.module {
            return vec![Unit {
                name: self.name.to_owned(),
                offset: None,
                format: Format::ModuleFile {
                    kind: module.format.kind,
                    layout: module.layout,
                },
                bytes: Cow::Borrowed(&module.payload),
                part: 0,
                foreign: ForeignKinds::default(),
            }];
        }
        if let Some(named) = self.named {
            return vec![Unit {
                name: self.name.to_owned(),
                offset: Some(0),
                format: match named {
                    NamedFile::Side => Format::SideFile,
                    NamedFile::Host(format) => Format::HostFile { format },
                    NamedFile::Payload(kind, layout) => Format::Payload { kind, layout },
                },
                bytes: Cow::Borrowed(self.bytes),
                part: 0,
                foreign: ForeignKinds::default(),
            }];
        }
        let mut units = Vec::new();
        for (index, part) in self.file.parts.iter().enumerate() {
            let place = self.place(part);
            for blob in &part.blobs {
                // BLOB-18: without a symbol, as in a raw blob, all four layouts are possible.
                let symbol = Some(blob.symbol.as_str()).filter(|symbol| !symbol.is_empty());
                units.push(Unit {
                    name: match symbol {
                        Some(symbol) => format!("{place}, symbol {symbol}"),
                        None => place.clone(),
                    },
                    offset: blob.offset,
                    format: Format::Library {
                        layout: self
                            .layout
                            .unwrap_or_else(|| detect::detect(&blob.bytes, symbol)),
                        symbol: blob.symbol.clone(),
                    },
                    bytes: Cow::Borrowed(&blob.bytes),
                    part: index,
                    foreign: self.foreign.clone(),
                });
            }
            // Only a file of its own: members of archives are code.
            if part.member.is_empty()
                && let Some(format) = data(part.form, self.bytes, self.layout)
            {
                units.push(Unit {
                    name: place,
                    offset: Some(0),
                    format,
                    bytes: Cow::Borrowed(self.bytes),
                    part: index,
                    foreign: self.foreign.clone(),
                });
            }
        }
        let form = self.file.form;
        // BLOB-50: a container has its library binaries under symbols; its own first bytes are no header of one.
        let container = form.is_object() || form.is_archive() || form == FileForm::CText;
        if let Some(layout) = self.layout
            && !container
            && units
                .iter()
                .all(|unit| !matches!(unit.format, Format::Library { .. } | Format::Payload { .. }))
        {
            // A layout that is asked for says that this is a library binary, even if nothing in it looks like one.
            units = vec![Unit {
                name: self.name.to_owned(),
                offset: Some(0),
                format: Format::Library {
                    layout,
                    symbol: String::new(),
                },
                bytes: Cow::Borrowed(self.bytes),
                part: 0,
                foreign: ForeignKinds::default(),
            }];
        }
        units
    }

    /// What a part is called: the file, and the member of the archive.
    ///
    /// It is the place of messages: `model.tar, member lib0.o`.
    pub(super) fn place(&self, part: &Part<'_>) -> String {
        match part.member.as_str() {
            "" => self.name.to_owned(),
            member => format!("{}, member {member}", self.name),
        }
    }

    /// The JSON of models and of objects, held to the rules of its own chapter; `None` for any other form. Offsets are those of
    /// JSON values.
    ///
    /// Graph JSON is held to chapter graph, objects to chapter object.
    pub fn json(&self) -> Option<Reading> {
        let mut findings = Findings::default();
        let broken = match self.file.form {
            form @ (FileForm::GraphJson
            | FileForm::ObjectJson
            | FileForm::FfiJson
            | FileForm::TensorCache) => {
                document::read(form, self.name, self.bytes, &mut findings)?.err()
            }
            _ => return None,
        };
        Some(Reading::of(findings, broken))
    }

    /// Whether any part of it is code that TVM compiled.
    ///
    /// Code of which this holds and that has no library binary is sound: it imports nothing (BLOB-03).
    pub fn is_compiled(&self) -> bool {
        self.file.parts.iter().any(Part::is_compiled)
    }
}

/// The format of a file that is no container; `None` for a container, and for JSON, which has no binary fields.
///
/// `layout` overrides the layout of payloads; parameter files, tensors and Relay VM code have none.
fn data(form: FileForm, bytes: &[u8], layout: Option<Layout>) -> Option<Format> {
    Some(match form {
        FileForm::Params => Format::Params,
        FileForm::Tensor => Format::Tensor,
        // `save()` writes the code without the length that the payload puts in front.
        FileForm::RelayVm if document::magic_first(bytes) => Format::RelayCode,
        _ => {
            let (kind, detected) = document::payload(form, bytes)?;
            Format::Payload {
                kind,
                layout: layout.unwrap_or(detected),
            }
        }
    })
}

/// The releases that both the symbols of a part and the layouts of its library binaries speak of.
pub(super) fn releases<'u>(
    part: &Part<'_>,
    units: impl Iterator<Item = &'u Unit<'u>>,
) -> Option<Releases> {
    let layouts = units.filter_map(|unit| match unit.format {
        Format::Library { layout, .. } => Some(layout.releases()),
        _ => None,
    });
    part.releases()
        .into_iter()
        .chain(layouts)
        .reduce(Releases::common)
        // Objects of several eras can be linked into one file: then no release has them all.
        .filter(|releases| releases.since <= releases.until)
}
