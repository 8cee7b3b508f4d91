//! Types by their names.

use crate::release::Releases;
use crate::tensor::Dtype;
use crate::tensor::json::from_dtype;
use serde_json::Value;

/// The type by the name that the releases of `era` have for it. Where its code was assigned twice and the era does not decide, that is both
/// names with their releases (TEN-02).
pub(super) fn of_era(dtype: Dtype, era: Releases) -> Value {
    let newest = from_dtype(dtype);
    if !matches!(dtype.code, Dtype::BOOL..=Dtype::LAST) || dtype.lanes != 1 {
        return newest;
    }
    let mut meanings = dtype.meanings();
    meanings.retain(|(of, _)| of.since <= era.until && era.since <= of.until);
    match meanings.as_slice() {
        [(_, only)] if dtype.bits != 1 => (*only).into(),
        [(old, first), (new, last)] => {
            format!("{first} (to {}) or {last} (from {})", old.until, new.since).into()
        }
        _ => newest,
    }
}
