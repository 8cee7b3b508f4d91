//! What a file holds that can be read field by field: library binaries, parameter files, tensors, executables.

use super::Error;
use super::input::{Input, distance};
use std::borrow::Cow;
use tvmspec::blob::container::{self, Form, Part};
use tvmspec::blob::{Blob, Partial, detect};
use tvmspec::document;
use tvmspec::payload::{self, relay_vm};
use tvmspec::release::{Layout, Releases};
use tvmspec::rule::{Finding, Findings, Violation};
use tvmspec::tensor::{Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Span, Trace};

/// A run of bytes of one format.
pub(crate) struct Unit<'a> {
    /// For messages: `model.so, symbol __tvm_dev_mblob`.
    pub(crate) name: String,
    /// Where the bytes start in the file; `None` where the file does not have them as they are.
    pub(crate) offset: Option<u64>,
    /// What they are.
    pub(crate) format: Format,
    /// The bytes. Offsets of fields, violations and findings count from their start.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// The part of the container that holds them.
    pub(crate) part: usize,
}

/// What a [`Unit`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
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
        /// The kind.
        kind: &'static str,
        /// The layout of the era that wrote it.
        layout: Layout,
    },
}

/// A unit read to its end or to the first broken rule.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Every field, by offset.
    pub(crate) spans: Vec<Span>,
    /// Where the first field starts that `spans` has no room for.
    pub(crate) left_out: Option<u64>,
    /// What is odd.
    pub(crate) findings: Vec<Finding>,
    /// How many more oddities there are.
    pub(crate) omitted: usize,
    /// Why reading stopped early.
    pub(crate) broken: Option<Violation>,
}

impl Reading {
    fn of(findings: Findings, broken: Option<Violation>) -> Reading {
        Reading {
            omitted: findings.omitted(),
            findings: findings.into_iter().collect(),
            broken,
            ..Reading::default()
        }
    }
}

/// Looks into the container. A violation here is one of the container itself, at an offset into the file.
pub(crate) fn open(input: &Input) -> Result<container::File<'_>, Violation> {
    container::open(input.bytes())
}

/// [`open`] for commands to which a broken container is an input that they cannot read.
pub(crate) fn contents(input: &Input) -> Result<container::File<'_>, Error> {
    open(input).map_err(|broken| {
        Error::new(format!(
            "{}: the container itself is broken, {broken}; `tvmspec verify` shows where",
            input.name
        ))
    })
}

/// Every unit of `file`, in order. `layout` overrides what symbols and bytes say.
pub(crate) fn units<'a>(
    input: &'a Input,
    file: &'a container::File<'a>,
    layout: Option<Layout>,
) -> Vec<Unit<'a>> {
    let mut units = Vec::new();
    for (index, part) in file.parts.iter().enumerate() {
        let place = match part.member.as_str() {
            "" => input.name.clone(),
            member => format!("{}, member {member}", input.name),
        };
        for blob in &part.blobs {
            let symbol = Some(blob.symbol.as_str()).filter(|symbol| !symbol.is_empty());
            units.push(Unit {
                name: match symbol {
                    Some(symbol) => format!("{place}, symbol {symbol}"),
                    None => place.clone(),
                },
                offset: blob.offset,
                format: Format::Library {
                    layout: layout.unwrap_or_else(|| detect::detect(&blob.bytes, symbol)),
                    symbol: blob.symbol.clone(),
                },
                bytes: Cow::Borrowed(&blob.bytes),
                part: index,
            });
        }
        // Only a file of its own: members of archives are code.
        if part.member.is_empty()
            && let Some(format) = data(part.form, input.bytes(), layout)
        {
            units.push(Unit {
                name: place,
                offset: Some(0),
                format,
                bytes: Cow::Borrowed(input.bytes()),
                part: index,
            });
        }
    }
    let container = file.form.is_object() || file.form.is_archive() || file.form == Form::CText;
    if let Some(layout) = layout
        && !container
        && units
            .iter()
            .all(|unit| !matches!(unit.format, Format::Library { .. } | Format::Payload { .. }))
    {
        // Whoever names a layout says that this is a library binary, even if nothing in it looks like one.
        units = vec![Unit {
            name: input.name.clone(),
            offset: Some(0),
            format: Format::Library {
                layout,
                symbol: String::new(),
            },
            bytes: Cow::Borrowed(input.bytes()),
            part: 0,
        }];
    }
    units
}

