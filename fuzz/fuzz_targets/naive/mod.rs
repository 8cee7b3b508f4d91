//! Independent readers for differential fuzzing: slow, close to the text of `spec/`, and without code from `src/`.
//!
//! A reader returns `None` if the input breaks a MUST, and collects the ids of broken SHOULDs in a set. A target asserts that this reader
//! and the library accept the same input with the same findings. This detects a check or a field that is missing on one side.
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

/// The ids of broken SHOULD rules.
pub type Odd = BTreeSet<String>;

/// Returns the findings of the library in the chapters with these id prefixes.
pub fn findings(findings: &Findings, chapters: &[&str]) -> Odd {
    let ids = findings.as_slice().iter().map(|finding| finding.rule.id().to_owned());
    ids.filter(|id| chapters.iter().any(|chapter| id.starts_with(chapter))).collect()
}

/// Bytes not yet read.
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

    /// Reads bytes by WIRE-04.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u64()?;
        self.take(count)
    }

    /// Reads a text by WIRE-05.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Reads a vector by WIRE-06. Every element here takes at least one byte, so the remaining bytes bound the count.
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
