//! The report for people at a terminal. It is made of the JSON report alone: a member of it is a line or a section
//! here.

use super::models::{graph, objects, params, vm};
use super::tree;
use super::words::{count, list, names, number, plain, releases_of, rows, text};
use crate::cli::output::line_of;
use crate::cli::table::size;
use serde_json::Value;
use std::fmt::Write as _;
use tvmspec::blob::container::FileForm;

/// The report as text, in sections with an empty line between them. The names that a file holds stay on their lines.
pub(super) fn render(report: &Value) -> String {
    // First of all: below, texts are set between words of ours, and a line end in a name could pass for one.
    let report = &of_lines(report);
    let mut out = format!(
        "{}: {}, {}\n",
        text(&report["file"]),
        form_name(text(&report["form"])),
        size(number(&report["bytes"])),
    );
    names(&mut out, "links", &report["links"]);
    // A runtime has exports by the hundred, of which none is a function of a model.
    if let Some(functions) = report["runtime"].as_u64() {
        let _ = writeln!(
            out,
            "  holds no TVM library: it is a TVM runtime, with {functions} functions of its C interface"
        );
        return out;
    }
    let parts = list(&report["parts"]);
    let none = parts.iter().all(|part| list(&part["libraries"]).is_empty());
    for part in parts {
        part_lines(&mut out, part, none);
    }
    params(&mut out, "parameters", &report["params"]);
    params(&mut out, "tensor", &report["tensor"]);
    if report["module"].is_object() {
        details(&mut out, &report["module"]);
    }
    graph(&mut out, &report["graph"]);
    objects(&mut out, &report["objects"]);
    findings(&mut out, report);
    if let Some(count) = report["left_out"].as_u64() {
        let _ = writeln!(
            out,
            "\n{count} entries of its lists are left out, here and in --json: a report takes 16 MiB, and 8 bytes for each of the file"
        );
    }
    out
}

/// A copy of `value` with every text and every member name on one line, control characters escaped.
fn of_lines(value: &Value) -> Value {
    match value {
        Value::String(text) => line_of(text).into(),
        Value::Array(values) => values.iter().map(of_lines).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (line_of(name), of_lines(value)))
                .collect()
        }
        other => other.clone(),
    }
}

/// Appends what is known of one part of the file: itself, or a member of an archive. `alone`: no part of the file has
/// a library binary.
fn part_lines(out: &mut String, part: &Value, alone: bool) {
    let member = text(&part["member"]);
    if !member.is_empty() {
        let _ = writeln!(out, "\nmember {member}: {}", form_name(text(&part["form"])));
    }
    if part["machine"].is_object() {
        let machine = &part["machine"];
        // Little endian is what nearly every machine is, and is not named.
        let order = match machine["little_endian"].as_bool() {
            Some(false) => ", big endian",
            _ => "",
        };
        let _ = writeln!(
            out,
            "  machine    {}, {} bit{order}",
            text(&machine["architecture"]),
            machine["bits"]
        );
    }
    // Code that TVM compiled has one or the other; where neither is there, a missing library binary means nothing.
    let symbols = ["functions", "slots"]
        .iter()
        .any(|name| !list(&part[*name]).is_empty());
    if text(&part["form"]) == "raw-blob" {
        // A raw blob has no symbols, and the section of its library binary names the releases.
    } else if let Some(releases) = part["releases"].as_str() {
        let _ = writeln!(out, "  era        tvm {}", releases_of(releases));
    } else if part["machine"].is_object() {
        // No range of releases: the symbols of TVM are what an era is known by.
        let none = "no symbol in it is one of TVM";
        if alone {
            // Its functions may be those of any library.
            let _ = writeln!(out, "  holds no TVM library: {none}");
            return;
        }
        let _ = writeln!(out, "  era        not known: {none}");
    }
    if let Some(prefix) = part["prefix"].as_str() {
        let _ = writeln!(out, "  prefix     {prefix} (system library)");
    }
    names(out, "functions", &part["functions"]);
    if let Some(entry) = part["entry"].as_str() {
        let _ = writeln!(out, "  entry      {entry}");
    }
    if let Some(context) = part["context"].as_str() {
        let _ = writeln!(out, "  context    {context}");
    }
    names(out, "slots", &part["slots"]);
    names(out, "needs", &part["needs"]);
    for library in list(&part["libraries"]) {
        library_lines(out, library);
    }
    if list(&part["libraries"]).is_empty() && symbols && alone {
        let _ = writeln!(out, "  no library binary: it imports no module");
    }
}

