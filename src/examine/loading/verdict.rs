//! The verdict of a release on a library.

use super::module_form::{fails_later, reads, reads_content, without_late_constants};
use super::stream::{LoaderStream, Manner};
use super::{Load, LoadCause, payload as walked, relay, walk};
use crate::blob::container::{ContainerPart, Role};
use crate::blob::{Blob, is_unknown_kind};
use crate::payload::kinds::loader_prefix;
use crate::payload::relay_vm::RelayExecutable;
use crate::payload::{self, Payload};
use crate::release::{Layout, Release};
use crate::rule::{Findings, Violation};
use crate::wire::Cursor;

/// A library binary and the file that holds it.
///
/// It is read as far as possible. A broken one is also judged, by the checks of each release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExaminedLibrary<'l> {
    /// The layout in which it was read.
    pub(crate) layout: Layout,
    /// Its symbol; `None` for a raw blob.
    pub(crate) symbol: Option<&'l str>,
    /// The file or the member that holds it.
    pub(crate) part: &'l ContainerPart<'l>,
    /// Its bytes, header included.
    pub(crate) bytes: &'l [u8],
    /// The modules that could be read.
    pub(crate) blob: &'l Blob<'l>,
    /// The rule that ended reading early.
    pub(crate) broken: Option<&'l Violation>,
    /// The decoded payload of each module; `None` for `_lib` and for payloads that cannot be decoded.
    pub(crate) payloads: &'l [Option<Payload<'l>>],
}

impl ExaminedLibrary<'_> {
    /// Returns the verdict of `release` on the library binary.
    ///
    /// The first cause that applies decides:
    ///
    /// 1. The loader looks for another symbol.
    /// 2. The loader reads another layout.
    /// 3. A kind or form has no loader.
    /// 4. The walk over the bytes ends early.
    /// 5. The library binary breaks a rule that this release does not check.
    ///
    /// Otherwise it loads.
    pub(crate) fn load(&self, release: Release) -> Load {
        let looked_for = symbol(Layout::of(release));
        // BLOB-50, BLOB-51: the name must match exactly. A library binary under the symbol of another era, or under a prefix, is not
        // found.
        if let Some(found) = self.symbol
            && found != looked_for
        {
            return self.not_found(release, looked_for);
        }
        let reader = Layout::of(release);
        if let Some(load) = self.in_another_layout(release, reader) {
            return load;
        }
        let mut trap = None;
        // Checked before the walk over the bytes, because kind and form name the cause. A walk shows only where reading ends.
        for (index, module) in self.blob.modules.iter().enumerate() {
            if module.is_host() {
                continue;
            }
            // A payload that cannot be decoded has no form. The walk below gives the verdict on it.
            let payload = self.payloads.get(index).and_then(Option::as_ref);
            if let Err(load) = reads(release, module.kind(), payload) {
                return load.of_module(index);
            }
            if trap.is_none() {
                trap = payload
                    .and_then(|payload| fails_later(release, module.kind(), payload))
                    .map(|load| load.of_module(index));
            }
        }
        if let Err(stop) = walk(release, self.bytes) {
            let load = Load::from(stop);
            // BLOB-06: a kind that is not known here breaks no rule.
            return match self.broken.filter(|broken| !is_unknown_kind(broken)) {
                Some(broken) => Load {
                    why: format!("{}; it breaks a rule: {broken}", load.why),
                    cause: LoadCause::BrokenRule(broken.rule()),
                    ..load
                },
                None => load,
            };
        }
        if let Some(broken) = self.broken {
            return Load::unseen(broken);
        }
        if let Some(trap) = trap {
            return trap;
        }
        let needed = self
            .blob
            .modules
            .iter()
            .filter(|module| !module.is_host())
            .count();
        Load::loads(match needed {
            0 => "whole: there is nothing but the host library",
            1 => "if the loader of its module is there",
            _ => "if the loaders of all its modules are there",
        })
    }

    /// Returns the verdict of a loader that looks for another symbol and continues without one.
    ///
    /// The outcome is always [`Load::silent`], because no release reports an absent library binary (BLOB-50).
    fn not_found(&self, release: Release, looked_for: &str) -> Load {
        let cause = LoadCause::OtherSymbol {
            wanted: looked_for.to_owned(),
        };
        // The file has another library binary with the right symbol, which is loaded instead of this one.
        let mut others = self.part.blobs.iter();
        if others.any(|other| other.symbol == looked_for) {
            return Load::silent(format!(
                "it takes {looked_for} of the same file, and not this library binary"
            ))
            .with_cause(cause);
        }
        let imports = self.blob.modules.iter().any(|module| !module.is_host());
        let lost = if imports {
            "loads the host code without its imports"
        } else {
            "loads the host code"
        };
        let why = format!("it looks for {looked_for}, finds none and {lost}");
        // The calling convention matters only if there are functions.
        let functions = self.part.functions().next().is_some();
        let load = match foreign_functions(self.part, release).filter(|_| functions) {
            Some((trouble, _)) => Load::silent(format!("{why}, and {trouble}")),
            None if imports => Load::silent(why),
            None => Load::silent(format!("{why}, which is everything in the file")),
        };
        load.with_cause(cause)
    }

    /// Returns the verdict of `release` on bytes in another layout than its own. Returns `None` if it reads them correctly
    /// nevertheless.
    fn in_another_layout(&self, release: Release, reader: Layout) -> Option<Load> {
        let modules = self.blob.modules.is_empty();
        let load = match (self.layout, reader) {
            (written, reader) if written == reader => None,
            // Both have a count and self-delimiting payloads. Without a tree, all modules become children of a new root.
            (Layout::V0_2, Layout::V0_7) => None,
            // With a count of 0, the file contains neither of the keys that 0.2 to 0.6 do not know (BLOB-14).
            (Layout::V0_7, Layout::V0_2) if modules => None,
            (Layout::V0_7, Layout::V0_2) => Some(Load::fails(format!(
                "it knows neither tree nor `_lib`: it looks for a loader `{}_lib`",
                loader_prefix(release)
            ))),
            // PAY-03: the function information of device code differs.
            (Layout::V0_21, Layout::V0_7) | (Layout::V0_7, Layout::V0_21) => {
                // Without device functions, layouts 0.7 and 0.21 have the same bytes (BLOB-18).
                let device = self
                    .payloads
                    .iter()
                    .flatten()
                    .any(|payload| payload.functions().next().is_some());
                device.then(|| {
                    Load::fails(
                        "function information has one more field from 0.21 on, so it misreads everything after the first device function",
                    )
                })
            }
            (written, reader) => Some(Load::fails(format!(
                "the bytes are of layout {written}, it reads them as {reader}"
            ))),
        };
        let cause = LoadCause::OtherLayout {
            written: self.layout,
            read_as: reader,
        };
        load.map(|load| load.with_cause(cause))
    }
}

