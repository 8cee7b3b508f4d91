//! Functions of the runtime libraries that compiled code calls: `module.launch`, `module.barrier`, `module.workspace`, `module.once`.

use super::backend_host::{BackendHost, backend};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::{NoNumber, number_of, number_or};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::{Reply, accepted, unsupported, value_of};
use crate::lock::lock;
use serde_json::{Value, json};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The group of a launch, as tasks see it.
#[repr(C)]
struct Group {
    /// Counters of a barrier, which only the runtime reads.
    sync_handle: *mut c_void,
    /// Number of tasks in the launch.
    num_task: i32,
}

/// A task: its number, its group, and the data of the launch.
type TaskBody = unsafe extern "C" fn(c_int, *mut Group, *mut c_void) -> c_int;
/// `TVMBackendParallelLaunch`: the task, its data, and the number of tasks; 0 means the number of workers.
type Launch = unsafe extern "C" fn(TaskBody, *mut c_void, c_int) -> c_int;
/// `TVMBackendParallelBarrier`
type Barrier = unsafe extern "C" fn(c_int, *mut Group) -> c_int;
/// `TVMBackendAllocWorkspace`: device type and index, bytes, code and bits of the element type (DEV-34).
type Alloc = unsafe extern "C" fn(c_int, c_int, u64, c_int, c_int) -> *mut c_void;
/// `TVMBackendRunOnce`: the handle, the function, its data, and the size of the data.
type RunOnce = unsafe extern "C" fn(
    *mut RawHandle,
    unsafe extern "C" fn(*mut c_void) -> c_int,
    *mut c_void,
    c_int,
) -> c_int;
/// `TVMBackendFreeWorkspace`
type Free = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;

/// Returns whether one of the libraries has the functions that compiled code calls.
pub(super) fn is_there(api: &'static FfiApi) -> bool {
    // SAFETY: the type is that of the C header.
    unsafe { backend::<Alloc>(api, "TVMBackendAllocWorkspace") }.is_ok()
}

/// Held during a launch, because a process has only one number of workers.
static TURN: Mutex<()> = Mutex::new(());

/// State that the tasks of a launch share.
struct LaunchedTasks {
    /// Runtime on which a failing task sets its error.
    host: &'static dyn BackendHost,
    /// Numbers of the tasks that ran.
    ran: Mutex<Vec<c_int>>,
    /// Number of tasks in the group.
    group: AtomicU32,
    /// Numbers of the tasks that fail.
    fail: Vec<c_int>,
    /// Numbers of the tasks that take longer than a worker spins.
    slow: Vec<c_int>,
    /// Function with which a task launches further tasks.
    nested: Option<Launch>,
}

/// Records that it ran, then acts as the case requires for its number.
unsafe extern "C" fn task(number: c_int, group: *mut Group, data: *mut c_void) -> c_int {
    // SAFETY: `launch` below passes a `LaunchedTasks` that outlives the tasks.
    let run = unsafe { &*data.cast::<LaunchedTasks>() };
    // SAFETY: the runtime keeps the group for the duration of the task.
    let count = unsafe { (*group).num_task };
    if let Ok(mut ran) = run.ran.lock() {
        ran.push(number);
    }
    run.group.store(count.unsigned_abs(), Ordering::SeqCst);
    if run.slow.contains(&number) {
        std::thread::sleep(LONGER_THAN_SPINNING);
    }
    if let Some(launch) = run.nested {
        // SAFETY: `nothing` takes any data.
        return unsafe { launch(nothing, std::ptr::null_mut(), 2) };
    }
    if run.fail.contains(&number) {
        run.host.raise(c"boom");
        return -1;
    }
    0
}

// Released workers spin 300000 times before they sleep.
const LONGER_THAN_SPINNING: Duration = Duration::from_millis(60);

/// Runs one task of a nested launch.
unsafe extern "C" fn nothing(_: c_int, _: *mut Group, _: *mut c_void) -> c_int {
    0
}

