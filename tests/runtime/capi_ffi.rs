//! The C interface of tvm-ffi as a C program uses it, from Rust and without a library,
//! so that an interpreter can watch.
#![cfg(feature = "runtime")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "sequences of calls as a C program makes them, with handles from the calls before"
)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use tvmspec::capi::ffi::env::*;
use tvmspec::capi::ffi::error::*;
use tvmspec::capi::ffi::function::*;
use tvmspec::capi::ffi::module::*;
use tvmspec::capi::ffi::object::*;
use tvmspec::capi::ffi::tensor::*;
use tvmspec::capi::ffi::types::*;
use tvmspec::capi::ffi::value::*;
use tvmspec::function::{Error, Function, FunctionObj};
use tvmspec::object::Tensor;
use tvmspec::object::hash::any_hash;
use tvmspec::object::json_graph::legacy::LegacyGraph;
use tvmspec::release::Release;
use tvmspec::value::dlpack::{DLManagedTensorVersioned, DLPackVersion, DLTensor};
use tvmspec::value::header::{Header, ObjectRef};
use tvmspec::value::types::{Column, FieldInfo, MethodInfo, TypeMetadata, flag};
use tvmspec::value::{Any, AnyPayload, AnyView, ByteArray, DLDataType, DLDevice, RawAny, index};

/// How often a context was freed: of callbacks, of opaque objects.
static ENDED: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

unsafe extern "C-unwind" fn ended(context: *mut c_void) {
    let context = unsafe { Box::from_raw(context.cast::<(usize, i64)>()) };
    ENDED[context.0].fetch_add(1, Ordering::Relaxed);
}

fn context(which: usize, number: i64) -> *mut c_void {
    Box::into_raw(Box::new((which, number))).cast()
}

fn own(raw: RawAny) -> Any {
    unsafe { Any::from_raw(raw) }
}

/// The error of this thread.
fn raised() -> Error {
    let mut error = ptr::null_mut();
    unsafe { TVMFFIErrorMoveFromRaised(&mut error) };
    assert!(!error.is_null(), "nothing was raised");
    Error::from_object(unsafe { ObjectRef::from_raw(error) })
        .ok()
        .unwrap()
}

/// Adds its context to an integer; raises for anything else.
unsafe extern "C-unwind" fn adds(
    context: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    let by = unsafe { (*context.cast::<(usize, i64)>()).1 };
    let first = unsafe { *args };
    if count != 1 || first.type_index() != index::INT {
        let (kind, parts) = (
            c"TypeError",
            [c"not ".as_ptr(), ptr::null(), c"so".as_ptr()],
        );
        unsafe { TVMFFIErrorSetRaisedFromCStrParts(kind.as_ptr(), parts.as_ptr(), 3) };
        return -1;
    }
    unsafe { result.write(Any::from(first.int() + by).into_raw()) };
    0
}

#[test]
fn a_callback_is_registered_found_called_and_released() {
    let name = ByteArray::of(b"test.capi.adds");
    let mut made = ptr::null_mut();
    let mut found: *mut Header = ptr::null_mut();
    unsafe {
        let code = TVMFFIFunctionCreate(context(0, 40), adds, Some(ended), &mut made);
        assert_eq!(code, 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&name, made, 0), 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&name, made, 0), -1);
    }
    assert!(raised().message().contains("already registered"));
    let arguments = [
        Any::from(2i64),
        Any::from("a text on the heap, which is no integer"),
    ];
    unsafe {
        assert_eq!(TVMFFIFunctionGetGlobal(&name, &mut found), 0);
        let mut result = RawAny::NONE;
        let found = found.cast::<FunctionObj>();
        let code = TVMFFIFunctionCall(found.cast(), arguments[0].as_raw(), 1, &mut result);
        assert_eq!((code, own(result).as_raw().int()), (0, 42));
        let mut result = RawAny::NONE;
        let code = TVMFFIFunctionCall(found.cast(), arguments[1].as_raw(), 1, &mut result);
        assert_eq!(code, -1);
    }
    let error = raised();
    assert_eq!(
        (error.kind().as_str(), error.message()),
        ("TypeError", "not so")
    );
    assert!(tvmspec::function::registry::remove("test.capi.adds"));
    unsafe {
        TVMFFIObjectIncRef(made);
        TVMFFIObjectDecRef(made);
        TVMFFIObjectDecRef(found);
        assert_eq!(ENDED[0].load(Ordering::Relaxed), 0);
        TVMFFIObjectDecRef(made);
    }
    assert_eq!(ENDED[0].load(Ordering::Relaxed), 1);
}

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
    let mut dtype = DLDataType::scalar(0, 0);
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
        device: DLDevice::CPU,
        ndim: 2,
        dtype: DLDataType::scalar(2, 32),
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

