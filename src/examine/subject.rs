//! The file to examine, and its parts that can be read field by field: library binaries, parameter files, tensors, executables.

use super::document;
use super::named_file::NamedFile;
use super::shards::ReadShard;
use super::unit::{Format, Reading, Unit};
use crate::blob::container::{self, ContainerPart, FileForm};
use crate::blob::{ForeignKinds, detect};
use crate::payload;
use crate::payload::file::{self, FileFormat, ModuleFile};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Violation};
use std::borrow::Cow;

/// A file to examine. Its container was read, or is known to be broken.
///
/// ```
/// use tvmspec::examine::Subject;
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// let subject = Subject::open("tree3-0.8.so", &file, None)?;
/// assert_eq!(subject.inspect()?.form, "elf-shared");
/// assert!(subject.verify()?.violations.is_empty());
/// assert!(subject.explain()?[0].releases_that_load().count() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Subject<'a> {
    /// The name in reports and messages: the path of the file.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its container.
    pub file: container::ContainerFile<'a>,
    /// The layout of library binaries and payloads, if it overrides the one that symbols and bytes show.
    pub layout: Option<Layout>,
    /// The payload that the file and its side file form together, for a device module. [`Subject::with_side_file`] sets it.
    pub(crate) module: Option<Assembled>,
    /// The format of the whole file, if only its name shows the format. [`Subject::of_files`] and [`Subject::of_payload`] set it.
    pub(crate) named: Option<NamedFile>,
    /// Grammars that the caller states for kinds that no release has (BLOB-06).
    pub foreign: ForeignKinds,
    /// Results for the shards of a tensor cache. [`Subject::read_shards`] fills it.
    pub(crate) shards: Vec<ReadShard>,
    /// The rule that the container breaks. [`Subject::damaged`] sets it; nothing in such a file was read.
    pub(super) broken: Option<Violation>,
}

/// A device module that was read from its two files (PAY-23).
#[derive(Debug)]
pub(crate) struct Assembled {
    /// The row of the table of formats for its extension.
    pub(crate) format: &'static FileFormat,
    /// The layout of `payload`.
    layout: Layout,
    /// The payload that a library stores for the same module.
    payload: Vec<u8>,
    /// Releases whose readers reject the side file, and why.
    pub(crate) rejected: Vec<(Releases, String)>,
}

