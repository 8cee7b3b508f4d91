//! WebAssembly. Object files have their symbols in the section `linking`. Linked modules have only exports, imports and names of functions.

use super::allowance::Allowance;
use super::symbols::{self, Raw};
use super::{ContainerPart, EmbeddedBlob, FileForm, Machine, MemberPlace, limit_to_header_size};
use crate::blob::{BLOB_52, BLOB_55};
use crate::rule::{Findings, Kind, Violation};
use std::borrow::Cow;
use std::collections::HashSet;
use wasmparser::{
    DefinedDataSymbol, ExternalKind, KnownCustom, Linking, Name, Parser, Payload, SymbolFlags,
    SymbolInfo, TypeRef,
};

/// The beginning of a module: its magic and version 1. Components have another version.
const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// The id of a section that has a name.
const CUSTOM: u8 = 0;

/// Returns whether `bytes` are an object file or a linked module: an object file has a section `linking`.
pub(super) fn form(bytes: &[u8]) -> Option<FileForm> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    while let Some((id, behind)) = rest.split_first() {
        let Some((size, body)) = leb(behind) else {
            break;
        };
        let section = body.get(..size).unwrap_or(body);
        if *id == CUSTOM && leb(section).is_some_and(|(_, name)| name.starts_with(b"linking")) {
            return Some(FileForm::WasmObject);
        }
        rest = body.get(size..).unwrap_or_default();
    }
    Some(FileForm::WasmModule)
}

/// Reads a LEB128 number of at most five bytes, and returns it with the bytes after it.
fn leb(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        let shift = u32::try_from(index).ok()?.checked_mul(7)?;
        value |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index.saturating_add(1)..)?));
        }
    }
    None
}

/// The parts of a module that are needed before its symbols are classified.
#[derive(Default)]
struct WasmTables<'a> {
    /// Names of imported functions, by function index.
    imports: Vec<&'a str>,
    /// The data segments: the offset of each in the module, and its bytes.
    segments: Vec<(u64, &'a [u8])>,
    /// Symbols of the section `linking`; without that section, exports, imports and names of functions.
    symbols: Vec<Raw<'a>>,
    /// The name and place of each data symbol.
    data: Vec<(&'a str, DefinedDataSymbol)>,
    /// True if memory addresses have 64 bits.
    is_wide: bool,
}

/// Reads the module `bytes` into `part`.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    place: &MemberPlace,
    part: &mut ContainerPart<'a>,
    findings: &mut Findings,
    allowance: &mut Allowance,
) -> Result<(), Violation> {
    let tables = WasmTables::read(bytes).map_err(|error| {
        let kind = if error.message().contains("unexpected end") {
            Kind::Truncated
        } else {
            Kind::Malformed
        };
        let message = format!("the WebAssembly module is damaged: {}", error.message());
        BLOB_55.broken(kind, error.offset() as u64, message)
    })?;
    let mut seen = HashSet::new();
    let mut unique = Vec::new();
    for raw in tables.symbols {
        // BLOB-68: a name is counted before it is compared, as for other object files.
        allowance.name(raw.name.len(), 0)?;
        if !raw.name.is_empty() && seen.insert(raw.name) {
            unique.push(raw);
        }
    }
    part.symbols = symbols::classify(unique.iter().copied(), allowance)?;
    for (name, defined) in tables.data {
        let Some((prefix, layout)) = symbols::blob(name) else {
            continue;
        };
        let (start, room) =
            extent(&tables.segments, name, &defined).map_err(|broken| broken.in_field(name))?;
        let (content, size) = limit_to_header_size(room, defined.size > 0, start, findings)
            .map_err(|broken| broken.in_field(name))?;
        allowance.blob(content.len(), start)?;
        part.blobs.push(EmbeddedBlob {
            symbol: name.to_owned(),
            prefix: prefix.to_owned(),
            layout: Some(layout),
            address: Some(defined.offset.into()),
            offset: place.file_offset(start),
            size,
            bytes: Cow::Borrowed(content),
        });
    }
    let bits = if tables.is_wide { 64 } else { 32 };
    part.machine = Some(Machine {
        architecture: format!("wasm{bits}"),
        bits,
        little_endian: true,
    });
    Ok(())
}

