//! Members of an index, each with its path.

use crate::rule::{Detail, Kind, Rule, Violation};
use serde_json::{Map, Value};

/// A JSON value with its path.
pub(super) struct Member<'v> {
    /// The JSON value.
    pub(super) value: &'v Value,
    /// The path from the root, as messages show it: `records[0].nbytes`; empty for the root.
    pub(super) path: String,
}

impl<'v> Member<'v> {
    /// Returns the whole index, which must be an object by `rule`.
    pub(super) fn root(value: &'v Value, rule: Rule) -> Result<Member<'v>, Violation> {
        let root = Member {
            value,
            path: String::new(),
        };
        root.members()
            .ok_or_else(|| root.wrong(rule, "an object"))?;
        Ok(root)
    }

    /// Returns the member `name`, if it exists.
    pub(super) fn find(&self, name: &str) -> Option<Member<'v>> {
        let value = self.members()?.get(name)?;
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Some(Member { value, path })
    }

    /// Returns the member `name`, which `rule` requires.
    pub(super) fn get(&self, name: &str, rule: Rule) -> Result<Member<'v>, Violation> {
        if self.members().is_none() {
            return Err(self.wrong(rule, "an object"));
        }
        self.find(name).ok_or_else(|| {
            let message = format!("{} has no `{name}`", self.describe_place());
            rule.rejected(Kind::Missing, message)
                .in_field(self.path.as_str())
        })
    }

    /// Returns the elements of a list.
    pub(super) fn list(&self, rule: Rule) -> Result<Vec<Member<'v>>, Violation> {
        let list = self.value.as_array();
        let list = list.ok_or_else(|| self.wrong(rule, "a list"))?;
        let items = list.iter().enumerate().map(|(index, value)| Member {
            value,
            path: format!("{}[{index}]", self.path),
        });
        Ok(items.collect())
    }

    /// Returns the value as text.
    pub(super) fn text(&self, rule: Rule) -> Result<&'v str, Violation> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.wrong(rule, "a text"))
    }

    /// Returns the value as an integer, without fraction or exponent.
    pub(super) fn integer(&self, rule: Rule) -> Result<i64, Violation> {
        let number = self.value.as_i64();
        number.ok_or_else(|| self.wrong(rule, "a 64-bit integer"))
    }

    /// Returns the value as an integer that is not negative.
    pub(super) fn count(&self, rule: Rule) -> Result<u64, Violation> {
        let count = u64::try_from(self.integer(rule)?);
        count.map_err(|_| {
            self.wrong(rule, "a number of bytes")
                .with_detail(Some(Detail::Negative))
        })
    }

    /// Adds the path of this member to a violation about it.
    pub(super) fn locate(&self, checked: Result<(), Violation>) -> Result<(), Violation> {
        checked.map_err(|broken| broken.in_field(self.path.as_str()))
    }

    fn members(&self) -> Option<&'v Map<String, Value>> {
        self.value.as_object()
    }

    fn describe_place(&self) -> String {
        match self.path.as_str() {
            "" => "the index".to_owned(),
            path => format!("`{path}`"),
        }
    }

    fn wrong(&self, rule: Rule, expected: &str) -> Violation {
        let message = format!("{} is not {expected}", self.describe_place());
        rule.rejected(Kind::Malformed, message)
            .in_field(self.path.as_str())
    }
}
