//! The report on one library or one file.

use super::linked_image::MachineFindings;
use crate::examine::loading::{Load, LoadOutcome};
use crate::payload::CodeNeed;
use crate::release::{Release, Releases};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The report on one library binary, or on a part without one: how each release treats it.
///
/// ```
/// use tvmspec::examine::Subject;
/// use tvmspec::examine::loading::LoadCause;
/// use tvmspec::release::Release;
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// let account = Subject::open("tree3-0.8.so", &file, None)?.explain()?.remove(0);
/// assert!(account.releases_that_load().any(|release| release == Release::of(8)));
/// let newest = account.load_in(Release::LAST).expect("every release was judged");
/// assert!(matches!(newest.cause, LoadCause::OtherSymbol { .. }), "{newest}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Account {
    /// The name and the format of the library or the file.
    pub title: String,
    /// The reason why no release opens the file as it is, and what to do. The other fields then describe the library that is made from
    /// it.
    pub raw: Option<String>,
    /// True if the container is broken. Then every verdict is a failure or unknown, with the broken rule as its cause. The needs on this
    /// machine are not known.
    pub is_broken: bool,
    /// True if no release has the kind of a module, so that its payload was guessed or not read (BLOB-06).
    pub has_unknown_kind: bool,
    /// The verdicts, one for each range of consecutive releases with the same verdict.
    pub loads: Vec<(Releases, Load)>,
    /// The parts of the file that the verdict is based on; `None` if that is the whole file.
    pub looked_at: Option<&'static str>,
    /// The obstacles that the system loader meets on this machine, before TVM reads anything.
    pub here: MachineFindings,
    /// The needs of each module.
    pub needs: Vec<Need>,
    /// Further remarks for the user.
    pub remarks: Vec<String>,
}

/// The requirements for loading a module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Need {
    /// Its number in the library binary.
    pub module: usize,
    /// Its kind.
    pub kind: String,
    /// A description of the kind.
    pub about: String,
    /// The loader of each release, by its registered name.
    pub loaders: Vec<(Releases, String)>,
    /// The part of TVM that registers that loader.
    pub registered_by: String,
    /// The former or the current name of a renamed kind.
    pub renamed: Option<String>,
    /// The requirements of its device code.
    pub code: BTreeSet<CodeNeed>,
    /// The results of devices of this machine for that code; empty if no device was asked.
    pub here: Vec<String>,
}

/// Returns the verdict of each release, with consecutive releases of the same verdict merged.
///
/// If `only` is set, judges that release alone. `load` is called once for each release, in order.
pub(super) fn loads(
    only: Option<Release>,
    load: impl Fn(Release) -> Load,
) -> Vec<(Releases, Load)> {
    let mut all: Vec<(Releases, Load)> = Vec::new();
    for release in Release::all().filter(|release| only.is_none_or(|only| only == *release)) {
        append(&mut all, release, load(release));
    }
    all
}

/// Adds the verdict of `release`, which must be the release after those of `all`.
fn append(all: &mut Vec<(Releases, Load)>, release: Release, load: Load) {
    match all.last_mut() {
        // The reason is compared too, so that two releases that fail differently are two entries.
        Some((range, last)) if last.outcome == load.outcome && last.why == load.why => {
            range.until = release;
        }
        _ => all.push((
            Releases {
                since: release,
                until: release,
            },
            load,
        )),
    }
}

/// Replaces the verdicts of those releases for which `judge` returns a better one.
pub(super) fn refine(
    all: &mut Vec<(Releases, Load)>,
    judge: impl Fn(Release, &Load) -> Option<Load>,
) {
    let mut refined: Vec<(Releases, Load)> = Vec::new();
    for (releases, load) in all.drain(..) {
        for release in Release::all().filter(|release| releases.contains(*release)) {
            let better = judge(release, &load);
            append(
                &mut refined,
                release,
                better.unwrap_or_else(|| load.clone()),
            );
        }
    }
    *all = refined;
}

impl Account {
    /// Creates a report with these verdicts and nothing else.
    pub(super) fn new(title: String, loads: Vec<(Releases, Load)>) -> Account {
        Account {
            title,
            raw: None,
            is_broken: false,
            has_unknown_kind: false,
            loads,
            looked_at: None,
            here: MachineFindings::default(),
            needs: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Returns whether the file is known to load as it is and, if this machine was examined, on this machine.
    ///
    /// Every entry of `loads` must load: a report for all releases is good only if all of them load the file.
    pub fn is_good(&self) -> bool {
        let loads = self
            .loads
            .iter()
            .all(|(_, load)| load.outcome == LoadOutcome::Loads);
        // `all` holds for an empty list, which does not prove that the file loads.
        self.raw.is_none() && !self.loads.is_empty() && loads && self.here.is_good()
    }

    /// Returns the verdict of `release`; `None` if the account was made for other releases.
    pub fn load_in(&self, release: Release) -> Option<&Load> {
        let found = self.loads.iter().find(|(of, _)| of.contains(release));
        found.map(|(_, load)| load)
    }

    /// Returns the releases that are known to load the whole file, in order.
    ///
    /// If [`Account::raw`] is set, they load the library that is made from it, and not the file as it is.
    pub fn releases_that_load(&self) -> impl Iterator<Item = Release> {
        let loads = self.loads.iter();
        let loads = loads.filter(|(_, load)| load.outcome == LoadOutcome::Loads);
        let releases: Vec<Releases> = loads.map(|(releases, _)| *releases).collect();
        Release::all().filter(move |release| releases.iter().any(|of| of.contains(*release)))
    }

    /// Returns the JSON form, an element of `explain.json`.
    pub fn to_json(&self) -> Value {
        let mut members = self.frame();
        let needs = self.needs.iter().map(Need::to_json).collect();
        members.insert("needs".to_owned(), needs);
        Value::Object(members)
    }

    /// Returns the members of [`Account::to_json`] with null for `needs`, for callers that write the needs of the modules one at a
    /// time.
    pub fn frame(&self) -> Map<String, Value> {
        let loads: Vec<Value> = self
            .loads
            .iter()
            .map(|(releases, load)| {
                json!({
                    "releases": releases.to_string(),
                    "outcome": load.outcome.name(),
                    "why": load.why,
                })
            })
            .collect();
        let known = |value: bool| (!self.is_broken).then_some(value);
        let mut here = self.here.to_json();
        if let Some(here) = here.as_object_mut() {
            here.insert("good".to_owned(), json!(known(self.here.is_good())));
        }
        let members = json!({
            "title": self.title,
            // If no release opens the file as it is, `loads` is about the linked library.
            "as_it_is": match &self.raw {
                Some(raw) => json!({ "loadable": false, "why": raw }),
                None => json!({ "loadable": known(true) }),
            },
            "loads": loads,
            "looked_at": self.looked_at,
            "here": here,
            "needs": null,
            "remarks": self.remarks,
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

impl Need {
    /// Returns the JSON form, an element of `needs`. Unknown values are null, so that all elements have the same members.
    pub fn to_json(&self) -> Value {
        // The name of a loader changed with 0.7 and 0.22 (MOD-11), so that each name has its releases.
        let loaders: Vec<Value> = self
            .loaders
            .iter()
            .map(|(releases, name)| json!({ "releases": releases.to_string(), "name": name }))
            .collect();
        json!({
            "module": self.module,
            "kind": self.kind,
            "about": self.about,
            "loaders": loaders,
            "registered_by": self.registered_by,
            "renamed": self.renamed,
            "code": self.code.iter().map(|need| json!([need.name(), need.value()])).collect::<Vec<_>>(),
            "here": self.here,
        })
    }
}
