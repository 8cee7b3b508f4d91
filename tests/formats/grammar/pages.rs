//! The pages of `spec/bytes/`: one golden for each layout, with the field that the productions give to every byte.

use super::goldens::{Format, Subject};
use super::read::{Grammar, Leaf, Reading, Value};
use super::text::Production;
use super::{of_layout, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tvmspec::release::Layout;

/// The number of fields of an example above which another golden of the same layout is preferred.
const MANY: usize = 90;
/// The bytes in a line, and the number of lines to show of a field: the first ones, and the last.
const WIDTH: usize = 8;
const LINES: usize = 3;

/// Types of `wire` that have an example.
const WIRE: [&str; 12] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "i32",
    "i64",
    "f64",
    "bool",
    "string",
    "bytes",
    "vector<u32>",
    "map<string,vector<string>>",
];

/// One golden of a layout.
struct Example<'s> {
    subject: &'s Subject,
    reading: Reading<'s>,
    is_odd: bool,
    /// The kinds whose payloads have these fields.
    kinds: Vec<&'s str>,
}

/// The subject of an example: its page, its position there, its title.
type Key = (&'static str, usize, String);

/// Returns the text of each page by its name.
pub(crate) fn pages<'s>(
    grammar: &'s Grammar,
    subjects: &'s [Subject],
) -> BTreeMap<&'static str, String> {
    let mut best: BTreeMap<Key, Example<'s>> = BTreeMap::new();
    for subject in subjects {
        let ours = subject.read();
        let Ok(reading) = read(grammar, subject) else {
            continue;
        };
        if ours.broken.is_some() || reading.leaves.is_empty() {
            continue;
        }
        let Some((key, kinds)) = key(grammar, subject, &reading) else {
            continue;
        };
        let example = Example {
            subject,
            reading,
            is_odd: !ours.findings.is_empty(),
            kinds,
        };
        if best
            .get(&key)
            .is_none_or(|known| example.rank() < known.rank())
        {
            best.insert(key, example);
        }
    }
    let mut pages = BTreeMap::new();
    for ((page, _, title), example) in best {
        let text = pages.entry(page).or_insert_with(|| head(page));
        write!(text, "\n## {title}\n\n").expect("strings grow");
        text.push_str(&example.text(grammar));
    }
    pages
}

impl<'s> Example<'s> {
    /// Ranks examples; the least is the best. It has no oddities, is not too long, was written by a release, is of the first kind, and
    /// is a minimal case. Then few counts are zero, and it is short.
    fn rank(&self) -> (bool, bool, bool, bool, bool, usize, usize) {
        let leaves = &self.reading.leaves;
        let empty = |leaf: &&Leaf| matches!(leaf.value, Value::Count(0, _));
        let is_first = match &self.subject.format {
            Format::Payload(kind, _) => self.kinds.first().is_none_or(|first| first == kind),
            _ => true,
        };
        (
            self.is_odd,
            leaves.len() > MANY,
            self.subject.release.is_none(),
            !is_first,
            !self.subject.name.contains("minimal"),
            leaves.iter().filter(empty).count(),
            self.subject.bytes.len(),
        )
    }

    fn text(&self, grammar: &'s Grammar) -> String {
        let mut text = self.productions(grammar);
        let name = self.subject.name.replacen("case ", "case/", 1);
        let (file, inside) = name.split_once(' ').unwrap_or((&name, ""));
        match file.strip_prefix("case/") {
            Some(case) => write!(text, "The bytes of case `{case}`"),
            None => write!(text, "`{file}`"),
        }
        .expect("strings grow");
        if !inside.is_empty() {
            write!(text, ", `{inside}`").expect("strings grow");
        }
        match &self.subject.release {
            Some(release) => write!(text, ", written by {release}").expect("strings grow"),
            None => text.push_str(", assembled by hand"),
        }
        text.push_str(":\n\n```text\n");
        let leaves = &self.reading.leaves;
        let width = leaves.iter().map(|leaf| leaf.path.len()).max().unwrap_or(0);
        for leaf in leaves {
            lines(&mut text, leaf, &self.subject.bytes, width);
        }
        text.push_str("```\n");
        text
    }

    /// Returns the productions that read it, and for a kind also those with the same fields.
    fn productions(&self, grammar: &'s Grammar) -> String {
        let mut shown: Vec<&'s Production> = Vec::new();
        let mut show = |one: &'s Production| {
            if !shown.iter().any(|known| std::ptr::eq(*known, one)) {
                shown.push(one);
            }
        };
        for used in &self.reading.used {
            if used.is_kind && matches!(self.subject.format, Format::Payload(..)) {
                alike(grammar, used).for_each(&mut show)
            } else {
                show(used)
            }
        }
        let lines: Vec<&str> = shown.iter().map(|one| one.text.as_str()).collect();
        if lines.is_empty() {
            String::new()
        } else {
            format!("```grammar\n{}\n```\n\n", lines.join("\n"))
        }
    }
}

/// Returns the forms of kinds that have the same fields as `form`.
fn alike<'g>(grammar: &'g Grammar, form: &Production) -> impl Iterator<Item = &'g Production> {
    let body = form.body().to_owned();
    let all = grammar.productions.iter();
    all.filter(move |one| one.is_kind && one.body() == body)
}

