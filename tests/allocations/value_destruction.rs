//! Destruction of chains of objects: with little stack, and without a leak (VAL-05).
use super::LIVE;
use tvmspec::function::{Error, Function};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::{Array, List};
use tvmspec::value::Any;
use tvmspec::value::header::{dec_weak, inc_weak};

/// Creates `levels` nested sequences that alternate between array and list.
fn chain(levels: usize) -> Any {
    (0..levels).fold(Any::from(7i64), |inner, level| match level % 2 {
        0 => Array::new(vec![inner]).into(),
        _ => List::new(vec![inner]).into(),
    })
}

#[test]
fn a_long_chain_ends_on_little_stack() {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let ended = thread.spawn(|| drop(chain(200_000))).unwrap().join();
    assert!(ended.is_ok());
}

#[test]
fn the_memory_of_a_chain_is_freed_at_every_depth() {
    tvmspec::object::init();
    // The cache keeps freed small objects for the next allocation of their size, and the queue keeps its capacity.
    const KEPT: i64 = 32 << 10;
    drop(chain(500));
    for levels in [1, 2, 63, 64, 65, 66, 67, 96, 128, 129, 500] {
        let before = LIVE.get();
        (0..2000).for_each(|_| drop(chain(levels)));
        let left = LIVE.get() - before;
        assert!(
            left <= KEPT,
            "2,000 times {levels} levels leave {left} bytes"
        );
    }
}

#[test]
fn a_wide_object_below_the_deepest_level_ends_with_all_its_elements() {
    tvmspec::object::init();
    let wide = |levels| {
        let elements: Vec<Any> = (0..20).map(|_| chain(3)).collect();
        (0..levels).fold(Any::from(Array::new(elements)), |inner, _| {
            Array::new(vec![inner]).into()
        })
    };
    drop(wide(80));
    for levels in [60, 61, 62, 63, 64, 65, 80] {
        let before = LIVE.get();
        (0..200).for_each(|_| drop(wide(levels)));
        let left = LIVE.get() - before;
        assert!(
            left <= 32 << 10,
            "200 times {levels} levels leave {left} bytes"
        );
    }
}

/// Returns the number of bytes in use in C's `malloc`, which holds this library's objects.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
fn in_use() -> usize {
    #[repr(C)]
    struct Used([usize; 10]);
    // SAFETY: glibc has this function since 2.33; it has no arguments.
    unsafe extern "C" {
        safe fn mallinfo2() -> Used;
    }
    let Used([.., used, _, _]) = mallinfo2();
    used
}

/// Upper bound on the memory that the other tests of this file hold at any time.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
const OTHERS: usize = 150 << 20;

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
fn the_memory_of_texts_and_elements_is_freed() {
    tvmspec::object::init();
    let text = "x".repeat(4000);
    let makers: [(&str, &dyn Fn() -> Any); 3] = [
        ("texts", &|| Any::from(&*text)),
        ("arrays", &|| Array::new(vec![Any::from(1i64); 250]).into()),
        ("lists", &|| {
            let list = List::new(vec![]);
            (0..250i64).for_each(|number| list.push(number.into()));
            list.into()
        }),
    ];
    for (name, make) in makers {
        let before = in_use();
        (0..100_000).for_each(|_| drop(make()));
        let left = in_use().saturating_sub(before);
        assert!(left < OTHERS, "100,000 {name} leave {left} bytes");
    }
}

/// Module that only has a kind.
struct Named(#[expect(dead_code, reason = "memory that ends with the module")] Vec<u8>);

impl ModuleKind for Named {
    fn kind(&self) -> &str {
        "named"
    }

    fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

#[test]
fn a_module_ends_with_its_last_reference_and_its_memory_with_the_last_weak_one() {
    tvmspec::object::init();
    drop(Module::new(Named(Vec::new())));
    let before = LIVE.get();
    for _ in 0..1000 {
        drop(Module::new(Named(vec![0; 1000])));
    }
    let left = LIVE.get() - before;
    assert!(left <= 32 << 10, "1,000 modules leave {left} bytes");

    let module = Module::new(Named(vec![0; 1000]));
    let object = module.as_object().as_ptr();
    // SAFETY: an object that is alive.
    unsafe { inc_weak(object) };
    let held = LIVE.get();
    drop(module);
    let now = LIVE.get();
    assert!(
        now < held - 900,
        "the objects that the module owns are freed with it"
    );
    // SAFETY: a weak reference keeps the memory.
    let strong = unsafe { &*object }.strong_count();
    assert_eq!(strong, 0);
    // SAFETY: the reference that was taken above.
    unsafe { dec_weak(object) };
    assert!(
        LIVE.get() < now,
        "the memory ends with the last weak reference"
    );
}
