//! Registry functions, sentinels, conversions to the builtin types, enumerations, big integers.
//!
//! | names | purpose |
//! |---|---|
//! | `ffi.GetRegisteredTypeKeys`, `ffi.Function...`, `ffi.GetGlobalFuncMetadata` | list registered types and functions, wrap C functions |
//! | `ffi.GetInvalidObject`, `ffi.GetKwargsObject` | the two sentinels, recognized by identity |
//! | `ffi.String`, `ffi.Bytes` | an owned copy of text or bytes |
//! | attribute `__ffi_convert__` | conversion of a value for a declared field or parameter in Python |
//! | `ffi.EnumState`, `ffi.Enum`, `ffi.IntEnum`, `ffi.StrEnum` | enumerations: OBJ-18 saves a member by its name or number |
//! | hooks of `ffi.BigInt` | integers beyond 64 bits as keys, in comparison and in the JSON graph (OBJ-10, OBJ-18) |

use super::{ArrayOf, def, kwargs, missing};
use crate::function::{Error, ErrorKind, Function, Result, SafeCall, registry};
use crate::object::reflect::column;
use crate::object::reflect::describe::{TypeDescription, field};
use crate::object::{Array, Dict, List, Map, Shape, Tensor, big_int};
use crate::value::header::{Header, HeaderSlot, Object, ObjectRef, Ref, dynamic_object};
use crate::value::types::{self, ObjectIndex, flag};
use crate::value::{Any, AnyView, Argument, Bytes, Schema, Str, index};
use std::ffi::c_void;

/// Registers the types and functions of this file, after `start` has allocated the indices of the types.
///
/// The results of registrations are ignored: a type that already has an attribute or field keeps it (VAL-15).
pub(super) fn register() {
    // The root type has a size but no creator: a bare object is only a sentinel.
    let root = types::TypeMetadata {
        doc: crate::value::ByteArray::EMPTY,
        creator: None,
        total_size: size_of::<Header>() as i32,
        structural_kind: 0,
    };
    // SAFETY: no documentation and no creator; every object has a header.
    let _ = unsafe { types::set_metadata(index::OBJECT, root) };
    // The C++ `sizeof`, which includes the vtable pointer before the header.
    let module = TypeDescription::opaque(index::MODULE, 48, 0);
    // Python reads the imports of a module as a field, not through a function.
    let imports = "{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"Any\"}]}";
    let behind = size_of::<Header>();
    // SAFETY: a module has the array of its imports after its header, in this library as in C++ of every release.
    unsafe { module.field::<Array>("imports_", "", behind, index::ARRAY, 0, imports) };
    // The metadata names the type of the elements, which `Array` alone does not state.
    def("ffi.GetRegisteredTypeKeys", || {
        let keys = types::keys().into_iter();
        ArrayOf::<Str>::new(keys.map(Any::from).collect())
    });
    def("ffi.GetInvalidObject", || missing().clone());
    // The older name in tvm-ffi 0.1.7 and 0.1.8, whose Python looks it up during import.
    def("ffi.MapGetMissingObject", || missing().clone());
    def("ffi.GetKwargsObject", || kwargs().clone());
    def("ffi.FunctionRemoveGlobal", |name: &str| {
        registry::remove(name)
    });
    def("ffi.FunctionListGlobalNamesFunctor", list_names);
    // The argument conversion already copies borrowed C strings and byte arrays into owned values.
    def("ffi.String", |value: Str| value);
    def("ffi.Bytes", |value: Bytes| value);
    def("ffi.GetGlobalFuncMetadata", |name: &str| {
        registry::details(name)
            .map(|details| details.metadata)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Runtime,
                    format!("Global Function is not found: {name}"),
                )
            })
    });
    def(
        "ffi.FunctionFromExternC",
        |context: *mut c_void, call: *mut c_void, finish: *mut c_void| {
            // Upstream accepts null, and the process crashes when the function is called.
            if call.is_null() {
                return Err(Error::new(
                    ErrorKind::Value,
                    "the function must not be null",
                ));
            }
            type Finish = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
            // SAFETY: the caller that looked this builtin up guarantees the addresses (the contract of `registry::lookup_raw`).
            let call = unsafe { std::mem::transmute::<*mut c_void, SafeCall>(call) };
            // SAFETY: as for the function; null is `None`.
            let finish = unsafe { std::mem::transmute::<*mut c_void, Finish>(finish) };
            // SAFETY: the function belongs to this context, by that contract.
            Ok(unsafe { Function::from_c(context, call, finish) })
        },
    );
    conversions();
    enumerations();
    big_integers();
}

/// Implements `ffi.FunctionListGlobalNamesFunctor`: returns a function over the current names. For a negative argument, that function
/// returns the number of names. For any other argument, it returns the name at that position.
///
/// Upstream returns a function instead of an array, so that a frontend can list names before it can read arrays.
fn list_names() -> Function {
    // A snapshot: positions stay stable while functions are registered.
    let names = registry::names();
    Function::named(None, move |at: i64| match usize::try_from(at) {
        Err(_) => Ok(Any::from(names.len())),
        Ok(at) => names
            .get(at)
            .map(|name| Any::from(*name))
            .ok_or_else(|| Error::new(ErrorKind::Index, format!("there is no name {at}"))),
    })
}

