//! `ffi.Array`, `ffi.List`, `ffi.Map`, `ffi.Dict`, `ffi.Shape` and their accessors.
//!
//! A frontend reaches containers by these functions alone, so each of them is part of the interface: its name, the types in its
//! metadata and the kind of its errors (OBJ-03 to OBJ-09). Python counts a negative index from the end before it calls one; here
//! it is outside of the sequence (OBJ-04).

use super::{def, def_packed, missing};
use crate::function::{Error, ErrorKind, Function, Param, Parameter, Result};
use crate::object::container::map::MapCursor;
use crate::object::hash::any_equal;
use crate::object::{Array, Dict, List, Map, Shape, VisitedObjects, pairs_of, sequence_of};
use crate::value::{Any, AnyView, Argument, DLDevice, Schema, cast, index};
use std::sync::{Mutex, PoisonError};

/// Registers the functions of this file.
pub(super) fn register() {
    sequences();
    maps();
    def_packed("ffi.Shape", |args| {
        // Packed, so that any number of extents goes without an array around them; hence the check of each argument is made here.
        let extents: Result<Vec<i64>> = args
            .iter()
            .enumerate()
            .map(|(at, &arg)| {
                cast::<i64>(arg).map_err(|_| {
                    Error::new(
                        // OBJ-09: a ValueError, where a typed parameter is a TypeError: upstream checks these by hand as well.
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
    // The CPU where none is found: the result is a device and never None.
    def(
        "ffi.ContainerFindFirstNonCPUDevice",
        |value: AnyView<'_>| first_device(value).unwrap_or(DLDevice::CPU),
    );
}

/// A container as it is: who only looks into one takes no converted copy of the other of its family (VAL-10).
struct ExactContainer<'a, T>(&'a T);

impl<T: Argument + 'static> Parameter for ExactContainer<'static, T>
where
    for<'a> &'static T: Parameter<At<'a> = &'a T>,
{
    type At<'a> = ExactContainer<'a, T>;

    const PARAM: &'static Param = &Param {
        // Without the types of its elements, which it does not look at.
        schema: || Schema::plain(T::schema().name),
        // As it is or not at all: what another gives up is not taken (as in the reference).
        borrowed: None,
        reads: |view| <Self as Parameter>::read(&view).is_some(),
    };

    fn read<'a>(view: &'a AnyView<'_>) -> Option<ExactContainer<'a, T>> {
        <&'static T as Parameter>::read(view).map(ExactContainer)
    }
}

/// The arguments with a reference of their own each, as a list keeps them beyond the call.
fn owned(args: &[AnyView<'_>]) -> Vec<Any> {
    args.iter().map(|arg| arg.to_any()).collect()
}

/// The arguments as keys and values, for the function `name`.
fn pairs(name: &str, args: &[AnyView<'_>]) -> Result<impl Iterator<Item = (Any, Any)>> {
    let pairs = args.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(odd(name));
    }
    Ok(pairs.map(|pair| (pair[0].to_any(), pair[1].to_any())))
}

/// Whether `value` is equal to one of `items` as keys of maps are (OBJ-02): 1, 1.0 and true are three values. The element is the
/// left side, as the hook of a type sees it (OBJ-38).
fn contains(items: &[Any], value: AnyView<'_>) -> Result<bool> {
    for item in items {
        if any_equal(item.view(), value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Registers the functions of arrays and lists. Those that look into one take it as it is (`ExactContainer`); those that change a list take a
/// list by reference, which an array converts to: the change of that copy is lost, as it is upstream.
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
        // A copy: the equality of an element may change the list, which must not be held meanwhile.
        |ExactContainer(list): ExactContainer<'_, List>, value: AnyView<'_>| {
            contains(&list.to_vec(), value)
        },
    );
    def("ffi.ListAppend", |list: &List, value: Any| list.push(value));
    def("ffi.ListInsert", |list: &List, at: i64, value: Any| {
        list.insert(at, vec![value])
    });
    def("ffi.ListPop", |list: &List, at: i64| {
        // OBJ-04: the index is held to the list before `at + 1` is computed from it.
        list.at(at)?;
        let mut gone = list.remove(at, at + 1)?;
        Ok::<Any, Error>(gone.pop().unwrap_or_default())
    });
    def("ffi.ListErase", |list: &List, at: i64| {
        // OBJ-04: as above, before `at + 1` is computed.
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
            // OBJ-03: a copy first, so that a list may replace a slice of itself, as upstream allows.
            list.replace_slice(start, stop, by.to_vec()).map(drop)
        },
    );
    def("ffi.ListReverse", |list: &List| list.reverse());
    def("ffi.ListClear", |list: &List| list.clear());
    def("ffi.ListReserve", |list: &List, count: i64| {
        // OBJ-03: a negative number is no room, as upstream.
        list.try_reserve(usize::try_from(count).unwrap_or(0))
    });
}

/// The error for keys without a value. Upstream checks the count by an assertion, hence the kind.
fn odd(name: &str) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("{name} takes keys and values in turn: an even number of arguments"),
    )
}

/// The iterator function of a map: 0 returns the key, 1 the value, 2 steps on.
///
/// Fresh, it is at the first pair; a map without pairs has none, so a caller looks at the size first. Any other number steps on, too,
/// as upstream.
fn iterator(cursor: MapCursor) -> Function {
    // Functions are called from any thread, and through a shared reference.
    let cursor = Mutex::new(cursor);
    Function::named(None, move |command: i64| {
        let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is still held; it protects a cursor, and reading a pair calls no hook.
        // Upstream's parameter has 32 bits, and takes the lower ones of what it gets.
        let found = match command as i32 {
            0 => cursor.key(),
            1 => cursor.value(),
            _ => return Ok(Any::from(cursor.advance())),
        };
        found.ok_or_else(|| Error::new(ErrorKind::Index, "the map iterator is at its end"))
    })
}

/// The value that was found, or the object of [`missing`]: None cannot say so, since it may be the value of a key.
fn or_missing(found: Option<Any>) -> Any {
    found.unwrap_or_else(|| missing().clone().into())
}

/// Registers the functions of maps and dicts. None changes a map, which is immutable to a frontend.
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
            // An int, 0 or 1, and no bool: its name and type are those of the C++ `count`.
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

/// The device of the first tensor, depth first, that the CPU does not own. It walks without recursion, so that nesting
/// costs no stack, and looks into a container once: one may be in many places, and a list in itself.
fn first_device(value: AnyView<'_>) -> Option<DLDevice> {
    // Upstream recurses and visits what occurs twice again: deep or shared containers cost it the stack, or exponential time.
    let seen = VisitedObjects::new();
    let mut open = vec![value.as_object()?.clone()];
    while let Some(object) = open.pop() {
        let view = AnyView::from(&object);
        if view.type_index() == index::TENSOR {
            let tensor = cast::<crate::object::Tensor>(view).ok();
            let device = tensor.map(|tensor| tensor.dl().device);
            // 1 is the CPU. Memory that the CPU merely reaches, pinned memory of CUDA (3) for one, counts as another device.
            match device.filter(|device| device.device_type != 1) {
                None => continue,
                found => return found,
            }
        }
        if !seen.add(&object).ok()? {
            continue;
        }
        // What is no object holds no tensor.
        let inner = |item: &Any| item.view().as_object().cloned();
        let before = open.len();
        if let Some(items) = sequence_of(view) {
            open.extend(items.iter().filter_map(inner));
        } else if let Some(pairs) = pairs_of(view) {
            open.extend(pairs.iter().filter_map(|(_, value)| inner(value)));
        } else {
            continue;
        }
        // The last of the list comes next, and the first part is the one that comes first.
        open[before..].reverse();
    }
    None
}
