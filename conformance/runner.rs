//! Puts the selected cases to an implementation, one after another, and keeps the losses to the case that caused them.

use super::adapter::exec::BEHIND;
use super::adapter::{Adapter, Identity, Reply, protocol};
use super::case::{Case, Suite};
use super::known::{self, Entry, Known};
use super::parts::Parts;
use super::said::{line_of, plain};
use super::verdict::{Judgement, Verdict, judge};
use crate::release::{Release, Releases};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which cases.
    pub selection: Selection,
    /// What is known to fail.
    pub known: Known,
    /// After so many hangs in a row the rest is not tried: each costs the whole timeout. 0 for never.
    pub hangs: usize,
    /// After so many other losses in a row (crashes, answers that are none), each of which costs a start. 0 for never.
    pub crashes: usize,
    /// Whether a case that is unsupported or skipped fails the run, unless it is known.
    pub complete: bool,
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
            crashes: 20,
            complete: false,
            today: known::today(),
            implementation: "builtin".to_owned(),
        }
    }
}

impl Run {
    /// The entry that excuses this verdict, if it fails the run.
    fn excuse(&self, case: &Case, verdict: &Verdict) -> Option<&Entry> {
        let entry = || self.known.excuse(&case.id, verdict, &self.today);
        fails(verdict, self).then(entry).flatten()
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

/// The selected cases, in order.
///
/// # Errors
///
/// When there is none, with what of the selection matches nothing.
pub fn select<'a>(suite: &'a Suite, selection: &Selection) -> Result<Vec<&'a Case>, String> {
    let all = suite.cases.iter();
    let selected: Vec<&Case> = all.filter(|case| selection.takes(case)).collect();
    match selected.is_empty() {
        true => Err(nothing(suite, selection)),
        false => Ok(selected),
    }
}

/// What came of one case.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The case.
    pub case: &'a Case,
    /// What is said of it.
    pub verdict: Verdict,
    /// What the case states and the answer does not, where that is no failure: it was not compared.
    pub unstated: Parts,
    /// Whether that is a failure: of a run that must be complete, no answer is one too.
    pub fails: bool,
    /// The entry of the known-failures file that excuses it.
    pub known: Option<Entry>,
    /// The answer to a case that fails, where it is no longer than a report can hold.
    pub answer: Option<Value>,
    /// What the testee wrote to its stderr meanwhile.
    pub stderr: Option<String>,
    /// What else there is to say: that it was run again alone, for one.
    pub note: Option<String>,
    /// How long the implementation took.
    pub took: Duration,
}

impl Outcome<'_> {
    /// Whether it makes the run fail.
    pub fn is_failure(&self) -> bool {
        self.fails && self.known.is_none()
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
    /// Whether a case without an answer fails the run.
    pub complete: bool,
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

    /// How many passes were judged without each part of the answer, because the implementation does not state it.
    pub fn unstated(&self) -> Vec<(&'static str, usize)> {
        let passes = || {
            let results = self.results.iter();
            results.filter(|outcome| outcome.verdict == Verdict::Pass)
        };
        let count = |part| passes().filter(|one| one.unstated.has(part)).count();
        let counts = Parts::NAMES
            .iter()
            .map(|(name, part)| (*name, count(*part)));
        counts.filter(|(_, count)| *count > 0).collect()
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
    let selected = select(suite, &run.selection)?;
    let identity = plain_identity(adapter.hello(&suite.hash).map_err(|error| plain(&error))?);
    let run = &Run {
        known: run.known.about(&identity.releases),
        ..run.clone()
    };
    let mut stated = Parts::default();
    let mut results: Vec<Outcome<'a>> = Vec::with_capacity(selected.len());
    let mut settle = |outcome: Outcome<'a>| {
        observe(&outcome);
        results.push(outcome);
    };
    let (mut suspicious, mut losses) = (false, Losses::default());
    // A case is settled when the testee was quiet after it, and answered the next.
    let mut last: Option<Outcome<'a>> = None;
    for case in selected {
        match (adapter.stray(), &mut last) {
            (Some(stray), Some(last)) => charge(last, stray, &mut suspicious),
            (Some(stray), None) => {
                let wrong = judge(case, &stray).verdict.reason();
                return Err(format!("after hello: {wrong}"));
            }
            (None, _) => {}
        }
        let start = Instant::now();
        let (judgement, note, answer) = match &losses.given_up {
            Some(verdict) => (Judgement::bare(verdict.clone()), None, None),
            None => put(case, adapter, &identity, &mut suspicious, last.as_mut()),
        };
        stated.add(judgement.stated);
        losses.count(case, &judgement.verdict, run);
        let failed = matches!(judgement.verdict, Verdict::Fail(_));
        let stderr = if failed { adapter.stderr() } else { None };
        let outcome = Outcome {
            case,
            verdict: judgement.verdict,
            unstated: judgement.unstated,
            fails: false,
            known: None,
            answer: answer.filter(|_| failed),
            stderr: stderr.map(|text| plain(&text)),
            note,
            took: start.elapsed(),
        };
        if let Some(settled) = last.replace(outcome) {
            settle(settled);
        }
    }
    let stray = adapter.finish();
    if let Some(mut last) = last {
        if let Some(stray) = stray {
            charge(&mut last, stray, &mut suspicious);
        }
        settle(last);
    }
    // What is stated once could have been stated always: who answers only where it is right is not compared less.
    for outcome in &mut results {
        hold(outcome, stated);
        outcome.fails = fails(&outcome.verdict, run);
        outcome.known = run.excuse(outcome.case, &outcome.verdict).cloned();
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
        complete: run.complete,
        results,
        problems,
    })
}

