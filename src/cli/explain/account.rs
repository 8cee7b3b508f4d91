//! What is said of one library, or of one file, and how it is printed.

use super::here::Here;
use crate::cli::table::wrap;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tvmspec::examine::loading::{Load, Outcome};
use tvmspec::release::{Release, Releases};

/// What is said about one library binary, or about a part without one.
pub(super) struct Account {
    pub(super) title: String,
    /// Why no release opens the file as it is, and what to do; what is said below is then of what is made of it.
    pub(super) raw: Option<&'static str>,
    /// Consecutive releases of which the same is true.
    pub(super) loads: Vec<(Releases, Load)>,
    /// What was read to say so; `None` where that is the whole file.
    pub(super) looked_at: Option<&'static str>,
    /// What the system's own loader finds, before TVM reads anything.
    pub(super) here: Here,
    /// What each module needs.
    pub(super) needs: Vec<Need>,
    /// What a user should know besides.
    pub(super) remarks: Vec<String>,
}

pub(super) struct Need {
    pub(super) module: usize,
    pub(super) kind: String,
    pub(super) about: String,
    pub(super) loaders: Vec<(Releases, String)>,
    pub(super) registered_by: String,
    pub(super) renamed: Option<String>,
}

/// What is true of each release, consecutive releases with the same taken together.
pub(super) fn loads(
    only: Option<Release>,
    load: impl Fn(Release) -> Load,
) -> Vec<(Releases, Load)> {
    let mut all: Vec<(Releases, Load)> = Vec::new();
    for release in Release::all().filter(|release| only.is_none_or(|only| only == *release)) {
        let load = load(release);
        match all.last_mut() {
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
    all
}

impl Account {
    /// What is known of a file about which nothing but this is said.
    pub(super) fn new(title: String, loads: Vec<(Releases, Load)>) -> Account {
        Account {
            title,
            raw: None,
            loads,
            looked_at: None,
            here: Here::default(),
            needs: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Whether the file is known to load, as it is and, as far as it is for this machine, here.
    pub(super) fn is_good(&self) -> bool {
        let loads = self
            .loads
            .iter()
            .all(|(_, load)| load.outcome == Outcome::Loads);
        self.raw.is_none() && !self.loads.is_empty() && loads && self.here.is_good()
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if let Some(raw) = self.raw {
            out.push('\n');
            for line in wrap(&format!("NOT LOADABLE AS IT IS: {raw}"), 96) {
                let _ = writeln!(out, "{line}");
            }
        }
        if !self.loads.is_empty() {
            out.push('\n');
        }
        for (releases, load) in &self.loads {
            let range = range(*releases);
            let lines = wrap(&load.to_string(), 78);
            for (index, line) in lines.iter().enumerate() {
                let range = if index == 0 { range.as_str() } else { "" };
                let _ = writeln!(out, "  {range:<16} {line}");
            }
        }
        if let Some(looked_at) = self.looked_at {
            let lines = wrap(looked_at, 78);
            for (index, line) in lines.iter().enumerate() {
                let what = if index == 0 { "looked at" } else { "" };
                let _ = writeln!(out, "  {what:<16} {line}");
            }
        }
        out.push_str(&self.here.to_text());
        for need in &self.needs {
            let _ = writeln!(
                out,
                "\nmodule {} {}: {}",
                need.module, need.kind, need.about
            );
            if need.loaders.is_empty() {
                let _ = writeln!(out, "  loader           none is registered in any release");
            }
            for (releases, name) in &need.loaders {
                let _ = writeln!(out, "  {:<16} {name}", range(*releases));
            }
            let lines = wrap(&need.registered_by, 78);
            for (index, line) in lines.iter().enumerate() {
                let what = if index == 0 { "registered by" } else { "" };
                let _ = writeln!(out, "  {what:<16} {line}");
            }
            if let Some(renamed) = &need.renamed {
                let _ = writeln!(out, "  {:<16} {renamed}", "renamed");
            }
        }
        for remark in &self.remarks {
            out.push('\n');
            for line in wrap(remark, 96) {
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }

    pub(super) fn to_json(&self) -> Value {
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
        let needs: Vec<Value> = self
            .needs
            .iter()
            .map(|need| {
                let loaders: Vec<Value> = need
                    .loaders
                    .iter()
                    .map(|(releases, name)| json!({ "releases": releases.to_string(), "name": name }))
                    .collect();
                json!({
                    "module": need.module,
                    "kind": need.kind,
                    "about": need.about,
                    "loaders": loaders,
                    "registered_by": need.registered_by,
                    "renamed": need.renamed,
                })
            })
            .collect();
        json!({
            "title": self.title,
            "as_it_is": match self.raw {
                Some(raw) => json!({ "loadable": false, "why": raw }),
                None => json!({ "loadable": true }),
            },
            "loads": loads,
            "looked_at": self.looked_at,
            "here": self.here.to_json(),
            "needs": needs,
            "remarks": self.remarks,
        })
    }
}

fn range(releases: Releases) -> String {
    let Releases { since, until } = releases;
    if since == until {
        format!("tvm {since}")
    } else {
        format!("tvm {since} to {until}")
    }
}
