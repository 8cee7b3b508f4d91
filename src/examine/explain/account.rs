//! What is reported of one library, or of one file.

use super::linked::MachineFindings;
use crate::examine::loading::{Load, LoadOutcome};
use crate::payload::CodeNeed;
use crate::release::{Release, Releases};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What is reported about one library binary, or about a part without one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Account {
    /// What it is.
    pub title: String,
    /// Why no release opens the file as it is, and what to do; what follows is then of what is made of it.
    pub raw: Option<String>,
    /// Whether the file around it is broken: it is not known then how a file of this form is opened, nor what this machine lacks for it.
    pub is_broken: bool,
    /// Consecutive releases of which the same is true.
    pub loads: Vec<(Releases, Load)>,
    /// What was read to say so; `None` where that is the whole file.
    pub looked_at: Option<&'static str>,
    /// What the system's own loader finds, before TVM reads anything.
    pub here: MachineFindings,
    /// What each module needs.
    pub needs: Vec<Need>,
    /// What a user should know besides.
    pub remarks: Vec<String>,
}

/// What a module needs to be loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Need {
    /// Its number in the library binary.
    pub module: usize,
    /// Its kind.
    pub kind: String,
    /// What that kind is.
    pub about: String,
    /// The loader of each release, by its registered name.
    pub loaders: Vec<(Releases, String)>,
    /// Who registers that loader.
    pub registered_by: String,
    /// What the kind was called before, or is called since.
    pub renamed: Option<String>,
    /// What its device code needs of a device.
    pub code: BTreeSet<CodeNeed>,
    /// What the devices of this machine make of that code; empty where none was asked.
    pub here: Vec<String>,
}

/// What is true of each release, consecutive releases with the same taken together.
///
/// With `only`, that release alone. `load` is called once for each release, in their order.
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

/// Adds what is true of `release`, the one that follows those of `all`.
fn append(all: &mut Vec<(Releases, Load)>, release: Release, load: Load) {
    match all.last_mut() {
        // The reason is compared too: two releases that fail differently are two entries.
        Some((range, last)) if *last == load => range.until = release,
        _ => all.push((
            Releases {
                since: release,
                until: release,
            },
            load,
        )),
    }
}

/// Replaces what is true of a release, where `judge` knows better than that it loads.
pub(super) fn refine(all: &mut Vec<(Releases, Load)>, judge: impl Fn(Release) -> Option<Load>) {
    let mut refined: Vec<(Releases, Load)> = Vec::new();
    for (releases, load) in all.drain(..) {
        for release in Release::all().filter(|release| releases.contains(*release)) {
            let better = match load.outcome {
                LoadOutcome::Loads => judge(release),
                _ => None,
            };
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
    /// What is known of a file about which nothing else is known.
    pub(super) fn new(title: String, loads: Vec<(Releases, Load)>) -> Account {
        Account {
            title,
            raw: None,
            is_broken: false,
            loads,
            looked_at: None,
            here: MachineFindings::default(),
            needs: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Whether the file is known to load, as it is and, as far as it is for this machine, here.
    ///
    /// Of `loads` every entry has to load: where an account was made for all releases, it is good only if all of them load the file.
    pub fn is_good(&self) -> bool {
        let loads = self
            .loads
            .iter()
            .all(|(_, load)| load.outcome == LoadOutcome::Loads);
        // `all` holds for no release at all, which is no proof that the file loads.
        self.raw.is_none() && !self.loads.is_empty() && loads && self.here.is_good()
    }

    /// The JSON form, an element of `explain.json`.
    pub fn to_json(&self) -> Value {
        let mut members = self.frame();
        let needs = self.needs.iter().map(Need::to_json).collect();
        members.insert("needs".to_owned(), needs);
        Value::Object(members)
    }

    /// The members of [`Account::to_json`], and null in the place of what the modules need: for whoever writes those one at a time.
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
            // What `loads` says is of the linked library, where the file itself is opened by no release.
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
    /// The JSON form, an element of `needs`. What is not known of a module is null, so that all elements have the same members.
    pub fn to_json(&self) -> Value {
        // The name of a loader changed with 0.7 and 0.22 (MOD-11), so that each has its releases.
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
