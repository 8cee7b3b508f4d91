//! Structural visits and rewrites by their global names, through the public interface.
#![cfg(feature = "frontend")]

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use tvmspec::function::{Error, Function, Result, registry};
use tvmspec::object::{self, Array, Dict, List, Map, repr};
use tvmspec::value::{Any, ObjectRef, index};

fn call(name: &str, args: &[Any]) -> Result {
    object::init();
    let function = registry::lookup(name).unwrap_or_else(|| panic!("{name} is not registered"));
    let views: Vec<_> = args.iter().map(Any::view).collect();
    function.call_packed(&views)
}

fn array(items: Vec<Any>) -> Any {
    Array::new(items).into()
}

/// Returns a list with one callback for values of a type.
fn callback_for(type_index: i32, function: Function) -> Any {
    array(vec![array(vec![type_index.into(), function.into()])])
}

fn walk(root: &Any, callback: Function) -> Result {
    let args = [
        root.clone(),
        callback_for(index::INT, callback),
        array(vec![]),
        0i64.into(),
    ];
    call("ffi.StructuralWalk", &args)
}

fn boxed(value: Any) -> Any {
    call("ffi.VisitInterrupt", &[value]).unwrap()
}

fn text(value: &Any) -> String {
    repr::repr(value.view()).unwrap()
}

fn deep(levels: usize) -> Any {
    (0..levels).fold(Any::from(1i64), |inner, _| List::new(vec![inner]).into())
}

#[test]
fn too_deep_nesting_is_an_error() {
    let nothing = || Function::from_typed(|_: Any| {});
    assert!(walk(&deep(100), nothing()).unwrap().is_none());
    let error = walk(&deep(5000), nothing()).unwrap_err();
    assert_eq!(error.kind(), "ValueError");
    let map = |root: Any| {
        let one_more = Function::from_typed(|value: i64| value + 1);
        let links = callback_for(index::INT, one_more);
        call(
            "ffi.StructuralMap",
            &[root, links, array(vec![]), 1i64.into()],
        )
    };
    assert!(map(deep(100)).is_ok());
    assert_eq!(map(deep(5000)).unwrap_err().kind(), "ValueError");
}

#[test]
fn a_hash_goes_2000_levels_down_whatever_nests() {
    let nested = |levels: usize, around: fn(Any) -> Any| {
        (0..levels).fold(Any::from(1i64), |inner, _| around(inner))
    };
    let array = |inner| Array::new(vec![inner]).into();
    let map = |inner| -> Any {
        let mut map = Map::new();
        map.set(1i64, inner).unwrap();
        map.into()
    };
    on_stack(256 << 10, || {
        for around in [array as fn(Any) -> Any, map] {
            assert!(call("ffi.RecursiveHash", &[nested(1500, around)]).is_ok());
            let error = call("ffi.RecursiveHash", &[nested(2100, around)]).unwrap_err();
            assert_eq!(error.kind(), "ValueError", "{error}");
        }
    });
}

/// Runs `body` on a thread whose stack has this size in kibibytes.
fn on_stack(kibibytes: usize, body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(kibibytes << 10);
        let running = thread.spawn_scoped(scope, body).unwrap();
        running.join().unwrap_or_else(|panic| resume_unwind(panic));
    });
}

#[test]
fn nesting_beyond_stack_is_an_error() {
    // The build decides whether the value fits, but there is always an answer.
    let answered = |result: Result| match result {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), "ValueError", "{error}");
            assert!(error.message().contains("too deep"), "{error}");
            true
        }
    };
    let (left, right) = (deep(1900), deep(1900));
    // A saved value has at most 1,000 levels, so it is rejected for its depth if the stack has room for more (OBJ-41).
    let saved = deep(900);
    let two = || [left.clone(), right.clone()];
    let no = || array(vec![]);
    let map = || {
        let one_more = Function::from_typed(|value: i64| value + 1);
        [
            left.clone(),
            callback_for(index::INT, one_more),
            no(),
            1i64.into(),
        ]
    };
    for kibibytes in [256, 512, 1024] {
        on_stack(kibibytes, || {
            let one = &two()[..1];
            let mut rejected = 0;
            for result in [
                call("ffi.RecursiveHash", one),
                call("ffi.ReprPrint", one),
                call("ffi.DeepCopy", one),
                call("ffi.RecursiveEq", &two()),
                call("ffi.RecursiveLt", &two()),
                call("ffi.ToJSONGraphString", &[saved.clone(), Any::none()]),
                call("ffi.json.Stringify", &[left.clone(), Any::none()]),
                call(
                    "ffi.StructuralHash",
                    &[left.clone(), false.into(), false.into()],
                ),
                call(
                    "ffi.GetFirstStructuralMismatch",
                    &[left.clone(), right.clone(), false.into(), false.into()],
                ),
                call("ffi.StructuralMap", &map()),
                walk(&left, Function::from_typed(|_: Any| {})),
            ] {
                rejected += usize::from(answered(result));
            }
            assert!(kibibytes > 256 || rejected > 0);
            // A shallow value fits every stack.
            assert!(call("ffi.ReprPrint", &[deep(20)]).is_ok());
        });
    }
}

