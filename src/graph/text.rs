//! JSON text with byte offsets: every value knows where it stands, and members keep their order and their repetitions.

use super::GRF_01;
use crate::rule::{Kind, Rule, Violation};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A JSON value that is still text, and its offset from the start of the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Json<'a> {
    text: &'a str,
    offset: u64,
}

impl<'a> Json<'a> {
    /// The whole document; anything that is not JSON breaks GRF-01.
    pub(super) fn document(text: &'a str) -> Result<Json<'a>, Violation> {
        let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
            let offset = offset_of(text, error.line(), error.column());
            let kind = if error.is_eof() {
                Kind::Truncated
            } else {
                Kind::Malformed
            };
            GRF_01.broken(kind, offset, format!("not JSON: {error}"))
        })?;
        Ok(Json {
            text: whole.get(),
            offset: distance(text, whole.get()),
        })
    }

    /// Offset of the first byte of the value.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The members of an object, in order, repetitions included.
    pub(super) fn members(
        &self,
        rule: Rule,
        what: &str,
    ) -> Result<Vec<(Cow<'a, str>, Json<'a>)>, Violation> {
        self.parse::<Members<'a>>(rule, what, "an object")
            .map(|members| {
                members
                    .0
                    .into_iter()
                    .map(|(key, value)| (key, self.inner(value)))
                    .collect()
            })
    }

    /// The elements of an array.
    pub(super) fn elements(&self, rule: Rule, what: &str) -> Result<Vec<Json<'a>>, Violation> {
        let elements = self.parse::<Elements<'a>>(rule, what, "a list")?;
        Ok(elements
            .0
            .into_iter()
            .map(|value| self.inner(value))
            .collect())
    }

    /// The element at `index`, to blame it: nothing where there is none.
    pub(super) fn at(&self, index: usize) -> Option<Json<'a>> {
        self.elements(GRF_01, "").ok()?.get(index).copied()
    }

    /// The member `name`, to blame it.
    pub(super) fn member(&self, name: &str) -> Option<Json<'a>> {
        let mut members = self.members(GRF_01, "").ok()?.into_iter();
        members.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A string.
    pub(super) fn string(&self, rule: Rule, what: &str) -> Result<String, Violation> {
        serde_json::from_str(self.text).map_err(|_| self.wrong(rule, what, "a string"))
    }

    /// An integer.
    pub(super) fn integer(&self, rule: Rule, what: &str) -> Result<i64, Violation> {
        serde_json::from_str(self.text).map_err(|_| self.wrong(rule, what, "an integer"))
    }

    /// An integer that counts or indexes.
    pub(super) fn index(&self, rule: Rule, what: &str) -> Result<usize, Violation> {
        serde_json::from_str(self.text).map_err(|_| self.wrong(rule, what, "an integer from 0 on"))
    }

    fn parse<T: serde::Deserialize<'a>>(
        &self,
        rule: Rule,
        what: &str,
        form: &str,
    ) -> Result<T, Violation> {
        serde_json::from_str(self.text).map_err(|_| self.wrong(rule, what, form))
    }

    fn wrong(&self, rule: Rule, what: &str, form: &str) -> Violation {
        let shown: String = self.text.chars().take(32).collect();
        rule.broken(
            Kind::Malformed,
            self.offset,
            format!("{what} must be {form}, not `{shown}`"),
        )
        .in_field(what)
    }

    fn inner(&self, value: &'a RawValue) -> Json<'a> {
        let text = value.get();
        Json {
            text,
            offset: self.offset.saturating_add(distance(self.text, text)),
        }
    }
}

/// How far behind the start of `outer` its part `inner` begins.
fn distance(outer: &str, inner: &str) -> u64 {
    (inner.as_ptr().addr() as u64).saturating_sub(outer.as_ptr().addr() as u64)
}

/// `serde_json` counts lines from 1 and columns in bytes.
fn offset_of(text: &str, line: usize, column: usize) -> u64 {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    before
        .saturating_add(column.saturating_sub(1))
        .min(text.len()) as u64
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    members.push((Cow::Owned(key), map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}

struct Elements<'a>(Vec<&'a RawValue>);

impl<'de> serde::Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }
        from.deserialize_seq(Collect)
    }
}
