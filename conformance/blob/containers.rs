//! Operations on the files around the library binary.

use crate::blob::container::{self, Blob, Part, Role};
use crate::blob::pack::{self, Naming};
use crate::conformance::op::{Answer, Op, Refusal, Run, base64, data};
use crate::release::Release;
use crate::rule::Findings;
use serde_json::{Value, json};

/// Finding blobs and symbols.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "blob.find",
        help: "data: a file of any form. Every blob in it: form, member, symbol, prefix, layout, offset, size.",
        run: Run::Here(find),
    },
    Op {
        name: "blob.symbols",
        help: "data: a file of any form. Of every part that has any: the symbols that matter to TVM, by role, sorted.",
        run: Run::Here(symbols),
    },
    Op {
        name: "blob.pack_c",
        help: "data: a blob; release: 0.8; system_lib: false; prefix: \"\". The C text as that release writes it.",
        run: Run::Here(pack_c),
    },
];

fn find(args: &Value) -> Result<Answer, Refusal> {
    let data = data(args)?;
    let file = container::open(&data)?;
    let found = file
        .blobs()
        .map(|(part, blob)| describe(part, blob))
        .collect();
    Ok(Answer::new(Value::Array(found), file.findings))
}

fn describe(part: &Part<'_>, blob: &Blob<'_>) -> Value {
    json!({
        "form": part.form.name(),
        "member": part.member,
        "symbol": blob.symbol,
        "prefix": blob.prefix,
        "layout": blob.layout.map(|layout| layout.name()),
        "offset": blob.offset,
        "size": blob.bytes.len(),
    })
}

fn symbols(args: &Value) -> Result<Answer, Refusal> {
    let data = data(args)?;
    let file = container::open(&data)?;
    let spoken = file.parts.iter().filter(|part| !part.symbols.is_empty());
    let described = spoken.map(roles).collect();
    Ok(Answer::new(Value::Array(described), file.findings))
}

fn roles(part: &Part<'_>) -> Value {
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

fn pack_c(args: &Value) -> Result<Answer, Refusal> {
    let data = data(args)?;
    let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
    let release: Release = text("release").parse().map_err(Refusal::Unsupported)?;
    let system_lib = args
        .get("system_lib")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let naming = Naming::of(release, system_lib, text("prefix"))?;
    let packed = pack::c_text(&data, &naming);
    Ok(Answer::new(base64(packed.as_bytes()), Findings::default()))
}
