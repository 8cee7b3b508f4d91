//! A reader that uses only the productions. It knows the notation and none of the formats.

mod expressions;
mod scalars;

use super::text::{At, Item, Kind, Literal, Production, Relation};
use std::collections::HashMap;
use std::ops::Range;

/// The releases of a reading: those that write the layout.
pub(crate) type Releases = (u8, u8);

/// One field: its path, its bytes, its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) path: String,
    pub(crate) bytes: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(i128),
    Float(f64),
    /// The bytes themselves.
    Run,
    /// A count before that many bytes or elements.
    Count(usize, &'static str),
}

/// The fields that were read, and the productions that were used.
pub(crate) struct Reading<'g> {
    pub(crate) leaves: Vec<Leaf>,
    /// In the order of their first use.
    pub(crate) used: Vec<&'g Production>,
}

/// The reason why bytes cannot be read, and the offset.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) why: String,
}

type Read<T = ()> = Result<T, Fault>;

/// All productions of the specification.
pub(crate) struct Grammar {
    pub(crate) productions: Vec<Production>,
}

impl Grammar {
    /// Reads all of `bytes` by a production `name` of these releases: the first one that reads to the end, or else the first one that
    /// reads.
    pub(crate) fn read<'g>(
        &'g self,
        name: &str,
        releases: Releases,
        bytes: &[u8],
    ) -> Read<Reading<'g>> {
        let is_there = |one: &&Production| one.name == name && !one.is_kind;
        let forms: Vec<&Production> = self.productions.iter().filter(is_there).collect();
        assert!(!forms.is_empty(), "no production `{name}`");
        let mut reader = Reader::new(self, releases, bytes);
        let forms = forms
            .into_iter()
            .filter(|form| overlap(form.releases, releases));
        reader.first_whole(&forms.collect::<Vec<_>>())?;
        reader.finish();
        Ok(reader.reading())
    }

    /// Reads all of `bytes` as the payload of a module of `kind`.
    pub(crate) fn read_payload<'g>(
        &'g self,
        kind: &str,
        releases: Releases,
        bytes: &[u8],
    ) -> Read<Reading<'g>> {
        let mut reader = Reader::new(self, releases, bytes);
        reader.payload(kind)?;
        reader.finish();
        Ok(reader.reading())
    }

    /// Reads all of `bytes` as a sequence.
    pub(crate) fn read_items<'g>(&'g self, items: &[Item], bytes: &[u8]) -> Read<Reading<'g>> {
        let mut reader = Reader::new(self, (2, 27), bytes);
        reader.items(items)?;
        reader.finish();
        Ok(reader.reading())
    }
}

fn overlap(a: Releases, b: Releases) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

struct Reader<'g, 'b> {
    grammar: &'g Grammar,
    releases: Releases,
    bytes: &'b [u8],
    at: usize,
    /// The end of the window.
    end: usize,
    path: String,
    leaves: Vec<Leaf>,
    used: Vec<&'g Production>,
    /// Numbers and counts that expressions refer to, by path.
    known: HashMap<String, i128>,
    /// The positions of texts that a choice refers to, by path.
    texts: HashMap<String, Range<usize>>,
}

