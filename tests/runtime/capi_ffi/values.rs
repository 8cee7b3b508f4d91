//! Texts, errors, tensors and objects, from creation to their end.

use super::{ENDED, context, ended, own, raised};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tvmspec::capi::ffi::env::*;
use tvmspec::capi::ffi::error::*;
use tvmspec::capi::ffi::object::*;
use tvmspec::capi::ffi::tensor::*;
use tvmspec::capi::ffi::value::*;
use tvmspec::function::Error;
use tvmspec::object::Tensor;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::dlpack::{DLManagedTensorVersioned, DLPackVersion, DLTensor};
use tvmspec::value::header::{Header, ObjectRef};
use tvmspec::value::{Any, ByteArray, RawAny, index};

#[test]
fn texts_bytes_and_integers_come_and_go() {
    let long = b"a text that is longer than a cell";
    for bytes in [&long[..], b"short", b""] {
        let array = ByteArray::of(bytes);
        let (mut text, mut owned) = (RawAny::NONE, RawAny::NONE);
        unsafe {
            assert_eq!(TVMFFIStringFromByteArray(&array, &mut text), 0);
            assert_eq!(TVMFFIAnyViewToOwnedAny(&text, &mut owned), 0);
        }
        let (text, owned) = (own(text), own(owned));
        drop(text);
        assert_eq!(
            String::try_from(&owned).unwrap().as_bytes(),
            bytes,
            "its own reference"
        );
        let mut raw = RawAny::NONE;
        unsafe { assert_eq!(TVMFFIBytesFromByteArray(&array, &mut raw), 0) };
        let raw = own(raw);
        assert_eq!(tvmspec::value::bytes_bytes(&raw.view()), Some(bytes));
    }
    let words = [u64::MAX, 1, 0].map(u64::to_le_bytes).concat();
    let mut big = RawAny::NONE;
    unsafe {
        assert_eq!(
            TVMFFIBigIntFromByteArray(&ByteArray::of(&words), &mut big),
            0
        );
    }
    let big = own(big);
    let content = unsafe { TVMFFIBigIntGetContentByteArray(big.as_raw()) };
    assert_eq!(unsafe { content.as_slice() }, &words[..16]);
    let mut dtype = Dtype::scalar(0, 0);
    let mut text = RawAny::NONE;
    unsafe {
        let name = ByteArray::of(b"float32x4");
        assert_eq!(TVMFFIDataTypeFromString(&name, &mut dtype), 0);
        assert_eq!(TVMFFIDataTypeToString(&dtype, &mut text), 0);
        let name = ByteArray::of(b"floot32");
        assert_eq!(TVMFFIDataTypeFromString(&name, &mut dtype), -1);
    }
    assert_eq!(String::try_from(&own(text)).unwrap(), "float32x4");
    assert!(raised().message().contains("floot32"));
}

#[test]
fn an_error_is_made_of_parts_and_keeps_its_cause() {
    let parts = ["ValueError", "a message on the heap", "  File \"a.c\"\n"];
    let [kind, message, backtrace] = parts.map(|part| ByteArray::of(part.as_bytes()));
    let (mut cause, mut error) = (ptr::null_mut(), ptr::null_mut());
    unsafe {
        assert_eq!(
            TVMFFIErrorCreate(&kind, &message, &backtrace, &mut cause),
            0
        );
        let none = ptr::null_mut();
        let code = TVMFFIErrorCreateWithCauseAndExtraContext(
            &kind, &message, &backtrace, cause, none, &mut error,
        );
        assert_eq!(code, 0);
        TVMFFIObjectDecRef(cause);
        TVMFFIErrorSetRaised(error);
        TVMFFIObjectDecRef(error);
    }
    let error = raised();
    assert_eq!(error.cause().unwrap().message(), parts[1]);
    assert_eq!(error.backtrace(), parts[2]);
    unsafe { TVMFFIErrorSetRaised(ptr::null_mut()) };
}

