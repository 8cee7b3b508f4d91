//! Containers and saved objects, from outside.
#![cfg(feature = "frontend")]

#[cfg(feature = "suite")]
#[path = "../support/schema.rs"]
mod schema;

use proptest::prelude::*;
use tvmspec::function::{Function, registry};
use tvmspec::object::hash::{any_hash, hash_bytes};
#[cfg(feature = "suite")]
use tvmspec::object::json_graph::legacy::form::{self, FormError};
use tvmspec::object::json_graph::legacy::{LegacyGraph, LegacyNode};
use tvmspec::object::{
    Array, Dict, List, Map, PairIter, Pairs, Scalar, Shape, Tensor, big_int, lookup_in, pairs_of,
    sequence_of,
};
use tvmspec::release::Release;
use tvmspec::rule::{Findings, Kind};
use tvmspec::tensor::{Dtype, Sizing, TensorRecord};
use tvmspec::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use tvmspec::value::{Any, AnyView, DLDataType, DLDevice, Str, cast};
use tvmspec::wire::Writer;

fn int(value: i64) -> Any {
    Any::from(value)
}

#[test]
fn hashes_of_the_reference() {
    // Observed on the wheel of tvm-ffi 0.1.15.post2.
    for (value, hash) in [
        (int(1), 0x9e37_79fb),
        (Any::from("k0"), 0x9e37_ba35),
        (Any::from("abcdefgh"), 0xd369_b977),
        (Any::from(""), 0x9e37_8a48),
        (Any::from(1.5), 0x3ff8_0000_9e37_7a7a),
    ] {
        assert_eq!(any_hash(value.view()).unwrap(), hash, "{value:?}");
    }
    assert_eq!(hash_bytes(b""), 0);
}

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
                let called = function.call(&args[..if alone { 1 } else { 2 }]);
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
    // These change a list, and take what converts to one.
    let reverse = registry::require("ffi.ListReverse").unwrap();
    assert!(reverse.call(&[containers[0].1.view()]).is_ok());
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
    // Room for so many bytes that they wrap to few, and for more than any machine has.
    for count in [(1i64 << 60) + 1, 1 << 62, i64::MAX, 1 << 59, 1 << 55] {
        let error = reserve.call(&[own.view(), count.into()]).unwrap_err();
        // Observed on the wheel of tvm-ffi 0.1.15.post2 for what does not wrap.
        let expected = (error.kind().as_str(), error.message());
        assert_eq!(expected, ("InternalError", "std::bad_alloc"), "{count}");
    }
    reserve.call(&[own.view(), (-1i64).into()]).unwrap();
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
fn a_search_for_devices_ends_in_what_nests_and_in_what_is_in_itself() {
    tvmspec::object::init();
    let first = registry::require("ffi.ContainerFindFirstNonCPUDevice").unwrap();
    let device = |value: &Any| {
        let found = first.call(&[value.view()]).unwrap();
        cast::<DLDevice>(found.view()).unwrap()
    };
    let own = List::new(vec![]);
    own.push(own.clone().into());
    assert_eq!(device(&own.clone().into()), DLDevice::CPU);
    own.clear();
    // Each holds the one before twice: as many ways as there are atoms, and 100 lists.
    let mut twice = Any::from(List::new(vec![]));
    for _ in 0..100 {
        twice = Any::from(List::new(vec![twice.clone(), twice]));
    }
    assert_eq!(device(&twice), DLDevice::CPU);

    let elsewhere = |device_id| {
        let dl = DLTensor {
            data: std::ptr::null_mut(),
            device: DLDevice {
                device_type: 2,
                device_id,
            },
            ndim: 0,
            dtype: DLDataType::scalar(2, 32),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        // SAFETY: a tensor of no memory is not read.
        Any::from(unsafe { Tensor::over(dl, Box::new(|| ())) })
    };
    let mut links = vec![List::new(vec![elsewhere(0)])];
    for at in 0..200_000 {
        links.push(List::new(vec![links[at].clone().into(), elsewhere(1)]));
    }
    let all = Any::from(links[200_000].clone());
    assert_eq!(device(&all).device_id, 0, "depth first");
    // From the inside out: the end of a chain of values recurses, here as in the reference.
    for link in links {
        link.clear();
    }
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

fn keys(map: &Map) -> Vec<String> {
    map.iter()
        .map(|(key, _)| String::try_from(key).unwrap())
        .collect()
}

#[test]
fn an_update_moves_a_key_to_the_end_of_a_dense_map_only() {
    let mut map = Map::new();
    for name in ["a", "b", "c"] {
        map.set(name, 1i64).unwrap();
    }
    map.set("a", 2i64).unwrap();
    assert_eq!(keys(&map), ["a", "b", "c"]);
    for name in ["d", "e", "f", "g", "h"] {
        map.set(name, 1i64).unwrap();
    }
    map.set("a", 3i64).unwrap();
    assert_eq!(keys(&map), ["b", "c", "d", "e", "f", "g", "h", "a"]);
}

/// A table that is nearly full has chains that no slot is left for (OBJ-07).
#[test]
fn a_dict_that_is_nearly_full_finds_every_key() {
    const KEYS: i64 = 2_020;
    let mut state = 27_u64;
    for _ in 0..50 {
        let dict = Dict::new();
        let keys = (0..KEYS).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 20) as i64 & !15
        });
        let keys: Vec<i64> = keys.collect();
        for (at, key) in keys.iter().enumerate() {
            dict.set(*key, at as i64).unwrap();
        }
        for (at, key) in keys.iter().enumerate() {
            let found = dict.get((*key).into()).unwrap().unwrap();
            assert_eq!(cast::<i64>(found.view()).unwrap(), at as i64);
        }
    }
}

