//! Puts the selected cases to an implementation, one after another or several at once, and keeps the losses to the case that caused them.

mod outcome;
mod selection;
mod worker;

use super::adapter::builtin::BuiltinTestee;
use super::adapter::{Adapter, Identity};
use super::case::{Case, Suite};
use super::known::{self, KnownFailure, KnownFailures};
use super::op::Op;
use super::parts::Parts;
use super::plain_text::line_of;
use super::verdict::{Judgement, Verdict};
use crate::release::ParseError;
pub use outcome::{CaseOutcome, Report, VerdictCounts};
pub use selection::{Selection, select};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use worker::{CaseQueue, work};

/// What to run and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Which cases.
    pub selection: Selection,
    /// What is known to fail.
    pub known: KnownFailures,
    /// After so many hangs in a row the rest is not tried: each costs the whole timeout. 0 for never.
    pub hangs: usize,
    /// After so many other losses in a row (crashes, answers that are none), each of which costs a start. 0 for never.
    pub crashes: usize,
    /// Chapters whose cases are put one after another, in the thread of the caller, where several testees share a process.
    pub in_turn: Vec<String>,
    /// Whether cases that need a C compiler are put, and a case that is unsupported or skipped fails the run, unless it is known or its operation
    /// is optional.
    pub complete: bool,
    /// Today as `YYYY-MM-DD`, for the expiry of known failures.
    pub today: String,
    /// How the implementation was named on the command line, for the line that reproduces a failure.
    pub implementation: String,
    /// The name of the signal that ends the run before its last case, such as `SIGTERM`, once another thread sets it. Cases without an answer are skipped then.
    pub end: Arc<OnceLock<String>>,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            selection: Selection::default(),
            known: KnownFailures::default(),
            hangs: 3,
            crashes: 20,
            in_turn: Vec::new(),
            complete: false,
            today: known::today(),
            implementation: "builtin".to_owned(),
            end: Arc::default(),
        }
    }
}

impl Run {
    /// The run with what is known of these releases: only hello shows which the testee is of.
    fn about(&self, identity: &Identity) -> Run {
        Run {
            known: self.known.about(identity),
            ..self.clone()
        }
    }

    /// The verdict of a case without an answer, where something ends the run.
    fn ended(&self) -> Option<Verdict> {
        let by = self.end.get()?;
        Some(Verdict::Skipped(format!("not tried: {by} ended the run")))
    }

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
) -> Result<Report<'a>, ParseError> {
    run_observed(suite, adapter, run, &mut |_| {})
}

/// [`run`], which reports every case to `observe` as it is done.
///
/// # Errors
///
/// As [`run`].
pub fn run_observed<'a>(
    suite: &'a Suite,
    adapter: &mut dyn Adapter,
    run: &Run,
    observe: &mut dyn FnMut(&CaseOutcome<'a>),
) -> Result<Report<'a>, ParseError> {
    let queue = CaseQueue::new(select(suite, &run.selection)?, 1, &[]);
    let mut settled = Vec::new();
    let done = work(&queue, false, suite, adapter, run, &mut |place, outcome| {
        observe(&outcome);
        settled.push((place, outcome));
    })?;
    let untried = queue.untried();
    Ok(report(
        suite,
        run,
        done.identity,
        done.stated,
        settled,
        untried,
    ))
}

/// What [`run_parallel`] reports while it runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'r, 'a> {
    /// A case is done.
    Done(&'r CaseOutcome<'a>),
    /// One of the testees is not there any more, or never was; says why. The others do its part.
    Without(&'r str),
}

