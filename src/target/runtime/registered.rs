//! Kinds and tags that the process adds to those of a release, and its generators. The Rust and the C interface share them.

use super::machine::local_machine;
use crate::lock::unpoisoned;
use crate::release::Release;
use crate::rule::Violation;
use crate::target::{
    Generator, Generators, HostMachine, Target, TargetConfig, TargetKind, Targets,
};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// The registered kinds and tags, in the order of registration.
struct RegisteredTargets {
    kinds: Vec<TargetKind>,
    tags: Vec<(String, TargetConfig)>,
}

static REGISTERED: RwLock<RegisteredTargets> = RwLock::new(RegisteredTargets {
    kinds: Vec::new(),
    tags: Vec::new(),
});

/// The generators, by the kinds that they compile for.
static GENERATORS: RwLock<BTreeMap<String, Arc<Generator>>> = RwLock::new(BTreeMap::new());

/// Registers a kind for this process (TGT-15), or replaces the one of its name. It exists in every release.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::{TargetKind, register_kind, registered_targets};
///
/// register_kind(TargetKind::new("foo", 12).keys(["foo"]));
/// let target = registered_targets(Release::of(27), false).read("foo")?;
/// assert_eq!((target.device_type, target.keys), (12, vec!["foo".to_owned()]));
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
pub fn register_kind(kind: TargetKind) {
    let mut all = unpoisoned(REGISTERED.write());
    // TGT-15: replaced as a whole. In C++ a kind of that name is extended, so that the options of both would be declared.
    all.kinds.retain(|old| old.name != kind.name);
    all.kinds.push(kind);
}

/// Registers a tag for this process, and returns its target in `release`.
///
/// # Errors
///
/// As [`Targets::add_tag`]: TGT-71 for a tag of that name of the release or of the process, unless `replace` is set.
pub fn register_tag(
    release: Release,
    name: &str,
    config: TargetConfig,
    replace: bool,
) -> Result<Target, Violation> {
    // The lock is held during the check, so that only one of two threads can define a name.
    let mut all = unpoisoned(REGISTERED.write());
    let mut targets = all.targets(release, HostMachine::default());
    let target = targets.add_tag(name, config.clone(), replace)?;
    all.tags.retain(|(old, _)| old != name);
    all.tags.push((name.to_owned(), config));
    Ok(target)
}

/// Returns the kinds and tags of `release` and of this process. With `ask_devices` they are on [`local_machine`]; otherwise no
/// driver is loaded.
pub fn registered_targets(release: Release, ask_devices: bool) -> Targets {
    // Before the lock, because a thread that registers a kind would otherwise wait for the drivers.
    let machine = if ask_devices {
        local_machine(release)
    } else {
        HostMachine::default()
    };
    let all = unpoisoned(REGISTERED.read());
    all.targets(release, machine)
}

/// Registers a code generator for targets of `kind` for this process (TGT-80), and replaces an existing one.
///
/// ```
/// use tvmspec::rule::Kind;
/// use tvmspec::target::rules::TGT_88;
/// use tvmspec::target::{register_generator, registered_generators};
///
/// register_generator("foo", Box::new(|_, _| Err(TGT_88.rejected(Kind::Unsupported, "not yet"))));
/// assert!(format!("{:?}", registered_generators()).contains("foo"));
/// ```
pub fn register_generator(kind: &str, generator: Generator) {
    let mut all = unpoisoned(GENERATORS.write());
    // TGT-80: up to 0.6 the name in the registry is `codegen.build_<name>`; here it is the kind for every release.
    all.insert(kind.to_owned(), Arc::new(generator));
}

/// Returns the generators of this process.
pub fn registered_generators() -> Generators {
    let mut generators = Generators::default();
    let all = unpoisoned(GENERATORS.read());
    for (kind, generator) in &*all {
        let generator = Arc::clone(generator);
        let call = move |module: &_, target: &_| generator(module, target);
        generators.register(kind, Box::new(call));
    }
    generators
}

impl RegisteredTargets {
    /// Returns the kinds and tags of the release, overlaid with those of the process (TGT-15, TGT-71).
    fn targets(&self, release: Release, machine: HostMachine) -> Targets {
        let mut targets = Targets::for_machine(release, machine);
        for kind in &self.kinds {
            targets.register(kind.clone());
        }
        for (name, config) in &self.tags {
            // TGT-71: a tag is defined before it is read. A tag with a kind of another release fails when it is used.
            let _ = targets.add_tag(name, config.clone(), true);
        }
        targets
    }
}
