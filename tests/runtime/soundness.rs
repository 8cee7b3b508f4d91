//! Safe Rust code on the parts of this library that work on raw memory: the safe ways on real input, and the ways that must be rejected.

#![cfg(feature = "frontend")]
#![forbid(unsafe_code)]

use tvmspec::function::{Error, Function, registry};
use tvmspec::object::{self, Array, Dict, List, Map, Tensor, construct, repr};
use tvmspec::rule::Kind;
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, AnyView, cast, index, types};

fn call(name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
    object::init();
    registry::require(name)?.call_packed(args)
}

#[test]
fn fields_are_read_by_name() {
    object::init();
    let path = call("ffi.StructuralKey", &[3i64.into()]).unwrap();
    let path = path.as_object().unwrap();
    assert_eq!(
        i64::try_from(&object::field(path, "key").unwrap()).unwrap(),
        3
    );
    let error = object::field(path, "no_such").unwrap_err();
    assert_eq!(error.kind(), "AttributeError");
    let info = types::info(path.type_index()).unwrap();
    let names: Vec<&str> = info.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["key", "hash_i64"]);
    let key = &info.fields()[0];
    assert_eq!((key.flags(), key.static_type_index()), (0, index::ANY));
    assert_eq!(info.parent().unwrap().type_index(), index::OBJECT);
}

#[test]
fn a_tensor_is_an_argument() {
    let float32 = Dtype::FLOAT32;
    let tensor = Tensor::empty(&[2, 3], float32).unwrap();
    tensor.fill(&[1; 24]).unwrap();
    let same = Function::from_typed(|tensor: Tensor| tensor);
    let answer = same.call_packed(&[AnyView::from(&tensor)]).unwrap();
    let answer: Tensor = cast(answer.view()).unwrap();
    assert_eq!(
        (answer.shape(), answer.to_bytes().unwrap()),
        (&[2, 3][..], vec![1; 24])
    );
}

#[test]
fn a_number_is_no_hook_of_a_type() {
    object::init();
    let own = types::register("test.sound.Hooked", index::OBJECT).unwrap();
    // Safe code can also obtain a pointer. This one is the hook of another type.
    let column = types::column("__s_mutate__").unwrap();
    let pointer = column.value(index::STR).unwrap().to_any();
    assert_eq!(pointer.type_index(), index::OPAQUE);
    let broken = types::set_attr(own, "__any_hash__", pointer).unwrap_err();
    assert_eq!((broken.rule().id(), broken.kind()), ("VAL-15", Kind::Type));
    types::set_attr(own, "__any_hash__", Any::from(7i64)).unwrap();
}

#[test]
fn types_of_this_library_are_no_records() {
    object::init();
    let record = |type_index: i32, size: i64| {
        let args = [type_index.into(), size.into()];
        call("ffi._PyClassRegisterTypeAttrColumns", &args).map(drop)
    };
    for own in [
        index::OBJECT + 1,
        index::TENSOR,
        index::FUNCTION,
        index::MODULE,
    ] {
        assert_eq!(record(own, 24).unwrap_err().kind(), "TypeError", "{own}");
    }
    let key = types::index_of("ffi.StructuralKey").unwrap();
    let below = types::register("test.sound.BelowKey", key).unwrap();
    let error = record(below, 64).unwrap_err();
    assert!(
        error.message().contains("laid out by this library"),
        "{error}"
    );
    let member = types::index_of("ffi.Enum").unwrap();
    let member = types::register("test.sound.Member", member).unwrap();
    assert_eq!(record(member, 24).unwrap_err().kind(), "ValueError");
    record(member, 48).unwrap();
    let own = types::register("test.sound.Record", index::OBJECT).unwrap();
    record(own, 24).unwrap();
    let made = construct::make_object(&[own.into()]).unwrap();
    assert_eq!(made.type_index(), own);
}

#[test]
fn a_record_without_memory_is_an_error() {
    object::init();
    let register = |key: &str, size: i64| {
        let own = types::register(key, index::OBJECT).unwrap();
        let args = [own.into(), size.into()];
        call("ffi._PyClassRegisterTypeAttrColumns", &args).map(|_| own)
    };
    for (at, size) in [-1, 1 << 31, 1 << 60, i64::MAX].into_iter().enumerate() {
        let error = register(&format!("test.sound.Size{at}"), size).unwrap_err();
        assert_eq!(error.kind(), "ValueError", "{size}");
    }
    // There may be enough memory for this one, and none of it is touched.
    let own = register("test.sound.Largest", i64::from(i32::MAX)).unwrap();
    match construct::make_object(&[own.into()]) {
        Ok(made) => assert_eq!(made.type_index(), own),
        Err(error) => assert_eq!(error.kind(), "MemoryError"),
    }
}