#[test]
fn a_map_copies_when_shared_and_a_dict_does_not() {
    let mut map = Map::new();
    map.set(1i64, 1i64).unwrap();
    let before = map.clone();
    map.set(2i64, 2i64).unwrap();
    assert_eq!((before.len(), map.len()), (1, 2));
    let dict = Dict::new();
    let same = dict.clone();
    for value in 0..50i64 {
        dict.set(value, value).unwrap();
    }
    assert_eq!(same.len(), 50);
}

proptest! {
    /// Against a model: pairs in a vector, updates in place while there are at most four, at the end afterwards.
    #[test]
    fn dict_equals_the_naive_model(steps in proptest::collection::vec((0u8..3, 0i64..60), 1..300)) {
        let dict = Dict::new();
        let mut model: Vec<(i64, i64)> = Vec::new();
        let mut dense = false;
        let mut slots = 2;
        for (count, (what, key)) in (0i64..).zip(steps) {
            let known = model.iter().position(|(known, _)| *known == key);
            if what == 2 {
                prop_assert_eq!(dict.remove(int(key).view()).unwrap(), known.is_some());
                if let Some(at) = known {
                    model.remove(at);
                }
                continue;
            }
            if !dense && model.len() == 4 && slots == 4 {
                dense = true;
            }
            match known {
                Some(at) if !dense => model[at].1 = count,
                Some(at) => {
                    model.remove(at);
                    model.push((key, count));
                }
                None => {
                    model.push((key, count));
                    if model.len() > slots {
                        slots = 4;
                    }
                }
            }
            dict.set(key, count).unwrap();
        }
        let pairs = dict.to_vec();
        let pairs: Vec<(i64, i64)> = pairs
            .iter()
            .map(|(key, value)| (i64::try_from(key).unwrap(), i64::try_from(value).unwrap()))
            .collect();
        prop_assert_eq!(&pairs, &model);
        for (key, value) in model {
            prop_assert_eq!(i64::try_from(&dict.at(int(key).view()).unwrap()).unwrap(), value);
        }
    }

    #[test]
    fn big_integers_round_trip_as_text(words in proptest::collection::vec(any::<i64>(), 1..5)) {
        let value = big_int::from_words(&words);
        let own = big_int::words_of(&value.view()).unwrap().to_vec();
        let text = big_int::to_decimal(&own);
        let back = big_int::from_decimal(&text).unwrap();
        let back = big_int::words_of(&back.view()).unwrap().to_vec();
        prop_assert_eq!(back, own);
    }
}