fn lines(text: &mut String, leaf: &Leaf, bytes: &[u8], width: usize) {
    let bytes = &bytes[leaf.bytes.clone()];
    let (sign, shown) = shown(&leaf.value, bytes);
    let all: Vec<&[u8]> = bytes.chunks(WIDTH).collect();
    let left_out = if all.len() > LINES + 1 {
        LINES - 1..all.len() - 1
    } else {
        0..0
    };
    for (index, line) in all.iter().enumerate() {
        if left_out.contains(&index) {
            if index == left_out.start {
                let more = left_out.len() * WIDTH;
                writeln!(text, "  ..  {more} more bytes").expect("strings grow");
            }
            continue;
        }
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let (offset, hex) = (leaf.bytes.start + index * WIDTH, hex.join(" "));
        let line = match index {
            0 => format!(
                "{offset:04x}  {hex:<23}   {:<width$} {sign} {shown}",
                leaf.path
            ),
            _ => format!("{offset:04x}  {hex}"),
        };
        writeln!(text, "{}", line.trim_end()).expect("strings grow");
    }
}

fn shown(value: &Value, bytes: &[u8]) -> (char, String) {
    const LONGEST: usize = 40;
    match value {
        Value::Number(number) if *number > 0xffff_ffff => ('=', format!("{number:#x}")),
        Value::Number(number) => ('=', number.to_string()),
        Value::Float(float) => ('=', float.to_string()),
        Value::Count(count, unit) => (':', format!("{count} {unit}")),
        Value::Run => {
            let cut = &bytes[..bytes.len().min(LONGEST)];
            let more = if cut.len() < bytes.len() { ".." } else { "" };
            ('=', format!("\"{}\"{more}", cut.escape_ascii()))
        }
    }
}

/// Returns the grammar element that a golden is an example of, and the kinds that it stands for.
fn key<'g>(
    grammar: &'g Grammar,
    subject: &Subject,
    reading: &Reading<'g>,
) -> Option<(Key, Vec<&'g str>)> {
    let row = reading.used.first();
    let releases = || row.map(|row| span(row.releases)).unwrap_or_default();
    let key = match &subject.format {
        Format::Wire(name) => {
            let order = WIRE.iter().position(|known| known == name)?;
            ("wire", order, format!("`{name}`"))
        }
        Format::Dtype => ("tensor", 0, "A dtype".to_owned()),
        Format::Device => ("tensor", 1, "A device".to_owned()),
        Format::Tensor(_) => {
            let order = 30 - usize::from(row?.releases.0);
            (
                "tensor",
                order,
                format!("A tensor record of {}", releases()),
            )
        }
        Format::Params(_) => {
            let order = 60 - usize::from(row?.releases.0);
            (
                "tensor",
                order,
                format!("A parameter file of {}", releases()),
            )
        }
        Format::ImportTree => ("import_tree", 0, "An import tree".to_owned()),
        Format::Blob(layout) => {
            // Only a library with a device module.
            let mut paths = reading.leaves.iter().map(|leaf| &leaf.path);
            paths.find(|path| path.ends_with(".functions"))?;
            let order = usize::from(layout.releases().since.minor());
            ("blob", order, format!("Layout {layout}"))
        }
        Format::Payload(kind, layout) => return payload(grammar, kind, *layout, reading),
        Format::RelayCode => return None,
    };
    Some((key, Vec::new()))
}

fn span((since, until): (u8, u8)) -> String {
    match until {
        27 => format!("0.{since} and later"),
        until => format!("0.{since} to 0.{until}"),
    }
}

fn payload<'g>(
    grammar: &'g Grammar,
    kind: &str,
    layout: Layout,
    reading: &Reading<'g>,
) -> Option<(Key, Vec<&'g str>)> {
    let form = reading.used.first().filter(|form| form.is_kind)?;
    let has = |path: &str| reading.leaves.iter().any(|leaf| leaf.path == path);
    let (order, detail) = match kind {
        "VMExecutable" => {
            let mut used = reading.used.iter();
            let row = used.find(|one| one.name == "relay_parts")?.releases.0;
            let scoped = reading
                .used
                .iter()
                .any(|one| one.name == "virtual_device" && one.releases.0 == 14);
            let row = if scoped { 14 } else { row };
            (usize::from(row), format!(", code of 0.{row}"))
        }
        "relax.Executable" | "relax.VMExecutable" => {
            let scopes = if has("memory_scopes") {
                ", with memory scopes"
            } else {
                ""
            };
            let order = usize::from(of_layout(layout).0) + usize::from(has("memory_scopes"));
            (order, format!(", layout {layout}{scopes}"))
        }
        _ if has("functions[0].arg_extra_tags") => (21, ", layouts 0.21 and 0.22".to_owned()),
        _ if has("functions[0].arg_types") => (2, ", layouts 0.2 and 0.7".to_owned()),
        _ if form.body().contains("function>") && kind != "stackvm" => return None,
        _ => (0, String::new()),
    };
    let kinds: Vec<&str> = alike(grammar, form).map(|one| one.name.as_str()).collect();
    let place = grammar
        .productions
        .iter()
        .position(|one| one.is_kind && one.body() == form.body())?;
    let mut names: Vec<String> = alike(grammar, form)
        .map(|one| format!("`{}` 0.{}", one.name, one.releases.0))
        .collect();
    if names.len() > 3 {
        let others = names.len() - 1;
        names.truncate(1);
        names.push(format!("{others} others alike"));
    }
    let title = format!("{}{detail}", names.join(", "));
    Some((("payload", place * 100 + order, title), kinds))
}

fn head(page: &str) -> String {
    format!(
        "# {page}: examples\n\n\
         One golden of each layout, every byte with its field, as the productions of chapter\n\
         [{page}](../{page}.md) read it: offset, bytes, field, value. `:` is a count or a length. Written by\n\
         `BLESS=1 cargo test --test formats grammar`.\n"
    )
}
