//! Operations on files that contain a library binary.

use crate::blob::container::{
    self, ContainerPart, DynamicNames, EmbeddedBlob, FileForm, Role, Size, Symbol, SymbolVersions,
    linkage, made_for,
};
use crate::conformance::op::{Answer, Handler, Op, OpError, data};
use crate::rule::Findings;
use serde_json::{Value, json};

/// Operations on forms of files, and on the blobs and symbols in them.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "blob.form",
        help: "data: the beginning of a file, or all of it. The name of its form.",
        run: Handler::Here(form),
    },
    Op {
        name: "blob.find",
        help: "data: a file of any form. Every blob in it: form, machine, member, symbol, prefix, layout, offset, size.",
        run: Handler::Here(find),
    },
    Op {
        name: "blob.symbols",
        help: "data: a file of any form. Of every part that has any: the symbols that matter to TVM, by role, sorted.",
        run: Handler::Here(symbols),
    },
    Op {
        name: "blob.linkage",
        help: "data: an image. System, machine, libraries, search path, and the functions of TVM's C interface that it calls and defines.",
        run: Handler::Here(linked),
    },
    Op {
        name: "blob.names",
        help: "data: an image. The names that other libraries must define, those that it defines for them, and the versions of both, sorted.",
        run: Handler::Here(names),
    },
];

/// Runs `blob.form` (BLOB-69), which looks at the first bytes, as for a file that is still arriving.
fn form(args: &Value) -> Result<Answer, OpError> {
    let name = FileForm::detect(&data(args)?).name();
    Ok(Answer::new(name.into(), Findings::default()))
}

/// Runs `blob.find` (BLOB-50 to BLOB-57), which returns every blob of the file, in the order of its parts.
fn find(args: &Value) -> Result<Answer, OpError> {
    let data = data(args)?;
    let file = container::open(&data)?;
    let found = file
        .blobs()
        .map(|(part, blob)| describe(part, blob))
        .collect();
    Ok(Answer::new(Value::Array(found), file.findings))
}

/// Describes a blob: its place, its machine, and the room that its symbol has (BLOB-53, BLOB-54).
fn describe(part: &ContainerPart<'_>, blob: &EmbeddedBlob<'_>) -> Value {
    let machine = part.machine.as_ref();
    // BLOB-53: `room` is the size in ELF; in other formats, the bytes up to the next symbol or the end of the section.
    json!({
        "form": part.form.name(),
        "machine": machine.map(|machine| &machine.architecture),
        "bits": machine.map(|machine| machine.bits),
        "little_endian": machine.map(|machine| machine.little_endian),
        "member": part.member,
        "symbol": blob.symbol,
        "prefix": blob.prefix,
        "layout": blob.layout.map(|layout| layout.name()),
        "offset": blob.offset,
        "size": blob.bytes.len(),
        "room": match blob.size {
            Size::Known(room) | Size::Derived { room } => room,
        },
    })
}

/// Runs `blob.symbols` (BLOB-62 to BLOB-65). Parts without symbols are left out, because archives have many of them.
fn symbols(args: &Value) -> Result<Answer, OpError> {
    let data = data(args)?;
    let file = container::open(&data)?;
    // Symbols that a runtime defines itself are left out, because no loader looks them up.
    let spoken = file.parts.iter().filter(|part| {
        let is_looked_for = |symbol: &Symbol<'_>| !matches!(symbol.role, Role::Defines(_));
        part.symbols.iter().any(is_looked_for)
    });
    let described = spoken.map(roles).collect();
    Ok(Answer::new(Value::Array(described), file.findings))
}

/// Returns the symbols of one part by their roles, sorted, because the order of a symbol table depends on the linker.
fn roles(part: &ContainerPart<'_>) -> Value {
    let of = |choose: fn(&Role, &str) -> Option<String>| {
        let mut names: Vec<String> = part
            .symbols
            .iter()
            .filter_map(|symbol| choose(&symbol.role, &symbol.name))
            .collect();
        names.sort();
        names
    };
    json!({
        "form": part.form.name(),
        "member": part.member,
        "functions": of(|role, _| match role { Role::Function(name) => Some(name.to_string()), _ => None }),
        "entry": of(|role, name| matches!(role, Role::Entry).then(|| name.to_owned())),
        "context": of(|role, name| matches!(role, Role::Context(_)).then(|| name.to_owned())),
        "slots": of(|role, _| match role { Role::Slot(api) => Some(api.to_string()), _ => None }),
        "needs": of(|role, _| match role { Role::Needs(api) => Some(api.to_string()), _ => None }),
        "releases": part.releases().map(|releases| releases.to_string()),
    })
}

/// Runs `blob.linkage`, which returns the needs of the dynamic linker, and the runtime functions that the file calls and defines.
fn linked(args: &Value) -> Result<Answer, OpError> {
    let data = data(args)?;
    let made = made_for(&data);
    let linkage = linkage(FileForm::detect(&data), &data);
    let machine = made.as_ref().and_then(|made| made.machine.as_ref());
    let value = json!({
        "system": made.as_ref().map(|made| made.system),
        "machine": machine.map(|(name, _)| name),
        "bits": machine.map(|(_, bits)| bits),
        "libraries": linkage.libraries,
        "search": linkage.search,
        "binds_now": linkage.binds_now,
        "calls": linkage.calls,
        "defines": linkage.defines,
        "runtime": linkage.is_runtime(),
    });
    Ok(Answer::new(value, Findings::default()))
}

/// Runs `blob.names` (BLOB-68), which returns the names and versions in the tables of the dynamic linker. `wanted` and `defined` are null
/// if one of the names cannot be read.
fn names(args: &Value) -> Result<Answer, OpError> {
    let data = data(args)?;
    let names = DynamicNames::read(&data);
    let sorted = |names: &[&[u8]]| {
        let texts = names.iter().map(|name| String::from_utf8_lossy(name));
        let mut texts: Vec<_> = texts.map(|name| name.into_owned()).collect();
        texts.sort();
        texts
    };
    let versions = SymbolVersions::read(&data);
    let value = json!({
        "wanted": names.as_ref().map(|names| sorted(&names.wanted)),
        "defined": names.as_ref().map(|names| sorted(&names.defined)),
        "needed_versions": versions.needed,
        "defined_versions": versions.defined,
    });
    Ok(Answer::new(value, Findings::default()))
}
