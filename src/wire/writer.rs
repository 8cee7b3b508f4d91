//! Writing of values in wire form.

use super::Words;

/// A growing buffer of values in wire form. Writing cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The bytes that were written so far.
    out: Vec<u8>,
}

impl Writer {
    /// Creates an empty buffer.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Returns the bytes that were written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes `bytes` without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Writes a 16-bit unsigned integer, little endian on every host (WIRE-02).
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a 32-bit unsigned integer, little endian (WIRE-02).
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a 32-bit signed integer, little endian (WIRE-02).
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a 64-bit unsigned integer, little endian (WIRE-02).
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a 64-bit signed integer, little endian (WIRE-02).
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a 64-bit IEEE 754 float, little endian (WIRE-02). The bits of a NaN are kept.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// Writes a bool as one byte, 0 or 1 (WIRE-03).
    pub fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    /// Writes the count of a vector or map as a u64 (WIRE-06, WIRE-07).
    pub fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// Writes a u64 length and the bytes, without padding (WIRE-04).
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// Writes a u64 length in bytes and the text in UTF-8, without a zero at its end (WIRE-04, WIRE-05).
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes a u64 count, and then every element through `write`, with nothing between them (WIRE-06).
    pub fn vector<T>(&mut self, elements: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.count(elements.len());
        for element in elements {
            write(self, element);
        }
    }

    /// Writes a vector of u64: the count, and then eight bytes for each word (WIRE-06).
    pub fn words(&mut self, words: &Words<'_>) {
        self.count(words.len());
        self.raw(words.as_bytes());
    }
}
