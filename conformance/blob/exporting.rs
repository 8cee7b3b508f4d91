//! `blob.export`: the files of an export.

use super::packing::{naming, text};
use crate::blob::container;
use crate::blob::pack::{self, ExportContent, ExportModule, HostCode, HostFormat, LinkJob};
use crate::conformance::op::{Answer, OpError, base64, data};
use crate::import_tree::Algorithm;
use crate::rule::Findings;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io;

/// Runs `blob.export`, which returns the files of an export. The packed file is shown as the library binary in it.
pub(super) fn export(args: &Value) -> Result<Answer, OpError> {
    if args.get("target").is_some() {
        let files = exported(args).map_err(|error| {
            let broken = error.get_ref().and_then(|error| error.downcast_ref());
            broken.cloned().map_or_else(
                || OpError::Unsupported(error.to_string()),
                OpError::Rejected,
            )
        })?;
        let files: Result<Vec<Value>, OpError> = files.iter().map(shown).collect();
        return Ok(Answer::new(files?.into(), Findings::default()));
    }
    let modules = args.get("value").and_then(Value::as_array);
    let modules: Result<Vec<ExportModule>, OpError> =
        modules.into_iter().flatten().map(export_module).collect();
    let algorithm = match text(args, "order") {
        "" => Algorithm::default(),
        name => name.parse()?,
    };
    let plan = pack::plan(&modules?, &naming(args)?, algorithm, None)?;
    if args.get("text") == Some(&Value::Bool(true)) {
        let text = plan.c_source()?;
        return Ok(Answer::new(base64(&text), Findings::default()));
    }
    let files: Result<Vec<Value>, OpError> = plan.files.iter().map(shown).collect();
    Ok(Answer::new(files?.into(), Findings::default()))
}

/// Shows a file of an export.
fn shown((name, content): &(String, Vec<u8>)) -> Result<Value, OpError> {
    // BLOB-71: the packed file is `devc.o`, `devc.c` or `devc.cc`, possibly after a prefix. Objects and texts depend on the writer.
    if name.contains("devc.") {
        let file = container::open(content)?;
        let blob = file.blobs().next().map(|(_, found)| base64(&found.bytes));
        return Ok(json!({"name": name, "blob": blob}));
    }
    Ok(json!({"name": name, "data": base64(content)}))
}

/// Exports as callers of the C interface do: the modules are a JSON object, and the compiler is a function of the caller. Returns the
/// files that the compiler gets.
fn exported(args: &Value) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("library.so");
    let modules = args.get("value").and_then(Value::as_array);
    let mut forms = Vec::new();
    for (index, module) in modules.into_iter().flatten().enumerate() {
        let unread = |_| io::Error::other(format!("module {index} has no data"));
        let mut form = json!({"imports": module.get("imports")});
        match module.get("code") {
            Some(code) => {
                form["kind"] = "_lib".into();
                let (format, content) = (text(code, "format"), data(code).map_err(unread)?);
                match String::from_utf8(content) {
                    Ok(content) => {
                        form["format"] = format.into();
                        form["code"] = content.into();
                    }
                    Err(error) => {
                        let path = folder.path().join(format!("code{index}.{format}"));
                        std::fs::write(&path, error.into_bytes())?;
                        form["file"] = path.to_string_lossy().into();
                    }
                }
            }
            None => {
                form["kind"] = text(module, "kind").into();
                form["payload"] = base64(&data(module).map_err(unread)?);
            }
        }
        forms.push(form);
    }
    let is_system = args.get("system_lib") == Some(&Value::Bool(true));
    let job = json!({
        "output": output.to_string_lossy(),
        "release": text(args, "release"),
        "modules": forms,
        "order": args.get("order"),
        "system_lib": is_system.then(|| text(args, "prefix")),
        "triple": text(args, "target"),
    });
    let files = RefCell::new(Vec::new());
    let compile = |job: &LinkJob<'_>| {
        for path in job.inputs {
            let name = path.file_name().unwrap_or_default();
            let content = std::fs::read(path)?;
            // The last input contains the library binary, if there is one, and stands for the linked library.
            std::fs::write(job.output, &content)?;
            let name = name.to_string_lossy().into_owned();
            files.borrow_mut().push((name, content));
        }
        Ok(())
    };
    pack::export_job(&job, Some(&compile))?;
    // The link wrote the library in its place.
    std::fs::metadata(&output)?;
    Ok(files.into_inner())
}

/// Reads a module of a case: host code in one of its formats, or a kind with its payload, and the positions of its imports.
fn export_module(value: &Value) -> Result<ExportModule, OpError> {
    let wrong = |what: &str| OpError::Unsupported(format!("a module has no {what}"));
    let content = match value.get("code") {
        Some(code) => ExportContent::Host(HostCode {
            format: HostFormat::of_extension(text(code, "format"))
                .ok_or_else(|| wrong("format of host code"))?,
            code: data(code)?,
        }),
        None => ExportContent::Stored {
            kind: text(value, "kind").to_owned(),
            payload: data(value)?,
        },
    };
    let imports = value.get("imports").and_then(Value::as_array);
    let position = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let imports: Option<Vec<usize>> = imports.into_iter().flatten().map(position).collect();
    Ok(ExportModule {
        content,
        imports: imports.ok_or_else(|| wrong("positions under `imports`"))?,
    })
}
