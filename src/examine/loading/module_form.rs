//! The verdict of a release on one module, from its kind and the form of its payload alone.

use super::{Load, LoadCause};
use crate::payload::kinds::loader_prefix;
use crate::payload::relay_vm::{RelayConstant, RelayExecutable};
use crate::payload::{self, Payload};
use crate::release::Release;

/// Returns the reason why code of another version is rejected (PAY-62).
pub(super) fn foreign_version(version: &str) -> String {
    format!("its Relay VM code is of {version}, and a runtime loads only its own")
}

/// Checks whether `release` reads a payload, from its kind and form alone. Returns the verdict if the release does not read it, and
/// `None` otherwise.
pub(super) fn reads(
    release: Release,
    kind: &str,
    payload: Option<&Payload<'_>>,
) -> Result<(), Load> {
    // The file does not show whether a loader is registered for an unknown kind.
    let Some(info) = payload::kind_info(kind) else {
        return Ok(());
    };
    let Some(loader) = info.loader(release) else {
        // PAY-34, PAY-40, PAY-81: three kinds were renamed, and the old names are no longer loaded.
        let renamed = match info.renamed {
            Some((to, since)) if since <= release => {
                format!("; the kind is called `{to}` since {since}")
            }
            _ => String::new(),
        };
        let cause = LoadCause::NoLoader {
            module: None,
            kind: kind.to_owned(),
        };
        return Err(Load::fails(format!(
            "no loader `{}{kind}` is registered in it{renamed}",
            loader_prefix(release)
        ))
        .with_cause(cause));
    };
    reads_content(release, kind, payload)?;
    // Without a grammar, there is no form to compare.
    let Some(Payload::Known(known)) = payload else {
        return Ok(());
    };
    let form = known.form();
    // PAY-13: the writer stores no format, but the reader expects one first.
    if kind == "opencl" && form.name == "0.13" {
        return Err(of_other_form(
            kind,
            format!(
                "it is the SPIR-V form of 0.13 to 0.23, which `{loader}` cannot read in any release"
            ),
        ));
    }
    // PAY-16, PAY-18: the forms of Metal have the same fields in three orders, and no byte tells which.
    if kind == "metal" && form.name == "0.2" && release >= Release::of(13) {
        return Err(of_other_form(
            kind,
            format!(
                "it is a metal payload of 0.12 or before, or of a compiler without Metal; `{loader}` expects another order of fields"
            ),
        ));
    }
    // PAY-34: a renamed kind has the same bytes as under its old name.
    let is_renamed = info.renamed.is_some_and(|(_, since)| since <= release);
    if !form.releases.contains(release) && !is_renamed {
        return Err(of_other_form(
            kind,
            format!(
                "its payload is of the form that {} writes, which `{loader}` misreads",
                form.releases
            ),
        ));
    }
    Ok(())
}

/// Returns the verdict on a payload that the loader of `release` accepts, but that fails later.
pub(super) fn fails_later(release: Release, kind: &str, payload: &Payload<'_>) -> Option<Load> {
    // PAY-12: `cuda` is the format of source. A loader that cannot compile passes it on without checking the format.
    if kind == "cuda" && payload.format() == Some("cuda") && release < Release::of(24) {
        return Some(Load::silent(
            "its code is CUDA source, which is compiled while loading from 0.24 on; before, the driver receives the text as if it were compiled, and rejects it at the first kernel",
        ));
    }
    payload.relay_vm().and_then(without_late_constants)
}

/// Returns the verdict on Relay VM code with constants that are loaded later (PAY-66); `None` if it has none.
pub(super) fn without_late_constants(executable: &RelayExecutable<'_>) -> Option<Load> {
    let late = executable
        .constants
        .iter()
        .filter_map(|constant| match constant {
            RelayConstant::Late(name) => Some(format!("`{}`", name.escape_debug())),
            RelayConstant::Tensor(_) => None,
        });
    let mut late = late.peekable();
    late.peek()?;
    let first: Vec<String> = late.by_ref().take(8).collect();
    let more = match late.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Load::fails(format!(
        "it opens it, and making its virtual machine fails before its late-bound constants ({}{more}) are loaded from their own file (`load_late_bound_consts`)",
        first.join(", ")
    )))
}

/// Makes the checks of [`reads`] that also apply to files.
pub(super) fn reads_content(
    release: Release,
    kind: &str,
    payload: Option<&Payload<'_>>,
) -> Result<(), Load> {
    // PAY-62: a runtime accepts only its own version.
    if let Some(executable) = payload.and_then(Payload::relay_vm)
        && !is_of(release, &executable.version)
    {
        return Err(of_other_form(kind, foreign_version(&executable.version)));
    }
    let scopes = payload
        .and_then(Payload::relax_vm)
        .is_some_and(|executable| executable.memory_scopes.is_some());
    if scopes && release < Release::of(23) {
        return Err(of_other_form(
            kind,
            format!(
                "the {kind} has the magic of 0.23 and later, with memory scopes, which earlier releases reject"
            ),
        ));
    }
    Ok(())
}

/// Creates the verdict on a payload of a form that the loader does not read.
fn of_other_form(kind: &str, why: String) -> Load {
    Load::fails(why).with_cause(LoadCause::OtherForm {
        module: None,
        kind: kind.to_owned(),
    })
}

/// Returns whether `version`, such as `0.8.0` or `0.9.dev0`, belongs to `release`.
///
/// Patches and development versions count as their release.
pub(super) fn is_of(release: Release, version: &str) -> bool {
    version.parse::<Release>().is_ok_and(|of| of == release)
}