#[test]
fn a_number_of_a_file_has_a_bounded_number_of_digits() {
    tvmspec::object::init();
    let read = |digits: usize| {
        let text = "9".repeat(digits);
        let graph =
            format!(r#"{{"root_index":0,"nodes":[{{"type":"ffi.BigInt","data":"{text}"}}]}}"#);
        let value = tvmspec::object::json_graph::graph::decode_text(graph.as_bytes())?;
        let words = big_int::words_of(&value.view())
            .unwrap_or_default()
            .to_vec();
        Ok::<_, tvmspec::function::Error>(big_int::to_decimal(&words) == text)
    };
    // Around the digits that are read at once, and at the bound.
    for digits in [1, 18, 19, 20, 37, 38, 39, 100_000] {
        assert!(read(digits).unwrap(), "{digits}");
    }
    let error = read(100_001).unwrap_err();
    let broken = error.violation().unwrap();
    assert_eq!((broken.rule().id(), broken.kind()), ("OBJ-10", Kind::Limit));
}

#[test]
fn a_tensor_without_elements_has_extents_in_any_order() {
    let huge = 1_i64 << 40;
    for shape in [[0, huge, huge], [huge, 0, huge], [huge, huge, 0]] {
        let tensor = Tensor::empty(&shape, DLDataType::scalar(2, 32)).unwrap();
        assert_eq!(tensor.shape(), shape);
        assert!(tensor.to_vec::<f32>().unwrap().is_empty());
        assert!(Tensor::from_slice::<f32>(&[], &shape).is_ok());
    }
}

/// `value` at `steps`, each an index of a sequence.
fn at(value: &Any, steps: usize) -> Any {
    (0..steps).fold(value.clone(), |value, _| {
        sequence_of(value.view()).unwrap()[0].clone()
    })
}

#[test]
fn a_deep_copy_has_no_original_of_a_container_in_itself() {
    tvmspec::object::init();
    let copy = registry::lookup("ffi.DeepCopy").unwrap();
    let place = |value: &Any| value.as_object().unwrap().as_ptr();
    // [[[..]]]: an array, a list and an array, and then the first one again.
    let list = List::new(Vec::new());
    let first = Any::from(Array::new(vec![list.clone().into()]));
    let inner = Any::from(Array::new(vec![first.clone()]));
    list.push(inner.clone());
    // From each of the three, and from a fourth outside that reaches the last array by two ways.
    let outside = Array::new(vec![first.clone(), inner.clone()]).into();
    let originals = [&first, &inner, &list.clone().into()].map(place);
    for from in [&first, &inner, &list.clone().into(), &outside] {
        let copied = copy.call(&[from.view()]).unwrap();
        for steps in 0..7 {
            let met = at(&copied, steps);
            assert!(!originals.contains(&place(&met)), "{steps}");
        }
        // Three steps lead to where they began; from outside, to the array that is the second element.
        let again = match place(from) == place(&outside) {
            true => sequence_of(copied.view()).unwrap()[1].clone(),
            false => copied.clone(),
        };
        assert_eq!(place(&at(&copied, 3)), place(&again));
        // What contains itself would never end.
        let lists = (0..3).filter_map(|steps| cast::<List>(at(&copied, steps).view()).ok());
        let lists: Vec<List> = lists.collect();
        lists.iter().for_each(List::clear);
    }
    list.clear();
}

#[test]
fn tensors_go_out_and_in_through_dlpack() {
    let tensor = Tensor::empty(&[2, 3], DLDataType::scalar(2, 32)).unwrap();
    assert_eq!(tensor.to_bytes().unwrap().len(), 24);
    tensor.fill(&[7; 24]).unwrap();
    let out: *mut DLManagedTensorVersioned = tensor.to_dlpack_versioned();
    let old: *mut DLManagedTensor = tensor.to_dlpack();
    drop(tensor);
    // SAFETY: a producer of DLPack 1.x returns a struct that is readable until its deleter is called.
    let version = unsafe { (*out).version };
    assert_eq!(version, DLPackVersion { major: 1, minor: 3 });
    // SAFETY: `out` is new, and nothing else owns it.
    let back = unsafe { Tensor::from_dlpack_versioned(out, 0, true) }.unwrap();
    // SAFETY: `old` is new, and nothing else owns it.
    let from_old = unsafe { Tensor::from_dlpack(old, 0, true) }.unwrap();
    for back in [&back, &from_old] {
        assert_eq!(back.shape(), [2, 3]);
        assert_eq!(back.to_bytes().unwrap(), [7; 24]);
    }
    // Both are the memory of the first.
    back.fill(&[8; 24]).unwrap();
    assert_eq!(from_old.to_bytes().unwrap(), [8; 24]);
    assert_eq!(Shape::new(&[1, 2]).as_slice(), [1, 2]);
}

#[test]
fn a_read_only_tensor_is_not_written_to() {
    let original = Tensor::from_slice(&[1_u8, 2, 3], &[3]).unwrap();
    let exported = original.to_dlpack_versioned();
    // SAFETY: a producer of DLPack 1.x returns a struct that is its consumer's until the deleter is called.
    unsafe { (*exported).flags |= 1 };
    // SAFETY: `exported` is new, and nothing else owns it.
    let imported = unsafe { Tensor::from_dlpack_versioned(exported, 0, true) }.unwrap();
    assert!(imported.is_read_only() && !original.is_read_only());
    assert_eq!(imported.to_vec::<u8>().unwrap(), [1, 2, 3]);
    let error = imported.fill(&[0; 3]).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(error.violation().unwrap().kind(), Kind::Unsupported);
    assert_eq!(original.to_vec::<u8>().unwrap(), [1, 2, 3]);

    // The export has the flag again.
    let again = imported.to_dlpack_versioned();
    // SAFETY: as above.
    let flags = unsafe { (*again).flags };
    assert_eq!(flags, 1);
    // SAFETY: `again` is new, and nothing else owns it.
    let again = unsafe { Tensor::from_dlpack_versioned(again, 0, true) }.unwrap();
    assert!(again.is_read_only());
}

#[test]
fn a_description_without_extents_is_not_imported() {
    let tensor = Tensor::from_slice(&[1_u8, 2], &[2]).unwrap();
    for ndim in [1, -1] {
        let exported = tensor.to_dlpack_versioned();
        // SAFETY: a producer of DLPack 1.x returns a struct that is its consumer's until the deleter is called.
        let dl = unsafe { &mut (*exported).dl_tensor };
        (dl.ndim, dl.shape) = (ndim, std::ptr::null_mut());
        // SAFETY: `exported` is new, and nothing else owns it.
        let error = unsafe { Tensor::from_dlpack_versioned(exported, 0, false) }.unwrap_err();
        assert!(error.to_string().contains("no extents"), "{error}");
        // SAFETY: the same; it is still the caller's.
        let delete = unsafe { (*exported).deleter }.unwrap();
        // SAFETY: it is called once.
        unsafe { delete(exported) };
    }
}

fn round_trips<T: Scalar + PartialEq + std::fmt::Debug>(elements: [T; 6], dtype: &str) {
    let tensor = Tensor::from_slice(&elements, &[3, 1, 2]).unwrap();
    assert_eq!(tensor.dl().dtype.to_string(), dtype);
    assert_eq!(tensor.shape(), [3, 1, 2]);
    assert_eq!(tensor.nbytes(), size_of_val(&elements));
    assert_eq!(tensor.to_vec::<T>().unwrap(), elements);
    let expected = format!("Tensor {{ shape: [3, 1, 2], dtype: {dtype}, device: cpu:0 }}");
    assert_eq!(format!("{tensor:?}"), expected);
}

#[test]
fn tensors_come_from_slices_and_go_to_vectors() {
    round_trips([i8::MIN, -1, 0, 1, 2, i8::MAX], "int8");
    round_trips([i16::MIN, -1, 0, 1, 2, i16::MAX], "int16");
    round_trips([i32::MIN, -1, 0, 1, 2, i32::MAX], "int32");
    round_trips([i64::MIN, -1, 0, 1, 2, i64::MAX], "int64");
    round_trips([0, 1, 2, 3, 4, u8::MAX], "uint8");
    round_trips([0, 1, 2, 3, 4, u16::MAX], "uint16");
    round_trips([0, 1, 2, 3, 4, u32::MAX], "uint32");
    round_trips([0, 1, 2, 3, 4, u64::MAX], "uint64");
    round_trips(
        [f32::MIN, -0.0, 0.5, 1.0, f32::MAX, f32::INFINITY],
        "float32",
    );
    round_trips(
        [f64::MIN, -0.0, 0.5, 1.0, f64::MAX, f64::INFINITY],
        "float64",
    );
    round_trips(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.5].map(half::f16::from_f32),
        "float16",
    );
    round_trips(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.5].map(half::bf16::from_f32),
        "bfloat16",
    );
    round_trips([true, false, true, true, false, false], "bool");
}

