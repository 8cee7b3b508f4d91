//! TVM headers that C source includes. A release without one of them cannot compile the source.

use super::account::{Account, refine};
use super::library::describe_releases;
use crate::blob::container::{ContainerFile, ContainerPart};
use crate::examine::loading::{Load, LoadOutcome};
use crate::release::Release;

/// Refines `account` by the headers that the sources of `file` include.
///
/// Python's `load_module` compiles with the headers of the release that runs. The verdicts so far assume a library that was compiled
/// elsewhere.
pub(super) fn judge(file: &ContainerFile<'_>, account: &mut Account) {
    let headers = || {
        file.parts
            .iter()
            .flat_map(|part: &ContainerPart<'_>| &part.headers)
    };
    refine(&mut account.loads, |release: Release, load| {
        let missing = headers().find(|(_, releases)| !releases.contains(release));
        let (name, releases) = missing.filter(|_| load.outcome != LoadOutcome::Fails)?;
        Some(Load::fails(format!(
            "it does not compile with the headers of this release: it includes `{name}`, a header of {}. Compiled with those, {}",
            describe_releases(*releases),
            match load.outcome {
                LoadOutcome::Loads => format!("it loads, {}", load.why),
                _ => load.why.clone(),
            }
        )))
    });
}
