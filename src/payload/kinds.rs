//! The table of kinds: the content of each kind, the releases that store it, and the releases that load it.
//!
//! A kind has a loader and a property mask for ranges of releases, and one or more forms. A form is a list of slots,
//! [`PayloadForm::slots`], in the order of the file. Each slot has a name, a shape and a rule.

use super::{Checked, FormSlot};
use crate::release::{Layout, Release, Releases};
use crate::rule::{Findings, Violation};

/// One module kind, through all releases.
#[derive(Debug)]
#[non_exhaustive]
pub struct KindInfo {
    /// The name in the library binary: `type_key` up to 0.21, `kind` from 0.22.
    pub kind: &'static str,
    /// A short description.
    pub about: &'static str,
    /// Its payload grammars, newest first.
    pub forms: &'static [PayloadForm],
    /// The releases in which a loader is registered; empty if there never was one.
    pub loaded: &'static [Releases],
    /// The property mask for each range of releases: 1 binary serializable, 2 runnable, 4 exportable as object code.
    pub masks: &'static [(Releases, u8)],
    /// The kind that replaced it, and the release that replaced it.
    pub renamed: Option<(&'static str, Release)>,
}

/// One grammar of a kind.
#[derive(Debug)]
pub struct PayloadForm {
    /// The release that introduced the form, which is its name.
    pub name: &'static str,
    /// The releases that write the form.
    pub releases: Releases,
    /// The fields in file order.
    pub slots: &'static [FormSlot],
    /// The check of rules that involve several fields, if there is one.
    pub(super) check: Option<FormCheck>,
}

/// A check of rules that involve several fields of a form.
type FormCheck = fn(&Checked<'_, '_>, &mut Findings) -> Result<(), Violation>;

/// The form of a payload without bytes.
pub(super) const NOTHING: PayloadForm = PayloadForm::new("0.9", Releases::between(9, 19), &[]);

impl PayloadForm {
    /// Creates a form that `releases` write, without a check that involves several fields.
    pub(super) const fn new(
        name: &'static str,
        releases: Releases,
        slots: &'static [FormSlot],
    ) -> PayloadForm {
        PayloadForm {
            name,
            releases,
            slots,
            check: None,
        }
    }

    /// Adds `check`, which compares the fields after all of them are read.
    pub(super) const fn checked(mut self, check: FormCheck) -> PayloadForm {
        self.check = Some(check);
        self
    }

    /// Returns whether a release that writes `layout` also writes this form.
    pub(crate) fn is_in(&self, layout: Layout) -> bool {
        // A reader knows the layout but not the release, so a form belongs to every layout whose releases include one of the form.
        let releases = layout.releases();
        self.releases.since <= releases.until && releases.since <= self.releases.until
    }

    /// Returns whether both forms have fields with the same names and types of values, in the same order.
    pub(super) fn is_like(&self, other: &PayloadForm) -> bool {
        use super::FieldShape::{Functions, Networks, Shaders, SilentFunctions};
        let alike = |(a, b): (&FormSlot, &FormSlot)| {
            // PAY-15, PAY-09: a length before a shader and repeated names affect the bytes, but not the type of the value.
            a.name == b.name
                && match (a.shape, b.shape) {
                    (Shaders { .. }, Shaders { .. }) => true,
                    (Functions | SilentFunctions, Functions | SilentFunctions) => true,
                    // PAY-48: networks with and without sizes are different values.
                    (Networks { .. }, _) => false,
                    (a, b) => a == b,
                }
        };
        self.slots.len() == other.slots.len() && self.slots.iter().zip(other.slots).all(alike)
    }
}

impl PartialEq for PayloadForm {
    // The check is ignored, because comparing addresses of functions has no meaning.
    fn eq(&self, other: &PayloadForm) -> bool {
        self.name == other.name && self.is_like(other)
    }
}

impl PartialEq for KindInfo {
    // A kind has one row in the table, so its name decides.
    fn eq(&self, other: &KindInfo) -> bool {
        self.kind == other.kind
    }
}

impl KindInfo {
    /// Returns the forms that `layout` can store, the preferred one (PAY-09) first.
    pub(crate) fn forms_in(
        &self,
        layout: Layout,
    ) -> impl Iterator<Item = &'static PayloadForm> + Clone + use<> {
        self.forms.iter().filter(move |form| form.is_in(layout))
    }

    /// Returns the newest form that `release` writes; `None` if it stores no module of this kind (PAY-99).
    pub fn form_in(&self, release: Release) -> Option<&'static PayloadForm> {
        // PAY-99: forms are listed newest first. If a release writes two forms, such as 0.2 and 0.13 of metal, the newer one is found.
        let mut forms = self.forms.iter();
        forms.find(|form| form.releases.contains(release))
    }

    /// Returns the property mask in `release`; `None` before 0.12, and if the release does not have the kind (MOD-15).
    pub fn mask(&self, release: Release) -> Option<u8> {
        let mut masks = self.masks.iter();
        let of_release = masks.find(|(range, _)| range.contains(release))?;
        Some(of_release.1)
    }

    /// Returns the global function that reads the kind in `release`; `None` if that release registers none (PAY-99).
    ///
    /// The prefix is `module.loadbinary_` up to 0.6, `runtime.module.loadbinary_` up to 0.21 and
    /// `ffi.Module.load_from_bytes.` from 0.22.
    pub fn loader(&self, release: Release) -> Option<String> {
        let loaded = self.loaded.iter().any(|range| range.contains(release));
        // PAY-99: a kind that is stored may have no loader, and a loader may exist for a kind that is no longer stored.
        loaded.then(|| format!("{}{}", loader_prefix(release), self.kind))
    }
}

/// Returns the part of a loader's name before the kind (MOD-11).
pub(crate) fn loader_prefix(release: Release) -> &'static str {
    match release.minor() {
        // PAY-99: renamed in 0.7 with the namespace of the runtime, and in 0.22 with the layout of the library binary.
        ..=6 => "module.loadbinary_",
        7..=21 => "runtime.module.loadbinary_",
        22.. => "ffi.Module.load_from_bytes.",
    }
}
