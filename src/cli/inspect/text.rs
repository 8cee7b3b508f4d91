//! The report for people at a terminal. It is made only from the JSON report: each member becomes a line or a section.

use super::models::{cache, graph, objects, params, vm};
use super::tree;
use super::value_text::{
    count, format_cell, labelled, list, names, number, releases_of, rows, section, text,
};
use crate::cli::color::{HEAD, ODD, StyledWrite};
use crate::cli::output::escape_line;
use crate::cli::table::size;
use serde_json::Value;
use tvmspec::blob::container::FileForm;

/// Writes the report as text, in sections with an empty line between them. Names from the file never break a line.
pub(super) fn render(out: &mut dyn StyledWrite, report: &Value) {
    // Escaped first, because a line end in a name could imitate a line of the report.
    let report = &of_lines(report);
    let _ = out.styled(HEAD, text(&report["file"]));
    let _ = writeln!(
        out,
        ": {}, {}",
        form_name(text(&report["form"])),
        size(number(&report["bytes"])),
    );
    names(out, "links", &report["links"]);
    if let Some(releases) = report["tvm_ffi"].as_str() {
        let releases = match releases.split_once("..") {
            Some((since, "")) => format!("built on {since} or later"),
            Some((since, until)) => format!("built on {since} to {until}"),
            None => releases.to_owned(),
        };
        labelled(out, "tvm-ffi", releases);
    }
    let parts = list(&report["parts"]);
    // A runtime has hundreds of exports, none of which is a function of a model. Compiled code may be linked to a runtime.
    let compiled = parts.iter().any(|part| part["compiled"] == true);
    if let Some(functions) = report["runtime"].as_u64().filter(|_| !compiled) {
        let _ = writeln!(
            out,
            "  holds no TVM library: it is a TVM runtime, with {functions} functions of its C interface"
        );
        return;
    }
    let none = parts.iter().all(|part| list(&part["libraries"]).is_empty());
    for part in parts {
        part_lines(out, part, none);
    }
    cache(out, &report["cache"]);
    params(out, "parameters", &report["params"]);
    params(out, "tensor", &report["tensor"]);
    if report["module"].is_object() {
        details(out, &report["module"]);
    }
    graph(out, &report["graph"]);
    objects(out, &report["objects"]);
    findings(out, report);
    if let Some(count) = report["left_out"].as_u64() {
        let _ = writeln!(
            out,
            "\n{count} entries of its lists are left out, here and in --json: a report takes 16 MiB, and 8 bytes for each of the file"
        );
    }
}

/// Returns a copy of `value` with every text and every member name on one line, and control characters escaped.
fn of_lines(value: &Value) -> Value {
    match value {
        Value::String(text) => escape_line(text).into(),
        Value::Array(values) => values.iter().map(of_lines).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (escape_line(name), of_lines(value)))
                .collect()
        }
        other => other.clone(),
    }
}