#[test]
fn a_tensor_goes_out_and_in_and_is_viewed() {
    let mut data = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut shape = [2i64, 3];
    let prototype = DLTensor {
        data: data.as_mut_ptr().cast(),
        device: Device::CPU,
        ndim: 2,
        dtype: Dtype::FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    let tensor = Tensor::empty(&[2, 3], prototype.dtype).unwrap();
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor.fill(&bytes).unwrap();
    let held = tensor.into_object().into_raw();
    let (mut old, mut new) = (ptr::null_mut(), ptr::null_mut());
    let [mut first, mut second, mut view] = [ptr::null_mut(); 3];
    unsafe {
        assert_eq!(TVMFFITensorToDLPack(held, &mut old), 0);
        assert_eq!(TVMFFITensorToDLPackVersioned(held, &mut new), 0);
        TVMFFIObjectDecRef(held);
        assert_eq!(TVMFFITensorFromDLPack(old, 4, 1, &mut first), 0);
        assert_eq!(TVMFFITensorFromDLPackVersioned(new, 0, 0, &mut second), 0);
        let code = TVMFFITensorCreateUnsafeView(second, &prototype, &mut view);
        assert_eq!(code, 0);
        TVMFFIObjectDecRef(second);
    }
    for (object, writes) in [(first, true), (view, false)] {
        let object = unsafe { ObjectRef::from_raw(object) };
        let tensor = Any::from(object);
        let tensor: Tensor = tvmspec::value::cast(tensor.view()).unwrap();
        assert_eq!(tensor.to_bytes().unwrap(), bytes);
        if writes {
            tensor.fill(&[0; 24]).unwrap();
            assert_eq!(tensor.to_bytes().unwrap(), [0; 24]);
        }
    }
}

/// Returns a tensor of one dimension without extents, which no import accepts.
unsafe extern "C-unwind" fn allocate_without_extents(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    _: *mut c_void,
    _: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, *const c_char),
) -> i32 {
    unsafe extern "C-unwind" fn delete(tensor: *mut DLManagedTensorVersioned) {
        DELETED.fetch_add(1, Ordering::Relaxed);
        drop(unsafe { Box::from_raw(tensor) });
    }
    let dl_tensor = DLTensor {
        shape: ptr::null_mut(),
        ..unsafe { *prototype }
    };
    let tensor = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 1 },
        manager_ctx: ptr::null_mut(),
        deleter: Some(delete),
        flags: 0,
        dl_tensor,
    };
    unsafe { *out = Box::into_raw(Box::new(tensor)) };
    0
}