/// Returns the attribute that converts any value to a type.
///
/// The function takes one value. If there is no conversion, it raises a TypeError that names both types.
pub(super) fn convert_to<T: Argument + 'static>() -> Any
where
    Any: From<T>,
{
    converter(|value| T::try_from_view(value).map(Any::from), T::schema)
}

/// Does the work of [`convert_to`] without its type parameter, so that it is compiled once.
fn converter(convert: fn(AnyView<'_>) -> Option<Any>, schema: fn() -> Schema) -> Any {
    let body = move |args: &[AnyView<'_>]| {
        let [value] = args else {
            return Err(Error::new(ErrorKind::Type, "a conversion takes one value"));
        };
        convert(*value).ok_or_else(|| no_conversion(value.type_index(), schema))
    };
    Function::from_packed(body).into()
}

/// Returns the TypeError of a conversion, in upstream's words.
#[cold]
fn no_conversion(from: i32, schema: fn() -> Schema) -> Error {
    let (from, to) = (types::key_of(from), schema().text());
    Error::new(
        ErrorKind::Type,
        format!("Cannot cast from `{from}` to `{to}`"),
    )
}

/// Registers `__ffi_convert__` of the types with a fixed index. Upstream also leaves out modules and opaque objects of a frontend.
fn conversions() {
    let list: [(i32, Any); 11] = [
        (index::OBJECT, convert_to::<ObjectRef>()),
        (index::STR, convert_to::<Str>()),
        (index::BYTES, convert_to::<Bytes>()),
        (index::ERROR, convert_to::<Error>()),
        (index::FUNCTION, convert_to::<Function>()),
        (index::SHAPE, convert_to::<Shape>()),
        (index::TENSOR, convert_to::<Tensor>()),
        (index::ARRAY, convert_to::<Array>()),
        (index::MAP, convert_to::<Map>()),
        (index::LIST, convert_to::<List>()),
        (index::DICT, convert_to::<Dict>()),
    ];
    for (type_index, convert) in list {
        let _ = types::set_attr(type_index, column::CONVERT.name(), convert);
    }
}

/// `ffi.EnumState`: the members of an enumeration, stored in the attribute `__ffi_enum__` of its type. All copies share its three
/// containers. The library that defines the enumeration fills them.
#[repr(C)]
#[derive(Clone)]
struct EnumState {
    header: HeaderSlot,
    /// The members, in order of registration.
    entries: List,
    /// The members by number and by name. Both are keys of one dict, because an int never equals a string (OBJ-02).
    indexes: Dict,
    /// Extra values of members: for each attribute name, a dict from member to value.
    attrs: Dict,
}

dynamic_object!(EnumState, "ffi.EnumState");

impl Default for EnumState {
    fn default() -> EnumState {
        EnumState {
            header: HeaderSlot::default(),
            entries: List::new(Vec::new()),
            indexes: Dict::new(),
            attrs: Dict::new(),
        }
    }
}

/// Declares the Rust type of the members of an enumeration: a number and a name after the header. Numbered and named enumerations have
/// the same layout. They differ in the content of their field `value`.
macro_rules! enumeration {
    ($name:ident, $key:literal $(, below $parent:ty)?) => {
        #[repr(C)]
        #[derive(Clone)]
        struct $name {
            header: HeaderSlot,
            int_index: i64,
            str_index: Str,
        }

        dynamic_object!($name, $key $(, below $parent)?);

        impl Default for $name {
            fn default() -> $name {
                $name {
                    header: HeaderSlot::default(),
                    int_index: 0,
                    str_index: Str::new(""),
                }
            }
        }
    };
}

enumeration!(Enum, "ffi.Enum");
enumeration!(IntEnum, "ffi.IntEnum", below Enum);
enumeration!(StrEnum, "ffi.StrEnum", below Enum);

/// The indices of the types of this file, in the order of upstream.
pub(super) const INDICES: [fn() -> ObjectIndex; 4] = [
    EnumState::type_index,
    Enum::type_index,
    IntEnum::type_index,
    StrEnum::type_index,
];

/// Returns the type index of `ffi.Enum`, the base type of every enumeration.
pub(crate) fn enum_index() -> i32 {
    Enum::type_index().get()
}

/// Returns the name of an enumeration's member; `None` for an object of another type.
pub(crate) fn enum_name(member: &ObjectRef) -> Option<Str> {
    member.get::<Enum>().map(|member| member.str_index.clone())
}

/// Returns the number of an enumeration's member; `None` for an object of another type.
pub(crate) fn enum_number(member: &ObjectRef) -> Option<i64> {
    member.get::<Enum>().map(|member| member.int_index)
}

/// Registers the four enumeration types with reflection. Names, texts and flags of the fields match upstream, because stubs and
/// `TVMFFIGetTypeInfo` show them.
fn enumerations() {
    const INT: &str = "{\"type\":\"int\"}";
    const STR: &str = "{\"type\":\"ffi.String\"}";
    // OBJ-15: fields that no constructor accepts, as upstream marks them.
    const HIDDEN: i64 = flag::INIT_OFF;
    let state = TypeDescription::<EnumState>::creatable(0);
    field!(state, EnumState, entries: List,
        "entries", "Enum singletons in registration order.", index::LIST, HIDDEN,
        "{\"type\":\"ffi.List\",\"args\":[{\"type\":\"ffi.Object\"}]}");
    field!(state, EnumState, indexes: Dict,
        "indexes", "Canonical integer and string indices to enum singletons.", index::OBJECT, HIDDEN,
        "{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"Any\"},{\"type\":\"ffi.Object\"}]}");
    field!(state, EnumState, attrs: Dict,
        "attrs", "Extensible-attribute columns keyed by enum singleton.", index::OBJECT, HIDDEN,
        "{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"ffi.String\"},{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"ffi.Object\"},{\"type\":\"Any\"}]}]}");
    state
        .method("__ffi_init__", "", true, || {
            Ref::new(EnumState::default()).into_object()
        })
        .attr(
            &column::INIT,
            Function::named(None, || Ref::new(EnumState::default()).into_object()).into(),
        );
    let numbers = "Canonical integer index.";
    let names = "Canonical string index.";
    // `value` repeats a field of `ffi.Enum`, so it is excluded from structural comparison and hash.
    let hidden = HIDDEN | flag::EQ_HASH_IGNORE;
    // 5: compared by identity, because each member is a single object.
    let any = TypeDescription::<Enum>::creatable(5);
    field!(any, Enum, int_index: i64, "_int_index", numbers, index::INT, flag::EQ_HASH_IGNORE, INT);
    field!(any, Enum, str_index: Str, "_str_index", names, index::ANY, 0, STR);
    let numbered = TypeDescription::<IntEnum>::creatable(5);
    field!(numbered, IntEnum, int_index: i64, "value", numbers, index::INT, hidden, INT);
    numbered.attr(&column::CONVERT, convert_to::<Ref<IntEnum>>());
    let named = TypeDescription::<StrEnum>::creatable(5);
    field!(named, StrEnum, str_index: Str, "value", names, index::ANY, hidden, STR);
    named.attr(&column::CONVERT, convert_to::<Ref<StrEnum>>());
}

/// Returns the words of an int or a big integer, least significant first.
fn words(value: AnyView<'_>) -> Result<Vec<i64>> {
    big_int::words_of(&value)
        .map(<[i64]>::to_vec)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Type,
                format!(
                    "Cannot convert from type `{}` to `BigInt`",
                    types::key_of(value.type_index())
                ),
            )
        })
}