/// The JSON of models and of objects, held to the rules of its own chapter; `None` for any other form. Offsets are those of
/// JSON values.
pub(crate) fn graph(input: &Input, form: Form) -> Option<Reading> {
    let mut findings = Findings::default();
    let broken = match form {
        Form::GraphJson | Form::ObjectJson | Form::FfiJson => {
            document::read(form, input.bytes(), &mut findings)?.err()
        }
        _ => return None,
    };
    Some(Reading::of(findings, broken))
}

/// The whole input as the payload of a module of `kind`.
pub(crate) fn payload_of<'a>(
    input: &'a Input,
    kind: &str,
    layout: Layout,
) -> Result<Unit<'a>, Error> {
    let info = payload::kind_info(kind).ok_or_else(|| {
        let near = payload::kinds()
            .iter()
            .map(|info| (distance(kind, info.kind), info.kind))
            .min();
        let hint = near.map_or(String::new(), |(_, near)| {
            format!("; did you mean `{near}`?")
        });
        Error::new(format!("no module kind `{kind}` has a known payload{hint}"))
    })?;
    Ok(Unit {
        name: input.name.clone(),
        offset: Some(0),
        format: Format::Payload {
            kind: info.kind,
            layout,
        },
        bytes: Cow::Borrowed(input.bytes()),
        part: 0,
    })
}

fn data(form: Form, bytes: &[u8], layout: Option<Layout>) -> Option<Format> {
    Some(match form {
        Form::Params => Format::Params,
        Form::Tensor => Format::Tensor,
        // `save()` gives the code without the length that the payload puts in front.
        Form::RelayVm if document::magic_first(bytes) => Format::RelayCode,
        _ => {
            let (kind, detected) = document::payload(form, bytes)?;
            Format::Payload {
                kind,
                layout: layout.unwrap_or(detected),
            }
        }
    })
}

impl Unit<'_> {
    /// Reads everything and says what is wrong and odd, without a record of the fields.
    pub(crate) fn judge(&self) -> Reading {
        self.read(None)
    }

    /// Reads everything and records every field, as far as memory goes.
    pub(crate) fn trace(&self) -> Reading {
        self.trace_from(0)
    }

    /// [`Unit::trace`] of the fields behind offset `from`.
    pub(crate) fn trace_from(&self, from: u64) -> Reading {
        /// How many fields of a small unit are recorded. One takes some 300 bytes, with what a dump makes of it.
        const FREE: usize = 48 << 10;
        /// And one more for each so many bytes.
        const BYTES: usize = 24;
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
    pub(crate) fn library(&self) -> Option<Partial<'_>> {
        match &self.format {
            Format::Library { layout, .. } => Some(Blob::read_partial(
                &self.bytes,
                *layout,
                Findings::default(),
            )),
            _ => None,
        }
    }

    /// What the format is called, with the releases that write it.
    pub(crate) fn title(&self) -> String {
        match &self.format {
            Format::Library { layout, .. } => format!("library binary, layout {layout}"),
            Format::Params => "parameter file".into(),
            Format::Tensor => "tensor file".into(),
            Format::RelayCode => "Relay VM code".into(),
            Format::Payload { kind, .. } => format!("file of a `{kind}` module"),
        }
    }

    fn read(&self, trace: Option<&Trace>) -> Reading {
        let mut findings = Findings::default();
        let bytes: &[u8] = &self.bytes;
        let mut cursor = match trace {
            Some(trace) => Cursor::traced(bytes, trace),
            None => Cursor::new(bytes),
        };
        let broken = match &self.format {
            Format::Library { layout, .. } => {
                let partial = match trace {
                    Some(trace) => Blob::read_traced(bytes, *layout, findings, trace),
                    None => Blob::read_partial(bytes, *layout, findings),
                };
                findings = partial.findings;
                partial.broken
            }
            Format::Params => Params::detect(&mut cursor, &mut findings)
                .and_then(|_| cursor.finish("the parameter file", &mut findings))
                .err(),
            Format::Tensor => TensorRecord::read(&mut cursor, Sizing::V0_7, &mut findings)
                .and_then(|_| cursor.finish("the tensor", &mut findings))
                .err(),
            Format::RelayCode => relay_vm::Executable::read_code(&mut cursor, &mut findings)
                .and_then(|_| cursor.finish("the VM code", &mut findings))
                .err(),
            Format::Payload { kind, layout } => {
                payload::read(kind, *layout, &mut cursor, &mut findings).err()
            }
        };
        Reading::of(findings, broken)
    }
}

