//! The table of kinds: what each stores, in which releases, and who loads it.
//!
//! A kind has its loader and its property mask by release, and one form or several. A form is a list of slots: [`PayloadForm::slots`]
//! in the order of the file, each with a name, a shape and the rule that puts it there.

use super::{Checked, FormSlot};
use crate::release::{Layout, Release, Releases};
use crate::rule::{Findings, Violation};

/// One module kind, through all releases.
#[derive(Debug)]
#[non_exhaustive]
pub struct KindInfo {
    /// The name in the library binary: `type_key` up to 0.21, `kind` from 0.22.
    pub kind: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Its payload grammars, newest first.
    pub forms: &'static [PayloadForm],
    /// The releases in which a loader is registered; empty where none ever was.
    pub loaded: &'static [Releases],
    /// The property mask per range of releases: 1 binary serializable, 2 runnable, 4 exportable as object code.
    pub masks: &'static [(Releases, u8)],
    /// The kind that took its place, and the release in which it did.
    pub renamed: Option<(&'static str, Release)>,
}

/// One grammar of a kind.
#[derive(Debug)]
pub struct PayloadForm {
    /// The release that introduced it.
    pub name: &'static str,
    /// The releases that write it.
    pub releases: Releases,
    /// Its fields, in file order.
    pub slots: &'static [FormSlot],
    /// The rules that span several of its fields, if there are any.
    pub(super) check: Option<FormCheck>,
}

/// Holds a whole form to the rules that span several of its fields.
type FormCheck = fn(&Checked<'_, '_>, &mut Findings) -> Result<(), Violation>;

/// The form of no bytes.
pub(super) const NOTHING: PayloadForm = PayloadForm::new("0.9", Releases::between(9, 19), &[]);

impl PayloadForm {
    /// A form that `releases` write, without a check of its fields together.
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

    /// The same form, whose fields `check` compares when all are read.
    pub(super) const fn checked(mut self, check: FormCheck) -> PayloadForm {
        self.check = Some(check);
        self
    }

    /// Whether some release that writes `layout` also writes this form.
    pub(crate) fn is_in(&self, layout: Layout) -> bool {
        // A form is in a layout if their releases overlap: a reader knows the layout, and not the release.
        let releases = layout.releases();
        self.releases.since <= releases.until && releases.since <= self.releases.until
    }

    /// Whether both have fields of the same names, in the same order, that hold values of the same type.
    pub(super) fn is_like(&self, other: &PayloadForm) -> bool {
        use super::FieldShape::{Functions, Networks, Shaders, SilentFunctions};
        let alike = |(a, b): (&FormSlot, &FormSlot)| {
            // PAY-15, PAY-09: a length in front of a shader is of the bytes and not of the value, and so is whether names may repeat.
            a.name == b.name
                && match (a.shape, b.shape) {
                    (Shaders { .. }, Shaders { .. }) => true,
                    (Functions | SilentFunctions, Functions | SilentFunctions) => true,
                    // PAY-48: with sizes and without them are different values.
                    (Networks { .. }, _) => false,
                    (a, b) => a == b,
                }
        };
        self.slots.len() == other.slots.len() && self.slots.iter().zip(other.slots).all(alike)
    }
}

impl PartialEq for PayloadForm {
    // By name and fields: a check is a function, and comparing addresses of functions means nothing.
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
    /// The forms that `layout` can store, the preferred one (PAY-09) first.
    pub(crate) fn forms_in(
        &self,
        layout: Layout,
    ) -> impl Iterator<Item = &'static PayloadForm> + Clone + use<> {
        self.forms.iter().filter(move |form| form.is_in(layout))
    }

    /// The newest form that `release` writes; `None` where it stores no module of this kind (PAY-99).
    pub fn form_in(&self, release: Release) -> Option<&'static PayloadForm> {
        // PAY-99: newest first: of two forms that a release writes, as 0.2 and 0.13 of metal, the one that came later.
        let mut forms = self.forms.iter();
        forms.find(|form| form.releases.contains(release))
    }

    /// The property mask in `release`; `None` before 0.12, and where the kind is not there (MOD-15).
    pub fn mask(&self, release: Release) -> Option<u8> {
        let mut masks = self.masks.iter();
        let of_release = masks.find(|(range, _)| range.contains(release))?;
        Some(of_release.1)
    }

    /// The global function that reads it in `release`; `None` where that release registers none (PAY-99).
    ///
    /// The prefix is `module.loadbinary_` up to 0.6, `runtime.module.loadbinary_` up to 0.21 and
    /// `ffi.Module.load_from_bytes.` from 0.22.
    pub fn loader(&self, release: Release) -> Option<String> {
        let loaded = self.loaded.iter().any(|range| range.contains(release));
        // PAY-99: a kind that is stored may have no loader, and a kind that is loaded may no longer be stored.
        loaded.then(|| format!("{}{}", loader_prefix(release), self.kind))
    }
}

/// What comes before a kind in the name of its loader (MOD-11).
pub(crate) fn loader_prefix(release: Release) -> &'static str {
    match release.minor() {
        // PAY-99: renamed in 0.7 with the namespace of the runtime, and in 0.22 with the layout of the library binary.
        ..=6 => "module.loadbinary_",
        7..=21 => "runtime.module.loadbinary_",
        22.. => "ffi.Module.load_from_bytes.",
    }
}
