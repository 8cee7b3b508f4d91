//! The verdict of `explain` on a file that a command is about to write.

use super::CliError;
use super::output;
use std::path::Path;
use tvmspec::examine::loading::{Load, LoadOutcome};
use tvmspec::examine::{Format, Subject};
use tvmspec::release::{Layout, Release, Releases};

/// The verdict of releases on a file.
pub(super) enum Verdict {
    Loads,
    /// The reason why parts of it may not be loaded.
    Doubted(String),
    /// The reason why the requested release does not load it.
    Rejected(String),
}

impl Verdict {
    /// Judges a whole file, or a library binary in `layout`.
    ///
    /// If `release` rejects it, it is not written. If `release` may not load all of it, this is a doubt. Without a release, it is a
    /// doubt if no release of the layout loads it, because it may be meant for another reader.
    pub(super) fn judge(
        name: &str,
        bytes: &[u8],
        layout: Option<Layout>,
        release: Option<Release>,
    ) -> Result<Verdict, CliError> {
        let subject = Subject::open(name, bytes, layout).map_err(CliError::new)?;
        let layout = subject
            .units()
            .into_iter()
            .find_map(|unit| match unit.format {
                Format::Library { layout, .. } => Some(layout),
                _ => None,
            });
        // C text and code without a library binary have no layout.
        let layouts = layout.map_or(Releases::from(2), Layout::releases);
        // For host code without any symbol of TVM, the user decides.
        let Ok(accounts) = subject.explain_for(release) else {
            return Ok(Verdict::Loads);
        };
        let loads = accounts.iter().flat_map(|account| &account.loads);
        let mut loads = loads.filter(|(of, _)| of.until >= layouts.since);
        let Some(release) = release else {
            let fails = |(_, load): &(Releases, Load)| load.outcome == LoadOutcome::Fails;
            let of_layout: Vec<_> = loads.filter(|(of, _)| of.since <= layouts.until).collect();
            return Ok(match of_layout.last() {
                Some((_, load)) if of_layout.iter().all(|loads| fails(loads)) => {
                    let readers = layout.map_or(String::new(), |layout| {
                        format!(" that reads layout {layout}")
                    });
                    Verdict::Doubted(format!("no release{readers} loads {name}: {}", load.why))
                }
                _ => Verdict::Loads,
            });
        };
        Ok(
            match loads.find(|(_, load)| load.outcome != LoadOutcome::Loads) {
                Some((_, load)) if load.outcome == LoadOutcome::Fails => {
                    Verdict::Rejected(format!("tvm {release} does not load it: {}", load.why))
                }
                Some((_, load)) => Verdict::Doubted(format!("tvm {release} and {name}: {load}")),
                None => Verdict::Loads,
            },
        )
    }

    /// Returns whether the requested release does not load it.
    pub(super) fn is_rejected(&self) -> bool {
        matches!(self, Verdict::Rejected(_))
    }

    /// Turns a rejection into a doubt.
    pub(super) fn rejection_to_doubt(self) -> Verdict {
        match self {
            Verdict::Rejected(why) => Verdict::Doubted(why),
            other => other,
        }
    }

    /// Reports a rejection as an error, and a doubt as a warning.
    pub(super) fn report(self, output: &Path) -> Result<(), CliError> {
        match self {
            Verdict::Rejected(why) => Err(CliError::new(format!(
                "{} is not written, because {why}",
                output::file_name(output)
            ))),
            Verdict::Doubted(why) => {
                output::warning(format_args!("{why}"));
                Ok(())
            }
            Verdict::Loads => Ok(()),
        }
    }
}
