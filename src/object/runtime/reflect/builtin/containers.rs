//! `ffi.Array`, `ffi.List`, `ffi.Map`, `ffi.Dict`, `ffi.Shape` and their accessors.
//!
//! A frontend reaches containers only through these functions. The name, the types in the metadata and the kind of errors of each are
//! therefore part of the interface (OBJ-03 to OBJ-09). Python converts a negative index before the call. Here a negative index is out of
//! bounds (OBJ-04).

use super::{def, def_packed, missing};
use crate::function::{Error, ErrorKind, Function, Param, Parameter, Result};
use crate::object::container::map::MapCursor;
use crate::object::hash::any_equal;
use crate::object::{Array, Dict, List, Map, Shape, VisitedObjects, pairs_of, sequence_of};
use crate::tensor::Device;
use crate::value::{Any, AnyView, Argument, Schema, cast, index};
use std::sync::{Mutex, PoisonError};

/// Registers the functions of this file.
pub(super) fn register() {
    sequences();
    maps();
    def_packed("ffi.Shape", |args| {
        // Packed, so that the caller can pass any number of extents without an array. Each argument is therefore checked here.
        let extents: Result<Vec<i64>> = args
            .iter()
            .enumerate()
            .map(|(at, &arg)| {
                cast::<i64>(arg).map_err(|_| {
                    Error::new(
                        // OBJ-09: a ValueError, although a typed parameter raises a TypeError. Upstream also checks these by hand.
                        ErrorKind::Value,
                        format!(
                            "Expect shape to take list of int arguments: argument {at} is `{}`",
                            crate::value::types::key_of(arg.type_index())
                        ),
                    )
                })
            })
            .collect();
        Ok(Shape::new(&extents?).into())
    });
    // Returns the CPU if there is no other device, so the result is never None.
    def(
        "ffi.ContainerFindFirstNonCPUDevice",
        |value: AnyView<'_>| first_device(value).unwrap_or(Device::CPU),
    );
}

/// A container that is passed without conversion. A function that only reads a container accepts no converted copy of the other kind
/// (VAL-10).
struct ExactContainer<'a, T>(&'a T);

impl<T: Argument + 'static> Parameter for ExactContainer<'static, T>
where
    for<'a> &'static T: Parameter<At<'a> = &'a T>,
{
    type At<'a> = ExactContainer<'a, T>;

    const PARAM: &'static Param = &Param {
        // Without the types of the elements, because they are not checked.
        schema: || Schema::plain(T::schema().name),
        // Exact match or failure: no value moves out of another container (as in the reference).
        borrowed: None,
        reads: |view| <Self as Parameter>::read(&view).is_some(),
    };

    fn read<'a>(view: &'a AnyView<'_>) -> Option<ExactContainer<'a, T>> {
        <&'static T as Parameter>::read(view).map(ExactContainer)
    }
}

