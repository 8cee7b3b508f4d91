//! Parallel launch and barrier: the parallel loops of compiled code.
//!
//! Every launching thread owns its workers, as in every release, so that two threads that launch at once do not wait for each other. Worker
//! `i` runs task `i`. The launching thread runs task 0, unless `TVM_EXCLUDE_WORKER0=0` makes it only wait (MOD-20). A worker spins for a
//! while before it sleeps, because a model launches many short jobs in a row.

mod pool;

use crate::function::{Error, ErrorKind, Result};
use crate::thread_local::with_kept;
use pool::{Job, WorkerPool};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

/// The group of a task, as the task sees it: `TVMParallelGroupEnv` of every release.
#[repr(C)]
#[derive(Debug)]
pub struct GroupEnv {
    /// Counters of the barrier, one 64-byte line per task. Only [`barrier`] reads them.
    pub sync_handle: *mut c_void,
    /// Number of tasks in the group.
    pub num_task: i32,
}

/// A task, which is called with its number, its group, and the data of the launch. Returns 0 for success and any other number for failure.
pub type Task = unsafe extern "C" fn(c_int, *mut GroupEnv, *mut c_void) -> c_int;

/// One counter per task, each on its own cache line; the barrier visits them in steps of 64 bytes.
#[repr(C, align(64))]
struct Counter(AtomicI32);

/// Returns the number of tasks that may run at the same time.
///
/// [`configure`] takes precedence over `TVM_NUM_THREADS`, which takes precedence over `OMP_NUM_THREADS`. Without any of them, the
/// result is the number of processors. On x86-64 it is half of that number, because two processors share a core. The result is at least
/// 1.
fn max_concurrency() -> usize {
    let configured = CONFIGURED.load(Ordering::Relaxed);
    if configured > 0 {
        return configured;
    }
    let from_environment = ["TVM_NUM_THREADS", "OMP_NUM_THREADS"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    not_configured(from_environment.as_deref(), processors())
}

/// Computes the concurrency from the text of the environment variable, if there is one, and the number of processors.
pub(crate) fn not_configured(text: Option<&str>, processors: usize) -> usize {
    let number = match text {
        Some(text) => leading_number(text),
        // MOD-20: as in released runtimes, which count two processors of x86-64 as one core.
        None if cfg!(target_arch = "x86_64") => processors / 2,
        None => processors,
    };
    number.max(1)
}

/// Sets the number of tasks that run at once; 0 uses the environment again. Existing pools keep their workers, but use only that many.
pub fn configure(threads: usize) {
    CONFIGURED.store(threads, Ordering::Relaxed);
}

/// Returns how many tasks a launch with 0 runs: `max_concurrency`, but at most the number of processors.
pub fn workers() -> usize {
    max_concurrency().min(processors())
}

/// Runs `task` for every task number from 0 to `num_task`, and waits for all of them (MOD-20). If `num_task` is 0, uses [`workers`].
///
/// With a concurrency of 1 the task runs once, as number 0 of 1, for any `num_task`.
///
/// # Errors
///
/// Returns an error of kind [`ErrorKind::Runtime`] for a launch from within a task, for more tasks than workers, and for failed tasks. Each
/// failed task has a line `Task <i> error: ...`. A failure is also an error with a concurrency of 1, where releases from 0.8 on ignore it
/// (MOD-24).
///
/// # Safety
///
/// `task` must be callable with `data` from several threads at once, and `data` must live until this returns.
pub unsafe fn launch(task: Task, data: *mut c_void, num_task: usize) -> Result<()> {
    let failed = |text: String| Error::new(ErrorKind::Runtime, text);
    let concurrency = max_concurrency();
    // MOD-20: from 0.8 on, the only task is task 0 of 1, for any count that compiled code requests, and a launch is allowed within a
    // task.
    if concurrency == 1 {
        return Job::new(task, data, 1).run_alone().map_err(failed);
    }
    if IN_TASK.get() {
        return Err(Error::new(
            ErrorKind::Runtime,
            "Cannot launch parallel job inside worker, consider fuse then parallel",
        ));
    }
    let workers = concurrency.min(processors());
    // MOD-20: each task needs its own worker, because a barrier waits for all of them (MOD-21).
    if num_task > workers {
        return Err(failed(format!(
            "Request parallel sync task larger than number of threads used  workers={workers} request={num_task}"
        )));
    }
    let count = if num_task == 0 { workers } else { num_task };
    let job = Job::new(task, data, count);
    if count == 1 {
        return job.run_alone().map_err(failed);
    }
    with_kept(&POOL, |pool| pool.run(&job)).map_err(failed)
}

/// Waits until every task of the group has called this function as often as the calling task (MOD-21).
///
/// # Safety
///
/// `group` must be the pointer that the launch passed to the task, and `task` the number of the task.
pub unsafe fn barrier(task: usize, group: *const GroupEnv) {
    // SAFETY: the launch passed `group` to the task, and it lives until the task returns.
    let group = unsafe { &*group };
    let count = usize::try_from(group.num_task).unwrap_or(0);
    // SAFETY: the launch put `num_task` counters at `sync_handle`, and they live until every task is done.
    let counters =
        unsafe { std::slice::from_raw_parts(group.sync_handle.cast::<Counter>(), count) };
    let before = counters[task].0.fetch_add(1, Ordering::Release);
    let mut spins = 0;
    for (other, counter) in counters.iter().enumerate() {
        // Uses acquiring loads instead of a fence after the loop, because race detectors do not understand fences.
        while other != task && counter.0.load(Ordering::Acquire) <= before {
            if spins < BARRIER_SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

/// Number of rounds that a task spins at a barrier. The other tasks mostly arrive within a microsecond; after that, one of them may be
/// waiting for this processor.
const BARRIER_SPINS: u32 = 1000;

static CONFIGURED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static POOL: RefCell<WorkerPool> = const { RefCell::new(WorkerPool::new()) };
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| count_processors().max(1))
}

/// Counts processors like C++, so that compiled code gets as many as from a release: the quota of a control group is ignored.
#[cfg(target_os = "linux")]
fn count_processors() -> usize {
    use std::ffi::c_long;
    const PROCESSORS_ONLINE: c_int = 84;
    unsafe extern "C" {
        safe fn sysconf(name: c_int) -> c_long;
    }
    usize::try_from(sysconf(PROCESSORS_ONLINE)).unwrap_or(1)
}

#[cfg(not(target_os = "linux"))]
fn count_processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Parses a number like C's `atoi`: the leading digits, or 0 without any.
fn leading_number(text: &str) -> usize {
    let digits: String = text
        .trim_start()
        .trim_start_matches('+')
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}
