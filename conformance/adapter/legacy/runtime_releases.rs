//! The releases that a runtime may belong to, from the features it shows and the release that the user states.
//!
//! The interface has no version. A feature exists from the release that introduced it, perhaps until one that removed it. Each
//! [`Sign`] excludes the releases that do not match.

use super::{Reply, unsupported};
use crate::conformance::runtime::legacy::{LegacyApi, text_arg};
use crate::release::Release;
use crate::value::legacy::code;
use serde_json::Value;
use std::fmt;

/// The releases that a runtime may belong to, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuntimeReleases {
    /// The oldest release.
    pub(super) first: Release,
    /// The newest release.
    pub(super) last: Release,
    /// The certainty of the range.
    known: Certainty,
}

/// The basis of a range of releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// The user states the release, or the signs leave only one.
    Exactly,
    /// No sign distinguishes these releases.
    Narrowed,
    /// No release has this combination of signs.
    Contradicted,
}

impl RuntimeReleases {
    /// The first release with this interface.
    pub(super) const FIRST: Release = Release::of(7);
    /// The last release with this interface. From 0.21 on the functions are those of tvm-ffi.
    pub(super) const LAST: Release = Release::of(20);
    /// A runtime of 0.21, which is recognized by its functions.
    pub(super) const TRANSITION: RuntimeReleases = RuntimeReleases {
        first: Release::of(21),
        last: Release::of(21),
        known: Certainty::Exactly,
    };
    /// The range for a runtime that matches no release.
    const ANY: RuntimeReleases = RuntimeReleases {
        first: Release::of(8),
        last: RuntimeReleases::LAST,
        known: Certainty::Contradicted,
    };

    /// Returns the range for the features of the runtime and the release that the user states.
    pub(super) fn detect(
        api: &'static LegacyApi,
        named: Option<Release>,
    ) -> Result<RuntimeReleases, String> {
        let shown: Vec<(Sign, bool)> = SIGNS
            .into_iter()
            .filter_map(|sign| Some((sign, sign.is_shown(api)?)))
            .collect();
        RuntimeReleases::matching_signs(&shown, named)
    }

    /// Returns the releases that match every sign, or the named release unless a sign contradicts it.
    fn matching_signs(
        shown: &[(Sign, bool)],
        named: Option<Release>,
    ) -> Result<RuntimeReleases, String> {
        let agrees = |release: &Release| {
            shown
                .iter()
                .all(|(sign, there)| sign.covers(*release) == *there)
        };
        // The matching releases may have gaps. The first and the last one bound the range.
        let mut left = Release::all()
            .filter(|release| (RuntimeReleases::FIRST..=RuntimeReleases::LAST).contains(release))
            .filter(agrees);
        let shows = left.next().map(|first| RuntimeReleases {
            first,
            last: left.last().unwrap_or(first),
            known: Certainty::Narrowed,
        });
        match (shows, named) {
            (None, None) => Ok(RuntimeReleases::ANY),
            (Some(shows), None) => Ok(shows.mark_certain()),
            (Some(shows), Some(named)) if !(shows.first..=shows.last).contains(&named) => {
                let against = shown
                    .iter()
                    .filter(|(sign, there)| sign.covers(named) != *there);
                let against: Vec<String> =
                    against.map(|(sign, there)| sign.describe(*there)).collect();
                Err(format!("it is not of {named}: {}", against.join("; ")))
            }
            (_, Some(named)) => Ok(RuntimeReleases {
                first: named,
                last: named,
                known: Certainty::Exactly,
            }),
        }
    }

    /// Marks a range with only one release as certain.
    fn mark_certain(self) -> RuntimeReleases {
        if self.first == self.last {
            RuntimeReleases {
                known: Certainty::Exactly,
                ..self
            }
        } else {
            self
        }
    }

    /// Returns every release of the range, oldest first.
    pub(super) fn releases(self) -> impl Iterator<Item = Release> {
        Release::all().filter(move |release| (self.first..=self.last).contains(release))
    }

    /// Rejects a case whose result differs between releases, unless the release of the runtime is known.
    pub(super) fn for_one_release(self, args: &Value) -> Result<(), Reply> {
        if self.first != self.last {
            return Err(unsupported(
                "it does not show which release this runtime is of: say it with `@RELEASE`",
            ));
        }
        self.for_release_of(args)
    }