/// Holds a pass to the parts that the implementation states elsewhere.
fn hold(outcome: &mut Outcome<'_>, stated: Parts) {
    let mut judgement = Judgement::bare(outcome.verdict.clone());
    judgement.unstated = outcome.unstated;
    let held = judgement.held_to(outcome.case, stated);
    (outcome.verdict, outcome.unstated) = (held.verdict, held.unstated);
}

/// Whether a verdict fails the run, unless it is known.
fn fails(verdict: &Verdict, run: &Run) -> bool {
    match verdict {
        Verdict::Pass => false,
        verdict => run.complete || verdict.is_failure(),
    }
}

/// The testee did something wrong behind its answer to `last`, when nothing was asked of it.
fn charge(last: &mut Outcome<'_>, stray: Reply, suspicious: &mut bool) {
    *suspicious = true;
    // A case that has failed keeps what it failed by.
    if !last.verdict.is_failure() {
        last.verdict = judge(last.case, &stray).verdict;
    }
}

/// Losses in a row, and what is said of all further cases when they are too many.
#[derive(Default)]
struct Losses {
    hangs: usize,
    crashes: usize,
    given_up: Option<Verdict>,
}

impl Losses {
    /// An answer ends the row, and what is known does not count.
    fn count(&mut self, case: &Case, verdict: &Verdict, run: &Run) {
        let failed = run.excuse(case, verdict).is_none();
        match verdict {
            _ if self.given_up.is_some() => return,
            Verdict::Hang(_) if failed => self.hangs += 1,
            verdict if failed && is_loss(verdict) => self.crashes += 1,
            verdict if is_loss(verdict) => {}
            _ => *self = Losses::default(),
        }
        let beyond = |count: usize, most: usize| most > 0 && count >= most;
        if beyond(self.hangs, run.hangs) {
            let reason = format!("not tried: {} cases in a row did not answer", self.hangs);
            self.given_up = Some(Verdict::Hang(reason));
        } else if beyond(self.crashes, run.crashes) {
            let reason = format!("not tried: {} cases in a row lost the testee", self.crashes);
            self.given_up = Some(match verdict {
                Verdict::OutOfMemory(_) => Verdict::OutOfMemory(reason),
                Verdict::ProtocolError(_) => Verdict::ProtocolError(reason),
                _ => Verdict::Crash(reason),
            });
        }
    }
}

/// Its names as they may be shown.
fn plain_identity(identity: Identity) -> Identity {
    let all = |names: Vec<String>| names.iter().map(|name| line_of(name)).collect();
    Identity {
        name: line_of(&identity.name),
        version: line_of(&identity.version),
        releases: all(identity.releases),
        ops: identity.ops,
    }
}

