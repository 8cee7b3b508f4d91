//! Puts the selected cases to an implementation, one after another, and keeps the losses to the case that caused them.

use super::adapter::{Adapter, Identity, Reply};
use super::case::{Case, Suite};
use super::known::{self, Entry, Known};
use super::verdict::{Verdict, judge};
use crate::release::{Release, Releases};
use std::time::{Duration, Instant};

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which cases.
    pub selection: Selection,
    /// What is known to fail.
    pub known: Known,
    /// After so many hangs in a row the rest is not tried: each costs the whole timeout.
    pub hangs: usize,
    /// Today as `YYYY-MM-DD`, for the expiry of known failures.
    pub today: String,
    /// How the implementation was named on the command line, for the line that reproduces a failure.
    pub implementation: String,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            selection: Selection::default(),
            known: Known::default(),
            hangs: 3,
            today: known::today(),
            implementation: "builtin".to_owned(),
        }
    }
}

/// Which cases to run. Empty fields select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of chapters.
    pub chapters: Vec<String>,
    /// Globs over ids.
    pub cases: Vec<String>,
    /// Only what holds in this release.
    pub release: Option<Release>,
}

impl Selection {
    /// Whether the case is selected.
    pub fn takes(&self, case: &Case) -> bool {
        let chapter = self.chapters.is_empty() || self.chapters.contains(&case.chapter);
        let named =
            self.cases.is_empty() || self.cases.iter().any(|glob| known::glob(glob, &case.id));
        chapter
            && named
            && self
                .release
                .is_none_or(|release| case.releases.contains(release))
    }
}

/// What came of one case.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The case.
    pub case: &'a Case,
    /// What is said of it.
    pub verdict: Verdict,
    /// The entry of the known-failures file that excuses it.
    pub known: Option<Entry>,
    /// What else there is to say: that it was run again alone, for one.
    pub note: Option<String>,
    /// How long the implementation took.
    pub took: Duration,
}

impl Outcome<'_> {
    /// Whether it makes the run fail.
    pub fn is_failure(&self) -> bool {
        self.verdict.is_failure() && self.known.is_none()
    }
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    counts: [usize; Verdict::NAMES.len()],
    /// Failures that the known-failures file excuses; they are counted under their verdict too.
    pub known: usize,
}

impl Counts {
    /// How often the verdict `name` was given.
    pub fn count(&self, name: &str) -> usize {
        let place = Verdict::NAMES.iter().position(|known| *known == name);
        place
            .and_then(|place| self.counts.get(place))
            .copied()
            .unwrap_or(0)
    }

    /// Every verdict with its count, in the order of [`Verdict::NAMES`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        Verdict::NAMES.into_iter().zip(self.counts)
    }

    /// All verdicts together.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    fn add(&mut self, outcome: &Outcome<'_>) {
        let name = outcome.verdict.name();
        if let Some(place) = Verdict::NAMES.iter().position(|known| *known == name) {
            self.counts[place] += 1;
        }
        self.known += usize::from(outcome.known.is_some());
    }
}

/// Everything that a report can say.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// Hash of the suite.
    pub suite: &'a str,
    /// Who was judged.
    pub identity: Identity,
    /// How it was named on the command line.
    pub implementation: String,
    /// Which cases were selected.
    pub selection: Selection,
    /// Every selected case, in order.
    pub results: Vec<Outcome<'a>>,
    /// What makes the known-failures file untrue.
    pub problems: Vec<String>,
}

impl<'a> Report<'a> {
    /// All counts.
    pub fn totals(&self) -> Counts {
        let mut counts = Counts::default();
        self.results.iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// The counts of each chapter that has results, in order.
    pub fn chapters(&self) -> Vec<(&'a str, Counts)> {
        let mut chapters: Vec<(&'a str, Counts)> = Vec::new();
        for outcome in &self.results {
            let name = outcome.case.chapter.as_str();
            match chapters.iter_mut().find(|(known, _)| *known == name) {
                Some((_, counts)) => counts.add(outcome),
                None => {
                    let mut counts = Counts::default();
                    counts.add(outcome);
                    chapters.push((name, counts));
                }
            }
        }
        chapters
    }

    /// Whether something was judged, nothing failed that is not known, and the known-failures file is true.
    pub fn is_good(&self) -> bool {
        self.was_judged() && self.problems.is_empty() && self.failures().next().is_none()
    }

    /// Whether at least one case was neither unsupported nor skipped.
    pub fn was_judged(&self) -> bool {
        let totals = self.totals();
        totals.total() > totals.count("unsupported") + totals.count("skipped")
    }

    /// What fails the run.
    pub fn failures(&self) -> impl Iterator<Item = &Outcome<'a>> {
        self.results.iter().filter(|outcome| outcome.is_failure())
    }
}

/// Runs the selected cases.
///
/// # Errors
///
/// When there is nothing to judge: no case is selected, or nobody answers hello. Silence is not success.
pub fn run<'a>(
    suite: &'a Suite,
    adapter: &mut dyn Adapter,
    run: &Run,
) -> Result<Report<'a>, String> {
    run_observed(suite, adapter, run, &mut |_| {})
}

