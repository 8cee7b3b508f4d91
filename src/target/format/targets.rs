//! The kinds and tags of a release, and the reading of targets.

use super::kind::{HostMachine, TargetKind, Targets};
use super::{Target, TargetConfig, command_line, config, kind_table, legacy_target};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::{TGT_09, TGT_10, TGT_30, TGT_40, TGT_71};
use serde_json::Value;

impl Targets {
    /// The maximum depth of nested hosts and devices of targets (TGT-09).
    pub const DEEPEST: usize = 32;

    /// Creates the kinds and tags of `release`, on a machine without devices and without LLVM.
    pub fn new(release: Release) -> Targets {
        Targets::for_machine(release, HostMachine::default())
    }

    /// Creates the kinds and tags of `release`, on `machine`.
    pub fn for_machine(release: Release, machine: HostMachine) -> Targets {
        Targets {
            release,
            machine,
            kinds: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// Returns the release to which these kinds and tags belong.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Returns the machine that targets depend on.
    pub fn machine(&self) -> &HostMachine {
        &self.machine
    }

    /// Adds a kind, or replaces the one of its name. Common options that it lacks are added.
    pub fn register(&mut self, kind: TargetKind) {
        // TGT-03: the caller's kind may redeclare a common option, with another default.
        let mut options = kind_table::common(self.release);
        options.retain(|common| kind.find(&common.name).is_none());
        options.extend(kind.options);
        self.kinds.retain(|old| old.name != kind.name);
        self.kinds.push(TargetKind { options, ..kind });
    }

    /// Adds a tag and returns its target.
    ///
    /// # Errors
    ///
    /// Returns TGT-71 if the tag exists and `replace` is not set; the errors of [`Targets::read_config`] for `config`. After an error
    /// of the latter kind the tag still exists.
    pub fn add_tag(
        &mut self,
        name: &str,
        config: TargetConfig,
        replace: bool,
    ) -> Result<Target, Violation> {
        let before = self.tag(name);
        // TGT-71: upstream treats an empty object as a missing tag.
        let free = replace || before.as_ref().is_none_or(TargetConfig::is_empty);
        TGT_71.demand(Kind::Duplicate, free, || {
            let before = Value::Object(before.unwrap_or_default());
            format!("Tag \"{name}\" has been previously defined as: {before}")
        })?;
        self.tags.retain(|(old, _)| old != name);
        // Upstream registers a tag before it reads it, so an unreadable tag is also defined.
        self.tags.push((name.into(), config.clone()));
        self.read_config(&config)
    }

    /// Returns all kinds, with the registered ones last.
    pub fn kinds(&self) -> Vec<TargetKind> {
        let shadowed = |kind: &TargetKind| self.kinds.iter().any(|own| own.name == kind.name);
        let mut kinds: Vec<TargetKind> = TargetKind::all(self.release)
            .filter(|kind| !shadowed(kind))
            .collect();
        kinds.extend(self.kinds.iter().cloned());
        kinds
    }

    /// Returns the kind of this name.
    pub fn kind(&self, name: &str) -> Option<TargetKind> {
        // TGT-15: a registered kind replaces one of the release.
        let own = self.kinds.iter().find(|kind| kind.name == name).cloned();
        own.or_else(|| TargetKind::find_in_release(self.release, name))
    }

    /// Returns the names of all tags, sorted.
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

    /// Returns the object of a tag.
    pub fn tag(&self, name: &str) -> Option<TargetConfig> {
        // TGT-71: a registered tag is found before one of the release.
        if let Some((_, config)) = self.tags.iter().find(|(own, _)| own == name) {
            return Some(config.clone());
        }
        let (_, text) = kind_table::tags(self.release).find(|(tag, _)| *tag == name)?;
        serde_json::from_str(text).ok()
    }

    /// Reads text that names a target: a tag, an object in JSON, a command line up to 0.23, or the name of a kind from 0.24 on
    /// (TGT-20). Up to 0.6, it is a name with words after it (TGT-10 to TGT-14).
    ///
    /// # Errors
    ///
    /// Returns the first broken rule, with the text that the release has for it: TGT-10 up to 0.6, TGT-21 to TGT-30, TGT-40, and the
    /// errors of [`Targets::read_config`].
    pub fn read(&self, text: &str) -> Result<Target, Violation> {
        self.read_at(text, 0)
    }

    /// Reads an object that names a target.
    ///
    /// # Errors
    ///
    /// The first broken rule: TGT-01 to TGT-09, TGT-41 to TGT-45, TGT-50 to TGT-53, and the errors of the parser of a registered
    /// kind.
    pub fn read_config(&self, config: &TargetConfig) -> Result<Target, Violation> {
        self.read_config_at(config.clone(), 0)
    }

    /// Reads as [`Targets::read`] does, nested in `depth` other targets.
    pub(super) fn read_at(&self, text: &str, depth: usize) -> Result<Target, Violation> {
        // TGT-10: up to 0.6 there are no tags and no JSON, so every text is a command line.
        if self.release.minor() < 7 {
            return legacy_target::read(self.release, text);
        }
        hold_depth(depth)?;
        // TGT-20: tags come first. No name of a tag begins with `{` or is the name of a kind.
        if let Some(config) = self.tag(text) {
            // TGT-70: only the object matters; the name of the tag is not kept.
            return self.read_config_at(config, depth);
        }
        if text.starts_with('{') {
            return self.read_config_at(self.object(text)?, depth);
        }
        if self.release.minor() < 24 {
            return self.read_config_at(command_line::read(self, text, depth)?, depth);
        }
        // TGT-30: only the space decides. The message is the one of the release, because its users need to know the replacement.
        TGT_30.demand(Kind::Unsupported, !text.contains(' '), || {
            format!(
                "Cannot parse target string \"{text}\". CLI target string form (e.g. \"llvm -mcpu=xxx\") is no longer supported. \
                 Please use JSON dict form (e.g. {{\"kind\": \"llvm\", \"mcpu\": \"xxx\"}}) instead."
            )
        })?;
        // `-mcpu=x` alone is also a name: TGT-01 rejects it as an unknown kind.
        let mut bare = TargetConfig::new();
        bare.insert("kind".into(), text.into());
        self.read_config_at(bare, depth)
    }

    /// Reads as [`Targets::read_config`] does, nested in `depth` other targets.
    pub(super) fn read_config_at(
        &self,
        config: TargetConfig,
        depth: usize,
    ) -> Result<Target, Violation> {
        // TGT-10: these releases only have the command line.
        TGT_10.demand(Kind::Unsupported, self.release.minor() >= 7, || {
            "an object names no target of 0.6 and before".to_owned()
        })?;
        hold_depth(depth)?;
        config::read(self, config, depth)
    }

    /// Parses a text as an object (TGT-40).
    fn object(&self, text: &str) -> Result<TargetConfig, Violation> {
        serde_json::from_str(text).map_err(|error| {
            // The detail is from this crate. Releases add the detail of their own reader, and up to 0.23 no detail.
            let message = match self.release.minor() {
                ..24 => "Cannot load config dict with python JSON loader".into(),
                _ => format!("Failed to parse target JSON config: {error}"),
            };
            // TGT-40: up to 0.23 Python reads it, and accepts `NaN`. Here a number that is not JSON is rejected for every release.
            TGT_40.rejected(Kind::Malformed, message)
        })
    }
}

/// Checks the depth (TGT-09). This comes first, because a tag that is its own host would never reach another check.
fn hold_depth(depth: usize) -> Result<(), Violation> {
    // TGT-09: a tag whose host is the tag itself never ends. In releases the stack overflows, and the process crashes.
    TGT_09.demand(Kind::Limit, depth <= Targets::DEEPEST, || {
        format!(
            "a target is {depth} deep in others, {} is the limit",
            Targets::DEEPEST
        )
    })
}