/// Number of tensors from [`allocate_without_extents`] that have ended.
static DELETED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_tensor_of_an_allocator_that_is_rejected_ends() {
    let mut shape = [2i64];
    let mut prototype = DLTensor {
        data: ptr::null_mut(),
        device: Device::CPU,
        ndim: 1,
        dtype: Dtype::FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    let mut out = ptr::null_mut();
    unsafe {
        let own = Some(allocate_without_extents as _);
        let none = ptr::null_mut();
        assert_eq!(TVMFFIEnvSetDLPackManagedTensorAllocator(own, 0, none), 0);
        assert_eq!(TVMFFIEnvTensorAlloc(&mut prototype, &mut out), -1);
        assert_eq!(TVMFFIEnvSetDLPackManagedTensorAllocator(None, 0, none), 0);
    }
    assert!(raised().message().contains("no extents"));
    assert_eq!(DELETED.load(Ordering::Relaxed), 1);
    // The allocator of one thread is not used by another, unless it is set for all threads.
    let elsewhere = || {
        let asked = std::thread::spawn(|| TVMFFIEnvGetDLPackManagedTensorAllocator().is_some());
        asked.join().unwrap()
    };
    let (own, none) = (Some(allocate_without_extents as _), ptr::null_mut());
    for (for_all, seen) in [(0, false), (1, true)] {
        let set = |allocator| unsafe {
            TVMFFIEnvSetDLPackManagedTensorAllocator(allocator, for_all, none)
        };
        assert_eq!(set(own), 0);
        assert_eq!(elsewhere(), seen);
        assert_eq!(set(None), 0);
        assert!(!elsewhere());
    }
}

/// An error as another library makes it: the public part, followed by private fields.
#[repr(C)]
struct ErrorOfAnother {
    header: Header,
    kind: ByteArray,
    message: ByteArray,
    backtrace: ByteArray,
    update: unsafe extern "C-unwind" fn(*mut Header, *const ByteArray, i32),
    cause: *mut Header,
    context: *mut Header,
    behind: [usize; 16],
}

unsafe extern "C-unwind" fn never_changes(_: *mut Header, _: *const ByteArray, _: i32) {}

unsafe extern "C-unwind" fn never_ends(_: *mut Header, _: i32) {}

#[test]
fn an_error_of_another_library_broke_no_rule_of_ours() {
    let error = Box::leak(Box::new(ErrorOfAnother {
        header: Header::new(index::ERROR, never_ends),
        kind: ByteArray::of(b"ValueError"),
        message: ByteArray::of(b"theirs"),
        backtrace: ByteArray::EMPTY,
        update: never_changes,
        cause: ptr::null_mut(),
        context: ptr::null_mut(),
        behind: [8; 16],
    }));
    let object = unsafe { ObjectRef::from_raw((&raw mut *error).cast()) };
    let error = Error::from_object(object).ok().unwrap();
    assert_eq!(
        (error.kind().as_str(), error.message()),
        ("ValueError", "theirs")
    );
    assert!(error.violation().is_none());
}

#[test]
fn streams_and_opaque_objects_are_kept() {
    let mut number = 7u8;
    let stream = (&raw mut number).cast();
    let mut before = ptr::null_mut();
    unsafe {
        assert_eq!(TVMFFIEnvSetStream(2, 3, stream, ptr::null_mut()), 0);
        assert_eq!(TVMFFIEnvGetStream(2, 3), stream);
        assert_eq!(TVMFFIEnvSetStream(2, 3, ptr::null_mut(), &mut before), 0);
    }
    assert_eq!(before, stream);
    let mut object = ptr::null_mut();
    unsafe {
        let kind = index::OPAQUE_PY;
        let code = TVMFFIObjectCreateOpaque(context(1, 0), kind, Some(ended), &mut object);
        assert_eq!(code, 0);
        TVMFFIObjectDecRef(object);
    }
    assert!(ENDED[1].load(Ordering::Relaxed) > 0);
}

/// Returns the parts of an error as C reads them: kind, message, backtrace.
fn parts(error: &Error) -> [Vec<u8>; 3] {
    let object = error.clone().into_object();
    // SAFETY: the header of an error is followed by these three parts.
    let parts = unsafe { &*object.as_ptr().add(1).cast::<[ByteArray; 3]>() };
    // SAFETY: these are texts of the error, which `object` keeps alive.
    parts
        .each_ref()
        .map(|part| unsafe { part.as_slice() }.to_vec())
}

#[test]
fn texts_that_are_not_utf8_stay_when_a_cause_comes() {
    let texts = [&b"k\xff"[..], b"m\xfe", b"b\xfd"];
    let [kind, message, backtrace] = texts.map(ByteArray::of);
    let mut error = ptr::null_mut();
    unsafe {
        assert_eq!(
            TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error),
            0
        );
        TVMFFIErrorSetRaised(error);
        TVMFFIObjectDecRef(error);
    }
    let error = raised();
    unsafe { TVMFFIErrorSetRaised(ptr::null_mut()) };
    let error = error.caused_by(Error::new("KeyError", "why"));
    assert_eq!(parts(&error), texts);
    assert_eq!(error.cause().unwrap().message(), "why");
}
