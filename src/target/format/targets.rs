//! The kinds and tags of a release, and reading of what names a target.

use super::kind::{HostMachine, TargetKind, Targets};
use super::{Target, TargetConfig, config, early, kind_table, words};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::{TGT_09, TGT_10, TGT_30, TGT_40, TGT_71};
use serde_json::Value;

impl Targets {
    /// How deep hosts and devices of targets go (TGT-09).
    pub const DEEPEST: usize = 32;

    /// The kinds and tags of `release`, on a machine without devices and without LLVM.
    pub fn new(release: Release) -> Targets {
        Targets::on(release, HostMachine::default())
    }

    /// The kinds and tags of `release`, on `machine`.
    pub fn on(release: Release, machine: HostMachine) -> Targets {
        Targets {
            release,
            machine,
            kinds: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// The release whose kinds and tags these are.
    pub fn release(&self) -> Release {
        self.release
    }

    /// What targets take from the machine.
    pub fn machine(&self) -> &HostMachine {
        &self.machine
    }

    /// Adds a kind, in the place of one of its name. The options that all kinds have are added where it lacks them.
    pub fn register(&mut self, kind: TargetKind) {
        // TGT-03: a kind of the caller may declare a common option anew, with a default of its own.
        let mut options = kind_table::common(self.release);
        options.retain(|common| kind.find(&common.name).is_none());
        options.extend(kind.options);
        self.kinds.retain(|old| old.name != kind.name);
        self.kinds.push(TargetKind { options, ..kind });
    }

    /// Adds a tag and returns what it is short for as a target.
    ///
    /// # Errors
    ///
    /// TGT-71 where the tag is there and `replace` is not set; what [`Targets::read_config`] returns for `config`. The tag stays then.
    pub fn add_tag(
        &mut self,
        name: &str,
        config: TargetConfig,
        replace: bool,
    ) -> Result<Target, Violation> {
        let before = self.tag(name);
        // TGT-71: upstream takes an empty object for a tag that is not there.
        let free = replace || before.as_ref().is_none_or(TargetConfig::is_empty);
        TGT_71.demand(Kind::Duplicate, free, || {
            let before = Value::Object(before.unwrap_or_default());
            format!("Tag \"{name}\" has been previously defined as: {before}")
        })?;
        self.tags.retain(|(old, _)| old != name);
        // Upstream registers it before it reads it, so a tag that no target can be made of is defined all the same.
        self.tags.push((name.into(), config.clone()));
        self.read_config(&config)
    }

    /// The kinds that there are, registered ones last.
    pub fn kinds(&self) -> Vec<TargetKind> {
        let shadowed = |kind: &TargetKind| self.kinds.iter().any(|own| own.name == kind.name);
        let mut kinds: Vec<TargetKind> = TargetKind::all(self.release)
            .filter(|kind| !shadowed(kind))
            .collect();
        kinds.extend(self.kinds.iter().cloned());
        kinds
    }

    /// The kind of this name.
    pub fn kind(&self, name: &str) -> Option<TargetKind> {
        // TGT-15: a registered kind takes the place of one of the release.
        let own = self.kinds.iter().find(|kind| kind.name == name).cloned();
        own.or_else(|| TargetKind::of(self.release, name))
    }

    /// The names of the tags that there are, sorted.
    pub fn tags(&self) -> Vec<String> {
        let own = self.tags.iter().map(|(name, _)| name.clone());
        let mut names: Vec<String> = kind_table::tags(self.release)
            .map(|(name, _)| name.into())
            .chain(own)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What a tag is short for.
    pub fn tag(&self, name: &str) -> Option<TargetConfig> {
        // TGT-71: a tag that replaces one of the release is found before it.
        if let Some((_, config)) = self.tags.iter().find(|(own, _)| own == name) {
            return Some(config.clone());
        }
        let (_, text) = kind_table::tags(self.release).find(|(tag, _)| *tag == name)?;
        serde_json::from_str(text).ok()
    }

    /// Reads text that names a target: a tag, an object in JSON, up to 0.23 a command line and from 0.24 on the name of a kind (TGT-20);
    /// up to 0.6 a name with words behind it (TGT-10 to TGT-14).
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with the text that the release has for it: TGT-10 up to 0.6, TGT-21 to TGT-30, TGT-40, and those of
    /// [`Targets::read_config`].
    pub fn read(&self, text: &str) -> Result<Target, Violation> {
        self.read_at(text, 0)
    }

    /// Reads an object that names a target.
    ///
    /// # Errors
    ///
    /// The first rule that is broken: TGT-01 to TGT-09, TGT-41 to TGT-45, TGT-50 to TGT-53, and what the parser of a registered kind
    /// returns.
    pub fn read_config(&self, config: &TargetConfig) -> Result<Target, Violation> {
        self.read_config_at(config.clone(), 0)
    }

    /// [`Targets::read`] of what is in `depth` other targets.
    pub(super) fn read_at(&self, text: &str, depth: usize) -> Result<Target, Violation> {
        // TGT-10: up to 0.6 there are no tags and no JSON, so that every text is a command line.
        if self.release.minor() < 7 {
            return early::read(self.release, text);
        }
        hold_depth(depth)?;
        // TGT-20: a tag first: no name of a tag begins with `{` or is one of a kind.
        if let Some(config) = self.tag(text) {
            // TGT-70: the object alone counts; the name by which it came is not kept.
            return self.read_config_at(config, depth);
        }
        if text.starts_with('{') {
            return self.read_config_at(self.object(text)?, depth);
        }
        if self.release.minor() < 24 {
            return self.read_config_at(words::read(self, text, depth)?, depth);
        }
        // TGT-30: by the blank alone, in the words of the release, whose users have to know what to write instead.
        TGT_30.demand(Kind::Unsupported, !text.contains(' '), || {
            format!(
                "Cannot parse target string \"{text}\". CLI target string form (e.g. \"llvm -mcpu=xxx\") is no longer supported. \
                 Please use JSON dict form (e.g. {{\"kind\": \"llvm\", \"mcpu\": \"xxx\"}}) instead."
            )
        })?;
        // `-mcpu=x` alone is a name, too: the rejection says that no kind has it (TGT-01).
        let mut bare = TargetConfig::new();
        bare.insert("kind".into(), text.into());
        self.read_config_at(bare, depth)
    }

    /// [`Targets::read_config`] of what is in `depth` other targets.
    pub(super) fn read_config_at(
        &self,
        config: TargetConfig,
        depth: usize,
    ) -> Result<Target, Violation> {
        // TGT-10: a command line is all that there was.
        TGT_10.demand(Kind::Unsupported, self.release.minor() >= 7, || {
            "an object names no target of 0.6 and before".to_owned()
        })?;
        hold_depth(depth)?;
        config::read(self, config, depth)
    }

    /// TGT-40: the object that a text is.
    fn object(&self, text: &str) -> Result<TargetConfig, Violation> {
        serde_json::from_str(text).map_err(|error| {
            // The detail is ours: releases have that of their own reader, and up to 0.23 none.
            let message = match self.release.minor() {
                ..24 => "Cannot load config dict with python JSON loader".into(),
                _ => format!("Failed to parse target JSON config: {error}"),
            };
            // TGT-40: up to 0.23 Python reads it, and accepts `NaN`. Here a number that is no JSON is rejected in every release.
            TGT_40.rejected(Kind::Malformed, message)
        })
    }
}

/// TGT-09: before anything else, since a tag whose host is itself would never come to another check.
fn hold_depth(depth: usize) -> Result<(), Violation> {
    // TGT-09: a tag whose host is the tag itself has no end. In releases the stack has, and the process with it.
    TGT_09.demand(Kind::Limit, depth <= Targets::DEEPEST, || {
        format!(
            "a target is {depth} deep in others, {} is the limit",
            Targets::DEEPEST
        )
    })
}
