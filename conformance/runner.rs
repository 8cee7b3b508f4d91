//! The runner: sends the selected cases to an implementation, one after another or concurrently. It charges a loss to the case that
//! caused it.

mod outcome;
mod selection;
mod worker;

use super::adapter::builtin::BuiltinTestee;
use super::adapter::{Adapter, Identity};
use super::answer_parts::Parts;
use super::case::{Case, Suite};
use super::known_failures::{self, KnownFailure, KnownFailures};
use super::op::Op;
use super::sanitized_text::sanitize_line;
use super::verdict::{Judgement, Verdict};
use crate::release::ParseError;
pub use outcome::{CaseOutcome, Report, VerdictCounts};
pub use selection::{Selection, select};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use worker::{CaseQueue, work};

/// The settings of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The selected cases.
    pub selection: Selection,
    /// The known failures.
    pub known: KnownFailures,
    /// The number of hangs in a row after which the rest is not tried, because each costs the whole timeout. 0 means no limit.
    pub hangs: usize,
    /// The number of other losses in a row (crashes, malformed answers), each of which costs a restart. 0 means no limit.
    pub crashes: usize,
    /// The chapters whose cases run one after another in the caller's thread, if several testees share a process.
    pub in_turn: Vec<String>,
    /// `true` if the run must be complete. It then includes cases that need a C compiler. An unsupported or skipped case fails the
    /// run, unless it is known or its operation is optional.
    pub complete: bool,
    /// The present day as `YYYY-MM-DD`, for the expiry of known failures.
    pub today: String,
    /// The name of the implementation on the command line, for the command that repeats a failure.
    pub implementation: String,
    /// The name of the signal that ends the run before its last case, such as `SIGTERM`. Another thread sets it. Cases without an
    /// answer are then skipped.
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
            today: known_failures::current_date(),
            implementation: "builtin".to_owned(),
            end: Arc::default(),
        }
    }
}

impl Run {
    /// Returns the run with the known failures of this implementation, whose release is only known after hello.
    fn with_known_failures_of(&self, identity: &Identity) -> Run {
        Run {
            known: self.known.applicable_to(identity),
            ..self.clone()
        }
    }

    /// Returns the verdict of a case without an answer, if a signal has ended the run.
    fn interrupted_verdict(&self) -> Option<Verdict> {
        let by = self.end.get()?;
        Some(Verdict::Skipped(format!("not tried: {by} ended the run")))
    }

    /// Returns the entry that excuses this verdict, if it fails the run.
    fn excuse(&self, case: &Case, verdict: &Verdict) -> Option<&KnownFailure> {
        let entry = || self.known.excuse(&case.id, verdict, &self.today);
        counts_as_failure(verdict, self).then(entry).flatten()
    }
}

/// Runs the selected cases.
///
/// # Errors
///
/// There is nothing to judge: no case is selected, or no testee answers hello. An empty run is not a success.
pub fn run<'a>(
    suite: &'a Suite,
    adapter: &mut dyn Adapter,
    run: &Run,
) -> Result<Report<'a>, ParseError> {
    run_observed(suite, adapter, run, &mut |_| {})
}

/// Runs as [`run`] does, and reports every finished case to `observe`.
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
    let untried = queue.not_run_reason();
    Ok(report(
        suite,
        run,
        done.identity,
        done.stated,
        settled,
        untried,
    ))
}

/// An event of [`run_parallel`].
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'r, 'a> {
    /// A case is finished.
    Done(&'r CaseOutcome<'a>),
    /// One of the testees is lost, or never started, for this reason. The others take over its cases.
    Without(&'r str),
}

/// Runs as [`run_observed`] does, with `jobs` concurrent testees. `open` creates a separate adapter for each. The report has the
/// order of the suite. A testee gets the next case when it has answered the last one, so the assignment of cases is random.
///
/// # Errors
///
/// Fails for the reasons of [`run`], if no testee can be opened, and if two testees are of different releases.
pub fn run_parallel<'a>(
    suite: &'a Suite,
    open: &(dyn Fn() -> Result<Box<dyn Adapter>, ParseError> + Sync),
    jobs: NonZeroUsize,
    run: &Run,
    observe: &mut (dyn FnMut(RunEvent<'_, 'a>) + Send),
) -> Result<Report<'a>, ParseError> {
    let selected = select(suite, &run.selection)?;
    // A testee costs a start, and a failed start is reported, so no more are started than there are cases.
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
        // Opened in this thread, because an adapter cannot move to another one.
        let done = open().and_then(|mut adapter| {
            let settle = &mut |place, outcome| {
                notify(RunEvent::Done(&outcome));
                settled.push((place, outcome));
            };
            work(&queue, takes_turns, suite, &mut *adapter, run, settle)
        });
        let done = done.inspect_err(|why| {
            // A worker that never started must not be waited for. The last worker that leaves reports why no testee is left.
            queue.remove_worker();
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
        // The caller's thread has a large stack, which cases with deep values need.
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
                    // The testee's release decides which cases are skipped, and the assignment is random. The report would
                    // therefore not describe one release.
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
        // The remaining cases were not run, which must not count as success.
        (Some(_), Some(why)) if settled.len() < queue.len() => Err(why),
        (Some(identity), _) => Ok(report(
            suite,
            run,
            identity,
            stated,
            settled,
            queue.not_run_reason(),
        )),
        (None, why) => Err(why.unwrap_or_else(|| "no testee is there".into())),
    }
}

/// Creates the report from the outcomes of all cases, by their positions in the selection. If the last cases were not run, the
/// reason is one problem, and not one for each case.
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
    let run = &run.with_known_failures_of(&identity);
    // A part that is stated once could always be stated. A testee that states it only when it is right must not be compared less.
    for outcome in &mut results {
        require_stated_parts(outcome, stated);
        let optional = is_foreign(outcome.case) && leaves_out(&identity, outcome.case);
        outcome.fails = counts_as_failure(&outcome.verdict, run) && !optional;
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

/// Checks a pass against the parts that the implementation states elsewhere.
fn require_stated_parts(outcome: &mut CaseOutcome<'_>, stated: Parts) {
    let mut judgement = Judgement::without_parts(outcome.verdict.clone());
    judgement.unstated = outcome.unstated;
    let held = judgement.require_parts(outcome.case, stated);
    (outcome.verdict, outcome.unstated) = (held.verdict, held.unstated);
}

/// Returns whether the answer to hello lists operations, but not the one of the case.
fn leaves_out(identity: &Identity, case: &Case) -> bool {
    !identity.ops.is_empty() && !identity.ops.contains(&case.op)
}

/// Returns whether the operation of the case is optional for an implementation.
fn is_foreign(case: &Case) -> bool {
    BuiltinTestee::op(&case.op).is_some_and(Op::is_foreign)
}

/// Returns whether a verdict fails the run, unless it is known.
fn counts_as_failure(verdict: &Verdict, run: &Run) -> bool {
    match verdict {
        Verdict::Pass => false,
        verdict => run.complete || verdict.is_failure(),
    }
}

/// Escapes the names of a testee for display.
fn plain_identity(identity: Identity) -> Identity {
    let all = |names: Vec<String>| names.iter().map(|name| sanitize_line(name)).collect();
    Identity {
        name: sanitize_line(&identity.name),
        version: sanitize_line(&identity.version),
        releases: all(identity.releases),
        ops: identity.ops,
    }
}
