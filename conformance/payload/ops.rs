//! Operations of chapter `payload`.

use crate::conformance::module::loading;
use crate::conformance::op::{
    Answer, Handler, Op, OpError, base64, data, fields_to_json, without_offset,
};
use crate::payload::{self, Payload, file};
use crate::release::{Layout, Release};
use crate::rule::{Findings, Kind};
use crate::wire::{Cursor, Span, Trace, Writer};
use serde_json::{Value, json};

/// Every operation of this chapter.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "payload.decode",
        help: "`data`: the payload of one module; `kind`: its kind; `layout`: 0.2, 0.7, 0.21 or 0.22; returns its fields",
        run: Handler::Partly(decode, loading::payload),
    },
    Op {
        name: "payload.encode",
        help: "`value`: the fields; `layout`: 0.2, 0.7, 0.21 or 0.22; returns the bytes",
        run: Handler::Here(encode),
    },
    Op {
        name: "payload.kind",
        help: "`value`: a kind; `release`: {\"form\": the newest that this release stores, \"loader\": the global function that reads it, \"mask\": its properties}, with null for a missing part",
        run: Handler::Here(kind),
    },
    Op {
        name: "payload.fields",
        help: "`data`, `kind`, `layout` as in payload.decode; returns where each field lies, its name, its rule and its value",
        run: Handler::Here(fields),
    },
    Op {
        name: "payload.shown",
        help: "`data`, `kind`, `layout` as in payload.decode; returns the parts that are shown to a person: {\"needs\": [[name, value], ..], \"dtypes\", \"source\", \"kernels\", \"code\": lines}",
        run: Handler::Here(shown),
    },
    Op {
        name: "payload.file_read",
        help: "`path`: the name of a module file; `data`: its content; `side`: the text of its side file, or its lines, or null; returns {\"side_path\", \"payload\"}",
        run: Handler::Here(file_read),
    },
    Op {
        name: "payload.file_write",
        help: "`value`: the fields of a payload; `path`: the name of a file; `release`; returns {\"data\", \"side_path\", \"side\": the JSON of the side file}",
        run: Handler::Here(file_write),
    },
    Op {
        name: "payload.file_kind",
        help: "`value`: an extension; `release`: {\"kind\": that of the module in such a file, \"saved\": whether the release saves it, \"loader\": the global function that loads it, or null}",
        run: Handler::Here(file_kind),
    },
];

/// Runs `payload.decode`, which returns the fields of one module (PAY-01) as JSON; bytes after the last field are a finding (WIRE-08).
fn decode(args: &Value) -> Result<Answer, OpError> {
    let bytes = data(args)?;
    let mut findings = Findings::default();
    let payload = read(&bytes, args, &mut findings)?;
    Ok(Answer::new(payload.to_json(), findings))
}

/// Reads the payload in the request, to its end.
fn read<'a>(
    bytes: &'a [u8],
    args: &Value,
    findings: &mut Findings,
) -> Result<Payload<'a>, OpError> {
    let layout = layout(args)?;
    let kind = args.get("kind").and_then(Value::as_str);
    let kind = kind.ok_or_else(|| OpError::Unsupported("the request has no `kind`".into()))?;
    let mut cursor = Cursor::new(bytes);
    let payload = payload::read(kind, layout, &mut cursor, findings)?;
    cursor.finish(&format!("the {kind} payload"), findings)?;
    Ok(payload)
}

/// Runs `payload.shown`, which returns the parts of a payload that tools show in addition to its fields. Parts without an order are sorted.
fn shown(args: &Value) -> Result<Answer, OpError> {
    let bytes = data(args)?;
    let mut findings = Findings::default();
    let payload = read(&bytes, args, &mut findings)?;
    let needs = payload.code_needs();
    let needs = needs
        .iter()
        .map(|need| [need.name().to_owned(), need.value().to_owned()]);
    let mut needs: Vec<[String; 2]> = needs.collect();
    needs.sort();
    let mut dtypes: Vec<String> = payload
        .dtypes()
        .iter()
        .map(|dtype| dtype.to_string())
        .collect();
    dtypes.sort();
    let kernels = payload.kernels();
    let value = json!({
        "needs": needs,
        "dtypes": dtypes,
        "source": payload.source(),
        "kernels": kernels.map(|(name, code)| json!([name, code.len()])).collect::<Vec<_>>(),
        "code": payload.relay_vm().map(|code| code.disassemble().lines().map(str::to_owned).collect::<Vec<_>>()),
    });
    Ok(Answer::new(value, findings))
}

/// Runs `payload.encode`. The written bytes are read again, so that a value that breaks a rule is rejected like its bytes.
fn encode(args: &Value) -> Result<Answer, OpError> {
    let layout = layout(args)?;
    let payload = Payload::from_json(args.get("value").unwrap_or(&Value::Null))?;
    let mut out = Writer::new();
    payload.write(layout, &mut out)?;
    let bytes = out.into_bytes();
    let mut findings = Findings::default();
    payload::read(
        payload.kind(),
        layout,
        &mut Cursor::new(&bytes),
        &mut findings,
    )
    .map_err(without_offset)?;
    Ok(Answer::new(base64(&bytes), findings))
}