/// Puts one case, after the case `before`. `suspicious` says that the testee was lost before, so that the first failure since may be an echo of
/// that and not the fault of its case: such a case gets a testee of its own.
fn put(
    case: &Case,
    adapter: &mut dyn Adapter,
    identity: &Identity,
    suspicious: &mut bool,
    before: Option<&mut Outcome<'_>>,
) -> (Judgement, Option<String>, Option<Value>) {
    if let Some(verdict) = beforehand(case, identity) {
        return (Judgement::bare(verdict), None, None);
    }
    let (judgement, reply) = ask(case, adapter);
    let seen = match &reply {
        Some(Reply::Seen { view, .. }) => {
            Some(format!("only what shows was compared: the view `{view}`"))
        }
        _ => None,
    };
    let verdict = &judgement.verdict;
    if is_loss(verdict) {
        adapter.restart();
    }
    if !verdict.is_failure() {
        return (judgement, seen, None);
    }
    let answer = reply.and_then(shown);
    // A line that is no answer may have been written behind the answer before: alone, the case has nobody before it.
    if let (Verdict::ProtocolError(wrong), Some(before)) = (verdict, before)
        && !wrong.starts_with(BEHIND)
        && !adapter.was_alone()
    {
        let (alone, reply) = ask(case, adapter);
        if is_loss(&alone.verdict) {
            adapter.restart();
        }
        if !matches!(alone.verdict, Verdict::ProtocolError(_)) {
            let wrong = format!("{BEHIND}: {wrong}");
            charge(before, Reply::ProtocolError(wrong), suspicious);
            let note = "run again alone, for a line that the case before it had written";
            return (alone, Some(note.to_owned()), reply.and_then(shown));
        }
    }
    // In a testee that was just started it has been alone already.
    let shared = adapter.since_restart().is_some_and(|requests| requests > 1);
    if !std::mem::replace(suspicious, is_loss(verdict)) || !shared {
        return (judgement, seen, answer);
    }
    adapter.restart();
    let (alone, reply) = ask(case, adapter);
    let note = (alone.verdict != *verdict).then(|| {
        format!(
            "{} at first, the first failure after a restart; this is the verdict when run alone",
            verdict.name()
        )
    });
    if is_loss(&alone.verdict) {
        adapter.restart();
    }
    (alone, note, reply.and_then(shown))
}

/// An answer for a report, unless it is one that fills memory: a testee may give as many as there are cases.
fn shown(reply: Reply) -> Option<Value> {
    const LONGEST: usize = 64 << 10;
    let answer = protocol::answer_of(reply)?;
    (answer.to_string().len() <= LONGEST).then_some(answer)
}

/// Puts what a case asks, up to the first answer that does not pass, and hands the last one on.
pub(super) fn ask(case: &Case, adapter: &mut dyn Adapter) -> (Judgement, Option<Reply>) {
    let mut whole = Judgement::bare(Verdict::Pass);
    let mut last = None;
    for step in case.steps() {
        let reply = adapter.call(&step.op, &step.request());
        let judgement = judge(&step, &reply);
        let judgement = match adapter.answers_in_full() {
            true => judgement.in_full(&step),
            false => judgement,
        };
        whole = whole.with(judgement);
        last = Some(reply);
        if whole.verdict != Verdict::Pass {
            if let Some(cut) = step.cut_to(case) {
                whole.verdict = whole.verdict.of(&format!("the first {cut} bytes"));
            }
            break;
        }
    }
    (whole, last)
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

/// Why a selection is empty: what of it matches nothing by itself, else that no case is in all of it.
fn nothing(suite: &Suite, selection: &Selection) -> String {
    let ids = || suite.cases.iter().map(|case| case.id.as_str());
    for chapter in &selection.chapters {
        if !suite.cases.iter().any(|case| case.chapter == *chapter) {
            let mut chapters: Vec<&str> = suite
                .cases
                .iter()
                .map(|case| case.chapter.as_str())
                .collect();
            chapters.dedup();
            let chapters = chapters.join(", ");
            return format!("no chapter `{chapter}` has cases: there are {chapters}");
        }
    }
    for glob in &selection.cases {
        if ids().any(|id| known::glob(glob, id)) {
            continue;
        }
        let near: Vec<&str> = ids()
            .filter(|id| {
                glob.split(['/', '*', '-'])
                    .any(|part| part.len() > 2 && id.contains(part))
            })
            .take(5)
            .collect();
        return match near.is_empty() {
            true => format!("no case matches `{glob}`"),
            false => format!("no case matches `{glob}`; near are {}", near.join(", ")),
        };
    }
    let mut parts = Vec::new();
    if !selection.cases.is_empty() {
        parts.push(format!("matches `{}`", selection.cases.join("` or `")));
    }
    if !selection.chapters.is_empty() {
        parts.push(format!("is in chapter {}", selection.chapters.join(" or ")));
    }
    if let Some(release) = selection.release {
        parts.push(format!("holds in {release}"));
    }
    format!("no case {}", parts.join(" and "))
}
