//! Values of expressions: numbers, and fields that were read before, in this sequence or in an enclosing one.

use super::super::text::{Atom, Sum};
use super::{Read, Reader};

impl Reader<'_, '_> {
    pub(super) fn sum(&self, sum: &Sum) -> Read<i128> {
        let mut total = 0_i128;
        for (plus, term) in &sum.0 {
            let mut product = 1_i128;
            for (times, atom) in term {
                let value = match atom {
                    Atom::Number(number) => *number,
                    Atom::Field(field) | Atom::Count(field) => self.value_of(field)?,
                    Atom::Product(field) => self.product(field)?,
                    Atom::Inner(inner) => self.sum(inner)?,
                };
                product = match times {
                    true => product.saturating_mul(value),
                    false => product.div_euclid(value),
                };
            }
            total = if *plus {
                total + product
            } else {
                total - product
            };
        }
        Ok(total)
    }

    fn product(&self, field: &str) -> Read<i128> {
        let (place, count) = self.search(field, |place| {
            let count = self.known.get(place)?;
            Some((place.to_owned(), *count))
        })?;
        let mut product = 1_i128;
        for index in 0..count {
            match self.known.get(&format!("{place}[{index}]")) {
                // Zero, even if another factor saturates.
                Some(0) => return Ok(0),
                Some(number) => product = product.saturating_mul(*number),
                None => return self.fault(format!("`{field}` is not of numbers")),
            }
        }
        Ok(product)
    }

    /// Finds a field in this sequence, or in an enclosing one.
    fn search<T>(&self, field: &str, wanted: impl Fn(&str) -> Option<T>) -> Read<T> {
        let mut around = self.path.as_str();
        loop {
            let place = match around {
                "" => field.to_owned(),
                around => format!("{around}.{field}"),
            };
            if let Some(found) = wanted(&place) {
                return Ok(found);
            }
            if around.is_empty() {
                return self.fault(format!("nothing is known of `{field}`"));
            }
            around = &around[..around.rfind('.').unwrap_or(0)];
        }
    }

    pub(super) fn value_of(&self, field: &str) -> Read<i128> {
        self.search(field, |place| self.known.get(place).copied())
    }

    pub(super) fn text_at(&self, field: &str) -> Read<String> {
        let content = self.search(field, |place| self.texts.get(place).cloned())?;
        let text = String::from_utf8_lossy(&self.bytes[content]);
        Ok(text.into_owned())
    }
}