/// A tensor of one dimension without extents, which no import accepts.
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

/// How many tensors of [`allocate_without_extents`] have ended.
static DELETED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_tensor_of_an_allocator_that_is_rejected_ends() {
    let mut shape = [2i64];
    let mut prototype = DLTensor {
        data: ptr::null_mut(),
        device: DLDevice::CPU,
        ndim: 1,
        dtype: DLDataType::scalar(2, 32),
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
    // That of one thread is not that of another, but where it is for all.
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

unsafe extern "C" fn has_a_signal() -> std::ffi::c_int {
    -1
}

#[test]
fn a_frontend_that_registered_it_is_asked_for_signals() {
    let name = c"PyErr_CheckSignals".as_ptr();
    assert_eq!(TVMFFIEnvCheckSignals(), 0);
    unsafe {
        assert_eq!(TVMFFIEnvRegisterCAPI(name, has_a_signal as *mut c_void), 0);
        assert_eq!(TVMFFIEnvCheckSignals(), -1);
        assert_eq!(TVMFFIEnvRegisterCAPI(name, ptr::null_mut()), 0);
    }
    assert_eq!(TVMFFIEnvCheckSignals(), 0);
}

#[test]
fn code_of_a_library_without_a_module_finds_nothing() {
    let mut found = ptr::null_mut();
    let code = unsafe {
        TVMFFIEnvModLookupFromImports(ptr::null_mut(), c"ffi.Array".as_ptr(), &mut found)
    };
    assert_eq!((code, found.is_null()), (-1, true));
    assert_eq!(raised().kind(), "RuntimeError");
}

/// An error as another library makes it: the public part, and behind it what is no part of ours.
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

/// What is made once.
static MADE: AtomicI32 = AtomicI32::new(0);

unsafe extern "C-unwind" fn make(out: *mut *mut c_void) -> i32 {
    MADE.fetch_add(1, Ordering::Relaxed);
    unsafe { out.write(Box::into_raw(Box::new(5u64)).cast()) };
    0
}

unsafe extern "C-unwind" fn end(made: *mut c_void) -> i32 {
    drop(unsafe { Box::from_raw(made.cast::<u64>()) });
    0
}

#[test]
fn a_handle_is_made_once_by_many() {
    struct Place(*mut *mut c_void);
    unsafe impl Sync for Place {}
    let mut slot = ptr::null_mut();
    let place = Place(&raw mut slot);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let place = &place;
                assert_eq!(unsafe { TVMFFIHandleInitOnce(place.0, make) }, 0);
            });
        }
    });
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
    unsafe { assert_eq!(TVMFFIHandleDeinitOnce(place.0, end), 0) };
    assert!(slot.is_null());
}

/// An object of a type of C's: a header and a number.
#[repr(C)]
struct Numbered {
    header: Header,
    number: i64,
}

/// `TVMFFIFieldInfo` as C fills it in.
#[repr(C)]
struct Field {
    name: ByteArray,
    doc: ByteArray,
    metadata: ByteArray,
    flags: i64,
    size: i64,
    alignment: i64,
    offset: i64,
    getter: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut RawAny) -> i32>,
    setter: *mut c_void,
    default: RawAny,
    static_type_index: i32,
}

/// `TVMFFIMethodInfo` as C fills it in.
#[repr(C)]
struct Method {
    name: ByteArray,
    doc: ByteArray,
    metadata: ByteArray,
    flags: i64,
    method: RawAny,
}

/// `TVMFFITypeMetadata` as C fills it in.
#[repr(C)]
struct Metadata {
    doc: ByteArray,
    creator: Option<unsafe extern "C-unwind" fn(*mut *mut Header) -> i32>,
    total_size: i32,
    structural_kind: i32,
}

unsafe extern "C-unwind" fn number_of(field: *mut c_void, out: *mut RawAny) -> i32 {
    unsafe { out.write(Any::from(*field.cast::<i64>()).into_raw()) };
    0
}

unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    if flags & 2 != 0 {
        drop(unsafe { Box::from_raw(object.cast::<Numbered>()) });
    }
}

