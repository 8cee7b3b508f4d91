//! Objects that end when their thread or the process does, and while a panic unwinds.
#![cfg(feature = "runtime")]
#![forbid(unsafe_code)]

use crate::support::alone::alone;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tvmspec::device::cpu::cpu;
use tvmspec::device::{Device, DeviceApi, Dtype, Stream, stream};
use tvmspec::function::Function;
use tvmspec::object::{Array, Dict, List, Map};
use tvmspec::value::Any;

/// Set in the process whose stack may overflow: where the chains end.
const WHERE: &str = "TVMSPEC_ENDS_WHERE";

/// More than any stack holds, were each ended inside the one before.
const LINKS: usize = 200_000;

thread_local! {
    /// Older than whatever the library keeps for the thread, so that it ends later.
    static HELD: RefCell<Vec<Any>> = const { RefCell::new(Vec::new()) };
    /// As old.
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
fn hold() {
    HELD.with_borrow_mut(|held| held.push(Any::none()));
    // The library's own memory of this thread is made after that.
    drop(chains());
    HELD.with_borrow_mut(|held| held.extend(chains()));
}

/// Uses what the library keeps for the thread while it is dropped.
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
    // A thread that ends has no workspace any more, which is an error.
    let _ = cpu().alloc_workspace(Device::CPU, 64, Dtype::UINT8);
}

/// Drops the chains while it is dropped itself.
struct Held(Option<Vec<Any>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// The process whose stack may overflow.
#[test]
fn victim() {
    let Ok(place) = std::env::var(WHERE) else {
        return;
    };
    match place.as_str() {
        // A test runs on a thread of its own, whose end the process waits for.
        "thread" => hold(),
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
            // A destructor that panics while others wait leaves them for the next object that ends.
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
            hold();
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
