//! Operations that pack a library binary into a file for a linker or a loader.
//!
//! Another reader than that of the chapter reads the results: the crate `object`, or `container` if a file with library binaries is
//! expected. Bytes are compared if the release determines them (`blob.pack_c`), and facts if linkers have a choice.

use super::exporting;
use crate::blob::container;
use crate::blob::pack::{self, LinkOptions, ObjectTarget, SymbolNaming};
use crate::conformance::op::{Answer, Handler, Op, OpError, base64, data};
use crate::release::Release;
use crate::rule::Findings;
use object::read::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, Section, Symbol,
    SymbolSection,
};
use object::{FileFlags, SectionFlags, elf};
use serde_json::{Value, json};

/// Operations on C text, object files and shared libraries.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "blob.pack_c",
        help: "data: a blob; release: 0.8; system_lib: false; prefix: \"\". The C text as that release writes it.",
        run: Handler::Here(pack_c),
    },
    Op {
        name: "blob.pack_object",
        help: "data, release, system_lib, prefix as for blob.pack_c; target: an LLVM triple. What is in the object file for it.",
        run: Handler::Here(pack_object),
    },
    Op {
        name: "blob.pack_shared",
        help: "data, release, system_lib, prefix as for blob.pack_c; sources: C texts by name. What is in the library that the C compiler links.",
        run: Handler::Compiled(pack_shared),
    },
    Op {
        name: "blob.export",
        help: "value: a list of {code: {format, data}} or {kind, data}, each with imports; release, system_lib, prefix, target as for the others; order; text: whether one C text is made of them. The files that a linker gets.",
        run: Handler::Here(exporting::export),
    },
    Op {
        name: "blob.archive",
        help: "value: a list of {name, data}. The names of the members of the .tar of them, in order.",
        run: Handler::Here(archive),
    },
    Op {
        name: "blob.replace",
        help: "data: a file with library binaries; blob: another one; index: 0. What is in the file with it in the place of number index.",
        run: Handler::Here(replace),
    },
];

/// Returns a text member; empty if it is missing, which means the default in every operation here.
pub(super) fn text<'a>(args: &'a Value, key: &str) -> &'a str {
    args.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the names of the symbols: those of the release, for a system library or not, with a prefix (MOD-01, MOD-16).
pub(super) fn naming(args: &Value) -> Result<SymbolNaming, OpError> {
    let release: Release = text(args, "release").parse()?;
    let system_lib = args
        .get("system_lib")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    Ok(SymbolNaming::of(release, system_lib, text(args, "prefix"))?)
}

/// Runs `blob.pack_c` (BLOB-58 to BLOB-60). The text is compared byte for byte, because releases write one text for each input.
fn pack_c(args: &Value) -> Result<Answer, OpError> {
    let packed = pack::c_text(&data(args)?, &naming(args)?);
    Ok(Answer::new(base64(packed.as_bytes()), Findings::default()))
}

/// Runs `blob.pack_object` (BLOB-66, BLOB-67). Facts about the object file are compared, because its bytes depend on the writer.
fn pack_object(args: &Value) -> Result<Answer, OpError> {
    let (blob, naming) = (data(args)?, naming(args)?);
    let target = ObjectTarget::from_triple(text(args, "target"))?;
    let packed = pack::object(&blob, &naming, target)?;
    let read = File::parse(&*packed).map_err(|error| {
        OpError::Unsupported(format!("the object file does not parse: {error}"))
    })?;
    Ok(Answer::new(object_facts(&read, &blob), Findings::default()))
}

/// Returns facts about an object file, read by the crate `object` and not by the chapter.
///
/// Format, machine and flags decide whether a linker accepts the file for the target. `needs` has the symbols that a system library must
/// find. `stack` says whether the file makes stacks executable. `linker` has the options for a Windows linker to export symbols.
fn object_facts(file: &File<'_>, blob: &[u8]) -> Value {
    let defined = |symbol: &Symbol<'_, '_>| symbol.is_global() && !symbol.is_undefined();
    let symbols: Vec<Value> = file
        .symbols()
        .filter(defined)
        .map(|symbol| symbol_facts(file, &symbol, blob))
        .collect();
    let needs: Vec<&str> = file
        .symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .collect();
    let linker = file.section_by_name(".drectve");
    let linker = linker.and_then(|section| Some(section.data().ok()?.to_vec()));
    json!({
        "format": format!("{:?}", file.format()).to_ascii_lowercase(),
        "machine": format!("{:?}", file.architecture()).to_ascii_lowercase(),
        "little_endian": file.is_little_endian(),
        "flags": match file.flags() {
            FileFlags::Elf { e_flags, .. } => Some(e_flags.0),
            _ => None,
        },
        "symbols": symbols,
        "needs": needs,
        "stack": file.section_by_name(".note.GNU-stack").map(|section| match section.flags() {
            SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & elf::SHF_EXECINSTR.0 != 0,
            _ => true,
        }),
        "linker": linker.map(|words| String::from_utf8_lossy(&words).trim().to_owned()),
        "constructor": constructor(file),
    })
}