#[test]
fn elements_of_another_type_count_or_device_are_rejected() {
    let kinds = |error: tvmspec::function::Error| {
        (error.kind().as_str().to_owned(), error.message().to_owned())
    };
    let tensor = Tensor::from_slice(&[1_i32, 2], &[2]).unwrap();
    let (kind, message) = kinds(tensor.to_vec::<f32>().unwrap_err());
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("TypeError", "elements of `int32` are read as `float32`")
    );
    assert!(tensor.to_vec::<u32>().is_err() && tensor.to_vec::<i64>().is_err());
    let lanes = Tensor::empty(&[2], "float32x4".parse().unwrap()).unwrap();
    assert!(lanes.to_vec::<f32>().is_err());
    for shape in [&[3][..], &[1], &[], &[-1, -2], &[i64::MAX, i64::MAX], &[0]] {
        let (kind, message) = kinds(Tensor::from_slice(&[1_u8, 2], shape).unwrap_err());
        assert_eq!(kind, "ValueError");
        assert_eq!(
            message,
            format!("2 elements for a tensor of shape {shape:?}")
        );
    }
    // No element, and one without an axis.
    let none = Tensor::from_slice::<f64>(&[], &[4, 0]).unwrap();
    assert!(none.to_vec::<f64>().unwrap().is_empty());
    assert_eq!(
        Tensor::from_slice(&[7_u16], &[])
            .unwrap()
            .to_vec::<u16>()
            .unwrap(),
        [7]
    );
    // Any byte but 0 is true in compiled code.
    let bools = Tensor::empty(&[3], "bool".parse().unwrap()).unwrap();
    bools.fill(&[0, 1, 255]).unwrap();
    assert_eq!(bools.to_vec::<bool>().unwrap(), [false, true, true]);
}

/// A tensor over `numbers` with this description.
fn over(numbers: &[i16], device: DLDevice, shape: &[i64], strides: &[i64], skipped: u64) -> Tensor {
    let mut numbers = numbers.to_vec();
    let (mut shape, mut strides) = (shape.to_vec(), strides.to_vec());
    let dl = DLTensor {
        data: numbers.as_mut_ptr().cast(),
        device,
        ndim: shape.len() as i32,
        dtype: DLDataType::scalar(0, 16),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: skipped,
    };
    // SAFETY: `finish` holds the numbers; the description is inside of them, as each caller counts.
    unsafe { Tensor::over(dl, Box::new(move || drop(numbers))) }
}

