//! The other direction: values to bytes.

use super::Words;

/// Appends values in wire form to a growing buffer. Writing cannot fail.
#[derive(Clone, Debug, Default)]
pub struct Writer {
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

    /// A 16-bit unsigned integer.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// A 32-bit unsigned integer.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// A 32-bit signed integer.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit unsigned integer.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit signed integer.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// A 64-bit IEEE float.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// A bool as one byte.
    pub fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    /// The count in front of a vector or map.
    pub fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// A length and the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// A length and the text.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A count and every element through `write`.
    pub fn vector<T>(&mut self, elements: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.count(elements.len());
        for element in elements {
            write(self, element);
        }
    }

    /// A vector of u64.
    pub fn words(&mut self, words: &Words<'_>) {
        self.count(words.len());
        self.raw(words.as_bytes());
    }
}