impl<'g, 'b> Reader<'g, 'b> {
    fn new(grammar: &'g Grammar, releases: Releases, bytes: &'b [u8]) -> Self {
        Reader {
            grammar,
            releases,
            bytes,
            at: 0,
            end: bytes.len(),
            path: String::new(),
            leaves: Vec::new(),
            used: Vec::new(),
            known: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    fn reading(self) -> Reading<'g> {
        let mut used: Vec<&Production> = Vec::new();
        for form in self.used {
            if used.iter().all(|known| known.text != form.text) {
                used.push(form);
            }
        }
        Reading {
            leaves: self.leaves,
            used,
        }
    }

    fn fault<T>(&self, why: impl Into<String>) -> Read<T> {
        Err(Fault {
            at: self.at,
            why: format!("{}: {}", self.path, why.into()),
        })
    }

    /// Adds the rest of the window as a field (WIRE-08).
    fn finish(&mut self) {
        if self.at < self.end {
            let start = self.at;
            self.at = self.end;
            self.within("trailing", |reader| reader.leaf(start, Value::Run));
        }
    }

    fn items(&mut self, items: &[Item]) -> Read {
        items.iter().try_for_each(|item| self.item(item))
    }

    fn item(&mut self, item: &Item) -> Read {
        match item {
            Item::Guard(left, relation, right) => {
                let (left, right) = (self.sum(left)?, self.sum(right)?);
                let holds = match relation {
                    Relation::Equal => left == right,
                    Relation::Greater => left > right,
                };
                if holds {
                    Ok(())
                } else {
                    self.fault(format!("{left} {relation:?} {right} does not hold"))
                }
            }
            Item::Field {
                name: None,
                kind,
                is,
            } => self.kind(kind, is.as_ref()),
            Item::Field {
                name: Some(name),
                kind,
                is,
            } => self.within(name, |reader| reader.kind(kind, is.as_ref())),
        }
    }

    /// Runs `read` with `name` added to the path.
    fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.path.len();
        if !self.path.is_empty() && !name.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = read(self);
        self.path.truncate(outside);
        result
    }

    fn kind(&mut self, kind: &Kind, is: Option<&Literal>) -> Read {
        match kind {
            Kind::Plain(name) => self.plain(name, is),
            Kind::Group(items) => self.items(items),
            Kind::Name(name, at) => self.name(name, at),
            Kind::Payload(field) => {
                let kind = self.text_at(field)?;
                self.payload(&kind)
            }
            Kind::Raw(length) => {
                let length = self.sum(length)?;
                let start = self.at;
                self.take(length)?;
                self.leaf(start, Value::Run);
                Ok(())
            }
            Kind::Vector(items) => {
                let start = self.at;
                let count = self.number(8, false)?;
                let count = self.fitting(count, start)?;
                self.known.insert(self.path.clone(), count as i128);
                self.leaf(start, Value::Count(count, "elements"));
                self.elements(count, |reader| reader.items(items))
            }
            Kind::Times(kind, count) => {
                let count = self.sum(count)?;
                let count = self.fitting(count, self.at)?;
                self.known.insert(self.path.clone(), count as i128);
                self.elements(count, |reader| reader.kind(kind, None))
            }
            Kind::Window(items) => {
                let start = self.at;
                let length = self.number(8, false)?;
                let length = self.fitting(length, start)?;
                self.leaf(start, Value::Count(length, "bytes"));
                let outside = (self.end, self.path.clone());
                self.end = self.at + length;
                // The fields inside are siblings of the length.
                let shorter = self.path.rfind('.').unwrap_or(0);
                self.path.truncate(shorter);
                let read = self.items(items);
                if read.is_ok() {
                    self.finish();
                }
                (self.end, self.path) = outside;
                read
            }
        }
    }

    fn elements(&mut self, count: usize, mut read: impl FnMut(&mut Self) -> Read) -> Read {
        for index in 0..count {
            self.within(&format!("[{index}]"), &mut read)?;
        }
        Ok(())
    }

    fn name(&mut self, name: &str, at: &At) -> Read {
        let releases = match at {
            At::Here => self.releases,
            At::Release(since) => (*since, *since),
            At::Field(field) => {
                let release = self.value_of(field)? as u8;
                (release, release)
            }
        };
        let grammar = self.grammar;
        let mut forms = grammar.productions.iter();
        let found =
            forms.find(|one| one.name == name && !one.is_kind && overlap(one.releases, releases));
        match found {
            Some(form) => self.production(form),
            None => self.fault(format!(
                "no `{name}` in 0.{} to 0.{}",
                releases.0, releases.1
            )),
        }
    }