#[test]
fn elements_are_read_by_their_strides() {
    let numbers: Vec<i16> = (0..24).collect();
    let rows = over(&numbers, DLDevice::CPU, &[2, 3], &[12, 4], 2);
    assert_eq!(rows.to_vec::<i16>().unwrap(), [1, 5, 9, 13, 17, 21]);
    assert!(rows.to_bytes().is_err(), "it is not compact");
    let transposed = over(&numbers, DLDevice::CPU, &[4, 6], &[1, 4], 0);
    let expected: Vec<i16> = (0..4)
        .flat_map(|row| (0..6).map(move |column| row + 4 * column))
        .collect();
    assert_eq!(transposed.to_vec::<i16>().unwrap(), expected);
    let backwards = over(&numbers, DLDevice::CPU, &[4], &[-2], 46);
    assert_eq!(backwards.to_vec::<i16>().unwrap(), [23, 21, 19, 17]);
    let repeated = over(&numbers, DLDevice::CPU, &[2, 2], &[0, 1], 0);
    assert_eq!(repeated.to_vec::<i16>().unwrap(), [0, 1, 0, 1]);
    let empty = over(&numbers, DLDevice::CPU, &[2, 0, 3], &[9, 9, 9], 0);
    assert!(empty.to_vec::<i16>().unwrap().is_empty());
    // A row repeated more often than memory has room for, and than can be counted.
    let huge = over(&numbers, DLDevice::CPU, &[1 << 60, 4], &[0, 1], 0);
    let error = huge.to_vec::<i16>().unwrap_err();
    assert!(error.message().contains("no room in memory"), "{error}");
    let uncounted = over(&numbers, DLDevice::CPU, &[1 << 62, 4], &[0, 1], 0);
    assert!(uncounted.to_vec::<i16>().is_err());
    let cuda = DLDevice {
        device_type: 2,
        device_id: 1,
    };
    for strides in [[3, 1], [1, 2]] {
        let elsewhere = over(&numbers, cuda, &[2, 3], &strides, 0);
        let error = elsewhere.to_vec::<i16>().unwrap_err();
        assert!(error.message().contains("on the CPU"), "{error}");
        assert!(
            format!("{elsewhere:?}").contains("device: cuda:1"),
            "{elsewhere:?}"
        );
    }
}

#[test]
fn a_tensor_without_memory_is_an_error_and_no_end() {
    let float = DLDataType::scalar(2, 32);
    // More than the addresses of any machine, and more than can be counted.
    for shape in [&[1 << 59][..], &[1 << 48, 4], &[i64::MAX], &[i64::MAX, 9]] {
        let error = Tensor::empty(shape, float).map(drop).unwrap_err();
        assert!(error.message().contains("a tensor of shape"), "{error}");
    }
    let negative = Tensor::empty(&[2, -1], float).map(drop).unwrap_err();
    let expected = "a tensor of shape [2, -1] has a negative extent";
    assert!(negative.message().contains(expected), "{negative}");
    assert_eq!(float.bytes_of(i64::MAX as u64), u64::MAX);
    assert_eq!(DLDataType::scalar(1, 4).bytes_of(u64::MAX), 1 << 63);
}

#[test]
fn strings_are_equal_whatever_their_form() {
    let mut map = Map::new();
    map.set(Str::new("abc"), 1i64).unwrap();
    let key = Any::from(String::from("abc"));
    assert!(map.get(key.view()).unwrap().is_some());
    assert!(map.get(Any::from(1i64).view()).unwrap().is_none());
}

/// What releases saved: name and text.
fn saved() -> Vec<(String, Vec<u8>)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/object");
    let mut files = Vec::new();
    for release in ["0.8", "0.19", "0.21"] {
        for entry in std::fs::read_dir(root.join(release)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".json") && !name.ends_with(".expect.json") {
                files.push((
                    format!("{release}/{name}"),
                    std::fs::read(entry.path()).unwrap(),
                ));
            }
        }
    }
    assert!(files.len() >= 22);
    files
}

#[test]
fn what_releases_saved_is_written_back_byte_for_byte() {
    for (name, text) in saved() {
        let mut findings = Findings::default();
        let graph = LegacyGraph::read(&text, &mut findings).expect(&name);
        assert!(findings.is_empty(), "{name}: {findings:?}");
        let release = graph.release().expect(&name);
        assert!(name.starts_with(&format!("{release}/")), "{name}");
        assert_eq!(graph.write(Some(release)).expect(&name), text, "{name}");
        tvmspec::object::init();
        graph.value().expect(&name);
    }
}

#[cfg(feature = "suite")]
#[test]
fn the_form_of_saved_objects_keeps_to_its_schema() {
    // The form is that of the operations, and refers to forms that chapters share.
    let definitions = |text: &str| -> serde_json::Value {
        let text = text.replace("values.json#", "#");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["$defs"].take()
    };
    let mut forms = definitions(include_str!("../../spec/schema/object.json"));
    let shared = definitions(include_str!("../../spec/schema/values.json"));
    let shared = shared.as_object().unwrap().clone();
    forms.as_object_mut().unwrap().extend(shared);
    let whole = serde_json::json!({"$ref": "#/$defs/legacy_graph", "$defs": forms});
    let schema = schema::schema(&whole.to_string());
    for (name, text) in saved() {
        let graph = LegacyGraph::read(&text, &mut Findings::default()).unwrap();
        let form = form::to_json(&graph).unwrap();
        schema::conforms(&schema, &form, &name);
        let back = form::from_json(&form).unwrap();
        assert_eq!(back, graph, "{name}");
        let mut other = form.clone();
        other["nodes"] = 3.into();
        let Err(FormError::Form(reply)) = form::from_json(&other) else {
            panic!("{name}: a number of nodes");
        };
        assert_eq!(reply, "a graph has an array `nodes`");
    }
}

