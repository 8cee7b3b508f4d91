//! Text and JSON to targets and back.

mod account;
mod answers;
mod config;
mod early;
mod kind;
mod kind_parsers;
mod kind_table;
mod message;
mod render;
mod targets;
mod words;

pub use account::{TargetAccount, account, rejection};
pub use kind::{HostMachine, KindOption, KindParser, OptionType, TargetKind, Targets};

use crate::release::Release;
use serde_json::Value;
use std::collections::BTreeMap;

/// An object that names a target: the members of its JSON form, in their order.
pub type TargetConfig = serde_json::Map<String, Value>;

/// A target, normalised: keys merged, defaults filled in, options checked (TGT-01 to TGT-08).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Target {
    /// The release by whose rules it was read, and is rendered.
    pub release: Release,
    /// The name of its kind.
    pub kind: String,
    /// The number of the device type that it is for: the option `target_device_type`, or that of the kind (DEV-01).
    pub device_type: i64,
    /// The tag that it was made of; empty where it was made otherwise, or by the tag's name alone (TGT-70).
    pub tag: String,
    /// What schedules and operators are looked up by, most special first (TGT-08).
    pub keys: Vec<String>,
    /// The target that its host code is for.
    pub host: Option<Box<Target>>,
    /// The options, sorted by name. A target in a value is in its exported form.
    pub attrs: BTreeMap<String, Value>,
}
