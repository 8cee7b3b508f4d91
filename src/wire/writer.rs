//! The other direction: values to bytes.

use super::Words;

/// Appends values in wire form to a growing buffer. Writing cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// What was written so far.
    out: Vec<u8>,
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// `bytes` as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A 16-bit unsigned integer, little endian on every host (WIRE-02).
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// A 32-bit unsigned integer, little endian (WIRE-02).
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// A 32-bit signed integer, little endian (WIRE-02).
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit unsigned integer, little endian (WIRE-02).
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit signed integer, little endian (WIRE-02).
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit IEEE 754 float, little endian (WIRE-02). The bits of a NaN stay.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// A bool as one byte, 0 or 1 (WIRE-03).
    pub fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    /// The count in front of a vector or map, a u64 (WIRE-06, WIRE-07).
    pub fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// A u64 length in bytes, then the bytes, with nothing behind them (WIRE-04).
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// A u64 length in bytes, then the UTF-8 of the text, without a zero at its end (WIRE-04, WIRE-05).
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A u64 count, then every element through `write`, with nothing between them (WIRE-06).
    pub fn vector<T>(&mut self, elements: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.count(elements.len());
        for element in elements {
            write(self, element);
        }
    }

    /// A vector of u64: the count, then eight bytes for each word (WIRE-06).
    pub fn words(&mut self, words: &Words<'_>) {
        self.count(words.len());
        // They are in the form of a file, wherever they came from.
        self.raw(words.as_bytes());
    }
}
