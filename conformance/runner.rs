//! Puts the selected cases to an implementation, one after another, and keeps the losses to the case that caused them.

mod outcome;
mod selection;

use super::adapter::exec::BEHIND;
use super::adapter::{Adapter, Identity, Reply, protocol};
use super::case::{Case, Suite};
use super::known::{self, KnownFailure, KnownFailures};
use super::parts::Parts;
use super::plain_text::{line_of, plain};
use super::verdict::{Judgement, Verdict, judge};
use crate::release::{Release, Releases};
pub use outcome::{CaseOutcome, Report, VerdictCounts};
pub use selection::{Selection, select};
use serde_json::Value;
use std::time::Instant;

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which cases.
    pub selection: Selection,
    /// What is known to fail.
    pub known: KnownFailures,
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
            known: KnownFailures::default(),
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
    fn excuse(&self, case: &Case, verdict: &Verdict) -> Option<&KnownFailure> {
        let entry = || self.known.excuse(&case.id, verdict, &self.today);
        fails(verdict, self).then(entry).flatten()
    }
}

/// Runs the selected cases.
///
/// # Errors
///
/// When there is nothing to judge: no case is selected, or no testee answers hello. Silence is not success.
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
    observe: &mut dyn FnMut(&CaseOutcome<'a>),
) -> Result<Report<'a>, String> {
    let selected = select(suite, &run.selection)?;
    // Everything that the testee wrote is shown in reports and terminals: escapes go before anything is kept.
    let identity = plain_identity(adapter.hello(&suite.hash).map_err(|error| plain(&error))?);
    let run = &Run {
        // Only now is it known which releases the testee is of.
        known: run.known.about(&identity.releases),
        ..run.clone()
    };
    let mut stated = Parts::default();
    let mut results: Vec<CaseOutcome<'a>> = Vec::with_capacity(selected.len());
    let mut settle = |outcome: CaseOutcome<'a>| {
        observe(&outcome);
        results.push(outcome);
    };
    // `suspicious`: the testee was lost, and the first failure after that may be an echo of it.
    let (mut suspicious, mut losses) = (false, Losses::default());
    // A case is settled when the testee was quiet after it, and answered the next.
    let mut last: Option<CaseOutcome<'a>> = None;
    for case in selected {
        match (adapter.stray(), &mut last) {
            (Some(stray), Some(last)) => charge(last, stray, &mut suspicious),
            (Some(stray), None) => {
                let wrong = judge(case, &stray).verdict.reason();
                // There is no case yet that it could be charged to.
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
        let outcome = CaseOutcome {
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
fn hold(outcome: &mut CaseOutcome<'_>, stated: Parts) {
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

/// The testee did something wrong behind its answer to `last`, without a request.
fn charge(last: &mut CaseOutcome<'_>, stray: Reply, suspicious: &mut bool) {
    *suspicious = true;
    // A case that has failed keeps what it failed by.
    if !last.verdict.is_failure() {
        last.verdict = judge(last.case, &stray).verdict;
    }
}

/// Losses in a row, and the verdict of all further cases when they are too many.
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
            // Any answer shows that the testee lives.
            _ => *self = Losses::default(),
        }
        let beyond = |count: usize, most: usize| most > 0 && count >= most;
        if beyond(self.hangs, run.hangs) {
            let reason = format!("not tried: {} cases in a row did not answer", self.hangs);
            self.given_up = Some(Verdict::Hang(reason));
        } else if beyond(self.crashes, run.crashes) {
            let reason = format!("not tried: {} cases in a row lost the testee", self.crashes);
            // The verdict of the rest is that of the last loss: a report counts out of memory and crashes apart.
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
/// that and not the fault of its case: that case gets a testee of its own.
fn put(
    case: &Case,
    adapter: &mut dyn Adapter,
    identity: &Identity,
    suspicious: &mut bool,
    before: Option<&mut CaseOutcome<'_>>,
) -> (Judgement, Option<String>, Option<Value>) {
    // A testee need not be started for what hello already excludes.
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
    // A line that is no answer may have been written behind the answer before: alone, no other case is before it.
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

/// Puts the requests of a case, up to the first answer that does not pass, and hands the last one on.
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
