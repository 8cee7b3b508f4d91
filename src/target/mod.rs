//! Targets: the platforms that code is compiled for, as text, as JSON and in the normalized form of every release.
//!
//! | file | content | rules |
//! |---|---|---|
//! | `format/targets` | [`Targets`]: the kinds and tags of a release; reading of targets | TGT-09, TGT-20, TGT-30, TGT-40, TGT-70, TGT-71 |
//! | `format/legacy_target` | the command line of 0.2 to 0.6 | TGT-10 .. TGT-14 |
//! | `format/command_line` | the command line of 0.7 to 0.23 | TGT-21 .. TGT-29 |
//! | `format/config` | objects: keys, hosts, types, defaults | TGT-01 .. TGT-08, TGT-41 .. TGT-45, TGT-58 |
//! | `format/kind_parsers` | the parsers of kinds, which add and check options | TGT-50 .. TGT-57 |
//! | `format/message` | the error messages of each release | |
//! | `format/render` | [`Target::export`], [`Target::render`] | TGT-60 .. TGT-64 |
//! | `format/release_readings` | [`readings_by_release`]: the readings of a target by every release | |
//! | `format/kind` | [`TargetKind`]: a kind and its options, and the set of kinds of a release | TGT-15 |
//! | `format/kind_table` | the tables of all releases, which `golden/target/make.py` writes | TGT-15 |
//! | `format/device_options` | the answers of a device: options, and whole targets | TGT-58, TGT-59 |
//! | `generate` | [`Generators`]: the contract of code generators | TGT-80 .. TGT-88 |
//! | `runtime/functions` | the functions in the registry for frontends | TGT-74 |
//! | `runtime/machine` | the present machine, with the answers of its devices | TGT-50, TGT-52, TGT-58, TGT-59 |
//! | `runtime/registered` | kinds, tags and generators of this process, from every interface | TGT-15, TGT-71, TGT-80 |
//! | `runtime/scope` | the target of a thread | TGT-72, TGT-73 |
//!
//! ```
//! use tvmspec::release::Release;
//! use tvmspec::target::Targets;
//!
//! let old = Targets::new(Release::of(19)).read("llvm -mcpu=skylake -num-cores=8")?;
//! assert_eq!(old.render()?, "llvm -keys=cpu -mcpu=skylake -num-cores=8");
//! // TGT-30: the command line ended with 0.23. The object that it is read as is still a target.
//! let new = Targets::new(Release::of(27));
//! assert!(new.read("llvm -mcpu=skylake -num-cores=8").is_err());
//! assert_eq!(new.read_config(&old.export())?.attrs["num-cores"], 8);
//! # Ok::<(), tvmspec::rule::Violation>(())
//! ```
//!
//! A new kind takes a few lines:
//!
//! ```
//! use tvmspec::release::Release;
//! use tvmspec::target::{OptionType, TargetKind, Targets};
//!
//! let foo = TargetKind::new("foo", 12)
//!     .keys(["foo"])
//!     .option("lanes", OptionType::Int, Some(4.into()))
//!     .parser(|mut config, _targets| {
//!         config.entry("model").or_insert("foo-1".into());
//!         Ok(config)
//!     });
//! let mut targets = Targets::new(Release::of(27));
//! targets.register(foo);
//! let target = targets.read(r#"{"kind": "foo", "lanes": 8}"#)?;
//! assert_eq!(target.render()?, r#"{"kind":"foo","tag":"","keys":["foo"],"lanes":8,"model":"foo-1"}"#);
//! # Ok::<(), tvmspec::rule::Violation>(())
//! ```

/// The formats have a common module only for their lints, as in the crate's root. Compiled modules also come from files.
#[path = "."]
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod formats {
    pub(super) mod format;
    pub(super) mod generate;
}
#[cfg(feature = "runtime")]
mod runtime;

pub use formats::format::{
    HostMachine, KindOption, KindParser, OptionType, Target, TargetAccount, TargetConfig,
    TargetKind, Targets, readings_by_release, rejection,
};
pub use formats::generate::{GeneratedCode, Generator, Generators, KernelInfo, LoweredModule};
crate::rule::chapter_rules!("target");
pub(crate) use rules::*;
#[cfg(feature = "runtime")]
pub(crate) use runtime::functions::provide;
#[cfg(feature = "runtime")]
pub use runtime::{
    TargetScope, current, device_target, enter_scope, exit_scope, local_machine,
    register_generator, register_kind, register_tag, registered_generators, registered_targets,
};
