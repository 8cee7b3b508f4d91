//! The workers of a launching thread, and how they receive their tasks.

use super::{Counter, GroupEnv, IN_TASK, Task, leading_number};
use crate::function::legacy::last_error;
use crate::function::take_raised;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// One launch. It is on the launching thread's stack until `open` is 0.
pub(super) struct Job {
    task: Task,
    data: *mut c_void,
    counters: Vec<Counter>,
    open: AtomicUsize,
    owner: Thread,
    failures: Mutex<Vec<(usize, String)>>,
}

// SAFETY: workers only call `task` with `data`, and `launch` requires that several threads may do so.
unsafe impl Sync for Job {}

impl Job {
    /// Creates a launch of `count` tasks, owned by this thread, which the worker that ends last wakes.
    pub(super) fn new(task: Task, data: *mut c_void, count: usize) -> Job {
        Job {
            task,
            data,
            counters: (0..count).map(|_| Counter(AtomicI32::new(0))).collect(),
            open: AtomicUsize::new(count),
            owner: thread::current(),
            failures: Mutex::new(Vec::new()),
        }
    }

    /// Runs task `index` on this thread.
    fn run_task(&self, index: usize) {
        let mut group = GroupEnv {
            sync_handle: self.counters.as_ptr().cast_mut().cast(),
            num_task: i32::try_from(self.counters.len()).unwrap_or(i32::MAX),
        };
        // Restored afterwards: with a concurrency of 1, a task may launch within a task (MOD-20).
        let outer = IN_TASK.replace(true);
        // Clears an earlier failure on this thread, which must not be attributed to this task.
        last_error::take();
        take_raised();
        // SAFETY: the task can be called with this data, by the contract of `launch`; the group lives until it returns.
        let code = unsafe { (self.task)(index as c_int, &raw mut group, self.data) };
        IN_TASK.set(outer);
        // MOD-24: reported with every concurrency, while releases from 0.8 on ignore it with a concurrency of 1.
        if code != 0 {
            // Code up to 0.20 leaves a text, later code raises an error.
            let raised = take_raised().map(|error| error.message().to_owned());
            let text = last_error::take().or(raised);
            let text = text.unwrap_or_else(|| format!("returned {code} without a message"));
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.push((index, text));
        }
    }

    pub(super) fn run_alone(self) -> Result<(), String> {
        self.run_task(0);
        self.outcome()
    }

    /// Returns the result of the launch: success, or the failures of all tasks.
    fn outcome(&self) -> Result<(), String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() {
            return Ok(());
        }
        // MOD-20: in the order of the tasks, independent of which ended first, and without a final newline.
        failures.sort_unstable_by_key(|(index, _)| *index);
        let lines: Vec<String> = failures
            .iter()
            .map(|(index, text)| format!("Task {index} error: {text}"))
            .collect();
        Err(lines.join("\n"))
    }
}

/// The workers of one launching thread. It grows to the size that a launch needs, and ends with the thread.
#[derive(Default)]
pub(super) struct WorkerPool {
    workers: Vec<Worker>,
}

impl WorkerPool {
    /// Creates a pool without workers.
    pub(super) const fn new() -> WorkerPool {
        WorkerPool {
            workers: Vec::new(),
        }
    }

    /// Runs all tasks of a launch, and returns when the last of them has ended (MOD-20).
    pub(super) fn run(&mut self, job: &Job) -> Result<(), String> {
        let count = job.counters.len();
        let caller_works = caller_works();
        // MOD-20: the launching thread is the worker of task 0, unless the variable keeps it free.
        let first = usize::from(caller_works);
        // The workers of a parent process do not run in a forked child.
        self.workers.retain(Worker::is_in_this_process);
        // MOD-20: worker 0 is always started: the variable is read at each launch, and worker `i` runs task `i`.
        while self.workers.len() < count {
            self.workers.push(Worker::start()?);
        }
        for (index, worker) in self.workers.iter().enumerate().take(count).skip(first) {
            worker.queue.assign(TaskOrder { job, index });
        }
        if caller_works {
            job.run_task(0);
            job.open.fetch_sub(1, Ordering::AcqRel);
        }
        let mut spins = 0_usize;
        while job.open.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins < spin_count() {
                std::hint::spin_loop();
            } else {
                thread::park();
            }
        }
        job.outcome()
    }
}

/// Returns whether the launching thread is the worker of task 0 (MOD-20).
fn caller_works() -> bool {
    let Ok(text) = std::env::var("TVM_EXCLUDE_WORKER0") else {
        return true;
    };
    // MOD-20: parsed like C's `atoi`: a negative number is not 0, but a text without a number is.
    let text = text.trim_start();
    leading_number(text.strip_prefix('-').unwrap_or(text)) != 0
}

