//! The text form of broken rules and oddities.
//!
//! ```text
//! error: row 1 ends at 1, before its start 2 [TREE-03]
//!   model.so, symbol __tvm_ffi__library_bin, byte 0x20 (indptr[2])
//!     0018  02 00 00 00 00 00 00 00   indptr[1] = 2
//!     0020  01 00 00 00 00 00 00 00   indptr[2] = 1  <-
//!   For every module i, `indptr[i] <= indptr[i + 1]`.
//!   A reader walks `indices[indptr[i] .. indptr[i + 1]]`. When rows run backwards it walks outside `indices`.
//! ```

use super::color::{BAD, ODD, StyledWrite};
use super::hexdump::Hexdump;
use super::output::escape_line;
use super::table::{columns, paragraph_lines};
use std::fmt;
use tvmspec::blob::is_unknown_kind;
use tvmspec::examine::verify::field_at;
use tvmspec::rule::{Finding, Rule, Violation};
use tvmspec::spec::without_links;
use tvmspec::wire::Span;

/// The number of fields to show before the one at fault.
// A broken field usually contradicts a field just before it: a count, a start, a length.
const BEFORE: usize = 2;

/// The bytes that a diagnostic is about, and their fields.
pub(crate) struct DiagnosedBytes<'a> {
    /// The file and the part of it: `model.so, symbol __tvm_dev_mblob`.
    pub(crate) name: &'a str,
    /// The bytes that offsets refer to.
    pub(crate) bytes: &'a [u8],
    /// Every field that was read, by offset; may be empty.
    pub(crate) spans: &'a [Span],
}

impl DiagnosedBytes<'_> {
    /// Writes the broken rule, the place, and why it matters.
    pub(crate) fn violation(&self, out: &mut dyn StyledWrite, broken: &Violation) -> fmt::Result {
        out.styled(BAD, "error")?;
        message(out, broken.message(), broken.rule())?;
        match broken.offset() {
            Some(offset) => self.location(out, offset, broken.field())?,
            // The rule is about the file as a whole, or about a value that was never stored as bytes.
            None => writeln!(out, "  {}", escape_line(self.name))?,
        }
        explain(out, broken.rule())
    }

    /// Writes that the kind of a module is unknown, so that nothing after it was read (BLOB-06).
    pub(crate) fn unknown(&self, out: &mut dyn StyledWrite, unknown: &Violation) -> fmt::Result {
        out.styled(ODD, "not known")?;
        writeln!(
            out,
            ": {}; the rest was not read. If the kind stores what a known one does, state it: --grammar KIND=KNOWN [{}]",
            escape_line(unknown.message()),
            unknown.rule()
        )?;
        self.location(out, unknown.offset().unwrap_or(0), unknown.field())
    }

    /// Writes BLOB-06 with [`DiagnosedBytes::unknown`], and any other rule with [`DiagnosedBytes::violation`].
    pub(crate) fn violation_or_unknown(
        &self,
        out: &mut dyn StyledWrite,
        broken: &Violation,
    ) -> fmt::Result {
        if is_unknown_kind(broken) {
            self.unknown(out, broken)
        } else {
            self.violation(out, broken)
        }
    }

    /// Writes the oddity in the same form as a violation.
    pub(crate) fn finding(&self, out: &mut dyn StyledWrite, finding: &Finding) -> fmt::Result {
        out.styled(ODD, "finding")?;
        message(out, &finding.message, finding.rule)?;
        self.location(out, finding.offset, "")?;
        explain(out, finding.rule)
    }

    /// Writes the file, the offset, the field and, if fields are known, the rows around it.
    ///
    /// If `field` is empty, the field that covers the offset is named, if there is one.
    fn location(&self, out: &mut dyn StyledWrite, offset: u64, field: &str) -> fmt::Result {
        let field = if field.is_empty() {
            field_at(self.spans, offset)
        } else {
            field
        };
        write!(out, "  {}, byte {offset:#x}", escape_line(self.name))?;
        if !field.is_empty() {
            write!(out, " ({})", escape_line(field))?;
        }
        out.write_char('\n')?;
        if self.spans.is_empty() {
            return Ok(());
        }
        // No marks, because the message is printed above, and `rows_around` points at the row.
        let dump = Hexdump {
            bytes: self.bytes,
            spans: self.spans,
            marks: &[],
            whole: false,
            from: 0,
            to: None,
            // Leaves room for the four blanks before each row.
            columns: columns().map(|columns| columns.saturating_sub(4)),
        };
        for line in dump.rows_around(offset, BEFORE).lines() {
            writeln!(out, "    {line}")?;
        }
        Ok(())
    }
}

/// Writes the message after its word, with the rule at the end.
fn message(out: &mut dyn StyledWrite, message: &str, rule: Rule) -> fmt::Result {
    writeln!(out, ": {} [{rule}]", escape_line(message))
}

/// Writes the text of the rule: its requirement, and how released implementations treat a violation.
///
/// Writes nothing for a rule that has no text.
fn explain(out: &mut dyn StyledWrite, rule: Rule) -> fmt::Result {
    let Some(text) = rule.text() else {
        return Ok(());
    };
    if text.text.is_empty() {
        return writeln!(out, "  {}", text.title);
    }
    // The norm and the next paragraph. `tvmspec rule` shows the rest.
    for paragraph in text.text.split("\n\n").take(2) {
        // Tables and code are left to `tvmspec rule`.
        if paragraph.starts_with('|') || paragraph.starts_with("```") {
            break;
        }
        for line in paragraph_lines(&without_links(paragraph), 2) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Formats both counts: `1 violation, 2 findings`.
pub(crate) fn count(violations: usize, findings: usize) -> String {
    let plural = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    format!(
        "{}, {}",
        plural(violations, "violation"),
        plural(findings, "finding")
    )
}