/// Runs `payload.kind` (PAY-09, MOD-11, MOD-15), which returns the form in which a release stores the kind, its loader, and its properties.
fn kind(args: &Value) -> Result<Answer, OpError> {
    let (kind, release) = (text(args, "value")?, text(args, "release")?);
    let release: Release = release.parse()?;
    let info = payload::kind_info(kind).ok_or_else(|| {
        let message = format!("no release stores or loads a module of kind `{kind}`");
        payload::PAY_99.rejected(Kind::UnknownKind, message)
    })?;
    let answer = json!({
        "form": info.form_in(release).map(|form| form.name),
        "loader": info.loader(release),
        "mask": info.mask(release),
    });
    Ok(Answer::new(answer, Findings::default()))
}

/// Runs `payload.file_read` (PAY-23 to PAY-29) on code and side file together. The side file may be a list of lines, which is easier to
/// read in a case.
fn file_read(args: &Value) -> Result<Answer, OpError> {
    let path = text(args, "path")?;
    let code = data(args)?;
    let side = match args.get("side") {
        None | Some(Value::Null) => None,
        Some(Value::Array(lines)) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            let lines = lines.ok_or_else(|| OpError::Unsupported("`side` has no lines".into()))?;
            Some(lines.join("\n"))
        }
        Some(_) => Some(text(args, "side")?.to_owned()),
    };
    let mut findings = Findings::default();
    let read = file::ModuleFile::read(
        path,
        "",
        &code,
        side.as_deref().map(str::as_bytes),
        &mut findings,
    )?;
    let answer = json!({
        "side_path": file::side_file_name(path),
        "payload": read.payload.to_json(),
    });
    Ok(Answer::new(answer, findings))
}

/// Runs `payload.file_write` (PAY-23 to PAY-28), which returns both files. The side file is compared as JSON.
fn file_write(args: &Value) -> Result<Answer, OpError> {
    let path = text(args, "path")?;
    let release: Release = text(args, "release")?.parse()?;
    let payload = Payload::from_json(args.get("value").unwrap_or(&Value::Null))?;
    let (code, side) = file::write(&payload, path, "", release)?;
    // PAY-24: its line breaks have no meaning, so those of another writer are valid too.
    let side: Value = serde_json::from_str(&side).unwrap_or(Value::String(side));
    let answer = json!({
        "data": base64(&code),
        "side_path": file::side_file_name(path),
        "side": side,
    });
    Ok(Answer::new(answer, Findings::default()))
}

/// Runs `payload.file_kind` (PAY-28) for a file of device code, or of host code, which `load_module` links.
fn file_kind(args: &Value) -> Result<Answer, OpError> {
    let (extension, release) = (text(args, "value")?, text(args, "release")?);
    let release: Release = release.parse()?;
    let format = file::file_format(extension).or_else(|| file::host_format(extension));
    let format = format.ok_or_else(|| {
        let message = format!("no kind of device module is in `.{extension}` files");
        payload::PAY_28.rejected(Kind::UnknownKind, message)
    })?;
    let answer = json!({
        "kind": format.kind,
        "saved": format.is_saved(release),
        "loader": format.loader(release),
    });
    Ok(Answer::new(answer, Findings::default()))
}

/// Returns the text under `name` in the request.
fn text<'v>(args: &'v Value, name: &str) -> Result<&'v str, OpError> {
    let text = args.get(name).and_then(Value::as_str);
    text.ok_or_else(|| OpError::Unsupported(format!("the request has no `{name}`")))
}

/// Returns the layout in the request, because the bytes of a payload do not show it.
fn layout(args: &Value) -> Result<Layout, OpError> {
    let name = args.get("layout").and_then(Value::as_str);
    let name = name.ok_or_else(|| OpError::Unsupported("the request has no `layout`".into()))?;
    name.parse().map_err(OpError::from)
}

/// Runs `payload.fields`, which returns the place of each field, as far as the payload can be read.
fn fields(args: &Value) -> Result<Answer, OpError> {
    layout(args)?;
    let spans = trace("payload.fields", &data(args)?, args);
    Ok(Answer::new(fields_to_json(&spans), Findings::default()))
}

/// Returns the fields of a payload, as far as it can be read.
pub(crate) fn trace(_op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    let kind = args.get("kind").and_then(Value::as_str);
    if let (Some(kind), Ok(layout)) = (kind, layout(args)) {
        // A violation ends the reading; only the fields before it are needed.
        let mut cursor = Cursor::traced(data, &trace);
        let _ = payload::read(kind, layout, &mut cursor, &mut Findings::default());
    }
    trace.into_spans()
}
