//! Operations that several threads may perform at once: the registry, counts and weak references, the type table, errors, modules, parallel
//! launches, run-once.
//!
//! Some tests write plain memory that only the promised order protects, so a race detector notices if the order is broken. `.ci/sanitize`
//! runs these tests under ThreadSanitizer and Miri.
#![cfg(feature = "runtime")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::Barrier;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind, parallel, run_once};
use tvmspec::object::{Array, Map};
use tvmspec::release::Release;
use tvmspec::value::header::{Header, Object, ObjectRef, Ref, dec_weak, inc_weak, upgrade};
use tvmspec::value::types::{self, ObjectIndex};
use tvmspec::value::{Any, cast, index};

/// Number of rounds: few under Miri, and many on a machine.
const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
const THREADS: usize = 4;

/// Memory that is protected only by the order of events.
#[derive(Default)]
struct Plain(UnsafeCell<usize>);

// SAFETY: the tests check exactly this: the tested promise orders every access.
unsafe impl Sync for Plain {}

impl Plain {
    fn set(&self, value: usize) {
        // SAFETY: the tested promise orders every access, as the type says.
        unsafe { *self.0.get() = value }
    }

    fn value(&self) -> usize {
        // SAFETY: the tested promise orders every access, as the type says.
        unsafe { *self.0.get() }
    }
}

/// A value that a closure holds. It counts how often such a closure was dropped.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_every_override_whole_and_in_order() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let numbered = |number: usize| {
        let (counted, content) = (Counted(&ENDED), vec![number; 3]);
        Function::from_typed(move || {
            let _held = &counted;
            assert!(content.iter().all(|word| *word == content[0]));
            content[0] as i64
        })
    };
    registry::register("threads.override", numbered(0), false).unwrap();
    std::thread::scope(|scope| {
        for _ in 1..THREADS {
            scope.spawn(|| {
                let mut newest = 0;
                while newest < ROUNDS as i64 {
                    // The name exists at every moment of an override.
                    let found = registry::lookup("threads.override").unwrap();
                    let seen = i64::try_from(&found.call(()).unwrap()).unwrap();
                    assert!(seen >= newest, "{seen} after {newest}");
                    newest = seen;
                    std::thread::yield_now();
                }
            });
        }
        for number in 1..=ROUNDS {
            registry::register("threads.override", numbered(number), true).unwrap();
            if number % 16 == 0 {
                std::thread::yield_now();
            }
        }
    });
    // Without a reader, replaced functions are freed by the next change.
    assert!(registry::remove("threads.override"));
    assert_eq!(ENDED.load(Ordering::Relaxed), ROUNDS + 1);
}

#[test]
fn names_of_many_writers_are_all_found() {
    let names = ROUNDS.min(300);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for at in 0..names {
                    let name = format!("threads.many.{thread}.{at}");
                    let answer = (thread * names + at) as i64;
                    registry::register(&name, Function::from_typed(move || answer), false).unwrap();
                    let found = registry::require(&name).unwrap().call(()).unwrap();
                    assert_eq!(i64::try_from(&found).unwrap(), answer);
                }
            });
        }
    });
    let listed = registry::names();
    let listed = listed
        .iter()
        .filter(|name| name.starts_with("threads.many."));
    assert_eq!(listed.count(), THREADS * names);
}

/// An object with plain content that reports its end.
#[repr(C)]
struct Watched {
    header: Header,
    content: Plain,
    ended: &'static AtomicUsize,
}

// SAFETY: the type is `#[repr(C)]` and starts with the header, and no other Rust type here has the index.
unsafe impl Object for Watched {
    fn type_index() -> ObjectIndex {
        ObjectIndex::fixed(index::OPAQUE_PY)
    }

    fn matches(type_index: i32) -> bool {
        type_index == index::OPAQUE_PY
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        assert_ne!(self.content.value(), 0, "ended twice, or not seen whole");
        self.content.set(0);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Watched {
    fn new(ended: &'static AtomicUsize) -> Ref<Watched> {
        unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}
        let watched = Watched {
            header: Header::new(index::OPAQUE_PY, nothing),
            content: Plain::default(),
            ended,
        };
        watched.content.set(1);
        Ref::new(watched)
    }
}

#[test]
fn the_last_of_many_holders_ends_an_object_once() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let rounds = ROUNDS / 4;
    for round in 0..rounds {
        let object = Watched::new(&ENDED);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let own = object.clone();
                scope.spawn(move || {
                    for _ in 0..4 {
                        let more = own.clone();
                        assert_eq!(more.content.value(), 1);
                        let value = Any::from(more.into_object());
                        drop(value.clone());
                    }
                });
            }
            drop(object);
        });
        assert_eq!(ENDED.load(Ordering::Relaxed), round + 1);
    }
}