impl<'a> Subject<'a> {
    /// Reads the container of `bytes`. `layout` overrides the layout that symbols and bytes show.
    ///
    /// # Errors
    ///
    /// Returns the violation of the container itself, at an offset into the file.
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
            broken: None,
        })
    }

    /// Creates the subject for a file that is examined whether or not its container is broken.
    ///
    /// The methods report the fault: `verify` as a violation, `explain` as the cause of each verdict.
    ///
    /// ```
    /// use tvmspec::examine::Subject;
    ///
    /// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
    /// let cut = Subject::of_any("cut.so", &file[..file.len() / 2], None);
    /// assert!(!cut.verify()?.violations.is_empty());
    /// assert_eq!(cut.explain()?[0].releases_that_load().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_any(name: &'a str, bytes: &'a [u8], layout: Option<Layout>) -> Subject<'a> {
        Subject::open(name, bytes, layout)
            .unwrap_or_else(|broken| Subject::damaged(name, bytes, broken))
    }

    /// Creates the subject for a file whose container breaks a rule. [`Subject::open`] and [`Subject::of_files`] return the violation.
    pub fn damaged(name: &'a str, bytes: &'a [u8], broken: Violation) -> Subject<'a> {
        Subject {
            broken: Some(broken),
            ..Subject::without_container(name, bytes, Findings::default())
        }
    }

    /// Returns the rule that the container breaks; `None` for a file that was opened.
    pub fn broken(&self) -> Option<&Violation> {
        self.broken.as_ref()
    }

    /// Opens a file with an optional side file, by the rules of the first case that fits:
    ///
    /// * A side file, LLVM text or bitcode is recognized by its name.
    /// * A file with the extension of a device module is opened by [`Subject::with_side_file`]. This requires a side file, or bytes of
    ///   no other form.
    /// * Any other file is opened by [`Subject::open`].
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::open`] and [`Subject::with_side_file`].
    pub fn of_files(
        name: &'a str,
        bytes: &'a [u8],
        side: Option<&[u8]>,
        layout: Option<Layout>,
    ) -> Result<Subject<'a>, Violation> {
        if let Some(named) = NamedFile::recognize(name, bytes) {
            return Ok(Subject {
                named: Some(named),
                ..Subject::without_container(name, bytes, Findings::default())
            });
        }
        let known = file::extension(name).is_some_and(|last| file::file_format(last).is_some());
        // PAY-23: some code objects are ELF files. Without a side file they are read as libraries.
        let bare = || matches!(FileForm::detect(bytes), FileForm::Unknown | FileForm::CText);
        if known && (side.is_some() || bare()) {
            Subject::with_side_file(name, bytes, side)
        } else {
            Subject::open(name, bytes, layout)
        }
    }

    /// Assembles a device module from its code, `bytes`, and the content of its side file, `side` (PAY-23). The extension of `name`
    /// selects the kind.
    ///
    /// # Errors
    ///
    /// Returns a violation of the rules PAY-23 to PAY-29, at an offset into `bytes` if it has one.
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

    /// Treats the whole of `bytes` as the payload of a module of `kind`, as `layout` stores it. Returns `None` if no kind of this name
    /// has a known payload.
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

    /// Creates a subject for a file without parts.
    fn without_container(name: &'a str, bytes: &'a [u8], findings: Findings) -> Subject<'a> {
        Subject {
            name,
            bytes,
            file: container::ContainerFile {
                form: FileForm::Unknown,
                parts: Vec::new(),
                findings,
            },
            layout: None,
            module: None,
            named: None,
            foreign: ForeignKinds::default(),
            shards: Vec::new(),
            broken: None,
        }
    }

    /// Returns every unit, in the order of the parts.
    ///
    /// The layout of a library binary is `self.layout` if it is set. Otherwise the symbol and the bytes decide (BLOB-18). If
    /// `self.layout` is set, a file that is not a container and has no recognizable content is treated as one library binary.
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
            let place = self.part_name(part);
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
            // Only for the file as a whole: members of archives are code.
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
        // BLOB-50: the library binaries of a container lie under symbols. The first bytes of the container are not a header.
        let container = form.is_object() || form.is_archive() || form == FileForm::CText;
        if let Some(layout) = self.layout
            && !container
            && units
                .iter()
                .all(|unit| !matches!(unit.format, Format::Library { .. } | Format::Payload { .. }))
        {
            // The caller who states a layout says that this is a library binary, even if nothing in it looks like one.
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

    /// Returns the name of a part for messages: the file and the member of the archive, as in `model.tar, member lib0.o`.
    pub(super) fn part_name(&self, part: &ContainerPart<'_>) -> String {
        match part.member.as_str() {
            "" => self.name.to_owned(),
            member => format!("{}, member {member}", self.name),
        }
    }

    /// Checks graph JSON against chapter graph, or saved objects against chapter object. Returns `None` for any other form. Offsets are
    /// those of JSON values.
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
        Some(Reading::without_spans(findings, broken))
    }

    /// Returns whether any part of the file is code that TVM compiled.
    ///
    /// Such code without a library binary is valid: it imports nothing (BLOB-03).
    pub fn is_compiled(&self) -> bool {
        self.file.parts.iter().any(ContainerPart::is_compiled)
    }
}

/// Returns the format of a file that is not a container. Returns `None` for a container, and for JSON, which has no binary fields.
///
/// `layout` overrides the layout of payloads; parameter files, tensors and Relay VM code have no layout.
fn data(form: FileForm, bytes: &[u8], layout: Option<Layout>) -> Option<Format> {
    Some(match form {
        FileForm::Params => Format::Params,
        FileForm::Tensor => Format::Tensor,
        // `save()` writes the code without the length that precedes it in a payload.
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

/// Returns the releases that agree with both the symbols of a part and the layouts of its library binaries.
pub(super) fn releases<'u>(
    part: &ContainerPart<'_>,
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
        // Objects of several eras can be linked into one file, so that no release matches all of them.
        .filter(|releases| releases.since <= releases.until)
}
