//! Objects that end together with their thread or process, or while a panic unwinds.
#![cfg(feature = "runtime")]
#![forbid(unsafe_code)]

use crate::support::separate_process::alone;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tvmspec::device::cpu::cpu;
use tvmspec::device::{Device, DeviceApi, Dtype, Stream, stream};
use tvmspec::function::Function;
use tvmspec::object::{Array, Dict, List, Map};
use tvmspec::value::Any;

/// Environment variable of the process whose stack may overflow. Its value says where the chains end.
const WHERE: &str = "TVMSPEC_ENDS_WHERE";

/// Number of links, more than any stack holds if the end of each link called the end of the next.
const LINKS: usize = 200_000;

thread_local! {
    /// Created before anything that the library keeps for the thread, so it is destroyed later.
    static HELD: RefCell<Vec<Any>> = const { RefCell::new(Vec::new()) };
    /// Created as early as `HELD`.
    static USER: RefCell<Option<User>> = const { RefCell::new(None) };
}

fn chain(around: impl Fn(Any) -> Any) -> Any {
    (0..LINKS).fold(Any::none(), |inner, _| around(inner))
}

fn chains() -> Vec<Any> {
    vec![
        chain(|inner| Array::new([inner]).into()),
        chain(|inner| List::new([inner]).into()),
        chain(|inner| Map::from_pairs(vec![(1i64.into(), inner)]).unwrap().into()),
        chain(|inner| {
            let dict = Dict::new();
            dict.set(1i64, inner).unwrap();
            dict.into()
        }),
        chain(|inner| Function::from_packed(move |_| Ok(inner.clone())).into()),
    ]
}

/// Leaves the chains to the end of this thread.
fn keep_until_thread_exit() {
    HELD.with_borrow_mut(|held| held.push(Any::none()));
    // From here on, the library has its own memory for this thread.
    drop(chains());
    HELD.with_borrow_mut(|held| held.extend(chains()));
}

/// A value whose destructor uses the memory that the library keeps for the thread.
struct User;

impl Drop for User {
    fn drop(&mut self) {
        use_thread();
        println!("used");
    }
}

fn use_thread() {
    let before = stream::set(Device::CPU, Stream::DEFAULT).unwrap();
    assert_eq!(stream::current(Device::CPU), before);
    #[cfg(feature = "target")]
    {
        use tvmspec::release::Release;
        use tvmspec::target::{TargetScope, Targets, current};
        let target = Targets::new(Release::of(27)).read("c").unwrap();
        drop(TargetScope::enter(target));
        assert!(current().is_err());
    }
    // A thread that ends has no workspace any more, so this call fails.
    let _ = cpu().alloc_workspace(Device::CPU, 64, Dtype::UINT8);
}

/// Chains that are dropped by the destructor of their holder.
struct Held(Option<Vec<Any>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// Runs in the process whose stack may overflow.
#[test]
fn victim() {
    let Ok(place) = std::env::var(WHERE) else {
        return;
    };
    match place.as_str() {
        // A test runs on a separate thread, and the process waits for the end of that thread.
        "thread" => keep_until_thread_exit(),
        "a user" => {
            USER.set(Some(User));
            use_thread();
        }
        "unwinding" => {
            let unwound = catch_unwind(|| {
                let _held = Held(Some(chains()));
                panic!("planned");
            });
            assert!(unwound.is_err());
        }
        "after a panic" => {
            // If a destructor panics while other objects wait, they are left to the next object that ends.
            struct Panics;
            impl Drop for Panics {
                fn drop(&mut self) {
                    panic!("planned");
                }
            }
            let panics = Panics;
            let end = Function::from_packed(move |_| {
                let _ = &panics;
                Ok(Any::none())
            });
            let mut deep = Any::from(end);
            for _ in 0..1_000 {
                deep = Array::new([deep, Any::none()]).into();
            }
            let unwound = catch_unwind(AssertUnwindSafe(|| drop(deep)));
            assert!(unwound.is_err());
            keep_until_thread_exit();
        }
        other => panic!("{other}"),
    }
}

#[test]
fn deep_objects_end_with_their_thread() {
    for place in ["thread", "unwinding", "after a panic", "a user"] {
        let mut command = alone(module_path!(), "victim");
        let output = command.env(WHERE, place).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{place}: {}\n{errors}",
            output.status
        );
    }
}
