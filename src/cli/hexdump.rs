//! Bytes next to their meaning: one row for every eight bytes of a field.
//!
//! ```text
//! 0000  34 00 00 00 00 00 00 00   nbytes = 52  WIRE-02
//! ```
//!
//! `dump` prints all fields in this form, `diagnostic` the few around a broken rule. Each field begins a new row, so that only its
//! bytes stand next to its name. If line length is limited, long values are cut and remarks continue on the next lines.

mod widths;

use super::color::StyledWrite;
use super::output::escape_line;
use super::table::lines_of;
use anstyle::Style;
use std::borrow::Cow;
use std::fmt;
use tvmspec::wire::Span;
use widths::Widths;

/// The number of rows above which the middle of a field is left out.
// Code and parameters are fields of megabytes, of which a reader needs only the position.
const LONGEST_FIELD: usize = 4;
/// The number of characters above which a value is cut.
const LONGEST_VALUE: usize = 32;
/// The number of characters of a value that are shown even on a narrow terminal.
const SHORTEST_VALUE: usize = 8;
/// The minimal number of characters per line into which remarks are broken.
const NARROWEST_MARK: usize = 20;
/// The width of eight bytes and the gap before the names: two digits each, a blank between them, and three blanks after them.
const BYTES: usize = 26;
/// The number of similar fields above which the middle of a run is left out.
const LONGEST_RUN: usize = 12;

/// A remark at an offset: a broken rule, a finding.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Offset into the dumped bytes.
    pub(crate) offset: u64,
    /// Style of `head`.
    pub(crate) style: Style,
    /// The sort of the remark: `broken:`, `finding:`.
    pub(crate) head: &'static str,
    /// The message and the rule: `row 1 ends at 1, before its start 2 [TREE-03]`.
    pub(crate) text: String,
}

/// The remarks of one row as text, and the start of the text that has a style.
#[derive(Default)]
struct Remark {
    style: Style,
    head: String,
    text: String,
}

impl Remark {
    /// Joins the remarks. Returns an empty text for an empty list.
    fn from_marks(marks: &[Mark]) -> Remark {
        let texts: Vec<String> = marks
            .iter()
            .map(|mark| format!("<- {} {}", mark.head, escape_line(&mark.text)))
            .collect();
        let first = marks.first();
        Remark {
            style: first.map_or(Style::new(), |mark| mark.style),
            head: first.map_or(String::new(), |mark| format!("<- {}", mark.head)),
            text: texts.join("; "),
        }
    }
}

/// The input and the options of a hexdump.
pub(crate) struct Hexdump<'a> {
    /// All bytes; the first is at offset 0.
    pub(crate) bytes: &'a [u8],
    /// Every field, by offset.
    pub(crate) spans: &'a [Span],
    /// The remarks, ascending by offset.
    pub(crate) marks: &'a [Mark],
    /// `true` to leave nothing out.
    pub(crate) whole: bool,
    /// The offset at which the listed fields begin.
    pub(crate) from: u64,
    /// The offset at which they end, if memory did not suffice to record all fields.
    pub(crate) to: Option<u64>,
    /// The maximal number of characters in a line; `None` for no limit.
    pub(crate) columns: Option<usize>,
}

/// One field, or bytes that no field covers, from offset `start` to before offset `end`.
struct HexdumpField<'a> {
    // `usize`, unlike the offsets of a `Span`, because both lie inside `bytes`.
    start: usize,
    end: usize,
    /// `unread` if no field covers the bytes.
    name: &'a str,
    /// The value for people. A leading colon marks a length or a count.
    value: &'a str,
    /// The id of the rule that defines the field.
    rule: &'a str,
}