#[test]
fn a_walk_in_the_callback_of_a_walk_does_not_overflow() {
    fn again() -> Result {
        let callback = Function::from_typed(|_: i64| again());
        walk(&deep(10), callback)
    }
    on_stack(512, || {
        let error = again().unwrap_err();
        assert_eq!(error.kind(), "ValueError");
        assert!(error.message().contains("stack of this thread"), "{error}");
    });
}

#[test]
fn an_error_says_where_it_happened() {
    let fails = || Function::from_typed(|_: i64| Err::<(), Error>(Error::new("ValueError", "no")));
    let inner = boxed(Any::from(5i64));
    let root = boxed(inner.clone());
    let error = walk(&root, fails()).unwrap_err();
    assert_eq!(error.message(), "no");
    let context = error.context().expect("the walk left a context");
    let paths = |root: &Any, prefix: bool| {
        let args = [root.clone(), context.clone().into(), prefix.into()];
        text(&call("ffi.VisitErrorContext.FindAccessPaths", &args).unwrap())
    };
    assert_eq!(paths(&root, false), "(<root>.value,)");
    // The other root holds the same object, next to one that does not hold it.
    let other = boxed(array(vec![Any::none(), root.clone(), boxed(inner)]));
    assert_eq!(paths(&other, false), "(<root>.value[1].value,)");
    let nowhere = boxed(array(vec![boxed(Any::from(6i64))]));
    assert_eq!(paths(&nowhere, true), "()");
}

#[test]
fn a_path_that_is_only_begun_is_found_when_it_is_looked_for() {
    // An array lies between the two objects. It is recorded, but the search does not look for it on its own.
    let root = boxed(array(vec![boxed(Any::from(5i64))]));
    let outer = boxed(root);
    let fails = Function::from_typed(|_: i64| Err::<(), Error>(Error::new("ValueError", "no")));
    let context = walk(&outer, fails).unwrap_err().context().unwrap();
    let paths = |prefix: bool| {
        let args = [outer.clone(), context.clone().into(), prefix.into()];
        text(&call("ffi.VisitErrorContext.FindAccessPaths", &args).unwrap())
    };
    assert_eq!(paths(false), "()");
    assert_eq!(paths(true), "(<root>.value.value[0],)");
}

#[test]
fn a_callback_may_visit_parts_itself_and_copy_the_visitor() {
    let met = Arc::new(Mutex::new(Vec::new()));
    let seen = met.clone();
    let second_only = Function::from_typed(move |items: Array, visitor: ObjectRef| {
        let visitor = call("ffi.DeepCopy", &[visitor.into()])?;
        call("ffi.StructuralVisitorVisit", &[visitor, items.at(1)?])
    });
    let number = Function::from_typed(move |value: i64, _: ObjectRef| {
        seen.lock().unwrap().push(value);
    });
    let entries = array(vec![
        array(vec![index::ARRAY.into(), second_only.into()]),
        array(vec![index::INT.into(), number.into()]),
    ]);
    let tree = array(vec![1i64.into(), array(vec![2i64.into(), 3i64.into()])]);
    call("ffi.StructuralVisit", &[tree, entries]).unwrap();
    assert_eq!(*met.lock().unwrap(), [3]);
}