/// Returns the verdict of `release` on compiled code without a library binary.
///
/// Only its symbols show its release (BLOB-62, MOD-03).
pub fn judge_without_blob(part: &ContainerPart<'_>, release: Release) -> Load {
    if part
        .releases()
        .is_some_and(|written| written.since > written.until)
    {
        return Load::unknown(
            "its symbols are of several eras, and which functions follow which convention is not stated",
        );
    }
    // MOD-02, MOD-03.
    let is_of_c_host = part
        .symbols
        .iter()
        .any(|symbol| symbol.role == Role::Entry && symbol.code);
    match foreign_functions(part, release) {
        Some((trouble, cause)) => {
            Load::silent(format!("it opens, but {trouble}")).with_cause(cause)
        }
        None if !is_ambiguous(part) => Load::loads("as host code that imports nothing"),
        // BLOB-65: the C host of 0.21 defines its context in every file.
        None if is_of_c_host && release <= Release::of(20) => {
            Load::loads("as host code that imports nothing")
        }
        None if is_of_c_host => Load::unknown(
            "it opens, and no symbol states the calling convention of its functions: code of a C host of 0.20 and before, which it looks like without a context symbol, crashes when this release calls it",
        ),
        None => Load::unknown(
            "it opens, and no symbol states the calling convention of its functions, which 0.21 changed: code of the other era crashes when it is called",
        ),
    }
}

/// Returns whether no symbol of `part` shows the calling convention of its functions, which changed in 0.21 (MOD-02).
pub fn is_ambiguous(part: &ContainerPart<'_>) -> bool {
    part.releases().is_some_and(|written| {
        written.contains(Release::of(20)) && written.contains(Release::of(21))
    })
}