/// Runs `module.launch`.
pub(in crate::conformance) fn launch<H: BackendHost>(
    host: &'static H,
    args: &Value,
) -> Result<Reply, Reply> {
    // SAFETY: the type is that of the C header.
    let launch = unsafe { backend::<Launch>(host, "TVMBackendParallelLaunch") }?;
    let value = args.get("value").unwrap_or(&Value::Null);
    let tasks_of = |name: &str| -> Result<Vec<c_int>, NoNumber> {
        let list = value.get(name).and_then(Value::as_array);
        list.into_iter().flatten().map(number_of).collect()
    };
    let run = LaunchedTasks {
        host,
        ran: Mutex::new(Vec::new()),
        group: AtomicU32::new(0),
        fail: tasks_of("fail")?,
        slow: tasks_of("slow")?,
        nested: (value.get("nested") == Some(&Value::Bool(true))).then_some(launch),
    };
    let workers = number_of(value.get("workers"))?;
    has_processors(workers)?;
    let _turn = lock(&TURN);
    host.configure(workers)?;
    let tasks: c_int = number_of(value.get("tasks"))?;
    // With one worker, released launchers run one task on the calling thread, and ignore its error.
    if workers > 1 && has_one_worker(launch) {
        return Err(unsupported("this runtime has one worker here"));
    }
    let asks_for_an_error =
        run.nested.is_some() || !run.fail.is_empty() || i64::from(tasks) > workers;
    // MOD-20: a runtime built with OpenMP ignores errors.
    if workers > 1 && asks_for_an_error && host.runtime().symbol("GOMP_parallel").is_some() {
        return Err(unsupported(
            "the tasks of this runtime are threads of OpenMP, which report no error",
        ));
    }
    // An error of an earlier case must not be attributed to this launch.
    drop(host.message());
    let data = std::ptr::from_ref(&run).cast_mut().cast();
    let mut code = 0;
    for round in 0..number_or(value, "times", 1)? {
        if round > 0 {
            // By then, a thread that waits for the next launch is asleep.
            std::thread::sleep(LONGER_THAN_SPINNING);
        }
        // SAFETY: `task` may run on several threads, and `run` outlives the launch.
        code = unsafe { launch(task, data, tasks) };
        if code != 0 {
            break;
        }
    }
    let error = match code {
        0 => None,
        _ => host.message(),
    };
    let mut ran = run.ran.into_inner().unwrap_or_default();
    ran.sort_unstable();
    let group = run.group.into_inner();
    accepted(json!({
        "ran": ran,
        "num_task": group,
        "error": error,
    }))
}

/// Returns whether a launch with one task for each worker has one task.
fn has_one_worker(launch: Launch) -> bool {
    let count = AtomicU32::new(0);
    // SAFETY: `count_tasks` stores a number, and `count` outlives the launch.
    let code = unsafe { launch(count_tasks, std::ptr::from_ref(&count).cast_mut().cast(), 0) };
    code == 0 && count.into_inner() == 1
}

/// Stores the number of tasks.
unsafe extern "C" fn count_tasks(_: c_int, group: *mut Group, data: *mut c_void) -> c_int {
    // SAFETY: `has_one_worker` passes a number that outlives the tasks.
    let count = unsafe { &*data.cast::<AtomicU32>() };
    // SAFETY: the runtime keeps the group for the duration of the task.
    let tasks = unsafe { (*group).num_task };
    count.store(tasks.unsigned_abs(), Ordering::SeqCst);
    0
}

/// Rejects more workers than processors, because no release starts more workers than that.
fn has_processors(workers: i64) -> Result<(), Reply> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if usize::try_from(workers).is_ok_and(|workers| workers > processors) {
        Err(unsupported("this machine has fewer processors"))
    } else {
        Ok(())
    }
}

/// State that the two tasks of a barrier share.
struct Meeting {
    /// The barrier function under test.
    barrier: Barrier,
    /// Number of tasks in the group.
    group: AtomicU32,
    /// Number of tasks that have reached the barrier.
    came: AtomicU32,
    /// Number of tasks that had reached it when the first task passed.
    let_by: AtomicU32,
}

/// Calls the barrier, the second task later than the first.
unsafe extern "C" fn meet(number: c_int, group: *mut Group, data: *mut c_void) -> c_int {
    // SAFETY: `barrier` below passes a `Meeting` that outlives the tasks.
    let meeting = unsafe { &*data.cast::<Meeting>() };
    // SAFETY: the runtime keeps the group for the duration of the task.
    let count = unsafe { (*group).num_task };
    meeting.group.store(count.unsigned_abs(), Ordering::SeqCst);
    if count != 2 {
        return 0;
    }
    // A broken barrier lets the first task pass before the second one arrives.
    if number == 1 {
        std::thread::sleep(Duration::from_millis(30));
    }
    meeting.came.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the calling task belongs to the group.
    let code = unsafe { (meeting.barrier)(number, group) };
    if number == 0 {
        let came = meeting.came.load(Ordering::SeqCst);
        meeting.let_by.store(came, Ordering::SeqCst);
    }
    code
}

/// Runs `module.barrier`: returns how many of two tasks had arrived when the first one passed.
pub(in crate::conformance) fn barrier<H: BackendHost>(
    host: &'static H,
    _: &Value,
) -> Result<Reply, Reply> {
    // SAFETY: the type is that of the C header.
    let launch = unsafe { backend::<Launch>(host, "TVMBackendParallelLaunch") }?;
    // SAFETY: the type is that of the C header.
    let barrier = unsafe { backend::<Barrier>(host, "TVMBackendParallelBarrier") }?;
    let meeting = Meeting {
        barrier,
        group: AtomicU32::new(0),
        came: AtomicU32::new(0),
        let_by: AtomicU32::new(0),
    };
    // With more tasks than workers, 0.7 throws an exception that no C caller can catch.
    has_processors(2)?;
    let _turn = lock(&TURN);
    host.configure(2)?;
    // SAFETY: as in `launch`.
    let code = unsafe { launch(meet, std::ptr::from_ref(&meeting).cast_mut().cast(), 2) };
    drop(host.message());
    let group = meeting.group.into_inner();
    if group != 2 || code != 0 {
        return Err(unsupported(format!(
            "two tasks ran in a group of {group} here"
        )));
    }
    accepted(json!({"came": meeting.let_by.into_inner()}))
}