/// A library binary: its modules in a table, the import tree, then what each module stores.
fn library_lines(out: &mut String, library: &Value) {
    let _ = write!(
        out,
        "\nlibrary binary, layout {} (tvm {}), {}",
        text(&library["layout"]),
        releases_of(text(&library["releases"])),
        size(number(&library["bytes"])),
    );
    if let Some(symbol) = library["symbol"].as_str() {
        let _ = write!(out, ", symbol {symbol}");
        if let Some(offset) = library["offset"].as_u64() {
            let _ = write!(out, " at {offset:#x}");
        }
    }
    out.push('\n');
    let modules = list(&library["modules"]);
    // Where reading stopped at the first module there is none either, and nothing is known of the others.
    if modules.is_empty() && library["violation"].is_null() {
        let _ = writeln!(out, "  no modules: the host library stands alone");
    }
    if !modules.is_empty() {
        let header = ["#", "kind", "format", "payload", "at", "functions"];
        out.push_str(&rows(&header, modules.iter().map(module_row)));
    }
    if !library["import_tree"].is_null() && !modules.is_empty() {
        out.push_str("\nimport tree\n");
        // The report has them by module; a module behind a broken rule is not in it, and has none.
        let imports = |index: usize| -> Vec<usize> {
            let imports = modules.get(index).map(|module| list(&module["imports"]));
            imports
                .unwrap_or_default()
                .iter()
                .filter_map(|index| usize::try_from(index.as_u64()?).ok())
                .collect()
        };
        let label = |index: usize| {
            let kind = modules
                .get(index)
                // BLOB-10: layout 0.22 has its tree in front, which counts modules behind a broken rule, too.
                .map_or("(not read)", |module| text(&module["kind"]));
            format!("{index} {kind}")
        };
        out.push_str(&tree::draw(0, &imports, &label));
    // BLOB-14: layout 0.2 has no tree. A lone `_lib` needs none.
    } else if modules.iter().any(|module| text(&module["kind"]) != "_lib") {
        let _ = writeln!(
            out,
            "\nno import tree: a loader puts the host library on top, importing every module in order"
        );
    }
    for module in modules {
        details(out, module);
    }
    findings(out, library);
}

/// The row of a module in the table. Sizes and offsets are empty for `_lib`, which has no payload.
fn module_row(module: &Value) -> Vec<String> {
    let kind = text(&module["kind"]);
    let functions: Vec<&str> = list(&module["functions"])
        .iter()
        .map(|function| text(&function["name"]))
        .collect();
    // A cell has the first name, to keep rows on one line.
    let functions = match functions.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        // A module may have hundreds of kernels: all are listed below the table.
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    vec![
        module["index"].to_string(),
        kind.to_owned(),
        text(&module["format"]).to_owned(),
        module["bytes"].as_u64().map(size).unwrap_or_default(),
        module["offset"]
            .as_u64()
            .map(|offset| format!("{offset:#x}"))
            .unwrap_or_default(),
        if kind == "_lib" {
            "(the host code)".into()
        } else {
            functions
        },
    ]
}

/// What a module stores, below the table that lists it.
fn details(out: &mut String, module: &Value) {
    let title = match module["index"].as_u64() {
        Some(index) => format!("module {index} {}", text(&module["kind"])),
        None => format!("module {}", text(&module["kind"])),
    };
    let functions = list(&module["functions"]);
    if !functions.is_empty() {
        let _ = writeln!(
            out,
            "\n{title}: {}",
            count(&functions.len().into(), "function")
        );
        for function in functions {
            let types: Vec<String> = list(&function["arg_types"]).iter().map(plain).collect();
            let tags: Vec<&str> = list(&function["launch_param_tags"])
                .iter()
                .map(text)
                .collect();
            let launch = match tags.as_slice() {
                [] => String::new(),
                tags => format!("  launched by {}", tags.join(", ")),
            };
            let _ = writeln!(
                out,
                "  {}({}){launch}",
                text(&function["name"]),
                types.join(", ")
            );
        }
    }
    let titled = |out: &mut String, what: &str| {
        let _ = writeln!(out, "\n{title}: {what}");
    };
    if let Some(names) = module["symbols"].as_object() {
        titled(out, "constants of each function");
        for (function, variables) in names {
            let variables: Vec<&str> = list(variables).iter().map(text).collect();
            let variables = match variables.as_slice() {
                [] => "(none)".into(),
                some => some.join(", "),
            };
            let _ = writeln!(out, "  {function}: {variables}");
        }
    }
    if let Some(fields) = module["fields"].as_object() {
        titled(out, "fields");
        let width = fields.keys().map(String::len).max().unwrap_or(0);
        for (name, value) in fields {
            let shown = match value {
                // Bytes, whose content the report leaves out.
                Value::Object(_) => size(number(&value["bytes"])),
                Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
                other => plain(other),
            };
            let _ = writeln!(out, "  {name:<width$}  {shown}");
        }
    }
    if module["vm"].is_object() {
        vm(out, &title, &module["vm"]);
    }
    params(out, &format!("{title}: tensors"), &module["tensors"]);
    graph(out, &module["graph"]);
}

/// The first oddities; `tvmspec verify` has all, with their bytes.
fn findings(out: &mut String, value: &Value) {
    const MOST: usize = 20;
    let all = list(&value["findings"]);
    for finding in all.iter().take(MOST) {
        let _ = writeln!(
            out,
            "finding {}: {} (at byte {:#x})",
            text(&finding["rule"]),
            text(&finding["message"]),
            number(&finding["offset"])
        );
    }
    if all.len() > MOST {
        let _ = writeln!(out, "{} more findings (--json has all)", all.len() - MOST);
    }
}

/// What the form of a file is called in sentences; the name itself for a form that is not known.
fn form_name(name: &str) -> &str {
    let form = FileForm::ALL.into_iter().find(|form| form.name() == name);
    match form {
        Some(form) => form.title(),
        None => name,
    }
}
