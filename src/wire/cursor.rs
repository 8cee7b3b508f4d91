//! The reader that all format code uses: integers and windows. Strings are in `cursor/runs.rs`, vectors and maps in `vectors.rs`.

mod runs;

use super::field_path::{DEPTH, PathSegment};
use super::trace::{Record, TraceValue, unit};
use super::{ReadValue, Trace, WIRE_01, WIRE_03, WIRE_04, WIRE_08};
use crate::rule::{Findings, Kind, Rule, Violation};

/// A position in a window of bytes. Every read states the name of its field and the rule that requires the field.
///
/// Numbers are little endian on every host (WIRE-02), and nothing is aligned or padded. Reading borrows: a string or a byte run is a
/// slice of the input. A truncated field leaves the cursor at the start of the field. After any other violation, the position is
/// unspecified.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// The bytes that may be read (WIRE-01).
    window: &'a [u8],
    /// Index of the next byte in the window.
    pub(super) position: usize,
    /// Absolute offset of the window in the input.
    base: u64,
    /// Number of names before the name of a field.
    depth: usize,
    /// Receiver of every field that is read, for a dump.
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
            /// Returns WIRE-01 when there are fewer bytes.
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

    /// Sets the absolute offset of the window to `base`, for a payload that is read separately.
    #[must_use]
    pub fn with_base(mut self, base: u64) -> Cursor<'a> {
        self.base = base;
        self
    }

    /// Returns the absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        // Saturates, because `with_base` accepts any base, and the offset is only used in messages.
        self.base.saturating_add(self.position as u64)
    }

    /// Returns the number of bytes left in the window.
    pub fn remaining(&self) -> usize {
        self.window.len().saturating_sub(self.position)
    }

    /// Returns whether the window has no bytes left.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns the bytes left in the window, without reading them.
    pub fn rest(&self) -> &'a [u8] {
        self.window.get(self.position..).unwrap_or_default()
    }

    /// Returns a copy for look-ahead, without the trace.
    pub(crate) fn look_ahead(&self) -> Cursor<'a> {
        Cursor {
            // The bytes are read again later, and must not be recorded twice.
            trace: None,
            ..self.clone()
        }
    }

    /// Runs `read` with `name` (and `[index]`) before the names of its fields.
    pub(crate) fn read_within<T>(
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
        // Names are added when returning, so that reading stores no names. Each level adds its own name before the name of the field.
        match result {
            Err(broken) if depth < DEPTH => Err(broken.map_field(|field| segment.join(field))),
            result => result,
        }
    }

    /// Runs `read` and returns its value as the value of `field`, with the current offset.
    pub(crate) fn read<'f, T>(
        &mut self,
        field: &'f str,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<ReadValue<'f, T>, Violation> {
        let start = self.offset();
        Ok(ReadValue::new(read(self)?, start, field))
    }

    /// Reads `length` bytes without interpreting them.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 when there are fewer bytes.
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

    /// Reads a bool: one byte, 0 or 1 (WIRE-03).
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 when there is no byte; WIRE-03 for another byte than 0 and 1.
    pub fn bool<'f>(
        &mut self,
        field: &'f str,
        rule: Rule,
    ) -> Result<ReadValue<'f, bool>, Violation> {
        let start = self.offset();
        // WIRE-03: released readers copy the byte into a C++ `bool`, where any other value is undefined behavior.
        let byte = self.u8(field, rule)?.require(
            WIRE_03,
            |byte| *byte <= 1,
            |byte| format!("{field} is {byte}, a bool is 0 or 1"),
        )?;
        Ok(ReadValue::new(byte != 0, start, field))
    }

    /// Reads a u64 length and returns a cursor over that many bytes, with the same offsets, path and trace.
    ///
    /// Only the length is recorded here; the reader of the content records the rest.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::bytes`].
    pub fn window(&mut self, field: &str) -> Result<Cursor<'a>, Violation> {
        let length = self.length(field, WIRE_04)?;
        let mut behind = self.clone();
        behind.position = behind.position.saturating_add(8);
        // The copy replaces this cursor only at the end, so that a truncated window leaves the cursor at its start.
        let window = behind.split(length, field)?;
        *self = behind;
        Ok(window)
    }

    /// Returns a cursor over the next `length` bytes, with the same offsets, path and trace, and moves this cursor after them.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 when there are fewer bytes.
    pub fn split(&mut self, length: u64, field: &str) -> Result<Cursor<'a>, Violation> {
        // Copied before this cursor moves, because the window begins here.
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

    /// Notes the bytes that are left in the window after `what` (WIRE-08), and skips them.
    ///
    /// # Errors
    ///
    /// Returns WIRE-08 at the first remaining byte, under [`Strictness::Strict`](crate::rule::Strictness::Strict).
    pub fn finish(&mut self, what: &str, findings: &mut Findings) -> Result<(), Violation> {
        if self.is_at_end() {
            return Ok(());
        }
        // WIRE-08 is a finding, because released readers ignore the rest of a window with a length. In the layouts without lengths they
        // read it as the next module.
        let message = format!("{} bytes follow the end of {what}", self.remaining());
        findings
            .note(WIRE_08, Kind::Trailing, self.offset(), message)
            .map_err(|broken| broken.in_field(""))?;
        // The bytes are skipped and recorded, so that a dump shows them and no reader reads them again.
        self.skip_rest("trailing", WIRE_08);
        Ok(())
    }

    /// Skips the rest of the window and records it as `field`.
    pub(crate) fn skip_rest(&mut self, field: &str, rule: Rule) -> &'a [u8] {
        let (start, rest) = (self.offset(), self.rest());
        self.position = self.window.len();
        self.record(start, field, rule, TraceValue::Run(rest.len()));
        rest
    }

    /// Reads a number of `N` bytes, little endian.
    fn number<'f, const N: usize, T: Copy>(
        &mut self,
        field: &'f str,
        rule: Rule,
        decode: fn([u8; N]) -> T,
        value: fn(T) -> TraceValue<'static>,
    ) -> Result<ReadValue<'f, T>, Violation> {
        let start = self.offset();
        let rest = self.rest();
        // WIRE-01: a short number is not padded. The stream of tvm-ffi (0.22 on) returns the bytes that exist. There a truncated kind reads
        // as `_lib` and zeros, and kernel source loses its end without an error.
        let Some(whole) = rest.first_chunk() else {
            return Err(self.short(N as u64, field));
        };
        self.position = self.position.saturating_add(N);
        // WIRE-02: little endian on every host. 0.2 and 0.3 wrote the byte order of the host; no big-endian host is known to have written a
        // file.
        let number = decode(*whole);
        self.record(start, field, rule, value(number));
        Ok(ReadValue::new(number, start, field))
    }

    /// Returns the u64 at the cursor and records it as a length or count. The cursor does not move.
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

    /// Skips `length` bytes and returns them.
    fn advance(&mut self, length: u64, field: &str) -> Result<&'a [u8], Violation> {
        let rest = self.rest();
        // WIRE-01: on a 32-bit machine a length of 2^32 does not fit into `usize`, and is reported as truncated as elsewhere.
        let fits = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let Some(bytes) = fits else {
            return Err(self.short(length, field));
        };
        self.position = self.position.saturating_add(bytes.len());
        Ok(bytes)
    }

    /// Creates the violation of WIRE-01 for a `field` of `length` bytes, when fewer remain.
    #[cold]
    pub(super) fn short(&self, length: u64, field: &str) -> Violation {
        let message = format!("{field} needs {length} bytes, {} remain", self.remaining());
        // WIRE-01: the offset is that of the first byte of the field, and not of the end of the window.
        WIRE_01
            .broken(Kind::Truncated, self.offset(), message)
            .in_field(field)
    }

    /// Records a field from `start` to the current offset.
    fn record(&self, start: u64, field: &str, rule: Rule, value: TraceValue<'_>) {
        self.record_span(start, self.offset(), field, rule, value);
    }

    /// Records a field from `start` to `end`, if the trace wants it.
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
            // A field without bytes cannot be shown in a dump.
            && start < end
            && trace.wants(end)
        {
            trace.record(start, end, field, rule, value);
        }
    }
}
