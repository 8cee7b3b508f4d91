//! Types of C code: their indices, fields, attributes and hashes.

use super::raised;
use std::ffi::c_void;
use std::ptr;
use tvmspec::capi::ffi::types::*;
use tvmspec::function::{Error, Function};
use tvmspec::object::Tensor;
use tvmspec::object::hash::any_hash;
use tvmspec::object::json_graph::legacy::LegacyGraph;
use tvmspec::release::Release;
use tvmspec::tensor::Dtype;
use tvmspec::value::header::{Header, ObjectRef};
use tvmspec::value::types::{Column, FieldInfo, MethodInfo, TypeMetadata, flag};
use tvmspec::value::{Any, AnyPayload, AnyView, ByteArray, RawAny, index};

/// An object of a C type: a header and a number.
#[repr(C)]
struct Numbered {
    header: Header,
    number: i64,
}

/// `TVMFFIFieldInfo` as C code fills it in.
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

/// `TVMFFIMethodInfo` as C code fills it in.
#[repr(C)]
struct Method {
    name: ByteArray,
    doc: ByteArray,
    metadata: ByteArray,
    flags: i64,
    method: RawAny,
}

/// `TVMFFITypeMetadata` as C code fills it in.
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
    // The caller's data is freed, but the table has its own copy.
    let method = info.methods().first().unwrap();
    assert_eq!(method.name(), "double");
    let method = unsafe { &*ptr::from_ref(method).cast::<Method>() };
    let double = unsafe { AnyView::from_raw(method.method) };
    let double: Function = tvmspec::value::cast(double).unwrap();
    let doubled = double.call((21i64,)).unwrap();
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

/// An object of a C type: a header and three values.
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

/// Stands for the function with which a graph creates an object. A type with such a function can be saved.
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
            Any::from(Dtype::FLOAT32),
            tensor(1).into(),
            tensor(2).into(),
        ],
    }));
    let object = unsafe { ObjectRef::from_raw(object.cast()) };
    let object = Any::from(object);
    let graph = LegacyGraph::from_value(object.view(), Release::of(19)).unwrap();
    let node = graph.nodes.last().unwrap();
    assert_eq!(node.type_key, "test.capi.Three");
    for (name, text) in [("dtype", "float32"), ("first", "0"), ("second", "1")] {
        assert_eq!(node.attrs[name], text.as_bytes(), "{name}");
    }
    assert!(graph.tensor(1).is_some() && graph.tensor(2).is_none());
}

/// Returns the number of the object as its hash.
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

    // The fixed index reserves more room than there are indices. Indices below it stay inside the range.
    let fixed = 900_000;
    assert_eq!(
        ask("test.capi.Fixed", fixed, 1, i32::MAX, index::OBJECT),
        fixed
    );
    let inner = ask("test.capi.Inner", -1, 2, i32::MAX - 9, fixed);
    assert_eq!(inner, fixed + 1);
    rejected("test.capi.Outside", -1, 2, 0, fixed);

    // Another type gets the next index first, and neither type loses its index.
    let next = ask("test.capi.One", -1, 1, 0, index::OBJECT) + 1;
    let taken = next..next + 8;
    for at in taken.clone() {
        // Tests that run at the same time may have taken the index already.
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