/// The releases that both the symbols of a part and the layouts of its library binaries speak of.
pub(crate) fn releases<'u>(
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
        .reduce(|all, one| Releases {
            since: all.since.max(one.since),
            until: all.until.min(one.until),
        })
        .filter(|releases| releases.since <= releases.until)
}

/// The message for a file in which there is nothing to read, with what it is and what to do.
pub(crate) fn nothing(input: &Input, file: &container::File<'_>) -> Error {
    let form = file.form;
    let hint = match form {
        _ if input.bytes().is_empty() => "it is empty",
        Form::Unknown => {
            "it is of no form that TVM writes: no object file, archive, library binary, parameter file, executable or graph; if it is a library binary with a broken header, say its layout (--layout)"
        }
        Form::GraphJson | Form::ObjectJson | Form::FfiJson => {
            "it is JSON, which has no binary fields; `tvmspec inspect` shows it, `tvmspec verify` holds it to its rules"
        }
        form if form.is_object() && file.parts.iter().any(|part| part.releases().is_some()) => {
            "it holds no library binary and none of the symbols of compiled code; it calls the TVM runtime, or is one"
        }
        form if form.is_object() || form.is_archive() => {
            "no symbol in it is a library binary: a library without imported modules may have none; `tvmspec explain` says more"
        }
        _ => "there is no library binary in it",
    };
    let form = match form {
        Form::Unknown => String::new(),
        form => format!(" ({})", form_name(form)),
    };
    Error::new(format!("nothing to read in {}{form}: {hint}", input.name))
}

/// What is said of compiled code that has nothing else.
pub(crate) fn host_only(input: &Input) -> String {
    format!(
        "{} has no library binary: it imports no module, and its host code has no fields to read",
        input.name
    )
}

/// What a form is called in sentences.
pub(crate) fn form_name(form: Form) -> &'static str {
    form_title(form.name())
}

/// The name of a form for people.
pub(crate) fn form_title(name: &str) -> &str {
    match name {
        "elf-shared" => "ELF shared object",
        "elf-executable" => "ELF executable",
        "elf-object" => "ELF object file",
        "macho-shared" => "Mach-O dynamic library",
        "macho-executable" => "Mach-O executable",
        "macho-object" => "Mach-O object file",
        "macho-fat" => "Mach-O for several machines",
        "pe-shared" => "PE dynamic library",
        "pe-executable" => "PE executable",
        "coff-object" => "COFF object file",
        "archive" => "static archive",
        "tar" => "tar archive",
        "gzip-tar" => "tar archive under gzip",
        "c-text" => "C text",
        "raw-blob" => "library binary",
        "params" => "parameter file",
        "tensor" => "tensor file",
        "graph-json" => "graph JSON",
        "object-json" => "object JSON of 0.21 and before",
        "ffi-json" => "object JSON of tvm-ffi",
        "relax-vm" => "Relax VM executable",
        "relay-vm" => "Relay VM code",
        "stackvm" => "StackVM module",
        other => other,
    }
}