/// [`run`], telling `observe` of every case as it is done.
///
/// # Errors
///
/// As [`run`].
pub fn run_observed<'a>(
    suite: &'a Suite,
    adapter: &mut dyn Adapter,
    run: &Run,
    observe: &mut dyn FnMut(&Outcome<'a>),
) -> Result<Report<'a>, String> {
    let selected: Vec<&Case> = suite
        .cases
        .iter()
        .filter(|case| run.selection.takes(case))
        .collect();
    if selected.is_empty() {
        return Err(nothing(suite, &run.selection));
    }
    let identity = adapter.hello(&suite.hash)?;
    let mut results = Vec::with_capacity(selected.len());
    let (mut hangs, mut suspicious) = (0, false);
    for case in selected {
        let start = Instant::now();
        let (verdict, note) = if hangs >= run.hangs && run.hangs > 0 {
            let reason = format!("not tried: the {hangs} cases before it did not answer");
            (Verdict::Hang(reason), None)
        } else {
            put(case, adapter, &identity, &mut suspicious)
        };
        hangs = if matches!(verdict, Verdict::Hang(_)) {
            hangs + 1
        } else {
            0
        };
        let known = verdict
            .is_failure()
            .then(|| run.known.excuse(&case.id, &verdict, &run.today));
        let outcome = Outcome {
            case,
            known: known.flatten().cloned(),
            verdict,
            note,
            took: start.elapsed(),
        };
        observe(&outcome);
        results.push(outcome);
    }
    let problems = run.known.problems(
        suite.cases.iter().map(|case| case.id.as_str()),
        results
            .iter()
            .map(|outcome| (outcome.case.id.as_str(), &outcome.verdict)),
        &run.today,
    );
    Ok(Report {
        suite: &suite.hash,
        identity,
        implementation: run.implementation.clone(),
        selection: run.selection.clone(),
        results,
        problems,
    })
}

/// Puts one case. `suspicious` says that the testee was lost before, so that the first failure since may be an echo of
/// that and not the fault of its case: such a case gets a testee of its own.
fn put(
    case: &Case,
    adapter: &mut dyn Adapter,
    identity: &Identity,
    suspicious: &mut bool,
) -> (Verdict, Option<String>) {
    if let Some(verdict) = beforehand(case, identity) {
        return (verdict, None);
    }
    let args = case.request();
    let reply = adapter.call(&case.op, &args);
    let seen = match &reply {
        Reply::Seen { view, .. } => {
            Some(format!("only what shows was compared: the view `{view}`"))
        }
        _ => None,
    };
    let verdict = judge(case, reply);
    if is_loss(&verdict) {
        adapter.restart();
    }
    if !verdict.is_failure() {
        return (verdict, seen);
    }
    // In a testee that was just started it has been alone already.
    let shared = adapter.since_restart().is_some_and(|requests| requests > 1);
    if !std::mem::replace(suspicious, is_loss(&verdict)) || !shared {
        return (verdict, seen);
    }
    adapter.restart();
    let alone = judge(case, adapter.call(&case.op, &args));
    let note = (alone != verdict).then(|| {
        format!(
            "{} at first, the first failure after a restart; this is the verdict when run alone",
            verdict.name()
        )
    });
    if is_loss(&alone) {
        adapter.restart();
    }
    (alone, note)
}

fn is_loss(verdict: &Verdict) -> bool {
    verdict.is_failure() && !matches!(verdict, Verdict::Fail(_))
}

/// What hello already answers: operations and releases that the implementation does not have.
fn beforehand(case: &Case, identity: &Identity) -> Option<Verdict> {
    if !identity.ops.is_empty() && !identity.ops.contains(&case.op) {
        let why = format!("{} has no operation `{}`", identity.name, case.op);
        return Some(Verdict::Unsupported(why));
    }
    let releases: Vec<Release> = identity
        .releases
        .iter()
        .filter_map(|release| release.parse().ok())
        .collect();
    if !releases.is_empty()
        && !releases
            .iter()
            .any(|release| case.releases.contains(*release))
    {
        let range: Releases = case.releases;
        let why = format!(
            "holds in {range}, {} is of {}",
            identity.name,
            identity.releases.join(", ")
        );
        return Some(Verdict::Skipped(why));
    }
    None
}

/// Why a selection is empty, with the nearest ids.
fn nothing(suite: &Suite, selection: &Selection) -> String {
    let mut message = "no case matches".to_owned();
    for chapter in &selection.chapters {
        if !suite.cases.iter().any(|case| case.chapter == *chapter) {
            let mut chapters: Vec<&str> = suite
                .cases
                .iter()
                .map(|case| case.chapter.as_str())
                .collect();
            chapters.dedup();
            message = format!(
                "no chapter `{chapter}` has cases: there are {}",
                chapters.join(", ")
            );
        }
    }
    for glob in &selection.cases {
        let near: Vec<&str> = suite
            .cases
            .iter()
            .map(|case| case.id.as_str())
            .filter(|id| {
                glob.split(['/', '*', '-'])
                    .any(|part| part.len() > 2 && id.contains(part))
            })
            .take(5)
            .collect();
        if !near.is_empty() {
            message = format!("no case matches `{glob}`; near are {}", near.join(", "));
        }
    }
    message
}
