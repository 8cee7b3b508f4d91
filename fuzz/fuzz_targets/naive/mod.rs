//! The rules of the reading chapters once more: slow, in the words of `spec/`, with no code of `src/`.
//!
//! `None` is a broken MUST; what a SHOULD calls odd is a set of ids. A target asserts that whatever the library reads is read
//! here as well, with the same oddities, and that
//! whatever is read here is read there: a check that is missing there is then noticed, and a field that is.
#![allow(dead_code)]

pub mod blob;
pub mod graph;
pub mod payload;
pub mod relay;
pub mod tensor;
pub mod tree;
pub mod vm;
pub mod wire;

use std::collections::BTreeSet;
use tvmspec::rule::Findings;

/// Ids of the rules that are not kept and may be broken.
pub type Odd = BTreeSet<String>;

/// What the library calls odd, of the chapters whose ids begin so.
pub fn findings(findings: &Findings, chapters: &[&str]) -> Odd {
    let ids = findings.as_slice().iter().map(|finding| finding.rule.id().to_owned());
    ids.filter(|id| chapters.iter().any(|chapter| id.starts_with(chapter))).collect()
}

/// Bytes that are not yet read.
#[derive(Clone, Copy)]
pub struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    pub fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn number(&mut self, count: u64) -> Option<u64> {
        let bytes = self.take(count)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.number(2).map(|number| number as u16)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.number(4).map(|number| number as u32 as i32)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.u64().map(u64::cast_signed)
    }

    /// WIRE-04.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u64()?;
        self.take(count)
    }

    /// WIRE-05.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// WIRE-06: no element takes less than a byte here, so a count beyond the bytes is one beyond the elements.
    pub fn vector<T>(&mut self, mut one: impl FnMut(&mut In<'a>) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u64()?;
        if count > self.0.len() as u64 {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    pub fn words(&mut self) -> Option<Vec<u64>> {
        self.vector(|from| from.u64())
    }
}
