//! Conversion of text and JSON to targets, and back.

mod command_line;
mod config;
mod device_options;
mod kind;
mod kind_parsers;
mod kind_table;
mod legacy_target;
mod message;
mod release_readings;
mod render;
mod targets;

pub use kind::{HostMachine, KindOption, KindParser, OptionType, TargetKind, Targets};
pub use release_readings::{TargetAccount, readings_by_release, rejection};

use crate::release::Release;
use serde_json::Value;
use std::collections::BTreeMap;

/// An object that names a target: the members of its JSON form, in their order.
pub type TargetConfig = serde_json::Map<String, Value>;

/// A normalized target: keys merged, defaults added, options checked (TGT-01 to TGT-08).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Target {
    /// The release whose rules apply when it is read and rendered.
    pub release: Release,
    /// The name of its kind.
    pub kind: String,
    /// The number of its device type: the option `target_device_type`, or the device type of the kind (DEV-01).
    pub device_type: i64,
    /// The tag that it was created from; empty if there was none, or only the name of a tag (TGT-70).
    pub tag: String,
    /// The keys for the lookup of schedules and operators, most specific first (TGT-08).
    pub keys: Vec<String>,
    /// The target of its host code.
    pub host: Option<Box<Target>>,
    /// The options, sorted by name. A target in a value has its exported form.
    pub attrs: BTreeMap<String, Value>,
}
