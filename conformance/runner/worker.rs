//! One testee and its share of the cases: assigns late output and losses to the cases that caused them.

use super::outcome::CaseOutcome;
use super::{Run, plain_identity};
use super::{is_foreign, leaves_out};
use crate::conformance::adapter::builtin::BuiltinTestee;
use crate::conformance::adapter::exec_process::BEHIND;
use crate::conformance::adapter::{Adapter, Identity, Reply, protocol};
use crate::conformance::answer_parts::Parts;
use crate::conformance::case::{Case, Suite};
use crate::conformance::op::Op;
use crate::conformance::sanitized_text::sanitize;
use crate::conformance::verdict::{Judgement, Verdict, judge};
use crate::lock::lock;
use crate::release::{ParseError, Release, Releases};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The waiting cases, shared by all testees of a run.
pub(super) struct CaseQueue<'a> {
    /// The cases for any worker.
    free: CaseLine<'a>,
    /// The cases for one worker, because they share state of the process.
    in_turn: CaseLine<'a>,
    /// The number of testees that take cases.
    workers: AtomicUsize,
    /// The losses in a row over all workers, because an answer of any testee shows that continuing makes sense.
    losses: Mutex<Losses>,
}

impl<'a> CaseQueue<'a> {
    /// Creates the queue of all cases for this number of workers. The cases of the chapters `in_turn` go to one worker.
    pub(super) fn new(cases: Vec<&'a Case>, workers: usize, in_turn: &[String]) -> CaseQueue<'a> {
        let (in_turn, free) =
            (cases.into_iter().enumerate()).partition(|(_, case)| in_turn.contains(&case.chapter));
        CaseQueue {
            free: CaseLine::new(free),
            in_turn: CaseLine::new(in_turn),
            workers: AtomicUsize::new(workers),
            losses: Mutex::default(),
        }
    }

    /// Returns whether no case is left for a worker; other workers may still have some.
    pub(super) fn is_empty(&self, takes_turns: bool) -> bool {
        self.free.is_empty() && (!takes_turns || self.in_turn.is_empty())
    }

    /// Returns the number of cases, including those that were taken.
    pub(super) fn len(&self) -> usize {
        self.free.cases.len() + self.in_turn.cases.len()
    }

    /// Returns the next case for a worker and its position, by which the results are sorted.
    fn next(&self, takes_turns: bool) -> Option<(usize, &'a Case)> {
        let in_turn = takes_turns.then(|| self.in_turn.next()).flatten();
        in_turn.or_else(|| self.free.next())
    }

    /// Returns the reason why cases were not run.
    pub(super) fn not_run_reason(&self) -> Option<String> {
        lock(&self.losses).untried.clone()
    }

    /// Removes a testee that takes no more cases; returns whether it was the last one.
    pub(super) fn remove_worker(&self) -> bool {
        self.workers.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

/// Cases in order, each with its position among all.
struct CaseLine<'a> {
    cases: Vec<(usize, &'a Case)>,
    /// The index of the next one.
    next: AtomicUsize,
}

impl<'a> CaseLine<'a> {
    fn new(cases: Vec<(usize, &'a Case)>) -> CaseLine<'a> {
        CaseLine {
            cases,
            next: AtomicUsize::new(0),
        }
    }

    fn is_empty(&self) -> bool {
        // A worker that finds no case left moves the index past the end.
        self.next.load(Ordering::SeqCst) >= self.cases.len()
    }

    fn next(&self) -> Option<(usize, &'a Case)> {
        let index = self.next.fetch_add(1, Ordering::SeqCst);
        self.cases.get(index).copied()
    }
}

/// The result of [`work`] in addition to the verdicts.
pub(super) struct WorkSummary {
    /// The testee that answered.
    pub(super) identity: Identity,
    /// The parts that any of its answers states.
    pub(super) stated: Parts,
    /// The reason why it got no more cases, while other testees continued.
    pub(super) gave_up: Option<String>,
}

/// Sends cases to a testee until the queue is empty, and passes each outcome to `settle` with its position. Only the
/// worker that `takes_turns` also runs the cases that share state.
pub(super) fn work<'a>(
    queue: &CaseQueue<'a>,
    takes_turns: bool,
    suite: &'a Suite,
    adapter: &mut dyn Adapter,
    run: &Run,
    settle: &mut dyn FnMut(usize, CaseOutcome<'a>),
) -> Result<WorkSummary, ParseError> {
    // The testee's output is shown in reports and terminals, so it is escaped before it is kept.
    let identity = adapter.hello(&suite.hash).map_err(|error| {
        let ended = run.end.get();
        ended.map_or_else(
            || sanitize(&error),
            |by| format!("{by} came before a hello"),
        )
    });
    let identity = plain_identity(identity?);
    let run = &run.with_known_failures_of(&identity);
    let mut stated = Parts::default();
    // `suspicious` means that the testee was lost, so the first failure after that may be a consequence of it.
    let mut suspicious = false;
    let mut gave_up = None;
    // A case is settled when the testee was quiet after it and has answered the next one.
    let mut last: Option<(usize, CaseOutcome<'a>)> = None;
    while !queue.is_empty(takes_turns) {
        lock(&queue.losses).end(run);
        let goes_on = lock(&queue.losses).given_up.is_none();
        let waits = || !queue.is_empty(takes_turns) && run.end.get().is_none();
        if goes_on && let Err(why) = adapter.ready(&waits) {
            if !waits() {
                continue;
            }
            if !queue.remove_worker() {
                gave_up = Some(why);
                break;
            }
            // No other worker is left, so the waiting cases are not run, and state the reason.
            let mut losses = lock(&queue.losses);
            losses.given_up = Some(Verdict::Skipped(format!("not tried: {why}")));
            losses.untried = Some(format!("no testee is left: {why}"));
        }
        let Some((place, case)) = queue.next(takes_turns) else {
            break;
        };
        // A testee that was ended together with the run is not at fault.
        let stray = adapter.stray().filter(|_| run.end.get().is_none());
        match (stray, &mut last) {
            (Some(stray), Some((_, last))) => charge(last, stray, &mut suspicious),
            (Some(stray), None) => {
                let wrong = judge(case, &stray).verdict.reason();
                // No case precedes this line, so none can be charged with it.
                return Err(ParseError::new(format!("after hello: {wrong}")));
            }
            (None, _) => {}
        }
        let start = Instant::now();
        let given_up = lock(&queue.losses).given_up.clone();
        let (judgement, note, answer) = match given_up {
            Some(verdict) => (Judgement::without_parts(verdict), None, None),
            None => {
                let before = last.as_mut().map(|(_, last)| last);
                run_case(case, adapter, (&identity, run), &mut suspicious, before)
            }
        };
        let (judgement, note) = match run
            .interrupted_verdict()
            .filter(|_| is_loss(&judgement.verdict))
        {
            Some(verdict) => {
                lock(&queue.losses).end(run);
                (Judgement::without_parts(verdict), None)
            }
            None => (judgement, note),
        };
        stated.add(judgement.stated);
        lock(&queue.losses).count(case, &judgement.verdict, run);
        let failed = matches!(judgement.verdict, Verdict::Fail(_));
        let stderr = if failed { adapter.stderr() } else { None };
        let outcome = CaseOutcome {
            case,
            verdict: judgement.verdict,
            unstated: judgement.unstated,
            fails: false,
            known: None,
            answer: answer.filter(|_| failed),
            stderr: stderr.map(|text| sanitize(&text)),
            note,
            took: start.elapsed(),
        };
        if let Some((place, settled)) = last.replace((place, outcome)) {
            settle(place, settled);
        }
    }
    let stray = adapter.finish().filter(|_| run.end.get().is_none());
    if let Some((place, mut last)) = last {
        if let Some(stray) = stray {
            charge(&mut last, stray, &mut suspicious);
        }
        settle(place, last);
    }
    Ok(WorkSummary {
        identity,
        stated,
        gave_up,
    })
}

/// Charges `last` with a fault of the testee that came after its answer and without a request.
fn charge(last: &mut CaseOutcome<'_>, stray: Reply, suspicious: &mut bool) {
    *suspicious = true;
    // A case that has already failed keeps its verdict.
    if !last.verdict.is_failure() {
        last.verdict = judge(last.case, &stray).verdict;
    }
}

/// The losses in a row, and the verdict of all further cases if there are too many.
#[derive(Default)]
struct Losses {
    hangs: usize,
    crashes: usize,
    given_up: Option<Verdict>,
    /// The reason why cases were not run.
    untried: Option<String>,
}

impl Losses {
    /// Gives up the remaining cases if a signal has ended the run.
    fn end(&mut self, run: &Run) {
        if self.given_up.is_none()
            && let (Some(verdict), Some(by)) = (run.interrupted_verdict(), run.end.get())
        {
            self.given_up = Some(verdict);
            self.untried = Some(format!("{by} ended the run before its last answer"));
        }
    }

    /// Counts a verdict. An answer resets the count, and known failures do not count.
    fn count(&mut self, case: &Case, verdict: &Verdict, run: &Run) {
        let failed = run.excuse(case, verdict).is_none();
        match verdict {
            _ if self.given_up.is_some() => return,
            Verdict::Hang(_) if failed => self.hangs += 1,
            verdict if failed && is_loss(verdict) => self.crashes += 1,
            verdict if is_loss(verdict) => {}
            // Any answer shows that the testee works.
            _ => *self = Losses::default(),
        }
        let beyond = |count: usize, most: usize| most > 0 && count >= most;
        if beyond(self.hangs, run.hangs) {
            let reason = format!("not tried: {} cases in a row did not answer", self.hangs);
            self.given_up = Some(Verdict::Hang(reason));
        } else if beyond(self.crashes, run.crashes) {
            let reason = format!("not tried: {} cases in a row lost the testee", self.crashes);
            // The remaining cases get the kind of the last loss, because a report counts exhausted memory and crashes separately.
            self.given_up = Some(match verdict {
                Verdict::OutOfMemory(_) => Verdict::OutOfMemory(reason),
                Verdict::ProtocolError(_) => Verdict::ProtocolError(reason),
                _ => Verdict::Crash(reason),
            });
        }
    }
}

/// Runs one case after the case `before`. `suspicious` means that the testee was lost, so the first failure since then may be a
/// consequence of that. Such a case is repeated in a new testee.
fn run_case(
    case: &Case,
    adapter: &mut dyn Adapter,
    (identity, run): (&Identity, &Run),
    suspicious: &mut bool,
    before: Option<&mut CaseOutcome<'_>>,
) -> (Judgement, Option<String>, Option<Value>) {
    // A case that hello already excludes does not need a started testee.
    if let Some(verdict) = verdict_without_call(case, identity, run) {
        return (Judgement::without_parts(verdict), None, None);
    }
    let (judgement, reply) = ask(case, adapter);
    let seen = match &reply {
        Some(Reply::Shown { view, .. }) => Some(format!(
            "only the visible part was compared: the view `{view}`"
        )),
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
    // A line that is not an answer may belong to the previous case. Run alone, the case has no previous one.
    if let (Verdict::ProtocolError(wrong), Some(before)) = (verdict, before)
        && !wrong.starts_with(BEHIND)
        && !adapter.was_alone()
    {
        let (alone, reply) = ask(case, adapter);
        if is_loss(&alone.verdict) {
            adapter.restart();
        }
        if run.end.get().is_none() && !matches!(alone.verdict, Verdict::ProtocolError(_)) {
            let wrong = format!("{BEHIND}: {wrong}");
            charge(before, Reply::ProtocolError(wrong), suspicious);
            let note = "run again alone, for a line that the case before it had written";
            return (alone, Some(note.to_owned()), reply.and_then(shown));
        }
    }
    // In a testee that was just started, it has already been alone.
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

/// Returns an answer for a report, unless it is large, because a testee may give as many as there are cases.
fn shown(reply: Reply) -> Option<Value> {
    const LONGEST: usize = 64 << 10;
    let answer = protocol::answer_of(reply)?;
    (answer.to_string().len() <= LONGEST).then_some(answer)
}

/// Sends the requests of a case, up to the first answer that does not pass, and returns the last one.
pub(in crate::conformance) fn ask(
    case: &Case,
    adapter: &mut dyn Adapter,
) -> (Judgement, Option<Reply>) {
    let mut whole = Judgement::without_parts(Verdict::Pass);
    let mut last = None;
    for step in case.steps() {
        let reply = adapter.call(&step.op, &step.request());
        let judgement = judge(&step, &reply);
        let judgement = if adapter.answers_in_full() {
            judgement.in_full(&step)
        } else {
            judgement
        };
        whole = whole.merge_next(judgement);
        last = Some(reply);
        if whole.verdict != Verdict::Pass {
            if let Some(cut) = step.cut_to(case) {
                whole.verdict = whole.verdict.for_part(&format!("the first {cut} bytes"));
            }
            break;
        }
    }
    (whole, last)
}

/// Returns whether the testee is lost or unreliable after this verdict, which is so for any failure except a wrong answer.
fn is_loss(verdict: &Verdict) -> bool {
    verdict.is_failure() && !matches!(verdict, Verdict::Fail(_))
}

/// Returns the verdict of a case that needs no call: the implementation lacks its operation or release, or it needs a compiler that
/// may not be called.
fn verdict_without_call(case: &Case, identity: &Identity, run: &Run) -> Option<Verdict> {
    if leaves_out(identity, case) {
        let why = format!("{} has no operation `{}`", identity.name, case.op);
        return Some(if is_foreign(case) {
            Verdict::Skipped(format!("{why}, which is optional"))
        } else {
            Verdict::Unsupported(why)
        });
    }
    let compiles = identity.ops.contains(&case.op)
        && BuiltinTestee::op(&case.op).is_some_and(Op::needs_compiler);
    if compiles && !run.complete && run.selection.cases.is_empty() {
        let why = "a C compiler is called with --complete or --case alone";
        return Some(Verdict::Skipped(why.to_owned()));
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