/// Runs `module.workspace`.
pub(in crate::conformance) fn workspace<H: BackendHost>(
    host: &'static H,
    args: &Value,
) -> Result<Reply, Reply> {
    // SAFETY: the type is that of the C header.
    let alloc = unsafe { backend::<Alloc>(host, "TVMBackendAllocWorkspace") }?;
    // SAFETY: the type is that of the C header.
    let free = unsafe { backend::<Free>(host, "TVMBackendFreeWorkspace") }?;
    let sizes = args
        .get("value")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut aligned = Vec::new();
    for size in sizes {
        let size: u64 = number_of(size)?;
        // SAFETY: this is a request for the CPU and float32, and the memory is freed below.
        let memory = unsafe { alloc(1, 0, size, 2, 32) };
        let mut good = !memory.is_null() && (memory as usize).is_multiple_of(64);
        // Checks both the present source of workspace and the default source.
        if let Some(aligned) = host.host_is_aligned(size)? {
            good &= aligned;
        }
        aligned.push(good);
        if !memory.is_null() {
            // SAFETY: the workspace of the CPU was taken above, and is not used.
            unsafe { free(1, 0, memory) };
        }
    }
    accepted(json!(aligned))
}

/// Counter of an initializer's runs.
struct Initialised {
    /// Number of runs.
    calls: AtomicU32,
    /// Number of its first runs that fail.
    failures: u32,
}

impl Initialised {
    /// Counts a run. Returns -1 for the first `failures` runs, then 0.
    fn count_run(&self) -> c_int {
        if self.calls.fetch_add(1, Ordering::SeqCst) < self.failures {
            -1
        } else {
            0
        }
    }
}

thread_local! {
    /// Counter of this thread's initializer, because the function gets no data of the caller.
    static CURRENT: Cell<*const Initialised> = const { Cell::new(std::ptr::null()) };
}

/// Initializes in the form of 0.22 and later: sets the handle, which tells a runtime that it is done.
unsafe extern "C" fn initialise(place: *mut RawHandle) -> c_int {
    // SAFETY: `once` has set it to a counter that outlives the call.
    let code = unsafe { &*CURRENT.get() }.count_run();
    if code == 0 {
        // SAFETY: `place` is a handle that the initializer may set.
        unsafe { place.write(std::ptr::without_provenance_mut(1)) };
    }
    code
}

/// Initializes in the form of compiled code: the runtime sets the handle itself.
unsafe extern "C" fn initialise_with(data: *mut c_void) -> c_int {
    // SAFETY: `once` passes a counter that outlives the call.
    unsafe { &*data.cast::<Initialised>() }.count_run()
}

/// Runs `module.once`, with the function of 0.22, and with that of compiled code if the runtime has it.
pub(in crate::conformance) fn once<H: BackendHost>(
    host: &'static H,
    args: &Value,
) -> Result<Reply, Reply> {
    let times = number_of(value_of(args).get("times"))?;
    let failures = number_or(value_of(args), "failures", 0)?;
    // SAFETY: the type is that of the C header.
    let older = unsafe { backend::<RunOnce>(host, "TVMBackendRunOnce") };
    let newer = |count: &Initialised, place: &mut RawHandle| {
        CURRENT.set(count);
        host.once(place, initialise)
    };
    let older = |count: &Initialised, place: &mut RawHandle| {
        let data = std::ptr::from_ref(count).cast_mut().cast();
        // SAFETY: the handle is one of this case, and the function fits the data, which outlives the call.
        older
            .as_ref()
            .ok()
            .map(|once| unsafe { once(place, initialise_with, data, 0) })
    };
    let run = |once: &dyn Fn(&Initialised, &mut RawHandle) -> Option<c_int>| {
        let count = Initialised {
            calls: AtomicU32::new(0),
            failures,
        };
        let mut place: RawHandle = std::ptr::null_mut();
        let codes = (0..times).map(|_| once(&count, &mut place));
        let codes: Option<Vec<c_int>> = codes.collect();
        Some(json!({"calls": count.calls.into_inner(), "codes": codes?}))
    };
    let both = [run(&newer), run(&older)];
    drop(host.message());
    match both {
        [Some(newer), Some(older)] if newer != older => {
            accepted(json!({"TVMFFIHandleInitOnce": newer, "TVMBackendRunOnce": older}))
        }
        [Some(problem), _] | [None, Some(problem)] => accepted(problem),
        [None, None] => Err(unsupported(
            "this runtime has no function that runs another once",
        )),
    }
}