    /// Reads the payload of a module of `kind`. Its forms are tried in order.
    fn payload(&mut self, kind: &str) -> Read {
        let grammar = self.grammar;
        let forms: Vec<&Production> = grammar
            .productions
            .iter()
            .filter(|one| one.is_kind && one.name == kind && overlap(one.releases, self.releases))
            .collect();
        let is_framed = self.releases.0 >= 22;
        if is_framed && self.at == self.end && !forms.is_empty() {
            return Ok(());
        }
        if forms.is_empty() {
            if !is_framed {
                return self.fault(format!("no payload of kind `{kind}`"));
            }
            let start = self.at;
            self.at = self.end;
            if start < self.end {
                self.within("payload", |reader| reader.leaf(start, Value::Run));
            }
            return Ok(());
        }
        if is_framed {
            self.first_whole(&forms)
        } else {
            self.first(&forms, false)
        }
    }

    /// Reads the first form that reaches the end of the window, or else the first one that reads.
    fn first_whole(&mut self, forms: &[&'g Production]) -> Read {
        match self.first(forms, true) {
            Ok(()) => Ok(()),
            Err(_) => self.first(forms, false),
        }
    }

    fn first(&mut self, forms: &[&'g Production], to_the_end: bool) -> Read {
        let mut furthest: Option<Fault> = None;
        let before = (self.at, self.leaves.len(), self.used.len());
        for form in forms {
            let mut read = self.production(form);
            if read.is_ok() && to_the_end && self.at < self.end {
                read = self.fault("bytes follow");
            }
            let Err(fault) = read else { return Ok(()) };
            self.at = before.0;
            self.leaves.truncate(before.1);
            self.used.truncate(before.2);
            if furthest.as_ref().is_none_or(|known| known.at < fault.at) {
                furthest = Some(fault);
            }
        }
        match furthest {
            Some(fault) => Err(fault),
            None => self.fault("no production of these releases"),
        }
    }

    fn production(&mut self, form: &'g Production) -> Read {
        let before = (self.at, self.leaves.len(), self.used.len());
        let mut furthest: Option<Fault> = None;
        for items in &form.alternatives {
            self.used.push(form);
            let Err(fault) = self.items(items) else {
                return Ok(());
            };
            self.at = before.0;
            self.leaves.truncate(before.1);
            self.used.truncate(before.2);
            if furthest.as_ref().is_none_or(|known| known.at < fault.at) {
                furthest = Some(fault);
            }
        }
        Err(furthest.expect("a production has an alternative"))
    }

    /// Reads a little-endian integer.
    fn number(&mut self, width: i128, signed: bool) -> Read<i128> {
        let start = self.at;
        self.take(width)?;
        let bytes = &self.bytes[start..self.at];
        let number = bytes
            .iter()
            .rev()
            .fold(0_i128, |number, byte| number << 8 | i128::from(*byte));
        let bits = width * 8;
        let is_negative = signed && number >> (bits - 1) != 0;
        Ok(if is_negative {
            number - (1 << bits)
        } else {
            number
        })
    }

    fn take(&mut self, length: i128) -> Read {
        match usize::try_from(length) {
            Ok(length) if length <= self.end - self.at => {
                self.at += length;
                Ok(())
            }
            _ => self.fault(format!("{length} bytes, {} are left", self.end - self.at)),
        }
    }

    /// Checks that the rest can hold this count or length, with elements of at least one byte.
    fn fitting(&mut self, count: i128, start: usize) -> Read<usize> {
        match usize::try_from(count) {
            Ok(count) if count <= self.end - self.at => Ok(count),
            _ => {
                let left = self.end - self.at;
                self.at = start;
                self.fault(format!("{count} counted, {left} bytes are left"))
            }
        }
    }

    fn leaf(&mut self, start: usize, value: Value) {
        if start < self.at {
            self.leaves.push(Leaf {
                path: self.path.clone(),
                bytes: start..self.at,
                value,
            });
        }
    }
}