/// [`run_observed`] with `jobs` testees at once, each behind an adapter of its own that `open` makes. The report has the order of the
/// suite. A testee is asked for the next case as it has answered the last one, so that which of them gets a case is chance.
///
/// # Errors
///
/// As [`run`], where no testee is there, and where two of them are of different releases.
pub fn run_parallel<'a>(
    suite: &'a Suite,
    open: &(dyn Fn() -> Result<Box<dyn Adapter>, ParseError> + Sync),
    jobs: NonZeroUsize,
    run: &Run,
    observe: &mut (dyn FnMut(RunEvent<'_, 'a>) + Send),
) -> Result<Report<'a>, ParseError> {
    let selected = select(suite, &run.selection)?;
    // A testee costs a start, and is reported where it does not come up: none is started that no case is left for.
    let jobs = jobs.get().min(selected.len());
    let queue = CaseQueue::new(selected, jobs, &run.in_turn);
    let observe = Mutex::new(observe);
    let notify = |event: RunEvent<'_, 'a>| {
        if let Ok(mut observe) = observe.lock() {
            observe(event);
        }
    };
    let job = |takes_turns: bool| {
        let mut settled = Vec::new();
        // In this thread: an adapter stays in the one that it was made in.
        let done = open().and_then(|mut adapter| {
            let settle = &mut |place, outcome| {
                notify(RunEvent::Done(&outcome));
                settled.push((place, outcome));
            };
            work(&queue, takes_turns, suite, &mut *adapter, run, settle)
        });
        let done = done.inspect_err(|why| {
            // A worker that never came up must not be waited for: the last one that leaves says why no testee is left.
            queue.leave();
            notify(RunEvent::Without(&why.to_string()));
        });
        if let Ok(worker::WorkSummary {
            gave_up: Some(why), ..
        }) = &done
        {
            notify(RunEvent::Without(why));
        }
        (done, settled)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(|| job(false))).collect();
        // The caller's thread has the stack of a program, which cases of deep values need.
        let own = catch_unwind(AssertUnwindSafe(|| job(true)));
        let others = others.into_iter().map(|job| job.join());
        [own].into_iter().chain(others).collect()
    });
    let mut settled = Vec::new();
    let mut stated = Parts::default();
    let mut identity: Option<Identity> = None;
    let mut failed = None;
    for job in ended {
        let (done, outcomes) = match job {
            Ok(job) => job,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        settled.extend(outcomes);
        match done {
            Ok(done) => {
                stated.add(done.stated);
                match &identity {
                    // A case is skipped by the releases of the testee that it goes to, which is chance: the report would be of no release.
                    Some(first) if first.releases != done.identity.releases => {
                        return Err(ParseError::new(format!(
                            "the testees are of different releases: {} and {}",
                            first.releases.join(", "),
                            done.identity.releases.join(", ")
                        )));
                    }
                    Some(_) => {}
                    None => identity = Some(done.identity),
                }
            }
            Err(why) => failed = Some(why),
        }
    }
    match (identity, failed) {
        // What is left was put to nothing: silence is not success.
        (Some(_), Some(why)) if settled.len() < queue.len() => Err(why),
        (Some(identity), _) => Ok(report(
            suite,
            run,
            identity,
            stated,
            settled,
            queue.untried(),
        )),
        (None, why) => Err(why.unwrap_or_else(|| "no testee is there".into())),
    }
}

/// The report of what came of all cases, by their places in the selection. Why the last of them were put to no testee is one problem, and
/// not one of each case.
fn report<'a>(
    suite: &'a Suite,
    run: &Run,
    identity: Identity,
    stated: Parts,
    mut settled: Vec<(usize, CaseOutcome<'a>)>,
    untried: Option<String>,
) -> Report<'a> {
    settled.sort_by_key(|(place, _)| *place);
    let mut results: Vec<_> = settled.into_iter().map(|(_, outcome)| outcome).collect();
    let run = &run.about(&identity);
    // What is stated once could have been stated always: who answers only where it is right is not compared less.
    for outcome in &mut results {
        hold(outcome, stated);
        let optional = is_foreign(outcome.case) && leaves_out(&identity, outcome.case);
        outcome.fails = fails(&outcome.verdict, run) && !optional;
        outcome.known = run.excuse(outcome.case, &outcome.verdict).cloned();
    }
    let mut problems = run.known.problems(
        suite.cases.iter().map(|case| case.id.as_str()),
        results
            .iter()
            .map(|outcome| (outcome.case.id.as_str(), &outcome.verdict)),
        &run.today,
    );
    problems.extend(untried);
    Report {
        suite: &suite.hash,
        identity,
        implementation: run.implementation.clone(),
        selection: run.selection.clone(),
        complete: run.complete,
        results,
        problems,
    }
}

/// Holds a pass to the parts that the implementation states elsewhere.
fn hold(outcome: &mut CaseOutcome<'_>, stated: Parts) {
    let mut judgement = Judgement::bare(outcome.verdict.clone());
    judgement.unstated = outcome.unstated;
    let held = judgement.held_to(outcome.case, stated);
    (outcome.verdict, outcome.unstated) = (held.verdict, held.unstated);
}

/// Whether hello states operations, and that of the case is not among them.
fn leaves_out(identity: &Identity, case: &Case) -> bool {
    !identity.ops.is_empty() && !identity.ops.contains(&case.op)
}

/// Whether the operation of the case is one that an implementation may leave out.
fn is_foreign(case: &Case) -> bool {
    BuiltinTestee::op(&case.op).is_some_and(Op::is_foreign)
}

/// Whether a verdict fails the run, unless it is known.
fn fails(verdict: &Verdict, run: &Run) -> bool {
    match verdict {
        Verdict::Pass => false,
        verdict => run.complete || verdict.is_failure(),
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