#[test]
fn a_callback_may_rewrite_parts_itself_with_a_copy_of_the_mutator() {
    let second_only = Function::from_typed(|items: Array, mutator: ObjectRef| {
        let mutator = call("ffi.DeepCopy", &[mutator.into()])?;
        call("ffi.StructuralMutatorMutate", &[mutator, items.at(1)?])
    });
    let number = Function::from_typed(|value: i64, _: ObjectRef| value + 1);
    let entries = array(vec![
        array(vec![index::ARRAY.into(), second_only.into(), false.into()]),
        array(vec![index::INT.into(), number.into(), false.into()]),
    ]);
    let list: Any = List::new(vec![2i64.into(), 3i64.into()]).into();
    let tree = array(vec![1i64.into(), list]);
    let result = call("ffi.StructuralMutate", &[tree, entries]).unwrap();
    assert_eq!(text(&result), "[3, 4]");
}

#[test]
fn a_rewrite_takes_a_replacement_for_an_object() {
    let list: Any = List::new(vec![1i64.into()]).into();
    let rewritten = Function::from_typed(|number: i64, mutator: ObjectRef| {
        let mutator = Any::from(mutator);
        let nothing = boxed(Any::none());
        let get = |of: &Any| {
            call(
                "ffi.StructuralMutatorVarRemapGet",
                &[mutator.clone(), of.clone()],
            )
        };
        assert!(get(&nothing)?.is_none());
        let set = [mutator.clone(), nothing.clone(), Any::from(number)];
        call("ffi.StructuralMutatorVarRemapSet", &set)?;
        let rejected = get(&Any::from(1i64)).unwrap_err();
        assert_eq!(rejected.kind(), "TypeError");
        let stands = i64::try_from(&get(&nothing)?)?;
        Ok::<i64, Error>(stands + 1)
    });
    let entry = array(vec![index::INT.into(), rewritten.into(), false.into()]);
    let result = call("ffi.StructuralMutate", &[list.clone(), array(vec![entry])]).unwrap();
    assert_eq!((text(&result), text(&list)), ("[2]".into(), "[1]".into()));
}

#[test]
fn a_callback_may_change_the_list_that_is_walked() {
    let list = List::new(vec![
        1i64.into(),
        Any::from("a text on the heap"),
        2i64.into(),
    ]);
    let inside = Any::from(list.clone());
    let clears =
        Function::from_typed(move |_: Any| call("ffi.ListClear", std::slice::from_ref(&inside)));
    let args = [
        list.clone().into(),
        callback_for(index::ANY, clears),
        array(vec![]),
        0i64.into(),
    ];
    assert!(call("ffi.StructuralWalk", &args).unwrap().is_none());
    assert!(list.is_empty());

    let dict = Dict::new();
    for at in 0..20i64 {
        dict.set(at, boxed(Any::from(at))).unwrap();
    }
    let inside = Any::from(dict.clone());
    let clears = Function::from_typed(move |value: Any| {
        call("ffi.DictClear", std::slice::from_ref(&inside))?;
        Ok::<Any, Error>(value)
    });
    let args = [
        dict.clone().into(),
        callback_for(index::ANY, clears),
        array(vec![]),
        1i64.into(),
    ];
    call("ffi.StructuralMap", &args).unwrap();
    assert!(dict.is_empty());
}

#[test]
fn a_failed_rewrite_in_place_loses_nothing() {
    let mut map = Map::new();
    for (name, value) in [("a", 1i64), ("b", 2)] {
        map.set(name, value).unwrap();
    }
    let fails = Function::from_typed(|value: i64| match value {
        2 => Err(Error::new("ValueError", "two")),
        other => Ok(other + 10),
    });
    let entry = array(vec![index::INT.into(), fails.into()]);
    // Only the list holds the map, and the list is passed on by a reference that is taken.
    let list = List::new(vec![Any::from(map)]);
    let held = list.at(0).unwrap();
    let args = [
        list.clone().into(),
        array(vec![entry]),
        array(vec![]),
        1i64.into(),
    ];
    assert_eq!(
        call("ffi.StructuralMap", &args).unwrap_err().message(),
        "two"
    );
    assert_eq!(text(&held), "{\"a\": 1, \"b\": 2}");
    assert_eq!(text(&list.into()), "[{\"a\": 1, \"b\": 2}]");
}
