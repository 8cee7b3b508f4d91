//! Targets: what code is compiled for, as text, as JSON and as the normalised form that every release makes of them.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `format/targets` | [`Targets`]: the kinds and tags of a release; reads what names a target | TGT-09, TGT-20, TGT-30, TGT-70, TGT-71 |
//! | `format/early` | the command line of 0.2 to 0.6 | TGT-10 .. TGT-14 |
//! | `format/words` | the command line of 0.7 to 0.23 | TGT-21 .. TGT-29 |
//! | `format/config` | objects: keys, hosts, types, defaults | TGT-01 .. TGT-09, TGT-40 .. TGT-45 |
//! | `format/parsers` | what the parser of a kind adds and checks | TGT-50 .. TGT-57 |
//! | `format/message` | the words of what is rejected, as each release has them | |
//! | `format/render` | [`Target::export`], [`Target::render`] | TGT-60 .. TGT-64 |
//! | `format/kind_table` | [`TargetKind`], and the tables of all releases, which `golden/target/make.py` writes | |
//! | `generate` | [`Generators`]: a module and a target to code | TGT-80 .. TGT-90 |
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
//! A kind of your own is a few lines:
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

mod format;
mod generate;
mod rules;

pub use format::{
    HostMachine, KindOption, KindParser, OptionType, Target, TargetConfig, TargetKind, Targets,
};
pub use generate::{GeneratedCode, Generator, Generators, KernelInfo, LoweredModule};
pub use rules::*;