#[test]
fn a_type_of_c_has_fields_and_attributes() {
    let key = ByteArray::of(b"test.capi.Numbered");
    let parent = index::OBJECT;
    let own = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    assert!(own >= 128);
    let name = ByteArray::of(b"number");
    let field = Field {
        name,
        doc: ByteArray::EMPTY,
        metadata: ByteArray::EMPTY,
        flags: flag::HAS_DEFAULT,
        size: 8,
        alignment: 8,
        offset: 24,
        getter: Some(number_of),
        setter: ptr::null_mut(),
        default: *Any::from(3i64).as_raw(),
        static_type_index: index::INT,
    };
    let field = (&raw const field).cast::<FieldInfo>();
    let double = Any::from(Function::from_typed(|number: i64| 2 * number));
    let method = Method {
        name: ByteArray::of(b"double"),
        doc: ByteArray::EMPTY,
        metadata: ByteArray::EMPTY,
        flags: flag::STATIC_METHOD,
        method: *double.as_raw(),
    };
    let method = (&raw const method).cast::<MethodInfo>();
    let metadata = Metadata {
        doc: ByteArray::of(b"A number."),
        creator: None,
        total_size: size_of::<Numbered>() as i32,
        structural_kind: 1,
    };
    let metadata = (&raw const metadata).cast::<TypeMetadata>();
    let attribute = ByteArray::of(b"__test_capi__");
    let text = Any::from("an attribute that is a text on the heap");
    unsafe {
        assert_eq!(TVMFFITypeRegisterField(own, field), 0);
        assert_eq!(TVMFFITypeRegisterMethod(own, method), 0);
        assert_eq!(TVMFFITypeRegisterMetadata(own, metadata), 0);
        assert_eq!(TVMFFITypeRegisterMetadata(own, metadata), -1);
        assert_eq!(TVMFFITypeRegisterAttr(own, &attribute, text.as_raw()), 0);
        assert_eq!(TVMFFITypeRegisterAttr(own, &attribute, text.as_raw()), -1);
    }
    drop((raised(), text, double));
    let info = unsafe { &*TVMFFIGetTypeInfo(own) };
    let field = info.fields().first().unwrap();
    // What was shown goes away; the table has its own.
    let method = info.methods().first().unwrap();
    assert_eq!(method.name(), "double");
    let method = unsafe { &*ptr::from_ref(method).cast::<Method>() };
    let double = unsafe { AnyView::from_raw(method.method) };
    let double: Function = tvmspec::value::cast(double).unwrap();
    let doubled = double.call(&[21i64.into()]).unwrap();
    assert_eq!(i64::try_from(&doubled).unwrap(), 42);
    let metadata = ptr::from_ref(info.metadata().unwrap()).cast::<Metadata>();
    let metadata = unsafe { &*metadata };
    assert_eq!((metadata.total_size, metadata.structural_kind), (32, 1));
    let object = Box::into_raw(Box::new(Numbered {
        header: Header::new(own, delete),
        number: 9,
    }));
    let object = unsafe { ObjectRef::from_raw(object.cast()) };
    let value = tvmspec::object::field(&object, "number").unwrap();
    assert_eq!(
        (field.name(), i64::try_from(&value).unwrap()),
        ("number", 9)
    );
    assert_eq!(field.flags(), flag::HAS_DEFAULT);
    assert_eq!(field.static_type_index(), index::INT);
    let column: &Column = unsafe { &*TVMFFIGetTypeAttrColumn(&attribute) };
    let kept = column.value(own).unwrap();
    assert!(String::try_from(kept).unwrap().ends_with("on the heap"));
}

/// An object of a type of C's: a header and three values.
#[repr(C)]
struct ThreeValues {
    header: Header,
    values: [Any; 3],
}

unsafe extern "C-unwind" fn value_of(field: *mut c_void, out: *mut RawAny) -> i32 {
    unsafe { out.write((*field.cast::<Any>()).clone().into_raw()) };
    0
}

unsafe extern "C-unwind" fn delete_values(object: *mut Header, flags: i32) {
    if flags & 2 != 0 {
        drop(unsafe { Box::from_raw(object.cast::<ThreeValues>()) });
    }
}

/// What a graph makes an object with is what says that it can be saved.
unsafe extern "C-unwind" fn make_no_values(_: *mut *mut Header) -> i32 {
    -1
}

fn new_type(key: &str) -> i32 {
    let key = ByteArray::of(key.as_bytes());
    unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, index::OBJECT) }
}

