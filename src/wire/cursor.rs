//! The reader that all format code is made of: integers and windows. Strings are in `cursor/runs.rs`, vectors and maps in `vectors.rs`.

mod runs;

use super::field_path::{DEPTH, PathSegment};
use super::trace::{Record, TraceValue, unit};
use super::{ReadValue, Trace, WIRE_01, WIRE_03, WIRE_04, WIRE_08};
use crate::rule::{Findings, Kind, Rule, Violation};

/// A position in a window of bytes. Every read names its field and the rule that puts the field there.
///
/// Numbers are little endian on every host (WIRE-02), and nothing is aligned or padded. Reading borrows: a string or a byte run is
/// a slice of the input. A field that is cut off leaves the cursor where it was; behind any other violation its position means
/// nothing.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// All that may be read (WIRE-01).
    window: &'a [u8],
    /// The next byte, counted from the start of the window.
    pub(super) position: usize,
    /// Where the window begins in the input.
    base: u64,
    /// Number of names that precede the name of a field.
    depth: usize,
    /// Gets every field that is read, for a dump.
    pub(super) trace: Option<&'a dyn Record>,
}

/// Declares a reader for each type of number: its doc, its name, and how a trace shows it.
macro_rules! numbers {
    ($($doc:literal $number:ident $shown:ident;)*) => {
        $(
            #[doc = $doc]
            ///
            /// # Errors
            ///
            /// WIRE-01 when there are fewer bytes.
            pub fn $number<'f>(
                &mut self,
                field: &'f str,
                rule: Rule,
            ) -> Result<ReadValue<'f, $number>, Violation> {
                self.number(field, rule, $number::from_le_bytes, |value| {
                    TraceValue::$shown(value.into())
                })
            }
        )*
    };
}

impl<'a> Cursor<'a> {
    /// Reads `bytes`, whose first byte is at offset 0.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor {
            window: bytes,
            position: 0,
            base: 0,
            depth: 0,
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

