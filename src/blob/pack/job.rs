//! An export described by one JSON object, for callers that have no modules in Rust.

use super::{
    ExportContent, ExportModule, HostCode, HostFormat, LinkJob, LinkOptions, ObjectTarget,
    SymbolNaming, export, export_with, plan,
};
use crate::blob::{BLOB_70, LIBRARY};
use crate::import_tree::Algorithm;
use crate::payload::Payload;
use crate::release::{Layout, Release};
use crate::rule::Kind;
use crate::wire::Writer;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::io;
use std::path::Path;

/// A function that runs a compiler instead of the system's.
pub type LinkHook<'h> = &'h dyn Fn(&LinkJob<'_>) -> io::Result<()>;

/// Exports the modules that `job` describes, like [`export`]. Calls `compile` instead of the system's compiler if it is given.
///
/// | member | form | |
/// |---|---|---|
/// | `output` | text | the file to write; its extension is its form: `.so`, `.o`, `.tar` or `.c` |
/// | `release` | text | release whose loader must find the blob: `0.27` |
/// | `modules` | list | the first is the root |
/// | `modules[].kind` | text | `_lib` for host code |
/// | `modules[].imports` | list of positions | empty if absent |
/// | `modules[].format`, `modules[].code` | texts | format and text of host code: `c`, `cc`, `cpp`, `cu`, `ll`; or a `file` with one of these extensions, or with `o`, `a`, `bc` |
/// | `modules[].payload` | base64 | payload of all other kinds, as it is stored; or `decoded`, its JSON form |
/// | `order` | text | `0.7`, `0.8` or `topological`; `0.8` if absent |
/// | `system_lib` | text or null | prefix of a system library, which may be empty; if absent, the library is not a system library |
/// | `triple`, `compiler`, `llc`, `workspace` | texts | as in [`LinkOptions`] |
/// | `options`, `inputs` | lists of texts | as in [`LinkOptions`] |
///
/// # Errors
///
/// Fails for a member that is missing, unknown or of a wrong type (error kind: invalid input). Also fails like [`plan`] and [`export`].
pub fn export_job(job: &Value, compile: Option<LinkHook<'_>>) -> io::Result<()> {
    let job = Members::of(job, "the job", &MEMBERS)?;
    let output = job.text("output")?.ok_or_else(|| job.missing("output"))?;
    let release = job.text("release")?.ok_or_else(|| job.missing("release"))?;
    let release: Release = release.parse().map_err(invalid)?;
    let order = job
        .text("order")?
        .map(str::parse)
        .transpose()
        .map_err(invalid)?;
    let order: Algorithm = order.unwrap_or_default();
    let prefix = job.text("system_lib")?;
    let naming =
        SymbolNaming::of(release, prefix.is_some(), prefix.unwrap_or_default()).map_err(invalid)?;
    let triple = job.text("triple")?;
    let machine = triple
        .map(ObjectTarget::from_triple)
        .transpose()
        .map_err(invalid)?;
    let with = LinkOptions {
        inputs: job.texts("inputs")?.into_iter().map(Into::into).collect(),
        options: job.texts("options")?.into_iter().map(Into::into).collect(),
        compiler: job.text("compiler")?.map(Into::into),
        triple: triple.map(str::to_owned),
        llc: job.text("llc")?.map(Into::into),
        workspace: job.text("workspace")?.map(Into::into),
    };
    let modules = job.list("modules")?;
    let modules: io::Result<Vec<ExportModule>> = modules
        .iter()
        .map(|form| module(form, Layout::of(release)))
        .collect();
    let plan = plan(
        &modules?,
        &naming,
        order,
        machine.or_else(ObjectTarget::host),
    )
    .map_err(invalid)?;
    match compile {
        Some(compile) => export_with(&plan, Path::new(output), &with, compile),
        None => export(&plan, Path::new(output), &with),
    }
}

/// The names of a job's members.
const MEMBERS: [&str; 11] = [
    "output",
    "release",
    "modules",
    "order",
    "system_lib",
    "triple",
    "compiler",
    "llc",
    "workspace",
    "options",
    "inputs",
];

/// Reads a module of the job, with its payload in the form of `layout`.
fn module(form: &Value, layout: Layout) -> io::Result<ExportModule> {
    let known = [
        "kind", "imports", "format", "code", "file", "payload", "decoded",
    ];
    let form = Members::of(form, "a module", &known)?;
    let kind = form.text("kind")?.ok_or_else(|| form.missing("kind"))?;
    let imports = form.list("imports")?.iter().map(|import| {
        let position = import
            .as_u64()
            .and_then(|position| usize::try_from(position).ok());
        position.ok_or_else(|| invalid(format!("{import} is not a position of a module")))
    });
    let imports = imports.collect::<io::Result<Vec<usize>>>()?;
    // BLOB-70: the code of a host module is a separate file; all other modules are stored.
    let content = if kind == LIBRARY {
        ExportContent::Host(host_code(&form)?)
    } else {
        ExportContent::Stored {
            kind: kind.to_owned(),
            payload: payload(&form, kind, layout)?,
        }
    };
    Ok(ExportModule { content, imports })
}

fn host_code(form: &Members<'_>) -> io::Result<HostCode> {
    let unknown = |extension: &str| {
        invalid(BLOB_70.rejected(
            Kind::Type,
            format!("`{extension}` is not a format of host code"),
        ))
    };
    if let Some(file) = form.text("file")? {
        let extension = Path::new(file)
            .extension()
            .unwrap_or_default()
            .to_string_lossy();
        let format = HostFormat::of_extension(&extension).ok_or_else(|| unknown(&extension))?;
        let code = std::fs::read(file)?;
        return Ok(HostCode { format, code });
    }
    let format = form.text("format")?.ok_or_else(|| form.missing("format"))?;
    let code = form.text("code")?.ok_or_else(|| form.missing("code"))?;
    Ok(HostCode {
        format: HostFormat::of_extension(format).ok_or_else(|| unknown(format))?,
        code: code.as_bytes().to_vec(),
    })
}

fn payload(form: &Members<'_>, kind: &str, layout: Layout) -> io::Result<Vec<u8>> {
    if let Some(text) = form.text("payload")? {
        return BASE64_STANDARD.decode(text).map_err(invalid);
    }
    let mut decoded = form
        .get("decoded")
        .cloned()
        .ok_or_else(|| form.missing("payload"))?;
    if let Some(object) = decoded.as_object_mut() {
        // The module states its kind already, so `decoded` need not repeat it.
        object.entry("kind").or_insert_with(|| kind.into());
    }
    let mut out = Writer::new();
    let payload = Payload::from_json(&decoded).map_err(invalid)?;
    payload.write(layout, &mut out).map_err(invalid)?;
    Ok(out.into_bytes())
}

/// A JSON object with a fixed set of members.
struct Members<'v> {
    object: &'v serde_json::Map<String, Value>,
    what: &'static str,
}