#[test]
fn fields_are_saved_in_place_as_they_are_declared() {
    let own = new_type("test.capi.Three");
    for (at, (name, static_type_index)) in [
        ("dtype", index::DATA_TYPE),
        ("first", index::TENSOR),
        ("second", index::TENSOR),
    ]
    .into_iter()
    .enumerate()
    {
        let field = Field {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::EMPTY,
            metadata: ByteArray::EMPTY,
            flags: 0,
            size: 16,
            alignment: 8,
            offset: 24 + 16 * at as i64,
            getter: Some(value_of),
            setter: ptr::null_mut(),
            default: *Any::none().as_raw(),
            static_type_index,
        };
        let field = (&raw const field).cast::<FieldInfo>();
        assert_eq!(unsafe { TVMFFITypeRegisterField(own, field) }, 0);
    }
    let metadata = Metadata {
        doc: ByteArray::EMPTY,
        creator: Some(make_no_values),
        total_size: size_of::<ThreeValues>() as i32,
        structural_kind: 1,
    };
    let metadata = (&raw const metadata).cast::<TypeMetadata>();
    assert_eq!(unsafe { TVMFFITypeRegisterMetadata(own, metadata) }, 0);
    let tensor = |number: i64| Tensor::from_slice(&[number], &[1]).unwrap();
    let object = Box::into_raw(Box::new(ThreeValues {
        header: Header::new(own, delete_values),
        values: [
            Any::from(DLDataType::scalar(2, 32)),
            tensor(1).into(),
            tensor(2).into(),
        ],
    }));
    let object = unsafe { ObjectRef::from_raw(object.cast()) };
    let object = Any::from(object);
    let graph = LegacyGraph::of(object.view(), Release::of(19)).unwrap();
    let node = graph.nodes.last().unwrap();
    assert_eq!(node.type_key, "test.capi.Three");
    for (name, text) in [("dtype", "float32"), ("first", "0"), ("second", "1")] {
        assert_eq!(node.attrs[name], text.as_bytes(), "{name}");
    }
    assert!(graph.tensor(1).is_some() && graph.tensor(2).is_none());
}

/// The number of the object.
unsafe extern "C" fn hash_is_number(key: *const RawAny) -> RawAny {
    let number = unsafe { (*(*key).ptr().cast::<Numbered>()).number };
    Any::from(number).into_raw()
}

unsafe extern "C" fn hash_fails(_: *const RawAny) -> RawAny {
    Any::from(Error::new("KeyError", "no hash")).into_raw()
}

unsafe extern "C" fn all_are_equal(_: *const RawAny, _: *const RawAny) -> RawAny {
    Any::from(true).into_raw()
}

#[test]
fn a_bare_hash_answers_with_a_cell_whatever_the_equality_is() {
    let bare = |address: *mut c_void| RawAny::of(index::OPAQUE, AnyPayload { ptr: address });
    let hashes = |key: &str, hash: *mut c_void, equal: RawAny| {
        let own = new_type(key);
        for (name, hook) in [("__any_hash__", bare(hash)), ("__any_equal__", equal)] {
            let name = ByteArray::of(name.as_bytes());
            assert_eq!(unsafe { TVMFFITypeRegisterAttr(own, &name, &hook) }, 0);
        }
        [3, 4, 3].map(|number| {
            let header = Header::new(own, delete);
            let object = Box::into_raw(Box::new(Numbered { header, number }));
            let object = unsafe { ObjectRef::from_raw(object.cast()) };
            any_hash(Any::from(object).view())
        })
    };
    let cell = bare(all_are_equal as *mut c_void);
    for failed in hashes("test.capi.Fails", hash_fails as *mut c_void, cell) {
        let error = failed.unwrap_err();
        assert_eq!(
            (error.kind().as_str(), error.message()),
            ("KeyError", "no hash")
        );
    }
    let function = Any::from(Function::from_typed(|_: Any, _: Any| true));
    for (key, equal) in [
        ("test.capi.BareEqual", cell),
        ("test.capi.FunctionEqual", *function.as_raw()),
    ] {
        let all = hashes(key, hash_is_number as *mut c_void, equal);
        let [three, four, again] = all.map(|hash| hash.unwrap());
        assert!(three != four && three == again, "{key}");
    }
}