impl Hexdump<'_> {
    /// Writes the dump, a line for each row. Bytes that no field covers are rows named `unread`.
    ///
    /// A rule is named only at the first of its fields. Fields with a mark are printed even in the middle of a run that is left out.
    /// Marks at the end of the bytes, where a field is missing, have a separate row.
    pub(crate) fn render(&self, out: &mut dyn StyledWrite) -> fmt::Result {
        let length = self.bytes.len() as u64;
        let fields = self.fields(self.spans, self.from, self.to.unwrap_or(length));
        // Fields at fault must not be left out.
        let keep: Vec<bool> = fields
            .iter()
            .map(|field| !self.marks_in(field).is_empty())
            .collect();
        let widths = self.widths(&fields);
        let mut rule = "";
        let mut index = 0;
        while index < fields.len() {
            let run = if self.whole {
                1
            } else {
                self.run(&fields, index)
            };
            if run > LONGEST_RUN {
                // More fields of the start than of the end, where two rows show the last index.
                let (head, tail) = (LONGEST_RUN / 2, 2);
                for (position, field) in fields[index..index + run].iter().enumerate() {
                    if position < head || position >= run - tail || keep[index + position] {
                        self.row(out, field, &widths, &mut rule)?;
                    } else if position == head {
                        let left = run - head - tail;
                        writeln!(out, "{:>w$}  {left} more", "..", w = widths.offset)?;
                    }
                }
                index += run;
                continue;
            }
            self.row(out, &fields[index], &widths, &mut rule)?;
            index += 1;
        }
        for mark in self.marks {
            // WIRE-01: a field that is missing completely begins at the end of the bytes.
            if mark.offset >= length {
                let mut line = format!("{:0w$x}  the end", self.bytes.len(), w = widths.offset);
                let remark = Remark::from_marks(std::slice::from_ref(mark));
                self.put_remark(out, &mut line, widths.names(), &remark, &widths)?;
            }
        }
        if let Some(to) = self.to {
            let left = length.saturating_sub(to);
            writeln!(
                out,
                "{:>w$}  {left} more bytes, whose fields take more memory than the file justifies: `--from {to:#x}` goes on",
                "..",
                w = widths.offset
            )?;
        }
        Ok(())
    }

    /// Returns the rows around `offset`: `before` fields and the one that contains it, with `<-`.
    pub(crate) fn rows_around(&self, offset: u64, before: usize) -> String {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        // Processes only the fields nearby, because there may be as many findings as fields.
        let behind = self.spans.partition_point(|span| span.start <= offset);
        let near = self.spans.get(behind.saturating_sub(before + 1)..behind);
        let near = near.unwrap_or_default();
        // Up to the next field, so that bytes between fields are shown too.
        let next = self.spans.get(behind).map(|span| span.start);
        let first = near.first().map_or(0, |span| span.start);
        let fields = self.fields(near, first, next.unwrap_or(self.bytes.len() as u64));
        let here = fields.iter().position(|field| covers(field, offset));
        let to = here.map_or(fields.len(), |here| here + 1);
        let shown = fields.get(to.saturating_sub(before + 1)..to);
        let shown = shown.unwrap_or_default();
        // A diagnostic has already named its rule, so that the column would repeat it.
        let widths = Widths {
            rule: 0,
            ..self.widths(shown)
        };
        let mut out = String::new();
        for field in shown {
            // The other rows are shown for comparison, and have no mark.
            let mut remark = Remark::default();
            if field.start <= at && at < field.end {
                remark.text.push_str("<-");
            }
            let _ = self.lines(&mut out, field, &widths, "", &remark);
        }
        if at >= self.bytes.len() {
            let (end, w) = (self.bytes.len(), widths.offset);
            out.push_str(&format!("{end:0w$x}  the end  <-\n"));
        }
        out
    }

    /// Returns the fields of `spans` and rows for the bytes between them, from offset `from` to offset `to`.
    fn fields<'s>(&self, spans: &'s [Span], from: u64, to: u64) -> Vec<HexdumpField<'s>> {
        let mut fields = Vec::with_capacity(spans.len());
        let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let mut at = offset(from);
        for span in spans {
            let (start, end) = (offset(span.start), offset(span.end));
            if end > self.bytes.len() {
                continue;
            }
            if start > at {
                fields.push(uncovered_field(at, start));
            }
            fields.push(HexdumpField {
                start,
                end,
                name: &span.field,
                value: &span.value,
                rule: span.rule.id(),
            });
            at = at.max(end);
        }
        let to = offset(to).min(self.bytes.len());
        if at < to {
            fields.push(uncovered_field(at, to));
        }
        fields
    }

    /// Counts the fields from `index` on whose names differ only in numbers: the elements of one vector.
    fn run(&self, fields: &[HexdumpField<'_>], index: usize) -> usize {
        // A name without an index equals its stem: the field is not an element.
        let first = stem(fields[index].name);
        if first.len() == fields[index].name.len() {
            return 1;
        }
        fields[index..]
            .iter()
            .take_while(|field| stem(field.name) == first)
            .count()
    }

    /// Returns the marks inside a field. Uses binary search, because there may be as many marks as fields.
    fn marks_in(&self, field: &HexdumpField<'_>) -> &[Mark] {
        let before = |offset: usize| {
            self.marks
                .partition_point(|mark| mark.offset < offset as u64)
        };
        self.marks
            .get(before(field.start)..before(field.end))
            .unwrap_or_default()
    }

    /// Writes the rows of a field with its rule and its marks. `rule` is the rule of the previous field, and is set to that of this
    /// field.
    fn row<'a>(
        &self,
        out: &mut dyn StyledWrite,
        field: &HexdumpField<'a>,
        widths: &Widths,
        rule: &mut &'a str,
    ) -> fmt::Result {
        // A rule is named in its first row only.
        let named = if field.rule == *rule { "" } else { field.rule };
        *rule = field.rule;
        let remark = Remark::from_marks(self.marks_in(field));
        self.lines(out, field, widths, named, &remark)
    }

    /// Writes the rows of a field: the offset, up to eight bytes, and in the first row name, value, `rule` and `remark`.
    fn lines(
        &self,
        out: &mut dyn StyledWrite,
        field: &HexdumpField<'_>,
        widths: &Widths,
        rule: &str,
        remark: &Remark,
    ) -> fmt::Result {
        let bytes = &self.bytes[field.start..field.end];
        let rows = bytes.len().div_ceil(8);
        let elide = !self.whole && rows > LONGEST_FIELD;
        // A long field shows only its first two rows and its last row.
        let (head, tail) = if elide { (2, rows - 1) } else { (rows, rows) };
        for row in (0..head).chain(tail..rows) {
            if elide && row == tail {
                let left = (rows - 3) * 8;
                writeln!(out, "{:>w$}  {left} more bytes", "..", w = widths.offset)?;
            }
            let chunk = &bytes[row * 8..bytes.len().min(row * 8 + 8)];
            // Eight bytes take 23 characters: two digits each and a blank between them.
            let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
            let offset = field.start + row * 8;
            let mut line = format!("{offset:0w$x}  {}", hex.join(" "), w = widths.offset);
            if row == 0 {
                pad(&mut line, widths.names());
                line.push_str(&escape_line(field.name));
                if !field.value.is_empty() {
                    pad(&mut line, widths.values());
                    line.push_str(&escape_line(&self.value(field, widths)));
                }
                if !rule.is_empty() {
                    gap(&mut line, widths.rules());
                    line.push_str(rule);
                }
                if !remark.text.is_empty() {
                    self.put_remark(out, &mut line, widths.marks(), remark, widths)?;
                    continue;
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Returns the value of a field, with the sign before it.
    fn value<'a>(&self, field: &HexdumpField<'a>, widths: &Widths) -> Cow<'a, str> {
        // A leading colon marks a length or a count, `: 3 bytes`, which is printed without `=`.
        if field.value.starts_with(':') {
            return field.value.into();
        }
        // Specifications and hex editors show magic numbers in hexadecimal.
        if field.name.ends_with("magic")
            && let Ok(magic) = field.value.parse::<u64>()
        {
            return format!("= {magic:#x}").into();
        }
        // In a narrow column, a value that just fits is not replaced by dots, which would need the same space.
        let fits =
            widths.longest < LONGEST_VALUE && field.value.chars().count() + 2 <= widths.value;
        if self.whole || fits {
            format!("= {}", field.value).into()
        } else {
            format!("= {}", shortened(field.value, widths.longest)).into()
        }
    }

    /// Writes `line` with a remark at `column`, or two blanks after a longer line. A remark that does not fit is written on separate
    /// lines, which begin at the column of names.
    fn put_remark(
        &self,
        out: &mut dyn StyledWrite,
        line: &mut String,
        column: usize,
        remark: &Remark,
        widths: &Widths,
    ) -> fmt::Result {
        let Remark { style, head, text } = remark;
        let before = line.len();
        gap(line, column);
        let here = width(line);
        let Some(columns) = self.columns.filter(|columns| here + width(text) > *columns) else {
            out.write_str(line)?;
            out.styled_beginning(*style, head, text.trim_end())?;
            return out.write_char('\n');
        };
        line.truncate(before);
        let indent = widths.names();
        out.write_str(line)?;
        for part in lines_of(text, columns.saturating_sub(indent).max(NARROWEST_MARK)) {
            write!(out, "\n{:indent$}", "")?;
            // Only the first part begins with the head.
            out.styled_beginning(*style, head, &part)?;
        }
        out.write_char('\n')
    }

    /// Returns column widths for `fields`. Values are cut as far as needed to fit into lines of `columns` characters.
    fn widths(&self, fields: &[HexdumpField<'_>]) -> Widths {
        let mut widths = Widths::measure(fields, self.bytes.len());
        if let Some(columns) = self.columns.filter(|_| !self.whole) {
            let others = widths.rules() - widths.value + widths.rule;
            // The column includes two characters for the sign and its blank, and three for the dots after a cut value.
            let room = columns.saturating_sub(others).max(SHORTEST_VALUE + 5);
            if widths.value > room {
                widths.value = room;
                widths.longest = room - 5;
            }
        }
        widths
    }
}

/// Returns the number of characters of the last line of `text`.
fn width(text: &str) -> usize {
    text.rsplit('\n')
        .next()
        .map_or(0, |line| line.chars().count())
}

/// Pads `line` with blanks up to `column`, or with one blank if it is longer.
fn pad(line: &mut String, column: usize) {
    let blanks = column.saturating_sub(width(line)).max(1);
    line.extend(std::iter::repeat_n(' ', blanks));
}

/// Pads `line` with blanks up to `column`, or with two blanks if it is that long.
fn gap(line: &mut String, column: usize) {
    let blanks = match column.saturating_sub(width(line)) {
        0 => 2,
        blanks => blanks,
    };
    line.extend(std::iter::repeat_n(' ', blanks));
}

/// Returns whether the field contains the byte at `offset`.
fn covers(field: &HexdumpField<'_>, offset: u64) -> bool {
    (field.start as u64) <= offset && offset < field.end as u64
}

/// Cuts the value to `longest` characters and adds dots. Its bytes are printed next to it anyway.
fn shortened(value: &str, longest: usize) -> Cow<'_, str> {
    match value.char_indices().nth(longest) {
        Some((cut, _)) => format!("{}...", value[..cut].trim_end_matches('.')).into(),
        None => value.into(),
    }
}

/// Creates a field for bytes that no field covers.
fn uncovered_field<'a>(start: usize, end: usize) -> HexdumpField<'a> {
    HexdumpField {
        start,
        end,
        name: "unread",
        value: "",
        rule: "",
    }
}

/// Returns a name up to its last index: `indptr` for `indptr[7]`, the whole name if it does not end in an index.
fn stem(name: &str) -> &str {
    match name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once('['))
    {
        Some((stem, _)) => stem,
        None => name,
    }
}