#[test]
fn no_prefix_of_a_saved_object_is_one() {
    for (name, text) in saved() {
        let step = text.len() / 300 + 1;
        for end in (0..text.len()).step_by(step) {
            let broken = LegacyGraph::read(&text[..end], &mut Findings::default()).unwrap_err();
            assert_eq!(broken.kind(), Kind::Truncated, "{name} to {end}");
            assert_eq!(broken.offset(), Some(end as u64), "{name} to {end}");
        }
    }
}

/// A graph in which `links` arrays hold each other, the first innermost.
fn chain(links: usize) -> LegacyGraph {
    let link = |index: usize| LegacyNode {
        type_key: "Array".into(),
        data: vec![index],
        ..LegacyNode::default()
    };
    LegacyGraph {
        root: links,
        nodes: std::iter::once(LegacyNode::default())
            .chain((0..links).map(link))
            .collect(),
        ..LegacyGraph::default()
    }
}

#[test]
fn nesting_is_bounded_whichever_way_it_is_met() {
    tvmspec::object::init();
    let value = chain(900).value().unwrap();
    for minor in [8, 21] {
        let graph = LegacyGraph::of(value.view(), Release::of(minor)).unwrap();
        assert_eq!(graph.nodes.len(), 901);
        // Children behind their parents, as a release writes them.
        let text = graph.write(None).unwrap();
        let read = LegacyGraph::read(&text, &mut Findings::default()).unwrap();
        assert_eq!(read, graph);
    }
    assert!(chain(100_000).value().is_err());
    // Every link is met on its own before the one that holds it: nothing is deep on the way, the result would be.
    let mut flat = chain(100_000);
    flat.nodes.push(LegacyNode {
        type_key: "Array".into(),
        data: (1..=100_000).collect(),
        ..LegacyNode::default()
    });
    flat.root = 100_001;
    assert!(flat.value().is_err());
    let links: Vec<String> = (0..100_000)
        .map(|index| format!(r#"{{"type":"ffi.Array","data":[{index}]}}"#))
        .collect();
    let all: Vec<String> = (1..=100_000).map(|index| index.to_string()).collect();
    let text = format!(
        r#"{{"root_index":100001,"nodes":[{{"type":"None"}},{},{{"type":"ffi.Array","data":[{}]}}]}}"#,
        links.join(","),
        all.join(",")
    );
    assert!(tvmspec::object::graph::decode_text(text.as_bytes()).is_err());
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z0-9 \"\\\\\r\n\t/é\u{0}]{0,9}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

/// A node whose children come before it, which keeps cycles out.
fn node(index: usize) -> impl Strategy<Value = LegacyNode> {
    let children =
        || proptest::collection::vec(0..index.max(1), 0..if index == 0 { 1 } else { 24 });
    let attrs = || proptest::collection::btree_map("[a-zé_]{0,4}", texts(), 0..4);
    prop_oneof![
        children().prop_map(|data| LegacyNode {
            type_key: "Array".into(),
            data,
            ..LegacyNode::default()
        }),
        proptest::collection::vec(
            (texts(), 0..index.max(1)),
            0..if index == 0 { 1 } else { 5 }
        )
        .prop_map(|pairs| {
            let (keys, data) = pairs.into_iter().unzip();
            LegacyNode {
                type_key: "StrMap".into(),
                keys,
                data,
                ..LegacyNode::default()
            }
        }),
        ("[a-z.\"\n]{0,9}", texts(), texts(), attrs()).prop_map(
            |(type_key, repr, global_key, mut attrs)| {
                // OBJ-25.
                if !repr.is_empty() {
                    attrs.clear();
                }
                LegacyNode {
                    type_key,
                    repr,
                    global_key,
                    attrs,
                    ..LegacyNode::default()
                }
            }
        ),
    ]
}

fn graphs() -> impl Strategy<Value = LegacyGraph> {
    let record = proptest::collection::vec(any::<u8>(), 0..9).prop_map(|data| {
        let dtype = Dtype {
            code: 1,
            bits: 8,
            lanes: 1,
        };
        let shape = [data.len() as i64];
        let mut out = Writer::new();
        let record = TensorRecord::new(dtype, &shape, data, Sizing::V0_7).unwrap();
        record.write(&mut out);
        out.into_bytes()
    });
    let tensors = proptest::option::of(proptest::collection::vec(record, 0..3));
    (1usize..9)
        .prop_flat_map(|count| ((0..count).map(node).collect::<Vec<_>>(), 0..count))
        .prop_flat_map(move |(nodes, root)| (Just(nodes), Just(root), tensors.clone()))
        .prop_map(|(nodes, root, tensors)| LegacyGraph {
            root,
            nodes,
            tensors,
            attrs: [("tvm_version".to_owned(), b"0.19.0".to_vec())].into(),
        })
}

/// Values that 0.21 can save, floats of few digits.
fn values() -> impl Strategy<Value = Any> {
    let leaf = prop_oneof![
        Just(()).prop_map(|()| Any::none()),
        any::<bool>().prop_map(Any::from),
        any::<i64>().prop_map(Any::from),
        (-1000i32..1000).prop_map(|value| Any::from(f64::from(value) / 4.0)),
        texts().prop_map(|text| Any::from(Str::new(text))),
        proptest::collection::vec(any::<i64>(), 0..4).prop_map(|shape| Shape::new(&shape).into()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let pair = (
            texts().prop_map(|key| Any::from(Str::new(key))),
            inner.clone(),
        );
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| Array::new(items).into()),
            proptest::collection::vec(pair, 0..4)
                .prop_map(|pairs| Map::from_pairs(pairs).unwrap().into()),
            proptest::collection::vec((any::<i64>().prop_map(Any::from), inner), 0..3)
                .prop_map(|pairs| Map::from_pairs(pairs).unwrap().into()),
        ]
    })
}

proptest! {
    #[test]
    fn legacy_graphs_are_read_as_they_were_written(graph in graphs()) {
        let text = graph.write(None).unwrap();
        let mut findings = Findings::default();
        prop_assert_eq!(&LegacyGraph::read(&text, &mut findings).unwrap(), &graph);
    }

    #[test]
    fn broken_legacy_graphs_are_reported_and_nothing_else(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let files = saved();
        let mut text = which.get(&files).1.clone();
        let at = at.index(text.len());
        text[at] = byte;
        match LegacyGraph::read(&text, &mut Findings::default()) {
            Ok(graph) => { let _ = graph.value(); }
            Err(broken) => prop_assert!(broken.offset().unwrap() <= text.len() as u64, "{:?}", broken),
        }
    }

    #[test]
    fn values_go_through_a_graph_of_0_19_and_0_21(value in values()) {
        tvmspec::object::init();
        for minor in [19, 21] {
            let graph = LegacyGraph::of(value.view(), Release::of(minor)).unwrap();
            let text = graph.write(Some(Release::of(minor))).unwrap();
            let read = LegacyGraph::read(&text, &mut Findings::default()).unwrap();
            prop_assert_eq!(&read, &graph);
            let back = read.value().unwrap();
            prop_assert!(tvmspec::object::structural::equal(value.view(), back.view(), false, false).unwrap());
        }
    }
}

#[test]
fn types_that_describe_themselves_are_saved_field_by_field() {
    use tvmspec::object::construct::make_object;
    tvmspec::object::init();
    let text = |text: &str| Any::from(Str::new(text));
    let make = |parts: &[Any]| {
        let views: Vec<_> = parts.iter().map(Any::view).collect();
        make_object(&views).unwrap()
    };
    let key = text("ffi.reflection.AccessStep");
    let step = make(&[key, text("kind"), int(2), text("key"), text("a key")]);
    let path = make(&[
        text("ffi.reflection.AccessPath"),
        text("parent"),
        Any::none(),
        text("step"),
        step,
        text("depth"),
        int(1),
    ]);
    let graph = LegacyGraph::of(path.view(), Release::of(21)).unwrap();
    let attrs = |node: &LegacyNode| -> Vec<String> {
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let pairs = node.attrs.iter();
        pairs
            .map(|(name, value)| format!("{name}={}", text(value)))
            .collect()
    };
    assert_eq!(attrs(&graph.nodes[1]), ["depth=1", "parent=null", "step=2"]);
    assert_eq!(attrs(&graph.nodes[2]), ["key=3", "kind=2"]);
    assert_eq!(graph.nodes[3].repr, b"a key");
    let back = graph.value().unwrap();
    assert!(tvmspec::object::recursive::equal(path.view(), back.view()).unwrap());

    // Only the type knows that this is a reference: no rule of the text sees the cycle, and the value has none.
    for (parent, kind) in [("1", "ValueError"), ("9", "ValueError"), ("3", "TypeError")] {
        let mut wrong = graph.clone();
        wrong.nodes[1].attrs.insert("parent".into(), parent.into());
        let read = LegacyGraph::read(&wrong.write(None).unwrap(), &mut Findings::default());
        let error = read.unwrap().value().unwrap_err();
        assert_eq!(error.kind(), kind, "{parent}: {}", error.message());
    }
    let mut wrong = graph.clone();
    wrong.nodes[2].attrs.remove("key");
    assert!(wrong.value().is_err());
}

fn heap_text(number: usize) -> Any {
    Any::from(format!("a text on the heap, number {number}").as_str())
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

/// Fills its dict when it ends.
struct Refills(Dict, i64);

impl Refills {
    fn key(&self) -> i64 {
        self.1
    }
}

impl Drop for Refills {
    fn drop(&mut self) {
        for number in 0..20 {
            self.0.set(self.1 * 100 + number, number).unwrap();
        }
    }
}

#[test]
fn a_dict_is_whole_while_its_values_end() {
    for count in [2, 10] {
        let dict = Dict::new();
        for key in 0..count {
            let refills = Refills(dict.clone(), key);
            let value = Function::from_packed(move |_| Ok(Any::from(refills.key())));
            dict.set(key, value).unwrap();
        }
        dict.clear().unwrap();
        assert_eq!(dict.len(), 20 * count as usize);
        let keys = dict.to_vec();
        let keys: Vec<i64> = keys
            .iter()
            .map(|(key, _)| i64::try_from(key).unwrap())
            .collect();
        let all: Vec<i64> = (0..count)
            .flat_map(|key| (0..20).map(move |number| key * 100 + number))
            .collect();
        assert_eq!(keys, all);
        dict.clear().unwrap();
    }
}

#[test]
fn an_iterator_of_a_dict_that_was_emptied_is_at_its_end() {
    tvmspec::object::init();
    let make = registry::require("ffi.DictForwardIterFunctor").unwrap();
    for count in [2, 10] {
        let dict = Dict::new();
        for number in 0..count {
            dict.set(number, heap_text(number)).unwrap();
        }
        let made = make.call(&[(&dict).into()]).unwrap();
        let next = cast::<Function>(made.view()).unwrap();
        assert!(next.call(&[1i64.into()]).is_ok());
        dict.clear().unwrap();
        for command in [0i64, 1] {
            let error = next.call(&[command.into()]).unwrap_err();
            assert_eq!(error.kind(), "IndexError");
        }
        let on = next.call(&[2i64.into()]).unwrap();
        assert!(!bool::try_from(&on).unwrap());
    }
}

/// OBJ-36 in every type that every process knows, with the place of the number.
#[test]
fn numbers_of_saved_objects_are_numbers_to_their_end() {
    let text = |node: &str| {
        format!(
            r#"{{"root": 1, "nodes": [{{"type_key": ""}}, {{{node}}}], "b64ndarrays": [], "attrs": {{}}}}"#
        )
    };
    let verify = |text: &str| LegacyGraph::verify(text.as_bytes(), &mut Findings::default());
    for (node, number) in [
        (r#""type_key": "runtime.BoxInt", "repr_str": "12""#, "12"),
        (
            r#""type_key": "runtime.BoxFloat", "repr_str": "1e9""#,
            "1e9",
        ),
        (r#""type_key": "int", "attrs": {"v_int64": "-3"}"#, "-3"),
        (r#""type_key": "bool", "attrs": {"v_int64": "1"}"#, "1"),
        (
            r#""type_key": "float", "attrs": {"a": "b", "v_float64": "-inf"}"#,
            "-inf",
        ),
        (
            r#""type_key": "Device", "attrs": {"v_device_type": "1", "v_device_id": "7"}"#,
            "7",
        ),
    ] {
        let good = text(node);
        assert!(verify(&good).is_ok(), "{node}");
        let at = good.find(&format!("\"{number}\"")).unwrap() as u64;
        let at = match node.contains("Device") {
            true => good.find("\"7\"").unwrap() as u64,
            false => at,
        };
        for wrong in [
            "12abc",
            " 1",
            "",
            "1e999",
            "0x1p3",
            "nan(0x1)",
            "Infinity",
            "9223372036854775808.",
            "2 ",
        ] {
            let bad = format!(
                "{}\"{wrong}{}",
                &good[..at as usize],
                &good[at as usize + 1 + number.len()..]
            );
            // A float may be with a point.
            if wrong.ends_with('.') && node.contains("loat") {
                continue;
            }
            let broken = verify(&bad).expect_err(&bad);
            assert_eq!(
                (broken.rule().id(), broken.offset()),
                ("OBJ-36", Some(at)),
                "{bad}"
            );
            assert_eq!(broken.field(), "nodes[1]");
        }
    }
    // The last of several attributes is what is read, and what is blamed.
    let bad = text(r#""type_key": "bool", "attrs": {"v_int64": "1", "v_int64": "2"}"#);
    let broken = verify(&bad).unwrap_err();
    assert_eq!(broken.offset(), bad.find("\"2\"").map(|at| at as u64));
}

#[test]
fn bytes_of_nothing_are_reported() {
    let text = r#"{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "runtime.String", "repr_b64": ""}], "attrs": {}}"#;
    let mut findings = Findings::default();
    LegacyGraph::read(text.as_bytes(), &mut findings).unwrap();
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.rule.id(), "OBJ-37");
    assert_eq!(finding.offset as usize, text.find("\"\"}], ").unwrap());
}
