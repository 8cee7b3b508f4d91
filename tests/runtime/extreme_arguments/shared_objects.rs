//! Values in which an object occurs many times. The work must depend on their size, not on the number of paths (OBJ-14).

use tvmspec::function::registry;
use tvmspec::object::{self, Array, List, Map, recursive, structural};
use tvmspec::value::{Any, AnyView};

/// Returns nested containers, each of which holds the one before it twice. There are 2^levels paths to the innermost one.
fn doubled(levels: usize, pair: fn(Any) -> Any) -> Any {
    let innermost: Any = Array::new([Any::from(0i64)]).into();
    (0..levels).fold(innermost, |inner, _| pair(inner))
}

fn arrays(inner: Any) -> Any {
    Array::new([inner.clone(), inner]).into()
}

#[test]
fn a_shared_container_is_looked_at_once() {
    object::init();
    let pairs: [fn(Any) -> Any; 3] = [
        arrays,
        |inner| List::new([inner.clone(), inner]).into(),
        |inner| {
            Map::from_pairs(vec![(1i64.into(), inner.clone()), (2i64.into(), inner)])
                .unwrap()
                .into()
        },
    ];
    for pair in pairs {
        let (left, right) = (doubled(200, pair), doubled(200, pair));
        let (left, right) = (left.view(), right.view());
        let hash = structural::hash(left, false, false).unwrap();
        assert_eq!(structural::hash(right, true, true).unwrap(), hash);
        assert!(structural::equal(left, right, false, false).unwrap());
        assert!(recursive::equal(left, right).unwrap());
        assert_eq!(
            recursive::hash(left).unwrap(),
            recursive::hash(right).unwrap()
        );
        for (name, args) in [
            (
                "ffi.GetFirstStructuralMismatch",
                &[left, right, true.into(), true.into()][..],
            ),
            ("ffi.DeepCopy", &[left]),
            ("ffi.ToJSONGraphString", &[left, AnyView::none()]),
        ] {
            registry::require(name).unwrap().call_packed(args).unwrap();
        }
    }
    // tvm-ffi 0.1.15 gives this hash, for which it takes 2^20 steps.
    let twenty = doubled(20, arrays);
    assert_eq!(
        structural::hash(twenty.view(), false, false).unwrap() as i64,
        -5864897018617450941
    );
}

#[test]
fn a_shared_pair_that_differs_is_found() {
    object::init();
    let other: Any = Array::new([Any::from(1i64)]).into();
    let left = doubled(100, arrays);
    let right = (0..100).fold(other, |inner, _| arrays(inner));
    assert!(!structural::equal(left.view(), right.view(), false, false).unwrap());
    assert!(!recursive::equal(left.view(), right.view()).unwrap());
    assert_eq!(recursive::compare(left.view(), right.view()).unwrap(), -1);
    let args = [left.view(), right.view(), true.into(), true.into()];
    let mismatch = registry::require("ffi.GetFirstStructuralMismatch")
        .unwrap()
        .call_packed(&args)
        .unwrap();
    assert!(mismatch.as_object().is_some());
}