/// Registers the hooks of `ffi.BigInt`. Two objects with the same number are equal, have the same hash, and are the same key (OBJ-10,
/// OBJ-14).
fn big_integers() {
    // The size of the fixed part. The number determines how many words follow.
    TypeDescription::opaque(index::BIG_INT, 32, 0)
        // Function objects: C++ of every tvm-ffi calls these in the same way, which is not true of bare functions (OBJ-38).
        .attr(
            &column::ANY_HASH,
            Function::named(None, |value: AnyView<'_>| {
                Ok::<i64, Error>(big_int::hash(&words(value)?) as i64)
            })
            .into(),
        )
        .attr(
            &column::ANY_EQUAL,
            Function::named(None, |left: AnyView<'_>, right: AnyView<'_>| {
                Ok::<bool, Error>(words(left)? == words(right)?)
            })
            .into(),
        )
        .attr(
            // The third argument compares parts, which a number does not have.
            &column::EQ,
            Function::named(
                None,
                |left: AnyView<'_>, right: AnyView<'_>, _: AnyView<'_>| {
                    Ok::<bool, Error>(words(left)? == words(right)?)
                },
            )
            .into(),
        )
        .attr(
            &column::COMPARE,
            Function::named(
                None,
                |left: AnyView<'_>, right: AnyView<'_>, _: AnyView<'_>| {
                    // -1, 0 or 1.
                    let order = big_int::compare(&words(left)?, &words(right)?);
                    Ok::<i64, Error>(order as i64)
                },
            )
            .into(),
        )
        .attr(
            &column::HASH,
            Function::named(None, |value: AnyView<'_>, _: AnyView<'_>| {
                Ok::<i64, Error>(big_int::hash(&words(value)?) as i64)
            })
            .into(),
        )
        .attr(
            // Decimal digits as text (OBJ-18): JSON numbers are read as int or float, and lose precision beyond 64 bits.
            &column::DATA_TO_JSON,
            Function::named(None, |value: AnyView<'_>| {
                Ok::<String, Error>(big_int::to_decimal(&words(value)?))
            })
            .into(),
        )
        .attr(
            &column::DATA_FROM_JSON,
            // Called while a graph is read, whose text may come from an untrusted file.
            Function::named(None, |text: &str| big_int::from_untrusted_decimal(text)).into(),
        );
}