/// Appends the description of one part of the file: itself, or a member of an archive. `alone` is whether no part of the file has a
/// library binary.
fn part_lines(out: &mut dyn StyledWrite, part: &Value, alone: bool) {
    let member = text(&part["member"]);
    if !member.is_empty() {
        let form = form_name(text(&part["form"]));
        section(out, &format!("member {member}"), form);
    }
    if part["machine"].is_object() {
        let machine = &part["machine"];
        // Nearly every machine is little-endian, so that only big-endian is mentioned.
        let order = match machine["little_endian"].as_bool() {
            Some(false) => ", big endian",
            _ => "",
        };
        let (architecture, bits) = (text(&machine["architecture"]), &machine["bits"]);
        labelled(
            out,
            "machine",
            format_args!("{architecture}, {bits} bit{order}"),
        );
    }
    // Code that TVM compiled has functions or slots. Without either, a missing library binary is no sign of anything.
    let symbols = ["functions", "slots"]
        .iter()
        .any(|name| !list(&part[*name]).is_empty());
    let runtime = number(&part["runtime"]);
    if runtime > 0 {
        let defines = count(&part["runtime"], "function");
        labelled(
            out,
            "defines",
            format_args!("{defines} of TVM's C interface"),
        );
    }
    if text(&part["form"]) == "raw-blob" {
        // A raw blob has no symbols, and the section of its library binary names the releases.
    } else if let Some(releases) = part["releases"].as_str() {
        labelled(out, "era", format_args!("tvm {}", releases_of(releases)));
    } else if part["machine"].is_object() && runtime == 0 {
        // Without a range of releases, no symbol of TVM shows an era.
        let none = "no symbol in it is one of TVM";
        if alone {
            // Its functions may be those of any library.
            let _ = writeln!(out, "  holds no TVM library: {none}");
            return;
        }
        labelled(out, "era", format_args!("not known: {none}"));
    }
    let libraries = list(&part["libraries"]).iter();
    let mut prefixes: Vec<&str> = libraries
        .map(|library| &library["prefix"])
        .chain([&part["prefix"]])
        .filter_map(Value::as_str)
        .collect();
    prefixes.dedup();
    if let [first, rest @ ..] = prefixes.as_slice() {
        let (names, what) = if rest.iter().any(|prefix| prefix != first) {
            prefixes.sort_unstable();
            prefixes.dedup();
            (prefixes.join(", "), "system libraries")
        } else {
            ((*first).to_owned(), "system library")
        };
        labelled(out, "prefix", format_args!("{names} ({what})"));
    }
    names(out, "functions", &part["functions"]);
    if let Some(entry) = part["entry"].as_str() {
        labelled(out, "entry", entry);
    }
    if let Some(context) = part["context"].as_str() {
        labelled(out, "context", context);
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

/// Writes a library binary: its modules as a table, the import tree, then the payload of each module.
fn library_lines(out: &mut dyn StyledWrite, library: &Value) {
    let mut head = format!(
        "library binary, layout {} (tvm {}), {}",
        text(&library["layout"]),
        releases_of(text(&library["releases"])),
        size(number(&library["bytes"])),
    );
    if let Some(symbol) = library["symbol"].as_str() {
        head += &format!(", symbol {symbol}");
        if let Some(offset) = library["offset"].as_u64() {
            head += &format!(" at {offset:#x}");
        }
    }
    let _ = out.write_char('\n');
    let _ = out.styled(HEAD, &head);
    let _ = out.write_char('\n');
    let modules = list(&library["modules"]);
    // With a violation, the list may be empty because reading stopped at the first module.
    if modules.is_empty() && library["violation"].is_null() {
        let _ = writeln!(out, "  no modules: the host library stands alone");
    }
    if !modules.is_empty() {
        let header = ["#", "kind", "format", "payload", "at", "functions"];
        rows(out, &header, modules.iter().map(module_row));
    }
    if !library["import_tree"].is_null() && !modules.is_empty() {
        let _ = out.write_char('\n');
        let _ = out.styled(HEAD, "import tree");
        let _ = out.write_char('\n');
        // The report lists imports by module. A module after a broken rule is not in the report, and has no imports here.
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
                // BLOB-10: layout 0.22 starts with its tree, which also counts modules after a broken rule.
                .map_or("(not read)", |module| text(&module["kind"]));
            format!("{index} {kind}")
        };
        let _ = out.write_str(&tree::draw(0, &imports, &label));
    // BLOB-14: layout 0.2 has no tree. A lone `_lib` needs none.
    } else if modules.iter().any(|module| text(&module["kind"]) != "_lib") {
        let about = "a loader puts the host library on top, importing every module in order";
        section(out, "no import tree", about);
    }
    for module in modules {
        details(out, module);
    }
    findings(out, library);
}

/// Formats the row of a module in the table. Sizes and offsets are empty for `_lib`, which has no payload.
fn module_row(module: &Value) -> Vec<String> {
    let kind = text(&module["kind"]);
    let functions: Vec<&str> = list(&module["functions"])
        .iter()
        .map(|function| text(&function["name"]))
        .collect();
    // A cell has only the first name, to keep rows on one line.
    let functions = match functions.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        // A module may have hundreds of kernels. All are listed below the table.
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

/// Formats an element type: its name, or its code, bits and lanes if it has no name.
fn dtype(value: &Value) -> String {
    match value.as_str() {
        Some(name) => name.to_owned(),
        None => value.to_string(),
    }
}

/// Writes the details of a module's payload, below the table of modules.
fn details(out: &mut dyn StyledWrite, module: &Value) {
    let title = match module["index"].as_u64() {
        Some(index) => format!("module {index} {}", text(&module["kind"])),
        None => format!("module {}", text(&module["kind"])),
    };
    let functions = list(&module["functions"]);
    if !functions.is_empty() {
        section(out, &title, count(&functions.len().into(), "function"));
        for function in functions {
            let types: Vec<String> = list(&function["arg_types"]).iter().map(dtype).collect();
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
    if let Some(needs) = module["needs"].as_object() {
        section(out, &title, "what its code needs");
        let width = needs.keys().map(String::len).max().unwrap_or(0);
        for (name, values) in needs {
            let values: Vec<&str> = list(values).iter().map(text).collect();
            let _ = writeln!(out, "  {name:<width$}  {}", values.join(", "));
        }
    }
    if let Some(names) = module["symbols"].as_object() {
        section(out, &title, "constants of each function");
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
        section(out, &title, "fields");
        let width = fields.keys().map(String::len).max().unwrap_or(0);
        for (name, value) in fields {
            let shown = match value {
                // Bytes, whose content is not in the report.
                Value::Object(_) => size(number(&value["bytes"])),
                Value::Array(list) => list.iter().map(format_cell).collect::<Vec<_>>().join(", "),
                other => format_cell(other),
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

/// Writes the first oddities. `tvmspec verify` shows all, with their bytes.
fn findings(out: &mut dyn StyledWrite, value: &Value) {
    const MOST: usize = 20;
    let all = list(&value["findings"]);
    for finding in all.iter().take(MOST) {
        let _ = out.styled(ODD, "finding");
        let _ = writeln!(
            out,
            ": {} (at byte {:#x}) [{}]",
            text(&finding["message"]),
            number(&finding["offset"]),
            text(&finding["rule"])
        );
    }
    if all.len() > MOST {
        let _ = writeln!(out, "{} more findings (--json has all)", all.len() - MOST);
    }
}

/// Returns the name of a file format for sentences. An unknown format keeps its short name.
fn form_name(name: &str) -> &str {
    let form = FileForm::ALL.into_iter().find(|form| form.name() == name);
    match form {
        Some(form) => form.title(),
        None => name,
    }
}
