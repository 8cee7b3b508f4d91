//! Cells, their schemas, and the indices of types, through Rust and C.
#![cfg(feature = "frontend")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "calls of C functions with texts and cells that live for the call"
)]

use tvmspec::capi::ffi::types::TVMFFITypeGetOrAllocIndex;
use tvmspec::function::{Function, registry};
use tvmspec::value::{Any, AnyView, ByteArray, Bytes, cast, index, types};

#[test]
fn no_cells_are_at_any_address() {
    let cells = [Any::from(1i64), Any::from(2i64)];
    let first = cells[0].as_raw() as *const _;
    for (at, count, seen) in [
        (std::ptr::null(), 0, 0),
        (std::ptr::null(), 1, 0),
        (std::ptr::null(), 3, 0),
        (first, 0, 0),
        (first, 1, 1),
        (first, 2, 2),
    ] {
        let view = unsafe { AnyView::slice(at, count) };
        assert_eq!(view.len(), seen, "{at:?}, {count}");
        for (view, number) in view.iter().zip(1i64..) {
            assert_eq!(cast::<i64>(*view).unwrap(), number);
        }
    }
    // A slice without elements ignores its address.
    let odd = std::ptr::without_provenance(3);
    assert_ne!(unsafe { AnyView::slice(odd, 0) }.as_ptr().cast(), odd);
}

#[test]
fn narrow_floats_are_arguments() {
    let half = Function::from_typed(|number: f32| number / 2.0);
    for (value, halved) in [
        (Any::from(3.0), 1.5),
        (Any::from(3i64), 1.5),
        (Any::from(true), 0.5),
    ] {
        let result = half.call_packed(&[value.view()]).unwrap();
        assert_eq!(f64::try_from(&result).unwrap(), halved);
    }
    assert_eq!(
        half.call_packed(&[Any::from("3").view()])
            .unwrap_err()
            .kind(),
        "TypeError"
    );
    // The result is as close as 24 bits allow.
    let same = Function::from_typed(|number: f32| number);
    let tenth = same.call((0.1,)).unwrap();
    assert_eq!(f64::try_from(&tenth).unwrap(), f64::from(0.1f32));
}

#[test]
fn a_typed_function_says_what_it_takes() {
    fn schema<P: 'static, F: tvmspec::function::TypedFn<P>>(name: &'static str, body: F) -> String {
        registry::register_typed(name, body).unwrap();
        registry::details(name).unwrap().metadata
    }
    let plain = |name: &str| format!(r#"{{\"type\":\"{name}\"}}"#);
    // The type of the result comes first, then those of the parameters.
    let of = |types: &[&str]| {
        let types: Vec<String> = types.iter().map(|name| plain(name)).collect();
        let (result, params) = (&types[0], types[1..].join(","));
        format!(
            r#"{{"type_schema":"{{\"type\":\"ffi.Function\",\"named_args\":{{\"return\":[{result}],\"params\":[{params}]}}}}"}}"#
        )
    };
    let of_vec: fn(Vec<u8>) = |_| ();
    assert_eq!(schema("t.vec", of_vec), of(&["None", "ffi.Bytes"]));
    let of_two: fn(Vec<u8>, Bytes) -> Bytes = |_, own| own;
    assert_eq!(
        schema("t.two", of_two),
        of(&["ffi.Bytes", "ffi.Bytes", "ffi.Bytes"])
    );
    let of_float: fn(f32) -> f32 = |number| number;
    assert_eq!(schema("t.float", of_float), of(&["float", "float"]));
}

/// Returns the index that a C caller gets for a type, or -1.
fn asked(key: &str, fixed: i32, slots: i32, parent: i32) -> i32 {
    let key = ByteArray::of(key.as_bytes());
    let depth = if parent == index::OBJECT { 1 } else { 2 };
    unsafe { TVMFFITypeGetOrAllocIndex(&key, fixed, depth, slots, 1, parent) }
}

#[test]
fn an_index_that_a_type_states_is_free_and_behind_its_parent() {
    const OBJECT: i32 = index::OBJECT;
    let parent = asked("types.Parent", -1, 4, OBJECT);
    assert!(parent >= index::DYNAMIC_BEGIN);
    // The caller names one of the indices that are reserved for children, and no other type gets it.
    let second = parent + 2;
    assert_eq!(asked("types.Second", second, 0, parent), second);
    assert_eq!(asked("types.Taken", second, 0, parent), -1);
    assert_eq!(asked("types.First", -1, 0, parent), parent + 1);
    assert_eq!(asked("types.Third", -1, 0, parent), -1);
    assert_eq!(types::key_of(second), "types.Second");
    // These indices are below the parent, or the parent's own.
    for fixed in [parent - 1, parent] {
        assert_eq!(asked("types.Below", fixed, 0, parent), -1, "{fixed}");
    }
    // These indices are larger than any index that exists.
    for fixed in [1 << 20, (1 << 20) + 1, i32::MAX] {
        assert_eq!(asked("types.Beyond", fixed, 0, OBJECT), -1, "{fixed}");
        assert!(types::info(fixed).is_none());
    }
}

#[test]
fn a_registered_type_sets_no_index_aside() {
    // Other tests take indices at the same time, but at least one pair of neighbours belongs only to this test.
    let neighbours = (0..50).any(|at| {
        let one = types::register(&format!("types.Near{at}"), index::OBJECT).unwrap();
        let two = types::register(&format!("types.Next{at}"), index::OBJECT).unwrap();
        two == one + 1
    });
    assert!(neighbours);
}