#[test]
fn no_type_gets_an_index_that_is_taken_or_that_there_is_not() {
    let ask = |key: &str, fixed, depth, slots, parent| {
        let key = ByteArray::of(key.as_bytes());
        unsafe { TVMFFITypeGetOrAllocIndex(&key, fixed, depth, slots, 1, parent) }
    };
    let rejected = |key: &str, fixed, depth, slots, parent| {
        let index_of_type = ask(key, fixed, depth, slots, parent);
        assert_eq!(index_of_type, -1, "{key}");
        raised().message().to_owned()
    };
    let message = rejected("test.capi.Huge", -1, 1, i32::MAX, index::OBJECT);
    assert!(message.contains("needs 2147483647 indices"), "{message}");
    rejected("test.capi.Large", -1, 1, 1 << 20, index::OBJECT);
    assert_eq!(tvmspec::value::types::key_of(index::STR), "ffi.String");

    // A fixed index with more room than there are indices: the indices below it stay inside.
    let fixed = 900_000;
    assert_eq!(
        ask("test.capi.Fixed", fixed, 1, i32::MAX, index::OBJECT),
        fixed
    );
    let inner = ask("test.capi.Inner", -1, 2, i32::MAX - 9, fixed);
    assert_eq!(inner, fixed + 1);
    rejected("test.capi.Outside", -1, 2, 0, fixed);

    // Another type has the next index first: neither loses it.
    let next = ask("test.capi.One", -1, 1, 0, index::OBJECT) + 1;
    let taken = next..next + 8;
    for at in taken.clone() {
        // Tests beside this one may have been faster.
        let _ = ask(&format!("test.capi.Taken{at}"), at, 1, 0, index::OBJECT);
    }
    for at in taken {
        let index_of_type = ask(&format!("test.capi.Next{at}"), -1, 1, 0, index::OBJECT);
        let key = tvmspec::value::types::key_of(index_of_type);
        assert_eq!(key, format!("test.capi.Next{at}"));
        let before = tvmspec::value::types::index_of(&format!("test.capi.Taken{at}"));
        assert!(before.is_none_or(|before| before != index_of_type));
    }
}

/// A library binary of layout 0.22: `_lib`, which imports a module of kind `tests.turns` without a payload.
static SYSTEM_BLOB: &[u8] = b"W\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\
    \0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0_lib\x0b\0\0\0\0\0\0\0tests.turns\0\0\0\0\0\0\0\0";

#[test]
fn code_that_is_called_once_may_come_back() {
    const NAME: &CStr = c"turns___tvm_ffi__library_bin";
    let blob = SYSTEM_BLOB.as_ptr().cast_mut().cast();
    assert_eq!(
        unsafe { TVMFFIEnvModRegisterSystemLibSymbol(NAME.as_ptr(), blob) },
        0
    );
    tvmspec::module::register_loader("tests.turns", |_| {
        // Its own library is not there yet; another is.
        let own = tvmspec::module::system_library("turns_").unwrap_err();
        assert!(own.reason().starts_with("MOD-17: "), "{}", own.reason());
        tvmspec::module::system_library("turns.other_")
    });
    // On a thread of its own: before, it waited for itself.
    within_seconds(|| {
        let system = tvmspec::module::system_library("turns_").unwrap();
        assert_eq!(system.imports().len(), 1);
        assert_eq!(system, tvmspec::module::system_library("turns_").unwrap());
    });
}

/// Runs `body` on a thread of its own, which is to be done soon.
fn within_seconds(body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        sender.send(()).unwrap();
    });
    let waited = receiver.recv_timeout(std::time::Duration::from_secs(20));
    assert_ne!(
        waited,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout),
        "it waits for itself"
    );
    thread.join().unwrap();
}

/// The handles of [`an_initialiser_may_initialise_another_handle`].
static OUTER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static INNER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C-unwind" fn make_inner(out: *mut *mut c_void) -> i32 {
    unsafe { out.write(Box::into_raw(Box::new(6u64)).cast()) };
    0
}

unsafe extern "C-unwind" fn make_outer(out: *mut *mut c_void) -> i32 {
    let own = unsafe { TVMFFIHandleInitOnce(OUTER.as_ptr(), make_outer) };
    let other = unsafe { TVMFFIHandleInitOnce(INNER.as_ptr(), make_inner) };
    let taken = unsafe { TVMFFIHandleDeinitOnce(INNER.as_ptr(), end) };
    let made = (own, other, taken) == (-1, 0, 0);
    unsafe { out.write(ptr::without_provenance_mut(usize::from(made))) };
    0
}

#[test]
fn an_initialiser_may_initialise_another_handle() {
    within_seconds(|| {
        assert_eq!(
            unsafe { TVMFFIHandleInitOnce(OUTER.as_ptr(), make_outer) },
            0
        );
        assert_eq!(OUTER.load(Ordering::Relaxed).addr(), 1);
        assert!(INNER.load(Ordering::Relaxed).is_null());
    });
}
