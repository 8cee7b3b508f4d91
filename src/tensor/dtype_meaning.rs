//! The meaning of a stored type. A code that was assigned twice has two meanings, and the bytes do not show which one applies.

use super::Dtype;
use super::dtype_text::{OLD_BOOL, names};
use crate::release::{Release, Releases};

impl Dtype {
    /// Returns the meaning of the code and the bits in `release` (TEN-02, TEN-04), as the newest name of that type. Returns `None` if
    /// the release has no name for them, and for custom types.
    ///
    /// `float8_e4m3fn` was called `e4m3_float8` up to 0.19, and `float8_e5m2` was called `e5m2_float8`. Other names are those of
    /// [`Dtype::text`], without bits and lanes.
    pub fn meaning(self, release: Release) -> Option<&'static str> {
        // TEN-04: up to 0.22 this type is bool; from 0.23 on it is an integer like others.
        if self == Dtype::scalar(Dtype::UINT, 1) {
            let is_bool = release.minor() <= *OLD_BOOL.end();
            return Some(if is_bool { "bool" } else { "uint1" });
        }
        let named = names(release).find(|name| name.code == self.code)?;
        let (name, fits) = match named.text {
            "e4m3_float" => ("float8_e4m3fn", self.bits == 8),
            "e5m2_float" => ("float8_e5m2", self.bits == 8),
            "bool" => ("bool", matches!(self.bits, 1 | 8)),
            // TEN-06: the name of a small float contains its width.
            name => (name, !named.fixed || self.bits == named.bits),
        };
        fits.then_some(name)
    }

    /// Returns every meaning of the code and the bits, oldest first, with its releases.
    pub fn meanings(self) -> Vec<(Releases, &'static str)> {
        let mut all: Vec<(Releases, &'static str)> = Vec::new();
        for release in Release::all() {
            let Some(meaning) = self.meaning(release) else {
                continue;
            };
            match all.last_mut() {
                // A release between two others with this meaning may have no name for the code; the range still covers it.
                Some((releases, last)) if *last == meaning => releases.until = release,
                _ => all.push((
                    Releases {
                        since: release,
                        until: release,
                    },
                    meaning,
                )),
            }
        }
        all
    }

    /// Returns the name in the releases of `era` for a type whose code was assigned twice (TEN-02). If the era includes both meanings,
    /// returns both names with their releases: `float8_e4m3fn (to 0.20) or bool (from 0.22)`. Returns `None` for all other types, which
    /// have one name.
    pub fn name_in(self, era: Releases) -> Option<String> {
        // With one bit, the type can only be bool. Scalable lanes have no number that could be written.
        let is_named = matches!(self.code, Dtype::BOOL..=Dtype::LAST) && self.bits != 1;
        if !is_named || !(1..=1 << 15).contains(&self.lanes) {
            return None;
        }
        let lanes = match self.lanes {
            1 => String::new(),
            lanes => format!("x{lanes}"),
        };
        let mut meanings = self.meanings();
        meanings.retain(|(of, _)| of.since <= era.until && era.since <= of.until);
        match meanings.as_slice() {
            [(_, only)] => Some(format!("{only}{lanes}")),
            [(old, first), (new, last)] => Some(format!(
                "{first}{lanes} (to {}) or {last}{lanes} (from {})",
                old.until, new.since
            )),
            _ => None,
        }
    }
}