#[test]
fn a_maker_that_makes_something_else_is_rejected() {
    object::init();
    let other = Function::from_typed(|| object::missing().clone());
    types::set_attr(index::MODULE, "__ffi_new__", other.into()).unwrap();
    let key = Any::from("ffi.Module");
    let (name, imports) = (Any::from("imports_"), Any::from(Array::new(Vec::new())));
    let error = construct::make_object(&[key.view(), name.view(), imports.view()]).unwrap_err();
    assert_eq!(error.kind(), "TypeError", "{error}");
    let own = types::register("test.sound.Copied", index::OBJECT).unwrap();
    call(
        "ffi._PyClassRegisterTypeAttrColumns",
        &[own.into(), 24i64.into()],
    )
    .unwrap();
    let made = construct::make_object(&[own.into()]).unwrap();
    assert!(call("ffi.DeepCopy", &[made.view()]).is_ok());
}

#[test]
fn containers_change_under_those_who_look_at_them() {
    let list = List::new(vec![Any::from("a text on the heap"), Any::from(2i64)]);
    let seen = list.to_vec();
    list.clear();
    assert_eq!(
        repr::repr(seen[0].view()).unwrap(),
        "\"a text on the heap\""
    );
    let mut map = Map::new();
    map.set(1i64, "one").unwrap();
    let before = map.clone();
    map.set(1i64, "two").unwrap();
    let text = |map: &Map| String::try_from(&map.at(1i64.into()).unwrap()).unwrap();
    assert_eq!((text(&before), text(&map)), ("one".into(), "two".into()));
    let dict = Dict::new();
    dict.set(1i64, "one").unwrap();
    let pairs = dict.to_vec();
    assert!(dict.remove(1i64.into()).unwrap());
    assert_eq!((pairs.len(), dict.len()), (1, 0));
}

#[test]
fn a_list_is_shared_by_threads() {
    let shared = Any::from(List::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let shared = &shared;
            scope.spawn(move || {
                let list: List = cast(shared.view()).unwrap();
                for at in 0..20_000 {
                    list.push(Any::from("a text that lies on the heap"));
                    match (at + thread) % 8 {
                        0 => list.clear(),
                        1 => drop(list.insert(0, vec![Any::from("another text on the heap")])),
                        2 => drop(list.remove(0, 1)),
                        3 => drop(list.set(0, Any::from("one more text on the heap"))),
                        4 => list.reverse(),
                        5 => drop(object::sequence_of(shared.view())),
                        6 => drop(list.try_reserve(at % 100)),
                        _ => drop(cast::<Array>(shared.view()).unwrap()),
                    }
                    if let Ok(found) = list.at(0) {
                        assert!(String::try_from(&found).unwrap().ends_with("the heap"));
                    }
                }
            });
        }
    });
    let list: List = cast(shared.view()).unwrap();
    list.clear();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let list: List = cast(shared.view()).unwrap();
                (0..5_000i64).for_each(|at| list.push(at.into()));
            });
        }
    });
    assert_eq!(list.len(), 20_000, "no element was lost");
}

#[test]
fn a_dict_is_shared_by_threads() {
    let shared = Any::from(Dict::new());
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let shared = &shared;
            scope.spawn(move || {
                let dict: Dict = cast(shared.view()).unwrap();
                let next = call("ffi.DictForwardIterFunctor", &[shared.view()]).unwrap();
                let next: Function = cast(next.view()).unwrap();
                for at in 0..20_000i64 {
                    let key = at % 100;
                    dict.set(key, "a text that lies on the heap").unwrap();
                    match (at + thread) % 30 {
                        0 => dict.clear().unwrap(),
                        1..10 => drop(dict.remove(key.into()).unwrap()),
                        10 => drop(dict.to_vec()),
                        11 => drop(cast::<Map>(shared.view()).unwrap()),
                        12 => assert!(dict.len() <= 100),
                        _ => drop([next.call((0i64,)), next.call((2i64,))]),
                    }
                    if let Some(found) = dict.get(key.into()).unwrap() {
                        assert!(String::try_from(&found).unwrap().ends_with("the heap"));
                    }
                }
            });
        }
    });
    let dict: Dict = cast(shared.view()).unwrap();
    dict.clear().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let shared = &shared;
            scope.spawn(move || {
                let dict: Dict = cast(shared.view()).unwrap();
                for at in 0..5_000i64 {
                    dict.set(at * 4 + thread, at).unwrap();
                }
            });
        }
    });
    assert_eq!(dict.len(), 20_000, "no pair was lost");
}

#[test]
fn a_tensor_that_is_filled_is_read_whole() {
    let tensor = Any::from(Tensor::empty(&[4096], Dtype::UINT8).unwrap().into_object());
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let tensor = &tensor;
            scope.spawn(move || {
                let tensor: Tensor = cast(tensor.view()).unwrap();
                for _ in 0..500 {
                    tensor.fill(&[thread; 4096]).unwrap();
                    let bytes = tensor.to_bytes().unwrap();
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                }
            });
        }
    });
}