    /// Reads `bytes` and shows every field to `visitor`.
    #[cfg(feature = "rpc")]
    pub(crate) fn visited<F: FnMut(super::Span)>(
        bytes: &'a [u8],
        visitor: &'a super::FieldVisitor<F>,
    ) -> Cursor<'a> {
        Cursor {
            trace: Some(visitor),
            ..Cursor::new(bytes)
        }
    }

    /// The same cursor, whose window begins at byte `base` of the input: for a payload that is read on its own.
    #[must_use]
    pub fn at(mut self, base: u64) -> Cursor<'a> {
        self.base = base;
        self
    }

    /// Absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        // Saturates: `at` takes any base, and an offset that is too large is still only a number in a message.
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
            // What is looked at is read again, and must not be recorded twice.
            trace: None,
            ..self.clone()
        }
    }

    /// Runs `read` with `name` (and `[index]`) in front of the names of its fields.
    pub(crate) fn within<T>(
        &mut self,
        name: &'static str,
        index: impl Into<Option<u64>>,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        let segment = PathSegment {
            name,
            index: index.into(),
        };
        if let Some(trace) = self.trace {
            trace.enter(segment);
        }
        let depth = self.depth;
        self.depth = depth.saturating_add(1);
        let result = read(self);
        self.depth = depth;
        if let Some(trace) = self.trace {
            trace.leave();
        }
        // On the way out, so that reading carries no names: a violation names its field, and each level puts its own in front.
        match result {
            Err(broken) if depth < DEPTH => Err(broken.map_field(|field| segment.join(field))),
            result => result,
        }
    }

    /// Runs `read`, and returns its value as that of `field`, which begins here.
    pub(crate) fn read<'f, T>(
        &mut self,
        field: &'f str,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<ReadValue<'f, T>, Violation> {
        let start = self.offset();
        Ok(ReadValue::new(read(self)?, start, field))
    }

    /// `length` bytes as they are.
    ///
    /// # Errors
    ///
    /// WIRE-01 when there are fewer bytes.
    pub fn take(&mut self, length: u64, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let start = self.offset();
        let bytes = self.advance(length, field)?;
        self.record(start, field, rule, TraceValue::Bytes(bytes));
        Ok(bytes)
    }

    numbers! {
        "One byte." u8 Unsigned;
        "A 16-bit unsigned integer, little endian (WIRE-02)." u16 Unsigned;
        "A 32-bit unsigned integer, little endian (WIRE-02)." u32 Unsigned;
        "A 32-bit signed integer in two's complement, little endian (WIRE-02)." i32 Signed;
        "A 64-bit unsigned integer, little endian (WIRE-02)." u64 Unsigned;
        "A 64-bit signed integer in two's complement, little endian (WIRE-02)." i64 Signed;
        "A 64-bit IEEE 754 float, little endian (WIRE-02)." f64 Float;
    }

    /// A bool: one byte, 0 or 1 (WIRE-03).
    ///
    /// # Errors
    ///
    /// WIRE-01 when there is no byte; WIRE-03 for another byte than 0 and 1.
    pub fn bool<'f>(
        &mut self,
        field: &'f str,
        rule: Rule,
    ) -> Result<ReadValue<'f, bool>, Violation> {
        let start = self.offset();
        // WIRE-03: released readers copy the byte into a C++ `bool`, where comparing any other value is undefined.
        let byte = self.u8(field, rule)?.require(
            WIRE_03,
            |byte| *byte <= 1,
            |byte| format!("{field} is {byte}, a bool is 0 or 1"),
        )?;
        Ok(ReadValue::new(byte != 0, start, field))
    }

    /// A u64 length and a cursor over that many bytes, which keeps offsets, path and trace.
    ///
    /// The content is recorded by its reader; nothing is recorded here but the length.
    ///
    /// # Errors
    ///
    /// As [`Cursor::bytes`].
    pub fn window(&mut self, field: &str) -> Result<Cursor<'a>, Violation> {
        let length = self.length(field, WIRE_04)?;
        let mut behind = self.clone();
        behind.position = behind.position.saturating_add(8);
        // A copy goes on, and takes the place of the cursor at the end: a window that is cut leaves it where it was.
        let window = behind.split(length, field)?;
        *self = behind;
        Ok(window)
    }

    /// A cursor over the next `length` bytes, which keeps offsets, path and trace; this one goes on behind them.
    ///
    /// # Errors
    ///
    /// WIRE-01 when there are fewer bytes.
    pub fn split(&mut self, length: u64, field: &str) -> Result<Cursor<'a>, Violation> {
        // Taken before this cursor goes on: the window begins here.
        let inner = self.clone();
        let window = self.advance(length, field)?;
        // Offsets count from the start of the input at any depth, so that a violation names a byte of the file.
        let base = inner.offset();
        Ok(Cursor {
            window,
            position: 0,
            base,
            ..inner
        })
    }

    /// Notes whatever is left in the window behind `what` (WIRE-08) and reads over it.
    ///
    /// # Errors
    ///
    /// Under [`Strictness::Strict`](crate::rule::Strictness::Strict), WIRE-08 at the first byte that is left.
    pub fn finish(&mut self, what: &str, findings: &mut Findings) -> Result<(), Violation> {
        if self.is_at_end() {
            return Ok(());
        }
        // WIRE-08: a finding, because released readers ignore what follows in a window with a length. In the layouts without
        // lengths they take it for the next module.
        let message = format!("{} bytes follow the end of {what}", self.remaining());
        findings
            .note(WIRE_08, Kind::Trailing, self.offset(), message)
            .map_err(|broken| broken.in_field(""))?;
        // Read over, so that a dump shows them and no reader meets them again.
        self.skip_rest("trailing", WIRE_08);
        Ok(())
    }

    /// Reads over whatever is left and records it as `field`.
    pub(crate) fn skip_rest(&mut self, field: &str, rule: Rule) -> &'a [u8] {
        let (start, rest) = (self.offset(), self.rest());
        self.position = self.window.len();
        self.record(start, field, rule, TraceValue::Run(rest.len()));
        rest
    }

    /// `N` bytes, little endian.
    fn number<'f, const N: usize, T: Copy>(
        &mut self,
        field: &'f str,
        rule: Rule,
        decode: fn([u8; N]) -> T,
        value: fn(T) -> TraceValue<'static>,
    ) -> Result<ReadValue<'f, T>, Violation> {
        let start = self.offset();
        let rest = self.rest();
        // WIRE-01: nothing is filled up. The stream of tvm-ffi (0.22 on) returns what there is: a kind that is cut off reads as
        // `_lib` and zeros there, and the source of a kernel loses its end without an error.
        let Some(whole) = rest.first_chunk() else {
            return Err(self.short(N as u64, field));
        };
        self.position = self.position.saturating_add(N);
        // WIRE-02: little endian on every host. 0.2 and 0.3 wrote the order of the host; no big-endian one is known to have
        // written a file.
        let number = decode(*whole);
        self.record(start, field, rule, value(number));
        Ok(ReadValue::new(number, start, field))
    }

    /// The u64 that is here, recorded as a length or count. Nothing is read.
    pub(super) fn length(&self, field: &str, rule: Rule) -> Result<u64, Violation> {
        let Some(length) = self.rest().first_chunk() else {
            return Err(self.short(8, field));
        };
        let length = u64::from_le_bytes(*length);
        let start = self.offset();
        let shown = TraceValue::Count(length, unit(rule));
        self.record_span(start, start.saturating_add(8), field, rule, shown);
        Ok(length)
    }

    /// `length` bytes, read over.
    fn advance(&mut self, length: u64, field: &str) -> Result<&'a [u8], Violation> {
        let rest = self.rest();
        // WIRE-01: a length of 2^32 fits nowhere on a machine of 32 bits, and is truncated there as elsewhere.
        let fits = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let Some(bytes) = fits else {
            return Err(self.short(length, field));
        };
        self.position = self.position.saturating_add(bytes.len());
        Ok(bytes)
    }

    /// WIRE-01: `length` bytes of `field` are wanted, and fewer remain.
    #[cold]
    pub(super) fn short(&self, length: u64, field: &str) -> Violation {
        let message = format!("{field} needs {length} bytes, {} remain", self.remaining());
        // WIRE-01: at the first byte of the field, not at the end of the window.
        WIRE_01
            .broken(Kind::Truncated, self.offset(), message)
            .in_field(field)
    }

    /// Records what has been read since `start`.
    fn record(&self, start: u64, field: &str, rule: Rule, value: TraceValue<'_>) {
        self.record_span(start, self.offset(), field, rule, value);
    }

    /// Records `start` to `end`, where the trace wants them.
    #[inline]
    pub(super) fn record_span(
        &self,
        start: u64,
        end: u64,
        field: &str,
        rule: Rule,
        value: TraceValue<'_>,
    ) {
        if let Some(trace) = self.trace
            // A field of no bytes has no place to show.
            && start < end
            && trace.wants(end)
        {
            trace.record(start, end, field, rule, value);
        }
    }
}
