//! Arrays and lists, the functions that read them, and borrowed content while they change.

use super::{heap_text, int};
use tvmspec::function::registry;
use tvmspec::object::{Array, Dict, List, Map, PairIter, Pairs, lookup_in, pairs_of, sequence_of};
use tvmspec::value::{Any, AnyView};

#[test]
fn builtins_that_look_into_a_container_take_its_own_type_alone() {
    tvmspec::object::init();
    let containers = [
        ("Array", Any::from(Array::new(vec![int(7)]))),
        ("List", List::new(vec![int(7)]).into()),
        ("Map", Map::new().into()),
        ("Dict", Dict::new().into()),
    ];
    for (own, names) in [
        ("Array", &["Size", "GetItem", "Contains"][..]),
        ("List", &["Size", "GetItem", "Contains"]),
        (
            "Map",
            &["Size", "Count", "GetItemOrMissing", "ForwardIterFunctor"],
        ),
        (
            "Dict",
            &["Size", "Count", "GetItemOrMissing", "ForwardIterFunctor"],
        ),
    ] {
        for name in names {
            let function = registry::require(&format!("ffi.{own}{name}")).unwrap();
            for (kind, value) in &containers {
                let zero = int(0);
                let args = [value.view(), zero.view()];
                let alone = matches!(*name, "Size" | "ForwardIterFunctor");
                let called = function.call_packed(&args[..if alone { 1 } else { 2 }]);
                match called {
                    Ok(_) => assert_eq!(kind, &own, "{name}"),
                    Err(error) => {
                        assert_ne!(kind, &own, "{name}: {error}");
                        assert_eq!(error.kind(), "TypeError", "{own}{name} of {kind}");
                    }
                }
            }
        }
    }
    // These functions change a list, and accept values that convert to a list.
    let reverse = registry::require("ffi.ListReverse").unwrap();
    assert!(reverse.call_packed(&[containers[0].1.view()]).is_ok());
}

#[test]
fn a_range_beyond_a_list_is_an_index_error_that_names_it() {
    let list = List::new(vec![int(1), int(2)]);
    for (start, stop) in [(0, 3), (-1, 1), (2, 1), (i64::MAX, i64::MIN)] {
        let error = list.remove(start, stop).unwrap_err();
        let message = format!("Erase range [{start}, {stop}) out of bounds 2");
        assert_eq!(
            (error.kind().as_str(), error.message()),
            ("IndexError", &*message)
        );
    }
    let error = list.insert(3, vec![int(3)]).unwrap_err();
    assert_eq!(error.message(), "Index 3 out of bounds [0, 2]");
    assert_eq!(list.len(), 2);
}

#[test]
fn room_that_no_memory_has_is_an_error() {
    tvmspec::object::init();
    let reserve = registry::require("ffi.ListReserve").unwrap();
    let list = List::new(vec![int(1)]);
    let own = Any::from(list.clone());
    // The room in bytes wraps to a small number, or is larger than the memory of any machine.
    for count in [(1i64 << 60) + 1, 1 << 62, i64::MAX, 1 << 59, 1 << 55] {
        let error = reserve
            .call_packed(&[own.view(), count.into()])
            .unwrap_err();
        // The message was observed on the wheel of tvm-ffi 0.1.15.post2 for counts that do not wrap.
        let expected = (error.kind().as_str(), error.message());
        assert_eq!(expected, ("InternalError", "std::bad_alloc"), "{count}");
    }
    reserve.call_packed(&[own.view(), (-1i64).into()]).unwrap();
    for number in 2..100 {
        list.push(int(number));
    }
    assert_eq!(list.len(), 99);
    let panics = |make: fn()| assert!(std::panic::catch_unwind(make).is_err());
    panics(|| List::new(vec![]).reserve((1 << 60) + 1));
    panics(|| drop(List::with_capacity(1 << 60)));
    panics(|| drop(Array::new((0..1usize << 60).map(|_| int(0)))));
}

#[test]
fn arrays_and_lists() {
    let array = Array::new(vec![int(1), Any::from("two")]);
    assert_eq!(array.len(), 2);
    assert_eq!(array.at(2).unwrap_err().kind(), "IndexError");
    assert_eq!(
        array.at(-1).unwrap_err().message(),
        "Index -1 out of bounds 2"
    );
    let list = List::new(vec![]);
    for value in 0..100 {
        list.push(int(value));
    }
    list.insert(50, vec![Any::from("mid"), Any::none()])
        .unwrap();
    assert_eq!(list.remove(0, 50).unwrap().len(), 50);
    assert_eq!(format!("{:?}", list.at(0).unwrap()), "\"mid\"");
    list.reverse();
    list.clear();
    assert!(list.is_empty());
}

#[test]
fn what_is_looked_at_stays_while_a_list_or_a_dict_changes() {
    let list = List::new((0..4).map(heap_text));
    let items = sequence_of(AnyView::from(&list)).unwrap();
    let dict = Dict::new();
    for number in 0..10 {
        dict.set(number, heap_text(number)).unwrap();
    }
    let pairs: Pairs<'_> = pairs_of(AnyView::from(&dict)).unwrap();
    let found = lookup_in(AnyView::from(&dict), int(3).view())
        .unwrap()
        .unwrap();
    list.clear();
    dict.clear().unwrap();
    for number in 0..100 {
        list.push(int(number));
        dict.set(number, number).unwrap();
    }
    let text = |value: &Any| String::try_from(value).unwrap();
    for (number, item) in items.iter().enumerate() {
        assert_eq!(text(item), text(&heap_text(number)));
    }
    let mut left: PairIter<'_> = pairs.iter();
    assert_eq!(left.by_ref().count(), 10);
    assert!(left.next().is_none());
    for (number, (_, value)) in pairs.iter().enumerate() {
        assert_eq!(text(value), text(&heap_text(number)));
    }
    assert_eq!(text(&found), text(&heap_text(3)));
    assert_eq!((items.len(), pairs.iter().count()), (4, 10));
}