/// A weak reference that is counted in the header, as C++ does it.
struct Weak(AtomicPtr<Header>);

impl Weak {
    fn of(object: &ObjectRef) -> Weak {
        // SAFETY: the object is alive.
        unsafe { inc_weak(object.as_ptr()) }
        Weak(AtomicPtr::new(object.as_ptr()))
    }

    fn upgrade(&self) -> Option<ObjectRef> {
        // SAFETY: this value holds a weak reference.
        unsafe { upgrade(self.0.load(Ordering::Relaxed)) }
    }
}

impl Drop for Weak {
    fn drop(&mut self) {
        // SAFETY: this value owns one weak reference.
        unsafe { dec_weak(*self.0.get_mut()) }
    }
}

#[test]
fn a_weak_reference_returns_a_live_object_or_none() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let rounds = ROUNDS / 4;
    for round in 0..rounds {
        let object = Watched::new(&ENDED);
        let start = Barrier::new(THREADS + 1);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (weak, start) = (Weak::of(object.as_object()), &start);
                scope.spawn(move || {
                    start.wait();
                    while let Some(strong) = weak.upgrade() {
                        let watched = strong.get::<Watched>().unwrap();
                        assert_eq!(watched.content.value(), 1, "upgraded after the end");
                    }
                    assert!(weak.upgrade().is_none(), "it came back");
                });
            }
            start.wait();
            drop(object);
        });
        assert_eq!(ENDED.load(Ordering::Relaxed), round + 1);
    }
}

#[test]
fn a_container_that_many_read_and_release_ends_with_its_elements() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let rounds = ROUNDS / 20;
    for _ in 0..rounds {
        let items = (0..3).map(|_| Any::from(Watched::new(&ENDED).into_object()));
        let array = Array::new(items.collect::<Vec<_>>());
        let pairs = vec![(Any::from("array"), Any::from(array.clone()))];
        let map = Map::from_pairs(pairs).unwrap();
        drop(array);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let mut own = map.clone();
                scope.spawn(move || {
                    let key = Any::from("array");
                    let found = own.at(key.view()).unwrap();
                    let array = cast::<Array>(found.view()).unwrap();
                    assert_eq!(array.len(), 3);
                    // A change to a shared map changes a copy.
                    own.set(Any::from("own"), thread as i64).unwrap();
                    assert_eq!(own.len(), 2);
                });
            }
            drop(map);
        });
    }
    assert_eq!(ENDED.load(Ordering::Relaxed), 3 * rounds);
}

#[test]
fn a_backtrace_grows_under_its_readers() {
    let error = Error::new("ValueError", "shared");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let own = error.clone();
            scope.spawn(move || {
                for at in 0..ROUNDS / 10 {
                    own.add_frame("a.rs", at as u32, "f");
                }
            });
        }
        for _ in 0..ROUNDS / 10 {
            let text = error.backtrace();
            assert!(text.lines().all(|line| line.ends_with("in f")), "{text}");
            assert_eq!(error.message(), "shared");
        }
    });
    assert_eq!(error.backtrace().lines().count(), ROUNDS / 10 * 2);
}

#[test]
fn one_key_is_one_type_whichever_thread_registers_first() {
    let kinds = ROUNDS.min(100);
    let seen: Vec<Vec<i32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    (0..kinds)
                        .map(|at| {
                            let key = format!("threads.Kind{at}");
                            let assigned = types::register(&key, index::OBJECT).unwrap();
                            assert_eq!(types::key_of(assigned), key);
                            assert!(types::is_instance(assigned, index::OBJECT));
                            assigned
                        })
                        .collect()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(seen.iter().all(|indices| *indices == seen[0]));
}

/// A module with one function, `answer`.
struct Answering;

impl ModuleKind for Answering {
    fn kind(&self) -> &str {
        "answering"
    }

    fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>, Error> {
        Ok((name == "answer").then(|| Function::from_typed(|| 42i64)))
    }
}

#[test]
fn compiled_code_of_one_module_looks_up_on_many_threads() {
    let module = Module::new(Answering);
    module.import(Module::new(Answering)).unwrap();
    let release = Release::LAST;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let own = module.clone();
            scope.spawn(move || {
                let first = own.from_environment("answer", release).unwrap();
                for _ in 0..ROUNDS / 10 {
                    let again = own.from_environment("answer", release).unwrap();
                    assert_eq!(again.as_object().as_ptr(), first.as_object().as_ptr());
                    assert_eq!(own.imports()[0].kind(), "answering");
                    // SAFETY: this is the context of a live module.
                    let same = unsafe { Module::from_context_or_handle(own.context()) };
                    assert_eq!(same.as_ref(), Some(&own));
                    let handle = own.as_object().as_ptr().cast();
                    // SAFETY: this is the handle of a live module of this crate.
                    let same = unsafe { Module::from_context_or_handle(handle) };
                    assert_eq!(same.as_ref(), Some(&own));
                }
            });
        }
        for _ in 0..ROUNDS.div_ceil(100) {
            module.import(Module::new(Answering)).unwrap();
        }
    });
    assert_eq!(module.imports().len(), 1 + ROUNDS.div_ceil(100));
}

const TASKS: usize = 4;
const PHASES: usize = if cfg!(miri) { 3 } else { 200 };

/// One plain cell for each task, and the number of reads of a neighbour's cell that broke the promise of the barrier.
#[derive(Default)]
struct Ring {
    cells: [Plain; TASKS],
    wrong: AtomicUsize,
}

/// Writes its own cell, waits for the others, reads all cells, and waits again.
unsafe extern "C" fn around(
    task: c_int,
    group: *mut parallel::GroupEnv,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the launch below passes a ring that outlives this call.
    let ring = unsafe { &*data.cast::<Ring>() };
    // SAFETY: a launch passes its group, which outlives this call.
    let tasks = unsafe { (*group).num_task } as usize;
    let own = task as usize;
    for phase in 1..=PHASES {
        ring.cells[own].set(phase);
        // SAFETY: the task passes its own number and group.
        unsafe { parallel::barrier(own, group) };
        let behind = ring.cells[..tasks]
            .iter()
            .filter(|cell| cell.value() != phase);
        ring.wrong.fetch_add(behind.count(), Ordering::Relaxed);
        // SAFETY: the task passes its own number and group.
        unsafe { parallel::barrier(own, group) };
    }
    0
}

#[test]
fn a_barrier_and_the_end_of_a_launch_order_memory() {
    parallel::configure(TASKS);
    let tasks = parallel::workers().min(TASKS);
    std::thread::scope(|scope| {
        // There are two launching threads, and each has its own workers.
        for _ in 0..2 {
            scope.spawn(|| {
                let around: parallel::Task = around;
                for _ in 0..ROUNDS / 20 {
                    let ring = Ring::default();
                    let data = (&raw const ring).cast_mut().cast();
                    // SAFETY: `around` takes a ring, which outlives the launch.
                    unsafe { parallel::launch(around, data, tasks) }.unwrap();
                    assert_eq!(ring.wrong.load(Ordering::Relaxed), 0);
                    let written = ring.cells.iter().filter(|cell| cell.value() == PHASES);
                    assert_eq!(written.count(), tasks);
                }
            });
        }
    });
    parallel::configure(0);
}

unsafe extern "C" fn initialise(data: *mut c_void) -> c_int {
    // SAFETY: the test below passes a cell.
    let cell = unsafe { &*data.cast::<Plain>() };
    cell.set(cell.value() + 1);
    0
}

#[test]
fn what_runs_once_has_run_for_every_caller() {
    for _ in 0..ROUNDS / 20 {
        let (handle, cell) = (AtomicPtr::new(std::ptr::null_mut()), Plain::default());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let data = (&raw const cell).cast_mut().cast();
                    // SAFETY: `initialise` takes a cell.
                    assert_eq!(unsafe { run_once::run(&handle, initialise, data) }, 0);
                    assert_eq!(cell.value(), 1);
                });
            }
        });
    }
}