/// Returns the reason why `release` cannot use the functions of `part`; `None` if it can.
pub(super) fn foreign_functions(
    part: &ContainerPart<'_>,
    release: Release,
) -> Option<(String, LoadCause)> {
    let prefixed = prefixed(part);
    // MOD-03: every release uses the old convention for a library whose symbols show no release.
    let written = part.releases()?;
    // The file has objects of several eras. Each release finds the objects of its era.
    if written.contains(release) || written.since > written.until {
        return None;
    }
    let cause = match release.minor() {
        22.. if !prefixed => LoadCause::NoFunctions,
        ..=21 if prefixed => LoadCause::NoFunctions,
        _ => LoadCause::OtherConvention,
    };
    // MOD-02 and MOD-03: names changed in 0.22, the convention in 0.21.
    let trouble = match release.minor() {
        22.. if !prefixed => {
            "it finds none of its functions: it looks for names that begin with `__tvm_ffi_`".into()
        }
        ..=21 if prefixed => {
            "it finds none of its functions: their names begin with `__tvm_ffi_`, a prefix that it does not look for".into()
        }
        21 => {
            "it calls the functions with the wrong calling convention and leaves the context slots of the library empty: the first call from the library into the runtime crashes".into()
        }
        ..=20 if written.since >= Release::of(21) => {
            "it calls the functions with the calling convention of 0.20, and they crash".into()
        }
        ..=6 if written.since >= Release::of(7) => {
            "it calls its functions with three arguments where they take six: one that returns a value writes it to a wild address".into()
        }
        _ => format!("its symbols are those of {written}"),
    };
    Some((trouble, cause))
}

/// Returns whether functions of `part` have the prefix of 0.22 (BLOB-62).
///
/// Compares the name of the symbol, as a look-up does, and not the name of the function.
pub fn prefixed(part: &ContainerPart<'_>) -> bool {
    part.has_prefixed()
}

/// Returns the verdict of `release` on a file that is only the payload of a module of `kind`. A file does not name its kind: the
/// verdict assumes the name that the release uses.
///
/// `payload` is the decoded form, if the bytes can be decoded. `broken` is the rule that the bytes break.
pub fn stored(
    release: Release,
    kind: &str,
    bytes: &[u8],
    payload: Option<&Payload<'_>>,
    broken: Option<&Violation>,
) -> Load {
    // PAY-81: the caller of `load_module` states the kind, by the name that the release uses.
    let kind = match kind {
        "relax.VMExecutable" if release < Release::of(20) => "relax.Executable",
        kind => kind,
    };
    let info = payload::kind_info(kind);
    // PAY-99: the release has no such kind, independent of the bytes.
    if info.is_none_or(|info| info.form_in(release).is_none()) {
        return Load::fails("it has no such executable").with_cause(LoadCause::NoLoader {
            module: None,
            kind: kind.to_owned(),
        });
    }
    if let Err(load) = reads_content(release, kind, payload) {
        return load;
    }
    // The other kinds of files are Relay VM code and StackVM. Only their grammar is known here, and not the checks of their loaders.
    let is_relax = matches!(kind, "relax.Executable" | "relax.VMExecutable");
    if is_relax
        && let Err(stop) = walked::walk(
            release,
            kind,
            // A loader of files reads the file into a string first, and then reads that string through a stream.
            &mut LoaderStream::new(bytes, Manner::Reports),
        )
    {
        return stop.into();
    }
    match broken {
        // The walk reached the end, so the loader does not check the broken rule.
        Some(broken) if is_relax => Load::unseen(broken),
        Some(broken) => Load::broken(broken),
        None => payload
            .and_then(|payload| fails_later(release, kind, payload))
            .unwrap_or_else(|| Load::loads("as a file")),
    }
}

/// Returns the verdict of `release`, one of 0.6 to 0.19, on a file of Relay VM code. `broken` is the first rule that it breaks.
pub fn relay_code(release: Release, bytes: &[u8], broken: Option<&Violation>) -> Load {
    let mut stream = LoaderStream::new(bytes, Manner::Reports);
    match (relay::walk(release, &mut stream), broken) {
        (Err(stop), _) => stop.into(),
        (Ok(()), Some(broken)) => Load::unseen(broken),
        (Ok(()), None) => {
            let mut cursor = Cursor::new(bytes);
            let read = RelayExecutable::read_code(&mut cursor, &mut Findings::default());
            let late = read.ok().as_ref().and_then(without_late_constants);
            late.unwrap_or_else(|| Load::loads("as a file"))
        }
    }
}

/// Returns the symbol of the slot in which a loader stores the module.
pub(crate) const fn context_symbol(layout: Layout) -> &'static str {
    match layout {
        Layout::V0_2 | Layout::V0_7 => "__tvm_module_ctx",
        Layout::V0_21 => "__tvm_ffi_library_ctx",
        Layout::V0_22 => "__tvm_ffi__library_ctx",
    }
}

/// Returns the symbol that a loader of `layout` looks for (BLOB-50).
///
/// Layouts 0.2 and 0.7 share it.
fn symbol(layout: Layout) -> &'static str {
    crate::blob::detect::symbol(layout)
}