    /// Rejects a case for a release outside of the range.
    pub(super) fn for_release_of(self, args: &Value) -> Result<(), Reply> {
        let named = args.get("release").and_then(Value::as_str);
        match named.and_then(|name| name.parse::<Release>().ok()) {
            Some(release) if !(self.first..=self.last).contains(&release) => Err(unsupported(
                format!("the case tests the behaviour of {release}"),
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for RuntimeReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuntimeReleases { first, last, known } = self;
        match known {
            Certainty::Exactly => write!(f, "C interface of {first}"),
            Certainty::Narrowed => write!(
                f,
                "C interface of {first} to {last}; add @RELEASE after the library to choose one"
            ),
            Certainty::Contradicted => write!(
                f,
                "C interface of {first} to {last}, but it matches no release exactly; add @RELEASE after the library to choose one"
            ),
        }
    }
}

/// A feature that releases have from one release on.
#[derive(Clone, Copy, Debug)]
struct Sign {
    /// The first release with the feature.
    since: u8,
    /// The last release with the feature.
    until: u8,
    /// The feature.
    what: What,
    /// Another feature of the same part. If it is missing, that part of the runtime is not built or hides its symbols.
    part: Option<What>,
}

/// The way in which a feature is visible through the interface.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The library exports this symbol.
    Symbol(&'static str),
    /// The registry has a function of this name.
    Global(&'static str),
    /// A bool is returned as a bool, and not as an integer.
    Truth,
}

/// All signs, each checked in runtimes of every release, see conformance/reports/legacy-runtimes.md.
const SIGNS: [Sign; 13] = [
    Sign::since(8, What::Symbol("TVMFuncRemoveGlobal")),
    Sign::since(9, What::Global("runtime.ModuleGetFormat")),
    Sign::since(
        10,
        What::Symbol("_ZN3tvm7runtime2vm10Executable21GetLateBoundConstantsEm"),
    )
    .until(14)
    .with(What::Symbol(
        "_ZN3tvm7runtime2vm10Executable6SetLibERKNS0_6ModuleE",
    )),
    Sign::since(11, What::Global("runtime.SanitizeName")).until(19),
    Sign::since(12, What::Global("runtime.ModuleGetPropertyMask")),
    Sign::since(13, What::Global("rpc.ReturnException")).with(What::Global("rpc.Connect")),
    Sign::since(14, What::Global("runtime.ModuleGetFunction")),
    Sign::since(15, What::Symbol("TVMThrowLastError")),
    Sign::since(16, What::Global("runtime.ModuleClearImports")),
    Sign::since(17, What::Global("runtime.disco.SessionGetNumWorkers")),
    // RPC-43, VAL-19: from here on a bool has its own code.
    Sign::since(18, What::Truth),
    Sign::since(19, What::Global("vm.builtin.kv_cache_disagg_mark_send")),
    Sign::since(
        20,
        What::Global("runtime.module.loadbinary_relax.VMExecutable"),
    ),
];

impl What {
    /// Returns whether the feature exists, or `None` if the interface cannot tell.
    fn is_there(self, api: &'static LegacyApi) -> Option<bool> {
        match self {
            What::Symbol(name) => Some(api.exports(name)),
            What::Global(name) => api.global(name).ok().map(|found| found.is_some()),
            What::Truth => {
                let enabled = api.call_global("runtime.RuntimeEnabled", &[text_arg(c"cpu")]);
                enabled.ok().map(|enabled| enabled.code == code::BOOL)
            }
        }
    }
}

impl Sign {
    /// Creates a sign of a release and all later ones.
    const fn since(since: u8, what: What) -> Sign {
        Sign {
            since,
            until: RuntimeReleases::LAST.minor(),
            what,
            part: None,
        }
    }

    /// Limits the sign to the releases up to `until`.
    const fn until(self, until: u8) -> Sign {
        Sign { until, ..self }
    }

    /// Limits the sign to runtimes that have this part.
    const fn with(self, part: What) -> Sign {
        Sign {
            part: Some(part),
            ..self
        }
    }

    /// Returns whether `release` has the feature.
    fn covers(self, release: Release) -> bool {
        (self.since..=self.until).contains(&release.minor())
    }

    /// Returns whether the runtime has the feature, or `None` if that is meaningless.
    fn is_shown(self, api: &'static LegacyApi) -> Option<bool> {
        match self.part {
            // A part that is not built shows none of its signs, which would date the runtime too early.
            Some(part) if !part.is_there(api)? => None,
            _ => self.what.is_there(api),
        }
    }

    /// Describes the presence or absence of the feature.
    fn describe(self, there: bool) -> String {
        let (since, until) = (Release::of(self.since), Release::of(self.until));
        let (has, lacks) = match self.what {
            What::Symbol(name) => (
                format!("it exports {name}"),
                format!("it does not export {name}"),
            ),
            What::Global(name) => (format!("it has {name}"), format!("it lacks {name}")),
            What::Truth => (
                "it returns a bool as one".to_owned(),
                "it returns a bool as an integer".to_owned(),
            ),
        };
        let who = if until == RuntimeReleases::LAST {
            format!("{since} and later have")
        } else {
            format!("{since} to {until} have")
        };
        if there {
            format!("{has}, which only {who}")
        } else {
            format!("{lacks}, which {who}")
        }
    }
}
