//! Types of stored tensors that releases interpret differently (TEN-02, TEN-04).

use super::stream::text;
use crate::release::{Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Dtype, Params, TEN_02, TensorRecord};

/// A stored tensor, and the meaning that its type had for the release that wrote it, as far as the file shows it.
#[derive(Clone, Debug)]
pub(crate) struct TypedTensor {
    /// The name of the tensor, for messages; empty for a tensor that is a file.
    name: String,
    dtype: Dtype,
    /// The releases that write this type with this code, and its name. `None` for custom types, and if no release has such a type.
    releases: Releases,
    meaning: Option<&'static str>,
    /// The offset of its type from the start of the file.
    offset: u64,
}

/// Determines the meaning of the types of a parameter file.
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

/// Determines the meaning of the type of a file that is one tensor.
pub(crate) fn of_record(record: &TensorRecord<'_>) -> Vec<TypedTensor> {
    typed(&[("", record, 0)])
}

/// Determines the types of the tensors of one file, each with its name and its offset.
fn typed(tensors: &[(&str, &TensorRecord<'_>, u64)]) -> Vec<TypedTensor> {
    // The release that wrote the file has a name for every type in it.
    let has_all = |release: &Release| {
        let mut dtypes = tensors.iter().map(|(_, record, _)| record.dtype());
        dtypes.all(|dtype| dtype.meaning(*release).is_some())
    };
    let writers: Vec<Release> = Release::all().filter(has_all).collect();
    let typed = tensors.iter().map(|(name, record, start)| {
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
        // Code 7 is never read as float8_e3m4, its newer meaning, because no compiler writes that type. Code 6 may be bool, its newer
        // meaning, which many models use.
        let meant = match dtype.code {
            Dtype::BOOL => meanings.last(),
            _ => meanings.first(),
        };
        TypedTensor {
            name: text(name.as_bytes()).into_owned(),
            dtype,
            releases: meant.map_or(Releases::ALL, |(releases, _)| *releases),
            meaning: meant.map(|(_, meaning)| *meaning),
            // TEN-21: magic, reserved word, device and rank come before it.
            offset: start.saturating_add(28),
        }
    });
    typed.collect()
}

/// Describes the types that `release` interprets differently or does not know; `None` if it reads all of them correctly.
pub(super) fn misread(release: Release, tensors: &[TypedTensor]) -> Option<String> {
    let mut wrong = tensors.iter().filter(|tensor| match tensor.meaning {
        Some(_) => tensor.dtype.meaning(release) != tensor.meaning,
        None => tensor.dtype.text(release).is_err(),
    });
    let first = wrong.next()?;
    let what = match first.name.as_str() {
        "" => "the tensor".to_owned(),
        name => format!("`{name}`"),
    };
    let TypedTensor {
        meaning, releases, ..
    } = first;
    let written = match meaning {
        Some(meaning) => format!(
            "{meaning} as {} to {} write it",
            releases.since, releases.until
        ),
        None => format!("code {}", first.dtype.code),
    };
    let how = match first.dtype.meaning(release) {
        Some(other) => format!("it reads {what}, {written}, as {other}"),
        // TEN-02: only a process that registered a custom type has a name for it.
        None if first.dtype.code >= Dtype::CUSTOM => format!(
            "it reads {what}, and reading its type, {written}, fails unless the process has registered a type of that code"
        ),
        None => {
            format!(
                "it loads the file, and has no name for the type of {what}, {written}: whatever asks for that type fails"
            )
        }
    };
    Some(match wrong.count() {
        0 => how,
        more => format!("{how}; so {more} more"),
    })
}

/// Records TEN-02 for each tensor whose type has another meaning to the newest release.
pub(crate) fn note(tensors: &[TypedTensor], findings: &mut Findings) -> Result<(), Violation> {
    // TEN-04: the newest release also has the bool of one bit, as an integer.
    let wrong = tensors.iter().filter(|tensor| {
        tensor.dtype.code != Dtype::UINT && tensor.dtype.meaning(Release::LAST) != tensor.meaning
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
        // TEN-33 is recorded if no release has the type.
        let Some(meaning) = meaning else {
            continue;
        };
        let message = format!(
            "type code {} of `{name}` is {meaning} up to {}, and {newest} for newer releases",
            dtype.code, releases.until
        );
        findings.note(TEN_02, Kind::UnknownKind, *offset, message)?;
    }
    Ok(())
}