/// Returns the properties of one symbol that linkers and loaders use: its section, whether it is writable, its alignment, and whether the section
/// contains the whole library binary.
fn symbol_facts(file: &File<'_>, symbol: &Symbol<'_, '_>, blob: &[u8]) -> Value {
    let section = symbol
        .section_index()
        .and_then(|index| file.section_by_index(index).ok());
    let content = section.as_ref().and_then(|section| section.data().ok());
    let start = section
        .as_ref()
        .and_then(|section| symbol.address().checked_sub(section.address()))
        .and_then(|start| usize::try_from(start).ok());
    let held = content
        .zip(start)
        .and_then(|(content, start)| content.get(start..));
    json!({
        "name": symbol.name().unwrap_or_default(),
        "data": symbol.kind() == object::SymbolKind::Data,
        "size": symbol.size(),
        "section": section.as_ref().and_then(|section| section.name().ok()),
        "read_only": section.as_ref().map(is_read_only),
        "align": section.as_ref().map(Section::align),
        "holds": held.is_some_and(|held| held.starts_with(blob)),
    })
}

/// Returns whether a section is read-only. A writable copy for each process would waste memory, because binaries may have gigabytes of
/// parameters.
fn is_read_only(section: &Section<'_, '_>) -> bool {
    matches!(
        section.kind(),
        object::SectionKind::ReadOnlyData | object::SectionKind::ReadOnlyString
    )
}

/// Returns what `.init_array` leads to: the text, the data and the function that its code refers to.
///
/// A system library registers its symbol before `main` (BLOB-67). This shows whether the object does so without running it, for any
/// machine.
fn constructor(file: &File<'_>) -> Option<Value> {
    let init = file.section_by_name(".init_array")?;
    let SectionFlags::Elf { sh_type, sh_flags } = init.flags() else {
        return None;
    };
    let symbol_of = |target| match target {
        RelocationTarget::Symbol(index) => file.symbol_by_index(index).ok(),
        _ => None,
    };
    let (_, entry) = init.relocations().next()?;
    let start = symbol_of(entry.target())?;
    let code = file.section_by_index(start.section_index()?).ok()?;
    let mut refers: Vec<Value> = Vec::new();
    for (_, relocation) in code.relocations() {
        let symbol = symbol_of(relocation.target())?;
        let value = match symbol.section() {
            SymbolSection::Undefined => json!({"calls": symbol.name().ok()?}),
            _ if symbol.is_local() => json!({"text": c_text_at(file, &symbol)?}),
            _ => json!({"data": symbol.name().ok()?}),
        };
        if !refers.contains(&value) {
            refers.push(value);
        }
    }
    Some(json!({
        "listed": init.size(),
        "align": init.align(),
        "array": sh_type == elf::SHT_INIT_ARRAY,
        "writable": sh_flags.0 & (elf::SHF_WRITE.0 | elf::SHF_ALLOC.0) == 3,
        "function": start.kind() == object::SymbolKind::Text && start.is_local(),
        "code": code.kind() == object::SectionKind::Text,
        "refers": refers,
    }))
}

/// Returns the text at a symbol, up to its NUL.
fn c_text_at(file: &File<'_>, symbol: &Symbol<'_, '_>) -> Option<String> {
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let start = usize::try_from(symbol.address().checked_sub(section.address())?).ok()?;
    let content = section.data().ok()?.get(start..)?;
    let end = content.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(content.get(..end)?).into_owned())
}

/// Runs `blob.archive` (BLOB-74), which returns what `container` finds in the `.tar`. Only the golden checks that the bytes are always
/// equal.
fn archive(args: &Value) -> Result<Answer, OpError> {
    let files = args.get("value").and_then(Value::as_array);
    let files: Result<Vec<(String, Vec<u8>)>, OpError> = files
        .into_iter()
        .flatten()
        .map(|file| Ok((text(file, "name").to_owned(), data(file)?)))
        .collect();
    let made = pack::tar(&files?)?;
    let file = container::open(&made)?;
    let names: Vec<&str> = file.parts.iter().map(|part| part.member.as_str()).collect();
    Ok(Answer::new(names.into(), file.findings.clone()))
}

