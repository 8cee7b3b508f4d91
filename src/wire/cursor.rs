//! The reader that all format code is made of.

use super::trace::{Record, Value};
use super::{Trace, WIRE_01, WIRE_03, WIRE_04, WIRE_05, WIRE_06, WIRE_07, WIRE_08, Words, show};
use crate::rule::{Findings, Kind, Rule, Violation};
use std::fmt;

/// A position in a window of bytes. Every read names its field and the rule that puts the field there.
///
/// Reading borrows: a string or a byte run is a slice of the input. A failed read leaves the cursor where it was.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    window: &'a [u8],
    position: usize,
    base: u64,
    path: Path,
    trace: Option<&'a dyn Record>,
}

impl<'a> Cursor<'a> {
    /// Reads `bytes`, whose first byte is at offset 0.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor {
            window: bytes,
            position: 0,
            base: 0,
            path: Path::default(),
            trace: None,
        }
    }

    /// Reads `bytes` and records every field in `trace`.
    pub fn traced(bytes: &'a [u8], trace: &'a Trace) -> Cursor<'a> {
        Cursor {
            trace: Some(trace),
            ..Cursor::new(bytes)
        }
    }

    /// The same cursor with its offsets counted from `base` bytes earlier.
    #[must_use]
    pub fn at(mut self, base: u64) -> Cursor<'a> {
        self.base = base;
        self
    }

    /// Absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    /// How many bytes are left in the window.
    pub fn remaining(&self) -> usize {
        self.window.len().saturating_sub(self.position)
    }

    /// Whether nothing is left in the window.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes left in the window, without reading them.
    pub fn rest(&self) -> &'a [u8] {
        self.window.get(self.position..).unwrap_or_default()
    }

    /// The same cursor for a look ahead, which leaves no trace.
    pub(crate) fn look_ahead(&self) -> Cursor<'a> {
        Cursor {
            trace: None,
            ..self.clone()
        }
    }

    /// The path of `field` here, as violations and dumps show it: `module[1].kind`.
    pub fn path_of(&self, field: &str) -> String {
        self.path.join(field)
    }

    /// Runs `read` with `name` (and `[index]`) in front of the names of its fields.
    pub(crate) fn within<T>(
        &mut self,
        name: &'static str,
        index: impl Into<Option<u64>>,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        let outside = self.path.length;
        self.path.push(Segment {
            name,
            index: index.into(),
        });
        let result = read(self);
        self.path.length = outside;
        result
    }

    /// `length` bytes as they are.
    pub fn take(&mut self, length: u64, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let start = self.offset();
        let bytes = self.advance(length, field)?;
        self.record(start, field, rule, Value::Bytes(bytes));
        Ok(bytes)
    }

    /// One byte.
    pub fn u8(&mut self, field: &str, rule: Rule) -> Result<u8, Violation> {
        self.number(field, rule, u8::from_le_bytes, |value| {
            Value::Unsigned(value.into())
        })
    }

    /// A 16-bit unsigned integer.
    pub fn u16(&mut self, field: &str, rule: Rule) -> Result<u16, Violation> {
        self.number(field, rule, u16::from_le_bytes, |value| {
            Value::Unsigned(value.into())
        })
    }

    /// A 32-bit unsigned integer.
    pub fn u32(&mut self, field: &str, rule: Rule) -> Result<u32, Violation> {
        self.number(field, rule, u32::from_le_bytes, |value| {
            Value::Unsigned(value.into())
        })
    }

    /// A 32-bit signed integer.
    pub fn i32(&mut self, field: &str, rule: Rule) -> Result<i32, Violation> {
        self.number(field, rule, i32::from_le_bytes, |value| {
            Value::Signed(value.into())
        })
    }

    /// A 64-bit unsigned integer.
    pub fn u64(&mut self, field: &str, rule: Rule) -> Result<u64, Violation> {
        self.number(field, rule, u64::from_le_bytes, Value::Unsigned)
    }

    /// A 64-bit signed integer.
    pub fn i64(&mut self, field: &str, rule: Rule) -> Result<i64, Violation> {
        self.number(field, rule, i64::from_le_bytes, Value::Signed)
    }

    /// A 64-bit IEEE float.
    pub fn f64(&mut self, field: &str, rule: Rule) -> Result<f64, Violation> {
        self.number(field, rule, f64::from_le_bytes, Value::Float)
    }

    /// A bool: one byte, 0 or 1 (WIRE-03).
    pub fn bool(&mut self, field: &str, rule: Rule) -> Result<bool, Violation> {
        let start = self.offset();
        let byte = self.u8(field, rule)?;
        WIRE_03
            .require(byte <= 1, start, || {
                format!("{field} is {byte}, a bool is 0 or 1")
            })
            .map_err(|broken| broken.in_field(self.path_of(field)))?;
        Ok(byte != 0)
    }

    /// A u64 length and that many bytes (WIRE-04).
    #[inline]
    pub fn bytes(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        match self.plain_run(1) {
            Some(bytes) => Ok(bytes),
            None => self.bytes_told(field, rule),
        }
    }

    fn bytes_told(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let before = self.position;
        let length = self.length(field, WIRE_04)?;
        self.take(length, field, rule)
            .inspect_err(|_| self.position = before)
    }

    /// A u64 length and that many bytes of which nothing is known: recorded as a length and a run.
    #[inline]
    pub fn run(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        match self.plain_run(1) {
            Some(bytes) => Ok(bytes),
            None => self.run_told(field, rule),
        }
    }

    fn run_told(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let before = self.position;
        let length = self.length(field, WIRE_04)?;
        let start = self.offset();
        let bytes = self
            .advance(length, field)
            .inspect_err(|_| self.position = before)?;
        if !bytes.is_empty() {
            self.record(start, field, rule, Value::Run(bytes.len()));
        }
        Ok(bytes)
    }

    /// A u64 length and that many bytes of UTF-8 (WIRE-04, WIRE-05).
    pub fn str(&mut self, field: &str, rule: Rule) -> Result<&'a str, Violation> {
        let before = self.position;
        let bytes = self.bytes(field, rule)?;
        std::str::from_utf8(bytes).map_err(|error| {
            let content = self.offset().saturating_sub(bytes.len() as u64);
            let offset = content.saturating_add(error.valid_up_to() as u64);
            self.position = before;
            WIRE_05
                .broken(
                    Kind::Malformed,
                    offset,
                    format!("{field} `{}` is not UTF-8", show(bytes)),
                )
                .in_field(self.path_of(field))
        })
    }

    /// A u64 length and a cursor over that many bytes, which keeps offsets, path and trace.
    ///
    /// The content is recorded by whoever reads it; nothing is recorded here but the length.
    pub fn window(&mut self, field: &str) -> Result<Cursor<'a>, Violation> {
        let before = self.position;
        let length = self.length(field, WIRE_04)?;
        self.split(length, field)
            .inspect_err(|_| self.position = before)
    }

    /// A cursor over the next `length` bytes, which keeps offsets, path and trace; this one goes on behind them.
    pub fn split(&mut self, length: u64, field: &str) -> Result<Cursor<'a>, Violation> {
        let inner = self.clone();
        let window = self.advance(length, field)?;
        let base = inner.offset();
        Ok(Cursor {
            window,
            position: 0,
            base,
            ..inner
        })
    }

    /// A u64 count of elements of at least `smallest` bytes each; more than the rest can hold breaks WIRE-06.
    ///
    /// After it, reserving `count` elements is justified by the input.
    pub fn count(&mut self, smallest: usize, field: &str) -> Result<usize, Violation> {
        self.counted(smallest, field, WIRE_06)
    }

    fn counted(&mut self, smallest: usize, field: &str, rule: Rule) -> Result<usize, Violation> {
        let before = self.position;
        let start = self.offset();
        let count = self.length(field, rule)?;
        let room = self.remaining().checked_div(smallest).unwrap_or(usize::MAX) as u64;
        WIRE_06
            .require_as(Kind::Truncated, count <= room, start, || {
                format!(
                    "{field} counts {count} elements of at least {smallest} bytes, {} bytes follow",
                    self.remaining()
                )
            })
            .map_err(|broken| {
                let broken = broken.in_field(self.path_of(field));
                self.position = before;
                broken
            })?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// A vector: a count, then each element through `read`, which is told its index.
    pub fn vector<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let count = self.count(smallest, field)?;
        self.elements(count, field, read)
    }

    /// A map: a count, then key and value of each entry through `read`, in the order of the bytes (WIRE-07).
    ///
    /// `smallest` is the least size of a key and a value together.
    pub fn map<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let count = self.counted(smallest, field, WIRE_07)?;
        self.elements(count, field, read)
    }

    fn elements<T>(
        &mut self,
        count: usize,
        field: &'static str,
        mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let mut elements = Vec::with_capacity(count.min(self.remaining()));
        for index in 0..count {
            elements.push(self.within(field, index as u64, &mut read)?);
        }
        Ok(elements)
    }

    /// A vector of u64, borrowed: a million elements cost nothing to open.
    pub fn words(&mut self, field: &'static str, rule: Rule) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, Value::Unsigned)
    }

    /// The same of i64, which a trace shows with their sign.
    pub(crate) fn signed_words(
        &mut self,
        field: &'static str,
        rule: Rule,
    ) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, |word| Value::Signed(word.cast_signed()))
    }

    fn words_shown(
        &mut self,
        field: &'static str,
        rule: Rule,
        shown: fn(u64) -> Value<'a>,
    ) -> Result<Words<'a>, Violation> {
        if let Some(bytes) = self.plain_run(8) {
            let start = self.offset().saturating_sub(bytes.len() as u64);
            return Ok(Words::new(bytes, start));
        }
        let before = self.position;
        let count = self.count(8, field)?;
        let start = self.offset();
        let bytes = self
            .advance((count as u64).saturating_mul(8), field)
            .inspect_err(|_| self.position = before)?;
        let words = Words::new(bytes, start);
        if let Some(trace) = self.trace {
            for (index, word) in words.iter().enumerate() {
                let at = words.offset_of(index);
                let end = at.saturating_add(8);
                if trace.wants(at, end) {
                    let name = format!("{field}[{index}]");
                    self.record_span(at, end, &name, rule, shown(word));
                }
            }
        }
        Ok(words)
    }

    /// Notes whatever is left in the window behind `what` (WIRE-08) and reads over it.
    pub fn finish(&mut self, what: &str, findings: &mut Findings) -> Result<(), Violation> {
        if self.is_at_end() {
            return Ok(());
        }
        let message = format!("{} bytes follow the end of {what}", self.remaining());
        findings
            .note(WIRE_08, Kind::Trailing, self.offset(), message)
            .map_err(|broken| self.blame("", broken))?;
        self.skip_rest("trailing", WIRE_08);
        Ok(())
    }

    /// Reads over whatever is left and records it as `field`.
    pub(crate) fn skip_rest(&mut self, field: &str, rule: Rule) -> &'a [u8] {
        let (start, rest) = (self.offset(), self.rest());
        self.position = self.window.len();
        if !rest.is_empty() {
            self.record(start, field, rule, Value::Run(rest.len()));
        }
        rest
    }

    /// Says of a violation that it is about `field` here.
    pub(crate) fn blame(&self, field: &str, broken: Violation) -> Violation {
        broken.in_field(self.path_of(field))
    }

    /// A u64 count and that many elements of `size` bytes, when all goes well and nobody wants to hear of it. `None` leaves
    /// the cursor where it was, for the long way to say what is wrong.
    #[inline]
    fn plain_run(&mut self, size: usize) -> Option<&'a [u8]> {
        if self.trace.is_some() {
            return None;
        }
        let (count, rest) = self.window.get(self.position..)?.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let bytes = rest.get(..count.checked_mul(size)?)?;
        self.position = self.position.saturating_add(8).saturating_add(bytes.len());
        Some(bytes)
    }

    fn number<const N: usize, T: Copy>(
        &mut self,
        field: &str,
        rule: Rule,
        decode: fn([u8; N]) -> T,
        value: fn(T) -> Value<'static>,
    ) -> Result<T, Violation> {
        let start = self.offset();
        let rest = self.rest();
        let Some(whole) = rest.first_chunk() else {
            return Err(self.short(N as u64, field));
        };
        self.position = self.position.saturating_add(N);
        let number = decode(*whole);
        self.record(start, field, rule, value(number));
        Ok(number)
    }

    fn length(&mut self, field: &str, rule: Rule) -> Result<u64, Violation> {
        let start = self.offset();
        let trace = self.trace.take();
        let length = self.u64(field, rule);
        self.trace = trace;
        let unit = match rule {
            WIRE_06 => "elements",
            WIRE_07 => "entries",
            _ => "bytes",
        };
        length.inspect(|length| self.record(start, field, rule, Value::Count(*length, unit)))
    }

    fn advance(&mut self, length: u64, field: &str) -> Result<&'a [u8], Violation> {
        let rest = self.rest();
        let fits = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let Some(bytes) = fits else {
            return Err(self.short(length, field));
        };
        self.position = self.position.saturating_add(bytes.len());
        Ok(bytes)
    }

    #[cold]
    fn short(&self, length: u64, field: &str) -> Violation {
        let message = format!("{field} needs {length} bytes, {} remain", self.remaining());
        let broken = WIRE_01.broken(Kind::Truncated, self.offset(), message);
        self.blame(field, broken)
    }

    fn record(&self, start: u64, field: &str, rule: Rule, value: Value<'_>) {
        self.record_span(start, self.offset(), field, rule, value);
    }

    fn record_span(&self, start: u64, end: u64, field: &str, rule: Rule, value: Value<'_>) {
        if let Some(trace) = self.trace
            && start < end
            && trace.wants(start, end)
        {
            trace.record(start, end, self.path_of(field), rule, value);
        }
    }
}

/// Where in the structure a cursor is, without allocation: deeper segments than it holds are left out of names.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    segments: [Segment; Path::DEPTH],
    length: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    name: &'static str,
    index: Option<u64>,
}

impl Path {
    const DEPTH: usize = 6;

    fn push(&mut self, segment: Segment) {
        if let Some(slot) = self.segments.get_mut(self.length) {
            *slot = segment;
            self.length = self.length.saturating_add(1);
        }
    }

    fn join(&self, field: &str) -> String {
        let mut names: Vec<String> = self
            .segments
            .iter()
            .take(self.length)
            .map(Segment::to_string)
            .collect();
        // An element whose own read repeats the name of its vector is that element: `tags[0]`, not `tags[0].tags`.
        let repeats = self
            .segments
            .get(self.length.wrapping_sub(1))
            .is_some_and(|last| last.name == field);
        if !field.is_empty() && !repeats {
            names.push(field.to_owned());
        }
        names.join(".")
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}