/// Returns the arguments with a new reference to each, because a list keeps them after the call.
fn owned(args: &[AnyView<'_>]) -> Vec<Any> {
    args.iter().map(|arg| arg.to_any()).collect()
}

/// Returns the arguments as keys and values, for the function `name`.
fn pairs(name: &str, args: &[AnyView<'_>]) -> Result<impl Iterator<Item = (Any, Any)>> {
    let pairs = args.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(missing_value_error(name));
    }
    Ok(pairs.map(|pair| (pair[0].to_any(), pair[1].to_any())))
}

/// Returns whether `value` equals one of `items` as a map key (OBJ-02), where 1, 1.0 and true are three values. The element is the left
/// side, which a type's hook can observe (OBJ-38).
fn contains(items: &[Any], value: AnyView<'_>) -> Result<bool> {
    for item in items {
        if any_equal(item.view(), value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Registers the functions of arrays and lists. Functions that only read require the exact type (`ExactContainer`). Functions that
/// change a list take it by reference. An array converts to a list, and the change to that copy is lost, as in upstream.
fn sequences() {
    def_packed("ffi.Array", |args| Ok(Array::of_views(args).into()));
    def(
        "ffi.ArrayGetItem",
        |ExactContainer(array): ExactContainer<'_, Array>, at: i64| array.at(at),
    );
    def(
        "ffi.ArraySize",
        |ExactContainer(array): ExactContainer<'_, Array>| array.len(),
    );
    def(
        "ffi.ArrayContains",
        |ExactContainer(array): ExactContainer<'_, Array>, value: AnyView<'_>| {
            contains(array.as_slice(), value)
        },
    );
    def_packed("ffi.List", |args| Ok(List::new(owned(args)).into()));
    def(
        "ffi.ListGetItem",
        |ExactContainer(list): ExactContainer<'_, List>, at: i64| list.at(at),
    );
    def("ffi.ListSetItem", |list: &List, at: i64, value: Any| {
        list.set(at, value)
    });
    def(
        "ffi.ListSize",
        |ExactContainer(list): ExactContainer<'_, List>| list.len(),
    );
    def(
        "ffi.ListContains",
        // A copy: the equality of an element may change the list, so it must not be locked meanwhile.
        |ExactContainer(list): ExactContainer<'_, List>, value: AnyView<'_>| {
            contains(&list.to_vec(), value)
        },
    );
    def("ffi.ListAppend", |list: &List, value: Any| list.push(value));
    def("ffi.ListInsert", |list: &List, at: i64, value: Any| {
        list.insert(at, vec![value])
    });
    def("ffi.ListPop", |list: &List, at: i64| {
        // OBJ-04: the index is checked before `at + 1` is computed from it.
        list.at(at)?;
        let mut gone = list.remove(at, at + 1)?;
        Ok::<Any, Error>(gone.pop().unwrap_or_default())
    });
    def("ffi.ListErase", |list: &List, at: i64| {
        // OBJ-04: checked before `at + 1`, as above.
        list.at(at)?;
        list.remove(at, at + 1).map(drop)
    });
    def(
        "ffi.ListEraseRange",
        |list: &List, start: i64, stop: i64| list.remove(start, stop).map(drop),
    );
    def(
        "ffi.ListReplaceSlice",
        |list: &List, start: i64, stop: i64, by: List| {
            // OBJ-03: a copy first, so that a list may replace a slice of itself, as in upstream.
            list.replace_slice(start, stop, by.to_vec()).map(drop)
        },
    );
    def("ffi.ListReverse", |list: &List| list.reverse());
    def("ffi.ListClear", |list: &List| list.clear());
    def("ffi.ListReserve", |list: &List, count: i64| {
        // OBJ-03: a negative number reserves nothing, as in upstream.
        list.try_reserve(usize::try_from(count).unwrap_or(0))
    });
}

/// Returns the error for keys without a value. It is an InternalError, because upstream checks the count by an assertion.
fn missing_value_error(name: &str) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("{name} takes keys and values in turn: an even number of arguments"),
    )
}

/// Returns the iterator function of a map: 0 returns the key, 1 the value, and 2 advances.
///
/// A new iterator is at the first pair. An empty map has none, so the caller checks the size first. Any other number also advances, as in
/// upstream.
fn iterator(cursor: MapCursor) -> Function {
    // A function may be called from any thread through a shared reference.
    let cursor = Mutex::new(cursor);
    Function::named(None, move |command: i64| {
        let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is still held. It protects only the cursor, and reading a pair calls no hook.
        // Upstream's parameter has 32 bits, and keeps only the lower ones.
        let found = match command as i32 {
            0 => cursor.key(),
            1 => cursor.value(),
            _ => return Ok(Any::from(cursor.advance())),
        };
        found.ok_or_else(|| Error::new(ErrorKind::Index, "the map iterator is at its end"))
    })
}

/// Returns the found value, or the object of [`missing`]. None cannot mark a missing key, because it may be a value.
fn or_missing(found: Option<Any>) -> Any {
    found.unwrap_or_else(|| missing().clone().into())
}

/// Registers the functions of maps and dicts. None of them changes a map, which is immutable for a frontend.
fn maps() {
    def_packed("ffi.Map", |args| {
        Ok(Map::grown(&mut pairs("ffi.Map", args)?)?.into())
    });
    def(
        "ffi.MapSize",
        |ExactContainer(map): ExactContainer<'_, Map>| map.len(),
    );
    def(
        "ffi.MapGetItem",
        |ExactContainer(map): ExactContainer<'_, Map>, key: AnyView<'_>| map.at(key),
    );
    def(
        "ffi.MapCount",
        |ExactContainer(map): ExactContainer<'_, Map>, key: AnyView<'_>| {
            // An int (0 or 1) instead of a bool: the name and type are those of the C++ `count`.
            Ok::<i64, Error>(map.get(key)?.is_some().into())
        },
    );
    def(
        "ffi.MapForwardIterFunctor",
        |ExactContainer(map): ExactContainer<'_, Map>| iterator(MapCursor::of_map(map.clone())),
    );
    def(
        "ffi.MapGetItemOrMissing",
        |ExactContainer(map): ExactContainer<'_, Map>, key: AnyView<'_>| {
            map.get(key).map(or_missing)
        },
    );
    def_packed("ffi.Dict", |args| {
        Ok(Dict::grown(&mut pairs("ffi.Dict", args)?)?.into())
    });
    def(
        "ffi.DictSize",
        |ExactContainer(dict): ExactContainer<'_, Dict>| dict.len(),
    );
    def(
        "ffi.DictGetItem",
        |ExactContainer(dict): ExactContainer<'_, Dict>, key: AnyView<'_>| dict.at(key),
    );
    def("ffi.DictSetItem", |dict: &Dict, key: Any, value: Any| {
        dict.set(key, value)
    });
    def(
        "ffi.DictCount",
        |ExactContainer(dict): ExactContainer<'_, Dict>, key: AnyView<'_>| {
            Ok::<i64, Error>(dict.get(key)?.is_some().into())
        },
    );
    def("ffi.DictErase", |dict: &Dict, key: AnyView<'_>| {
        dict.remove(key).map(drop)
    });
    def("ffi.DictClear", |dict: &Dict| dict.clear());
    def(
        "ffi.DictForwardIterFunctor",
        |ExactContainer(dict): ExactContainer<'_, Dict>| iterator(MapCursor::of_dict(dict.clone())),
    );
    def(
        "ffi.DictGetItemOrMissing",
        |ExactContainer(dict): ExactContainer<'_, Dict>, key: AnyView<'_>| {
            dict.get(key).map(or_missing)
        },
    );
}

/// Returns the device of the first tensor, depth first, that is not on the CPU. Uses no recursion, so that nesting costs no stack.
/// Visits each container once, because it may occur in many places, and a list may contain itself.
fn first_device(value: AnyView<'_>) -> Option<Device> {
    // Upstream recurses and revisits shared containers. Deep or shared containers cost it the stack or exponential time.
    let seen = VisitedObjects::new();
    let mut open = vec![value.as_object()?.clone()];
    while let Some(object) = open.pop() {
        let view = AnyView::from(&object);
        if view.type_index() == index::TENSOR {
            let tensor = cast::<crate::object::Tensor>(view).ok();
            let device = tensor.map(|tensor| tensor.dl().device);
            // 1 is the CPU. Other memory that the CPU can access, such as pinned memory of CUDA (3), counts as another device.
            match device.filter(|device| device.kind != 1) {
                None => continue,
                found => return found,
            }
        }
        if !seen.add(&object).ok()? {
            continue;
        }
        // A value that is not an object contains no tensor.
        let inner = |item: &Any| item.view().as_object().cloned();
        let before = open.len();
        if let Some(items) = sequence_of(view) {
            open.extend(items.iter().filter_map(inner));
        } else if let Some(pairs) = pairs_of(view) {
            open.extend(pairs.iter().filter_map(|(_, value)| inner(value)));
        } else {
            continue;
        }
        // The last entry is visited next, so the parts are reversed to visit them in order.
        open[before..].reverse();
    }
    None
}
