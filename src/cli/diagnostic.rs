//! How a broken rule and an oddity look to people.
//!
//! ```text
//! error TREE-03: row 1 ends at 1, before its start 2
//!   model.so, symbol __tvm_ffi__library_bin, byte 0x20 (indptr[2])
//!     0018  02 00 00 00 00 00 00 00   indptr[1] = 2
//!     0020  01 00 00 00 00 00 00 00   indptr[2] = 1  <-
//!   For every module i, `indptr[i] <= indptr[i + 1]`.
//!   A reader walks `indices[indptr[i] .. indptr[i + 1]]`. When rows run backwards it walks outside `indices`.
//! ```

use super::color::{BAD, ODD, StyledWrite};
use super::hexdump::Hexdump;
use super::output::line_of;
use super::table::{columns, wrap};
use std::fmt;
use tvmspec::blob::is_unknown_kind;
use tvmspec::examine::verify::field_at;
use tvmspec::rule::{Finding, Rule, Violation};
use tvmspec::wire::Span;

/// How many fields are shown in front of the one that is wrong.
// A broken field mostly contradicts one just before it: a count, a start, a length.
const BEFORE: usize = 2;

/// The bytes that a diagnostic is about, and what is known of them.
pub(crate) struct DiagnosedBytes<'a> {
    /// The file, and what inside it: `model.so, symbol __tvm_dev_mblob`.
    pub(crate) name: &'a str,
    /// The bytes that offsets count.
    pub(crate) bytes: &'a [u8],
    /// Every field that was read, by offset; may be empty.
    pub(crate) spans: &'a [Span],
}

impl DiagnosedBytes<'_> {
    /// Writes the broken rule, where it is broken, and why it matters.
    pub(crate) fn violation(&self, out: &mut dyn StyledWrite, broken: &Violation) -> fmt::Result {
        out.styled(BAD, &format!("error {}", broken.rule()))?;
        writeln!(out, ": {}", line_of(broken.message()))?;
        match broken.offset() {
            Some(offset) => self.location(out, offset, broken.field())?,
            // A rule about the file as a whole, or about what was never bytes.
            None => writeln!(out, "  {}", line_of(self.name))?,
        }
        explain(out, broken.rule())
    }

    /// Writes that a module is of a kind that is not known, so that nothing behind it was read (BLOB-06).
    pub(crate) fn unknown(&self, out: &mut dyn StyledWrite, unknown: &Violation) -> fmt::Result {
        out.styled(ODD, "not known")?;
        writeln!(
            out,
            ": {}; the rest was not read. If the kind stores what a known one does, state it: --grammar KIND=KNOWN ({})",
            line_of(unknown.message()),
            unknown.rule()
        )?;
        self.location(out, unknown.offset().unwrap_or(0), unknown.field())
    }

    /// [`DiagnosedBytes::unknown`] of what breaks BLOB-06, [`DiagnosedBytes::violation`] of any other rule.
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

    /// Writes the oddity in the same form.
    pub(crate) fn finding(&self, out: &mut dyn StyledWrite, finding: &Finding) -> fmt::Result {
        out.styled(ODD, &format!("finding {}", finding.rule))?;
        writeln!(out, ": {}", line_of(&finding.message))?;
        self.location(out, finding.offset, "")?;
        explain(out, finding.rule)
    }

    /// Writes the file, the offset and the field, and the rows around them where fields are known.
    ///
    /// `field` may be empty: the name is then that of the field that covers the offset, where one does.
    fn location(&self, out: &mut dyn StyledWrite, offset: u64, field: &str) -> fmt::Result {
        let field = if field.is_empty() {
            field_at(self.spans, offset)
        } else {
            field
        };
        write!(out, "  {}, byte {offset:#x}", line_of(self.name))?;
        if !field.is_empty() {
            write!(out, " ({})", line_of(field))?;
        }
        out.write_char('\n')?;
        if self.spans.is_empty() {
            return Ok(());
        }
        // Without marks: the message is above, and `around` points at the row.
        let dump = Hexdump {
            bytes: self.bytes,
            spans: self.spans,
            marks: &[],
            whole: false,
            from: 0,
            to: None,
            // Beside the four blanks in front of each row.
            columns: columns().map(|columns| columns.saturating_sub(4)),
        };
        for line in dump.around(offset, BEFORE).lines() {
            writeln!(out, "    {line}")?;
        }
        Ok(())
    }
}

/// Writes the rule's own words: what it requires, and what released implementations make of a breach.
///
/// Writes nothing for a rule that the book does not have.
fn explain(out: &mut dyn StyledWrite, rule: Rule) -> fmt::Result {
    let Some(text) = rule.text() else {
        return Ok(());
    };
    if text.text.is_empty() {
        return writeln!(out, "  {}", text.title);
    }
    // The norm and the paragraph behind it: `tvmspec rule` has the rest.
    for paragraph in text.text.split("\n\n").take(2) {
        // Tables and code stay in the book.
        if paragraph.starts_with(['|', ' ', '`']) {
            break;
        }
        for line in wrap(paragraph, 2) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Both counts in words: `1 violation, 2 findings`.
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