/// Runs `blob.replace` (BLOB-75), which returns the binaries and functions of the new file, and whether the rest of an object file or
/// library is unchanged.
fn replace(args: &Value) -> Result<Answer, OpError> {
    let old = data(args)?;
    let blob = data(&json!({"data": args.get("blob")}))?;
    let index = args.get("index").and_then(Value::as_u64).unwrap_or(0);
    // BLOB-75: an index that the file does not have is missing, also one that does not fit into 32 bits on a 32-bit host.
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let new = pack::replace(&old, index, &blob)?;
    let file = container::open(&new)?;
    let blobs: Vec<Value> = file
        .blobs()
        .map(|(_, found)| base64(&found.bytes))
        .collect();
    let functions: Vec<&str> = file
        .parts
        .iter()
        .flat_map(container::ContainerPart::functions)
        .collect();
    let value = json!({
        "blobs": blobs,
        "functions": functions,
        "kept": File::parse(&*old).ok().is_none_or(|old| is_kept(&old, &new, &blob)),
    });
    Ok(Answer::new(value, Findings::default()))
}

/// Returns whether `new` has the sections and symbols of `old`, except symbol tables and the section with `blob`.
fn is_kept(old: &File<'_>, new: &[u8], blob: &[u8]) -> bool {
    let Ok(new) = File::parse(new) else {
        return false;
    };
    let name = |section: &Section<'_, '_>| section.name().unwrap_or_default().to_owned();
    // The section names get one more name at their end.
    let names = new.section_by_name(".shstrtab").map(|names| names.index());
    let kept = |section: &Section<'_, '_>, other: &Section<'_, '_>| {
        let (own, new) = (
            section.data().unwrap_or_default(),
            other.data().unwrap_or_default(),
        );
        let longer = Some(other.index()) == names && new.starts_with(own);
        // A blob of the same length is in the place of the old one, anywhere in its section.
        let mut windows = new.windows(blob.len().max(1));
        let spliced = windows.position(|bytes| bytes == blob).is_some_and(|at| {
            let end = at + blob.len();
            own.len() == new.len() && own[..at] == new[..at] && own[end..] == new[end..]
        });
        let same = own == new || new == blob || longer || spliced;
        section.address() == other.address() && same
    };
    let table = |section: &Section<'_, '_>| matches!(&*name(section), ".symtab" | ".dynsym");
    // The library binary may have a separate section, anywhere in the section table.
    let mut others = new.sections();
    let sections = old
        .sections()
        .filter(|section| !table(section))
        .all(|section| {
            others
                .find(|other| name(other) == name(&section) && !table(other))
                .is_some_and(|other| kept(&section, &other))
        });
    let holds = |symbol: &Symbol<'_, '_>| symbol.size() == blob.len() as u64;
    let symbols = old.symbols().zip(new.symbols()).all(|(old, new)| {
        old.name().ok() == new.name().ok() && (old.address() == new.address() || holds(&new))
    });
    sections && symbols
}

/// Runs `blob.pack_shared`, which links a library with the C compiler of the system; unsupported without a compiler.
fn pack_shared(args: &Value) -> Result<Answer, OpError> {
    let (blob, naming) = (data(args)?, naming(args)?);
    let failed = |error: std::io::Error| {
        OpError::Unsupported(format!("no library can be linked here: {error}"))
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let mut with = LinkOptions::default();
    let sources = args.get("sources").and_then(Value::as_object);
    for (name, source) in sources.into_iter().flatten() {
        let path = folder.path().join(name);
        std::fs::write(&path, source.as_str().unwrap_or_default()).map_err(failed)?;
        with.inputs.push(path);
    }
    let output = folder.path().join("made.so");
    pack::shared(&blob, &naming, &with, &output).map_err(failed)?;
    // Counted after the link, because files that packing leaves next to the library would stay in a user's folder.
    let left = std::fs::read_dir(folder.path()).map_err(failed)?.count();
    let made = std::fs::read(&output).map_err(failed)?;
    let file = container::open(&made)?;
    let symbols: Vec<&str> = file
        .blobs()
        .filter(|(_, found)| found.bytes == blob)
        .map(|(_, found)| found.symbol.as_str())
        .collect();
    let functions: Vec<&str> = file
        .parts
        .iter()
        .flat_map(container::ContainerPart::functions)
        .collect();
    let value = json!({
        "symbols": symbols,
        "functions": functions,
        "left_behind": left - with.inputs.len() - 1,
    });
    Ok(Answer::new(value, file.findings))
}
