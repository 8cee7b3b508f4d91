//! Types of stored tensors that releases read differently (TEN-02, TEN-04).

use super::stream::text;
use crate::release::{Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Dtype, Params, TEN_02, TensorRecord};

/// A stored tensor, and what its type meant to the release that wrote it, as far as the file shows that.
#[derive(Clone, Debug)]
pub(crate) struct TypedTensor {
    /// Its name, for messages; empty for a tensor that is a file.
    name: String,
    dtype: Dtype,
    /// The releases that write this type with this code, and its name.
    releases: Releases,
    meaning: &'static str,
    /// Where its type is stored, from the start of the file.
    offset: u64,
}

/// What the types of a parameter file mean. Those of no release, and custom types, are left out.
pub(crate) fn of_params(params: &Params<'_>) -> Vec<TypedTensor> {
    // TEN-41: magic, reserved word, count, the names with their lengths, count.
    let mut offset = params.iter().fold(32_u64, |offset, (name, _)| {
        offset.saturating_add(8).saturating_add(name.len() as u64)
    });
    let tensors = params.iter().map(|(name, record)| {
        let here = offset;
        let extents = (record.shape().len() as u64).saturating_mul(8);
        offset = offset
            .saturating_add(TensorRecord::SMALLEST as u64)
            .saturating_add(extents)
            .saturating_add(record.data().len() as u64);
        (name, record, here)
    });
    typed(&tensors.collect::<Vec<_>>())
}

/// What the type of a file that is one tensor means.
pub(crate) fn of_record(record: &TensorRecord<'_>) -> Vec<TypedTensor> {
    typed(&[("", record, 0)])
}

/// The types of tensors of one file, each with its name and its place.
fn typed(tensors: &[(&str, &TensorRecord<'_>, u64)]) -> Vec<TypedTensor> {
    // A release that wrote the file has a name for each of its types.
    let has_all = |release: &Release| {
        let mut dtypes = tensors.iter().map(|(_, record, _)| record.dtype());
        dtypes.all(|dtype| dtype.meaning(*release).is_some())
    };
    let writers: Vec<Release> = Release::all().filter(has_all).collect();
    let typed = tensors.iter().filter_map(|(name, record, start)| {
        let dtype = record.dtype();
        let mut meanings = dtype.meanings();
        let is_bool = || dtype.code != Dtype::BOOL || record.data().iter().all(|byte| *byte <= 1);
        let fits = |(of, meaning): &(Releases, &str)| {
            let written = writers.is_empty() || writers.iter().any(|one| of.contains(*one));
            written && (*meaning != "bool" || is_bool())
        };
        if meanings.iter().any(fits) {
            meanings.retain(fits);
        }
        // No compiler writes float8_e3m4, the newer meaning of code 7; bool is a type of many models, the newer one of code 6.
        let meant = match dtype.code {
            Dtype::BOOL => meanings.last(),
            _ => meanings.first(),
        };
        let (releases, meaning) = *meant?;
        Some(TypedTensor {
            name: text(name.as_bytes()).into_owned(),
            dtype,
            releases,
            meaning,
            // TEN-21: magic, reserved word, device and rank come before it.
            offset: start.saturating_add(28),
        })
    });
    typed.collect()
}

/// What `release` reads as another type than was written, or as none; `None` where it reads them all.
pub(super) fn misread(release: Release, tensors: &[TypedTensor]) -> Option<String> {
    let mut wrong = tensors
        .iter()
        .filter(|tensor| tensor.dtype.meaning(release) != Some(tensor.meaning));
    let first = wrong.next()?;
    let what = match first.name.as_str() {
        "" => "the tensor".to_owned(),
        name => format!("`{name}`"),
    };
    let TypedTensor {
        meaning, releases, ..
    } = first;
    let written = format!(
        "{meaning} as {} to {} write it",
        releases.since, releases.until
    );
    let how = match first.dtype.meaning(release) {
        Some(other) => format!("it reads {what}, {written}, as {other}"),
        None => {
            format!("it has no name for the type of {what}, {written}: reading that type fails")
        }
    };
    Some(match wrong.count() {
        0 => how,
        more => format!("{how}; so {more} more"),
    })
}

/// Notes TEN-02 for each tensor that the newest release reads as another type than it has.
pub(crate) fn note(tensors: &[TypedTensor], findings: &mut Findings) -> Result<(), Violation> {
    // TEN-04: the newest release has the bool of one bit too, as an integer.
    let wrong = tensors.iter().filter(|tensor| {
        tensor.dtype.code != Dtype::UINT
            && tensor.dtype.meaning(Release::LAST) != Some(tensor.meaning)
    });
    for tensor in wrong {
        let newest = tensor.dtype.meaning(Release::LAST).unwrap_or("no type");
        let TypedTensor {
            name,
            dtype,
            releases,
            meaning,
            offset,
        } = tensor;
        let message = format!(
            "type code {} of `{name}` is {meaning} up to {}, and {newest} for newer releases",
            dtype.code, releases.until
        );
        findings.note(TEN_02, Kind::UnknownKind, *offset, message)?;
    }
    Ok(())
}
