//! Which release a runtime stands for: what it shows, and what the user says.
//!
//! The interface has no version. What a release brought is there in it and in all that follow, or until a release
//! that took it away: each [`Sign`] leaves the releases that agree with it.

use super::{Reply, unsupported};
use crate::conformance::runtime::legacy::{LegacyApi, text_arg};
use crate::release::Release;
use crate::value::legacy::code;
use serde_json::Value;
use std::fmt;

/// The releases that a runtime may be of, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuntimeReleases {
    /// The oldest.
    pub(super) first: Release,
    /// The newest.
    pub(super) last: Release,
    /// How sure that is.
    known: Certainty,
}

/// What the range of releases rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// The user says it, or its signs do.
    Exactly,
    /// No sign is between these releases.
    Narrowed,
    /// No release has these signs together.
    Contradicted,
}

impl RuntimeReleases {
    /// The releases that this interface is of.
    pub(super) const FIRST: Release = Release::of(7);
    /// The last release with this interface: from 0.21 on the functions are those of tvm-ffi.
    pub(super) const LAST: Release = Release::of(20);
    /// A runtime of 0.21, which its functions show.
    pub(super) const TRANSITION: RuntimeReleases = RuntimeReleases {
        first: Release::of(21),
        last: Release::of(21),
        known: Certainty::Exactly,
    };
    /// For what is like no release.
    const ANY: RuntimeReleases = RuntimeReleases {
        first: Release::of(8),
        last: RuntimeReleases::LAST,
        known: Certainty::Contradicted,
    };

    /// What the runtime shows, and the release that the user says.
    pub(super) fn of(
        api: &'static LegacyApi,
        named: Option<Release>,
    ) -> Result<RuntimeReleases, String> {
        let shown: Vec<(Sign, bool)> = SIGNS
            .into_iter()
            .filter_map(|sign| Some((sign, sign.is_shown(api)?)))
            .collect();
        RuntimeReleases::between(&shown, named)
    }

    /// The releases that agree with every sign, or the one that is named, unless a sign is against it.
    fn between(shown: &[(Sign, bool)], named: Option<Release>) -> Result<RuntimeReleases, String> {
        let agrees = |release: &Release| {
            shown
                .iter()
                .all(|(sign, there)| sign.of(*release) == *there)
        };
        // Signs need not follow each other: of those that agree, the first and the last bound the rest.
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
            (Some(shows), None) => Ok(shows.settled()),
            (Some(shows), Some(named)) if !(shows.first..=shows.last).contains(&named) => {
                let against = shown
                    .iter()
                    .filter(|(sign, there)| sign.of(named) != *there);
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

    /// One release that is left is known exactly.
    fn settled(self) -> RuntimeReleases {
        if self.first == self.last {
            RuntimeReleases {
                known: Certainty::Exactly,
                ..self
            }
        } else {
            self
        }
    }

    /// Every release, oldest first.
    pub(super) fn releases(self) -> impl Iterator<Item = Release> {
        Release::all().filter(move |release| (self.first..=self.last).contains(release))
    }

    /// For what differs from release to release: only a runtime whose release is known has an answer.
    pub(super) fn for_one_release(self, args: &Value) -> Result<(), Reply> {
        if self.first != self.last {
            return Err(unsupported(
                "it does not show which release this runtime is of: say it with `@RELEASE`",
            ));
        }
        self.for_release_of(args)
    }

    /// A case may ask for what another release does.
    pub(super) fn for_release_of(self, args: &Value) -> Result<(), Reply> {
        let named = args.get("release").and_then(Value::as_str);
        match named.and_then(|name| name.parse::<Release>().ok()) {
            Some(release) if !(self.first..=self.last).contains(&release) => Err(unsupported(
                format!("the case is about what {release} does"),
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
                "C interface of {first} to {last}, @RELEASE behind the library says which"
            ),
            Certainty::Contradicted => write!(
                f,
                "C interface of {first} to {last}, no release has what it shows: @RELEASE behind the library says which is meant"
            ),
        }
    }
}

/// Something that releases have from one on.
#[derive(Clone, Copy, Debug)]
struct Sign {
    /// The first release that has it.
    since: u8,
    /// The last release that has it.
    until: u8,
    /// What is looked for.
    what: What,
    /// What is there in the same releases, and in others: where it is not, this part of the runtime is not built, or hides
    /// its symbols.
    part: Option<What>,
}

/// How something shows through the interface.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The library exports it.
    Symbol(&'static str),
    /// The registry has a function of this name.
    Global(&'static str),
    /// A truth comes back as one, no longer as an integer.
    Truth,
}

/// Each was looked for in runtimes of every release, see conformance/reports/legacy-runtimes.md.
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
    // RPC-43, VAL-19: a bool has a code of its own from here on.
    Sign::since(18, What::Truth),
    Sign::since(19, What::Global("vm.builtin.kv_cache_disagg_mark_send")),
    Sign::since(
        20,
        What::Global("runtime.module.loadbinary_relax.VMExecutable"),
    ),
];

impl What {
    /// `None` where the interface does not show it.
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
    /// A sign of a release and all that follow.
    const fn since(since: u8, what: What) -> Sign {
        Sign {
            since,
            until: RuntimeReleases::LAST.minor(),
            what,
            part: None,
        }
    }

    /// The same, up to a release that took it away.
    const fn until(self, until: u8) -> Sign {
        Sign { until, ..self }
    }

    /// The same, for runtimes that have this part.
    const fn with(self, part: What) -> Sign {
        Sign {
            part: Some(part),
            ..self
        }
    }

    /// Whether `release` has it.
    fn of(self, release: Release) -> bool {
        (self.since..=self.until).contains(&release.minor())
    }

    /// Whether the runtime has it; `None` where that means nothing.
    fn is_shown(self, api: &'static LegacyApi) -> Option<bool> {
        match self.part {
            // A part that is not built shows none of its signs, which would date the runtime too early.
            Some(part) if !part.is_there(api)? => None,
            _ => self.what.is_there(api),
        }
    }

    /// What it says that it is there, or not.
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
