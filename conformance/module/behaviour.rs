//! Operations of the chapter module that drive what compiled code calls.

use super::ops::plain;
use super::probe;
use crate::conformance::op::{self, Answer, Op, Refusal};
use crate::module::parallel::{self, GroupEnv};
use crate::module::workspace::{self, Request};
use crate::module::{Name, Symbols, last_error, once, system};
use serde_json::{Value, json};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a case of this chapter can ask of the functions that compiled code calls.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "module.launch",
        help: "value {workers, tasks, fail}: which tasks ran, in a group of how many, and the error",
        run: op::Run::Here(launch),
    },
    Op {
        name: "module.barrier",
        help: "nothing: how many of two tasks had come when the barrier let one pass",
        run: op::Run::Here(barrier),
    },
    Op {
        name: "module.once",
        help: "value {times, failures}: how often the initialiser ran, and what each run returned",
        run: op::Run::Here(run_once),
    },
    Op {
        name: "module.workspace",
        help: "value [bytes, ...]: whether each is aligned",
        run: op::Run::Here(aligned),
    },
    Op {
        name: "module.system",
        help: "value {register, prefix, before, name}: which registered symbol is found",
        run: op::Run::Here(system_symbol),
    },
];

struct Run {
    tasks: Mutex<Vec<c_int>>,
    group: AtomicU32,
    fail: Vec<c_int>,
}

unsafe extern "C" fn task(index: c_int, group: *mut GroupEnv, data: *mut c_void) -> c_int {
    // SAFETY: `launch` below passes a `Run` that outlives it.
    let run = unsafe { &*data.cast::<Run>() };
    // SAFETY: the group is the launch's own.
    let count = unsafe { (*group).num_task };
    run.tasks
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(index);
    run.group.store(count.unsigned_abs(), Ordering::SeqCst);
    if run.fail.contains(&index) {
        last_error::set("boom");
        return -1;
    }
    0
}

/// The number of workers is one for the process.
static TURN: Mutex<()> = Mutex::new(());

fn launch(args: &Value) -> Result<Answer, Refusal> {
    let value = &args["value"];
    let number = |name: &str| {
        value[name]
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
    };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    parallel::configure(number("workers").unwrap_or(0));
    let fail = value["fail"].as_array().into_iter().flatten();
    let run = Run {
        tasks: Mutex::new(Vec::new()),
        group: AtomicU32::new(0),
        fail: fail
            .filter_map(|task| c_int::try_from(task.as_i64()?).ok())
            .collect(),
    };
    // SAFETY: `task` is fit for several threads, and `run` outlives the launch.
    let outcome = unsafe {
        parallel::launch(
            task,
            std::ptr::from_ref(&run).cast_mut().cast(),
            number("tasks").unwrap_or(0),
        )
    };
    parallel::configure(0);
    let mut ran = run
        .tasks
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    ran.sort_unstable();
    Ok(plain(
        json!({"ran": ran, "num_task": run.group.into_inner(), "error": outcome.err()}),
    ))
}

#[repr(C, align(64))]
struct Line(AtomicI32);

fn barrier(_: &Value) -> Result<Answer, Refusal> {
    struct Shared {
        lines: [Line; 2],
        came: AtomicU32,
    }
    fn pass(shared: &Shared, task: usize) {
        let group = GroupEnv {
            sync_handle: shared.lines.as_ptr().cast_mut().cast(),
            num_task: 2,
        };
        // SAFETY: two counters on lines of their own, and they live as long as `shared`.
        unsafe { parallel::barrier(task, &raw const group) };
    }
    let shared = Arc::new(Shared {
        lines: [const { Line(AtomicI32::new(0)) }; 2],
        came: AtomicU32::new(0),
    });
    let other = Arc::clone(&shared);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.came.fetch_add(1, Ordering::SeqCst);
        pass(&other, 1);
    });
    shared.came.fetch_add(1, Ordering::SeqCst);
    pass(&shared, 0);
    let came = shared.came.load(Ordering::SeqCst);
    // Whatever the barrier did, the other task gets through.
    shared.lines[0].0.store(i32::MAX, Ordering::Release);
    let _ = late.join();
    Ok(plain(json!({"came": came})))
}

fn run_once(args: &Value) -> Result<Answer, Refusal> {
    struct Count {
        calls: AtomicU32,
        failures: u32,
    }
    unsafe extern "C" fn initialise(data: *mut c_void) -> c_int {
        // SAFETY: the `Count` below.
        let count = unsafe { &*data.cast::<Count>() };
        let before = count.calls.fetch_add(1, Ordering::SeqCst);
        if before < count.failures { -1 } else { 0 }
    }
    let value = &args["value"];
    let count = Count {
        calls: AtomicU32::new(0),
        failures: value["failures"].as_u64().unwrap_or(0) as u32,
    };
    let handle = AtomicPtr::new(std::ptr::null_mut());
    let codes: Vec<c_int> = (0..value["times"].as_u64().unwrap_or(1))
        // SAFETY: the function fits the data, which outlives the calls.
        .map(|_| unsafe {
            once::run(
                &handle,
                initialise,
                std::ptr::from_ref(&count).cast_mut().cast(),
            )
        })
        .collect();
    Ok(plain(
        json!({"calls": count.calls.into_inner(), "codes": codes}),
    ))
}

fn aligned(args: &Value) -> Result<Answer, Refusal> {
    let sizes = args["value"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64);
    let mut answers = Vec::new();
    for bytes in sizes {
        let request = Request {
            device_type: 1,
            device_id: 0,
            bytes,
            hint: (2, 32),
        };
        let mut aligned = true;
        // Both who serves now, and who does where no device chapter is.
        for source in [workspace::current(), workspace::host()] {
            let memory = source.alloc(request).map_err(Refusal::Unsupported)?;
            aligned &= (memory.as_ptr() as usize).is_multiple_of(workspace::ALIGNMENT);
            // SAFETY: just allocated on this thread.
            unsafe { source.free((1, 0), memory) }.map_err(Refusal::Unsupported)?;
        }
        answers.push(aligned);
    }
    Ok(plain(json!(answers)))
}

fn system_symbol(args: &Value) -> Result<Answer, Refusal> {
    let value = &args["value"];
    // Names of this case alone: the table is one for the process.
    let own = |name: &str| format!("{name}@{:?}", std::thread::current().id());
    let mut replaced = Vec::new();
    for (name, code) in value["register"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?)))
    {
        let address = probe::address(code).cast_mut();
        // SAFETY: a function of the probe, which takes any arguments and stays.
        replaced.push(unsafe { system::register(&own(name), address) });
    }
    let symbols = system::SystemSymbols::new(value["prefix"].as_str().unwrap_or_default());
    let name = own(value["name"].as_str().unwrap_or_default());
    let found = match value["before"].as_str() {
        Some(before) => symbols.function(before, &name),
        None => symbols.address(Name::of(&name)),
    };
    let known = ["f", "__tvm_ffi_f", "p_f", "__tvm_ffi_p_f", "main"];
    let found = found.and_then(|found| {
        known
            .into_iter()
            .find(|code| probe::address(code) == found.as_ptr().cast_const())
    });
    for pair in value["register"].as_array().into_iter().flatten() {
        let name = own(pair[0].as_str().unwrap_or_default());
        // SAFETY: takes the name away.
        unsafe { system::register(&name, std::ptr::null_mut()) };
    }
    Ok(plain(json!({"found": found, "replaced": replaced})))
}