/// Returns the offset and the bytes of a data symbol (BLOB-52).
fn extent<'a>(
    segments: &[(u64, &'a [u8])],
    name: &str,
    defined: &DefinedDataSymbol,
) -> Result<(u64, &'a [u8]), Violation> {
    let range = || {
        let (start, segment) = segments.get(usize::try_from(defined.index).ok()?)?;
        let offset = usize::try_from(defined.offset).ok()?;
        let rest = segment.get(offset..)?;
        let bytes = match usize::try_from(defined.size).ok()? {
            0 => rest,
            size => rest.get(..size)?,
        };
        Some((start.saturating_add(defined.offset.into()), bytes))
    };
    let found = range();
    let segment = usize::try_from(defined.index).ok();
    let at = segment.and_then(|index| Some(segments.get(index)?.0));
    BLOB_52.require_as(
        Kind::Truncated,
        found.is_some(),
        at.unwrap_or_default(),
        || {
            format!(
                "`{name}` has {} bytes at {:#x} of data segment {}, which has fewer",
                defined.size, defined.offset, defined.index
            )
        },
    )?;
    Ok(found.unwrap_or_default())
}

impl<'a> WasmTables<'a> {
    fn read(bytes: &'a [u8]) -> wasmparser::Result<WasmTables<'a>> {
        let mut tables = WasmTables::default();
        let (mut linking, mut plain) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        match import.ty {
                            TypeRef::Func(_) => {
                                tables.imports.push(import.name);
                                plain.push(raw(import.name, None, true));
                            }
                            TypeRef::Memory(memory) => tables.is_wide |= memory.memory64,
                            _ => {}
                        }
                    }
                }
                Payload::MemorySection(section) => {
                    for memory in section {
                        tables.is_wide |= memory?.memory64;
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        let is_code = export.kind == ExternalKind::Func;
                        plain.push(raw(export.name, Some((export.index, 0)), is_code));
                    }
                }
                Payload::DataSection(section) => {
                    for segment in section {
                        let segment = segment?;
                        // The range of a segment ends where its bytes end.
                        let start = segment.range.end.saturating_sub(segment.data.len());
                        tables.segments.push((start as u64, segment.data));
                    }
                }
                Payload::CustomSection(section) => {
                    match section.as_known() {
                        KnownCustom::Linking(section) => {
                            for subsection in section.subsections() {
                                if let Linking::SymbolTable(symbols) = subsection? {
                                    for symbol in symbols {
                                        linking.extend(tables.symbol(&symbol?));
                                    }
                                }
                            }
                        }
                        KnownCustom::Name(section) => {
                            // Tools may leave a name section that other tools cannot read. It is not needed to run the module, so
                            // errors are ignored.
                            for names in section.into_iter().map_while(Result::ok) {
                                if let Name::Function(names) = names {
                                    let names = names.into_iter().map_while(Result::ok);
                                    plain.extend(names.map(|naming| {
                                        raw(naming.name, Some((naming.index, 0)), true)
                                    }));
                                }
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        // The symbols of an object file include all of these, except local symbols.
        tables.symbols = if linking.is_empty() { plain } else { linking };
        Ok(tables)
    }

    /// Converts a symbol of the section `linking`; returns `None` for a local symbol.
    fn symbol(&mut self, symbol: &SymbolInfo<'a>) -> Option<Raw<'a>> {
        let is_seen = |flags: SymbolFlags| !flags.contains(SymbolFlags::BINDING_LOCAL);
        match *symbol {
            SymbolInfo::Func { flags, index, name } if is_seen(flags) => {
                // A function without a name has the name of its import.
                let imported = || self.imports.get(usize::try_from(index).ok()?).copied();
                let name = name.or_else(imported)?;
                let defined = !flags.contains(SymbolFlags::UNDEFINED);
                Some(raw(name, defined.then_some((index, 0)), true))
            }
            SymbolInfo::Data {
                flags,
                name,
                symbol,
            } if is_seen(flags) => {
                self.data.extend(symbol.map(|symbol| (name, symbol)));
                let place = symbol.map(|symbol| (symbol.offset, symbol.size));
                Some(raw(name, place, false))
            }
            _ => None,
        }
    }
}

/// Creates a symbol with an address and a size; `place` is `None` for a symbol that is not defined here.
fn raw(name: &str, place: Option<(u32, u32)>, text: bool) -> Raw<'_> {
    let (address, size) = place.unwrap_or_default();
    Raw {
        name,
        address: address.into(),
        size: size.into(),
        defined: place.is_some(),
        text,
    }
}