/// Makes keys of a new type that all have one hash. `equal` compares them.
fn keys(name: &str, count: usize, equal: Function) -> Vec<Any> {
    object::init();
    let own = types::register(name, index::OBJECT).unwrap();
    let args = [own.into(), 24i64.into()];
    call("ffi._PyClassRegisterTypeAttrColumns", &args).unwrap();
    let hash = Function::from_typed(|_: Any| 7i64);
    types::set_attr(own, "__any_hash__", hash.into()).unwrap();
    types::set_attr(own, "__any_equal__", equal.into()).unwrap();
    (0..count)
        .map(|_| construct::make_object(&[own.into()]).unwrap())
        .collect()
}

#[test]
fn the_equality_of_a_key_changes_no_dict_that_looks_it_up() {
    let dict = Dict::new();
    let inside = dict.clone();
    let equal = Function::from_packed(move |args| {
        for error in [
            inside.clear().unwrap_err(),
            inside.set(1i64, 2i64).unwrap_err(),
            inside.remove(1i64.into()).unwrap_err(),
        ] {
            assert_eq!(error.kind(), "RuntimeError");
        }
        // Reading is allowed, because nothing changes before the last comparison.
        assert_eq!(inside.to_vec().len(), inside.len());
        assert!(inside.get(1i64.into()).unwrap().is_none());
        Ok(Any::from(repr::repr(args[0])? == repr::repr(args[1])?))
    });
    let keys = keys("test.sound.Emptying", 20, equal);
    for key in &keys {
        dict.set(key.clone(), 1i64).unwrap();
    }
    assert!(dict.len() <= 20);
    for key in &keys {
        dict.remove(key.view()).unwrap();
    }
    assert!(dict.is_empty());
    dict.set(1i64, 2i64).unwrap();
    assert_eq!(dict.len(), 1);
}

/// A key without hooks enters a dict under the lock alone, but not while another thread compares keys in it.
#[test]
fn keys_with_hooks_and_keys_without_share_a_dict() {
    let dict = Dict::new();
    let equal = Function::from_packed(|_| {
        std::thread::yield_now();
        Ok(Any::from(false))
    });
    let keys = keys("test.sound.Mixed", 8, equal);
    let rounds = 2_000;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (dict, keys) = (&dict, &keys);
            scope.spawn(move || {
                for at in 0..rounds {
                    if thread < 2 {
                        let key = &keys[thread * 4 + at % 4];
                        dict.set(key.clone(), "a text that lies on the heap")
                            .unwrap();
                        assert!(dict.get(key.view()).unwrap().is_some());
                        if at % 3 == 0 || at + 4 >= rounds {
                            assert!(dict.remove(key.view()).unwrap());
                        }
                    } else {
                        dict.set((at * 2 + thread) as i64, at as i64).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(dict.len(), 2 * rounds, "no pair was lost");
    for at in 0..rounds * 2 {
        let found = dict.get((at as i64 + 2).into()).unwrap().unwrap();
        assert_eq!(i64::try_from(&found).unwrap(), at as i64 / 2);
    }
}

#[test]
fn an_error_of_a_hook_gets_out_of_the_dict() {
    let dict = Dict::new();
    let inside = dict.clone();
    let equal = Function::from_packed(move |_| inside.clear().map(|()| Any::from(false)));
    let keys = keys("test.sound.Failing", 2, equal);
    dict.set(keys[0].clone(), 1i64).unwrap();
    let error = dict.set(keys[1].clone(), 1i64).unwrap_err();
    assert_eq!(error.kind(), "RuntimeError");
    assert!(error.message().contains("the dict changes"), "{error}");
    dict.clear().unwrap();
    assert!(dict.is_empty());
}

#[test]
fn dicts_whose_keys_look_into_each_other_wait_for_nothing_that_waits() {
    let (left, right) = (Dict::new(), Dict::new());
    let both = [left.clone(), right.clone()];
    let equal = Function::from_packed(move |_| {
        for dict in &both {
            // The call succeeds or finds the dict in use, but does not wait for ever.
            let _ = dict.set(5i64, "a text that lies on the heap");
            let _ = dict.get(5i64.into())?;
        }
        Ok(Any::from(false))
    });
    let keys = keys("test.sound.Crossing", 8, equal);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (keys, dicts) = (&keys, [&left, &right]);
            scope.spawn(move || {
                for round in 0..300 {
                    let dict = dicts[(thread + round) % 2];
                    let key = &keys[(thread * 3 + round) % keys.len()];
                    let _ = dict.set(key.clone(), 1i64);
                    let _ = dict.remove(key.view());
                    let _ = dicts[(thread + round + 1) % 2].get(key.view());
                }
            });
        }
    });
    left.clear().unwrap();
    right.clear().unwrap();
}
