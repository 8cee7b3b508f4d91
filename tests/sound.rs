//! What safe Rust does with the parts of this library that are made of raw memory: the safe ways, on real input, and the
//! ways that have to be refused.

#![cfg(feature = "frontend")]
#![forbid(unsafe_code)]

use tvmspec::function::{Error, Function, registry};
use tvmspec::object::{self, Array, Dict, List, Map, Tensor, construct, repr};
use tvmspec::rule::Kind;
use tvmspec::value::{Any, AnyView, DLDataType, cast, index, types};

fn call(name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
    object::init();
    registry::require(name)?.call(args)
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
    let float32 = DLDataType::scalar(2, 32);
    let tensor = Tensor::empty(&[2, 3], float32).unwrap();
    tensor.fill(&[1; 24]).unwrap();
    let same = Function::from_typed(|tensor: Tensor| tensor);
    let answer = same.call(&[AnyView::from(&tensor)]).unwrap();
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
    // Safe code comes by a pointer all the same: this one is the hook of another type.
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
fn a_maker_that_makes_something_else_is_refused() {
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
