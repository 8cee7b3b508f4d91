//! What a stored type means: a code that was assigned twice has two readings, and its bytes do not say which is meant.

use super::Dtype;
use super::text::{OLD_BOOL, names};
use crate::release::{Release, Releases};

impl Dtype {
    /// What the code and the bits mean in `release` (TEN-02, TEN-04), by the newest name of that type; `None` where the release has no
    /// name for them, and for custom types.
    ///
    /// `float8_e4m3fn` is called `e4m3_float8` up to 0.19, and `float8_e5m2` is called `e5m2_float8`. Other names are those of
    /// [`Dtype::text`], without bits and lanes.
    pub fn meaning(self, release: Release) -> Option<&'static str> {
        // TEN-04: bool is this type up to 0.22, and from 0.23 on it is an integer like others.
        if self == Dtype::scalar(Dtype::UINT, 1) {
            let is_bool = release.minor() <= *OLD_BOOL.end();
            return Some(if is_bool { "bool" } else { "uint1" });
        }
        let named = names(release).find(|name| name.code == self.code)?;
        let name = match named.text {
            "e4m3_float" => "float8_e4m3fn",
            "e5m2_float" => "float8_e5m2",
            name => name,
        };
        // TEN-06: the name of a small float states its width.
        let fits = match name.get(..7) {
            Some("float8_") => self.bits == 8,
            Some("float6_") => self.bits == 6,
            Some("float4_") => self.bits == 4,
            _ if name == "bool" => matches!(self.bits, 1 | 8),
            _ => true,
        };
        fits.then_some(name)
    }

    /// Every meaning of the code and the bits, oldest first, with the releases that have it.
    pub fn meanings(self) -> Vec<(Releases, &'static str)> {
        let mut all: Vec<(Releases, &'static str)> = Vec::new();
        for release in Release::all() {
            let Some(meaning) = self.meaning(release) else {
                continue;
            };
            match all.last_mut() {
                // A release between two of one meaning may have no name for the code: the meaning is still one.
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
}
