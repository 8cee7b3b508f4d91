//! Tensors: their elements by strides and types, and their conversion through DLPack.

use tvmspec::object::{Shape, Tensor};
use tvmspec::rule::Kind;
use tvmspec::tensor::Scalar;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};

#[test]
fn a_tensor_without_elements_has_extents_in_any_order() {
    let huge = 1_i64 << 40;
    for shape in [[0, huge, huge], [huge, 0, huge], [huge, huge, 0]] {
        let tensor = Tensor::empty(&shape, Dtype::FLOAT32).unwrap();
        assert_eq!(tensor.shape(), shape);
        assert!(tensor.to_vec::<f32>().unwrap().is_empty());
        assert!(Tensor::from_slice::<f32>(&[], &shape).is_ok());
    }
}

#[test]
fn tensors_go_out_and_in_through_dlpack() {
    let tensor = Tensor::empty(&[2, 3], Dtype::FLOAT32).unwrap();
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
    // Both tensors share the memory of the first one.
    back.fill(&[8; 24]).unwrap();
    assert_eq!(from_old.to_bytes().unwrap(), [8; 24]);
    assert_eq!(Shape::new(&[1, 2]).as_slice(), [1, 2]);
}

#[test]
fn a_read_only_tensor_is_not_written_to() {
    let original = Tensor::from_slice(&[1_u8, 2, 3], &[3]).unwrap();
    let exported = original.to_dlpack_versioned();
    // SAFETY: a producer of DLPack 1.x returns a struct that belongs to its consumer until the deleter is called.
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
    // SAFETY: a producer of DLPack 1.x returns a struct that belongs to its consumer until the deleter is called.
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
        // SAFETY: a producer of DLPack 1.x returns a struct that belongs to its consumer until the deleter is called.
        let dl = unsafe { &mut (*exported).dl_tensor };
        (dl.ndim, dl.shape) = (ndim, std::ptr::null_mut());
        // SAFETY: `exported` is new, and nothing else owns it.
        let error = unsafe { Tensor::from_dlpack_versioned(exported, 0, false) }.unwrap_err();
        assert!(error.to_string().contains("no extents"), "{error}");
        // SAFETY: a producer of DLPack 1.x returns a struct that belongs to its consumer until the deleter is called. The failed import did
        // not take it.
        let delete = unsafe { (*exported).deleter }.unwrap();
        // SAFETY: the deleter is called once.
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
    // One tensor has no elements, and one has no axes.
    let none = Tensor::from_slice::<f64>(&[], &[4, 0]).unwrap();
    assert!(none.to_vec::<f64>().unwrap().is_empty());
    assert_eq!(
        Tensor::from_slice(&[7_u16], &[])
            .unwrap()
            .to_vec::<u16>()
            .unwrap(),
        [7]
    );
    // In compiled code, any byte but 0 is true.
    let bools = Tensor::empty(&[3], "bool".parse().unwrap()).unwrap();
    bools.fill(&[0, 1, 255]).unwrap();
    assert_eq!(bools.to_vec::<bool>().unwrap(), [false, true, true]);
}

/// Returns a tensor over `numbers` with this description.
fn over(numbers: &[i16], device: Device, shape: &[i64], strides: &[i64], skipped: u64) -> Tensor {
    let mut numbers = numbers.to_vec();
    let (mut shape, mut strides) = (shape.to_vec(), strides.to_vec());
    let dl = DLTensor {
        data: numbers.as_mut_ptr().cast(),
        device,
        ndim: shape.len() as i32,
        dtype: Dtype::INT16,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: skipped,
    };
    // SAFETY: `finish` holds the numbers, and each caller passes a description that stays inside them.
    unsafe { Tensor::over(dl, Box::new(move || drop(numbers))) }
}

#[test]
fn elements_are_read_by_their_strides() {
    let numbers: Vec<i16> = (0..24).collect();
    let rows = over(&numbers, Device::CPU, &[2, 3], &[12, 4], 2);
    assert_eq!(rows.to_vec::<i16>().unwrap(), [1, 5, 9, 13, 17, 21]);
    assert!(rows.to_bytes().is_err(), "it is not compact");
    let transposed = over(&numbers, Device::CPU, &[4, 6], &[1, 4], 0);
    let expected: Vec<i16> = (0..4)
        .flat_map(|row| (0..6).map(move |column| row + 4 * column))
        .collect();
    assert_eq!(transposed.to_vec::<i16>().unwrap(), expected);
    let backwards = over(&numbers, Device::CPU, &[4], &[-2], 46);
    assert_eq!(backwards.to_vec::<i16>().unwrap(), [23, 21, 19, 17]);
    let repeated = over(&numbers, Device::CPU, &[2, 2], &[0, 1], 0);
    assert_eq!(repeated.to_vec::<i16>().unwrap(), [0, 1, 0, 1]);
    let empty = over(&numbers, Device::CPU, &[2, 0, 3], &[9, 9, 9], 0);
    assert!(empty.to_vec::<i16>().unwrap().is_empty());
    // The row is repeated more often than memory has room for, and more often than can be counted.
    let huge = over(&numbers, Device::CPU, &[1 << 60, 4], &[0, 1], 0);
    let error = huge.to_vec::<i16>().unwrap_err();
    assert!(error.message().contains("no room in memory"), "{error}");
    let uncounted = over(&numbers, Device::CPU, &[1 << 62, 4], &[0, 1], 0);
    assert!(uncounted.to_vec::<i16>().is_err());
    let cuda = Device { kind: 2, id: 1 };
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
    let float = Dtype::FLOAT32;
    // The sizes exceed the address space of any machine, or overflow.
    for shape in [&[1 << 59][..], &[1 << 48, 4], &[i64::MAX], &[i64::MAX, 9]] {
        let error = Tensor::empty(shape, float).map(drop).unwrap_err();
        assert!(error.message().contains("a tensor of shape"), "{error}");
    }
    let negative = Tensor::empty(&[2, -1], float).map(drop).unwrap_err();
    let expected = "a tensor of shape [2, -1] has a negative extent";
    assert!(negative.message().contains(expected), "{negative}");
    assert_eq!(float.bytes_of(i64::MAX as u64), u64::MAX);
    assert_eq!(Dtype::scalar(1, 4).bytes_of(u64::MAX), 1 << 63);
}