/// Returns the number of rounds that a thread spins before it sleeps.
fn spin_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let text = std::env::var("TVM_THREAD_POOL_SPIN_COUNT").ok();
        text.map_or(300_000, |text| leading_number(&text))
    })
}

struct Worker {
    queue: Arc<WorkerQueue>,
    handle: Option<JoinHandle<()>>,
    /// The value of [`forks::count`] when the thread was started.
    forks: usize,
}

impl Worker {
    /// Starts a thread that waits for its first task.
    fn start() -> Result<Worker, String> {
        let forks = forks::count();
        let queue = Arc::new(WorkerQueue::default());
        let own = Arc::clone(&queue);
        let handle = thread::Builder::new()
            .name("tvm-worker".to_owned())
            .spawn(move || own.serve())
            .map_err(|error| format!("cannot start a worker thread: {error}"))?;
        Ok(Worker {
            queue,
            handle: Some(handle),
            forks,
        })
    }

    /// Returns whether the thread runs in this process, and not only in the parent of a fork.
    fn is_in_this_process(&self) -> bool {
        self.forks == forks::count()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_in_this_process() {
            // Joining the thread would wait forever, and its handle must not be detached either.
            std::mem::forget(self.handle.take());
            return;
        }
        self.queue.stop.store(true, Ordering::SeqCst);
        self.queue.wake();
        if let Some(handle) = self.handle.take() {
            // A worker that panicked has already printed its message.
            let _ = handle.join();
        }
    }
}

/// One task of a job, for one worker.
struct TaskOrder<'a> {
    job: &'a Job,
    index: usize,
}

/// The queue of length 1 between a launching thread and a worker.
#[derive(Default)]
struct WorkerQueue {
    job: AtomicPtr<Job>,
    index: AtomicUsize,
    stop: AtomicBool,
    asleep: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

impl WorkerQueue {
    /// Passes a task to the worker. The lock is only taken for a sleeping worker, because it costs more than a launch.
    fn assign(&self, order: TaskOrder<'_>) {
        self.index.store(order.index, Ordering::Relaxed);
        self.job
            .store(ptr::from_ref(order.job).cast_mut(), Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    fn wake(&self) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.bell.notify_one();
    }

    /// Runs a worker: one task after the other, until its pool ends.
    fn serve(&self) {
        while let Some(job) = self.wait() {
            // Cleared before the task runs: after the task, the launching thread may store the next one.
            self.job.store(ptr::null_mut(), Ordering::Release);
            // SAFETY: the launching thread keeps the job alive until `open` is 0, which needs the decrement below.
            let job = unsafe { &*job };
            // A separate handle, because the job may be gone when the owner is woken.
            let owner = job.owner.clone();
            job.run_task(self.index.load(Ordering::Relaxed));
            // The job may be gone from here on.
            if job.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                owner.unpark();
            }
        }
    }

    /// Returns the next task, or `None` at the end. Spins for a while first, because operators of one model launch within microseconds.
    fn wait(&self) -> Option<*const Job> {
        for _ in 0..spin_count() {
            if let Some(answer) = self.peek() {
                return answer;
            }
            std::hint::spin_loop();
        }
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Set before the last check: an `assign` that finds no sleeper has stored the job before, so that the check finds it.
        self.asleep.store(true, Ordering::SeqCst);
        loop {
            if let Some(answer) = self.peek() {
                self.asleep.store(false, Ordering::SeqCst);
                return answer;
            }
            held = self.bell.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns `None` if there is no job yet, and `Some(None)` at the end.
    fn peek(&self) -> Option<Option<*const Job>> {
        let job = self.job.load(Ordering::SeqCst);
        if !job.is_null() {
            return Some(Some(job));
        }
        self.stop.load(Ordering::SeqCst).then_some(None)
    }
}

/// The number of forks between the first process that started a worker and this one. A handler counts them, because asking the system for
/// the process at each launch takes longer than a launch.
mod forks {
    use std::sync::Once;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// Returns the number of forks, and counts further ones.
    pub(super) fn count() -> usize {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(watch);
        COUNT.load(Ordering::Relaxed)
    }

    #[cfg(unix)]
    fn watch() {
        use std::ffi::c_int;
        type Handler = Option<unsafe extern "C" fn()>;
        unsafe extern "C" {
            fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
        }
        extern "C" fn count_fork() {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // Without memory for the handler, forks are not counted.
        // SAFETY: the handler may run in a child, because it only changes an atomic number.
        unsafe { pthread_atfork(None, None, Some(count_fork)) };
    }

    #[cfg(not(unix))]
    fn watch() {}
}