impl<'v> Members<'v> {
    fn of(value: &'v Value, what: &'static str, known: &[&str]) -> io::Result<Members<'v>> {
        let object = value
            .as_object()
            .ok_or_else(|| invalid(format!("{what} is not an object")))?;
        // Otherwise a misspelt `imports` would give a module without imports.
        match object.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(invalid(format!(
                "unknown member `{name}` in {what}: expected {}",
                known.join(", ")
            ))),
            None => Ok(Members { object, what }),
        }
    }

    /// Returns a member that exists and is not null.
    fn get(&self, name: &str) -> Option<&'v Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> io::Result<Option<&'v str>> {
        let value = self.get(name);
        let text = value.map(|value| value.as_str().ok_or_else(|| self.wrong(name, "a text")));
        text.transpose()
    }

    fn list(&self, name: &str) -> io::Result<&'v [Value]> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(name, "a list")),
        }
    }

    fn texts(&self, name: &str) -> io::Result<Vec<&'v str>> {
        let text = |item: &'v Value| {
            item.as_str()
                .ok_or_else(|| self.wrong(name, "a list of texts"))
        };
        self.list(name)?.iter().map(text).collect()
    }

    fn missing(&self, name: &str) -> io::Error {
        invalid(format!("{} has no `{name}`", self.what))
    }

    fn wrong(&self, name: &str, what: &str) -> io::Error {
        invalid(format!("`{name}` of {} is not {what}", self.what))
    }
}

/// Creates an error for invalid input. A broken rule stays the source of the error, so that the caller can tell which rule it is.
fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
