//! NaN values, which are equal and have one hash.
#![cfg(feature = "frontend")]

use tvmspec::function::registry;
use tvmspec::object::Array;
use tvmspec::value::{Any, AnyView};

fn call(name: &str, args: &[&Any]) -> Any {
    let views: Vec<AnyView<'_>> = args.iter().map(|arg| arg.view()).collect();
    registry::require(name)
        .unwrap()
        .call_packed(&views)
        .unwrap()
}

/// OBJ-14: NaN equals NaN, even with other bits, and equal values have the same hash.
#[test]
fn nan_equals_nan() {
    tvmspec::object::init();
    let none = [
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff8_0000_0000_0001),
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0xffff_ffff_ffff_ffff),
    ];
    let of = |value: f64| {
        let own = Any::from(value);
        let inside = Any::from(Array::new(vec![own.clone()]));
        [own, inside]
    };
    let off = Any::from(false);
    for place in 0..2 {
        let first = &of(none[0])[place];
        for number in none {
            let other = &of(number)[place];
            let equal = call("ffi.RecursiveEq", &[first, other]);
            assert!(bool::try_from(&equal).unwrap(), "{:#x}", number.to_bits());
            let hash = |value| i64::try_from(&call("ffi.RecursiveHash", &[value])).unwrap();
            assert_eq!(hash(first), hash(other), "{:#x}", number.to_bits());
            let equal = call("ffi.StructuralEqual", &[first, other, &off, &off]);
            assert!(bool::try_from(&equal).unwrap(), "{:#x}", number.to_bits());
            let hash =
                |value| i64::try_from(&call("ffi.StructuralHash", &[value, &off, &off])).unwrap();
            assert_eq!(hash(first), hash(other), "{:#x}", number.to_bits());
        }
    }
}
