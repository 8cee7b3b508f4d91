//! Registry functions, sentinels, conversions to the builtin types, enumerations, big integers.
//!
//! | names | what they are for |
//! |---|---|
//! | `ffi.GetRegisteredTypeKeys`, `ffi.Function...`, `ffi.GetGlobalFuncMetadata` | what is registered, and functions of C addresses |
//! | `ffi.GetInvalidObject`, `ffi.GetKwargsObject` | the two sentinels, known by their identity |
//! | `ffi.String`, `ffi.Bytes` | a text or bytes as a value of its own |
//! | attribute `__ffi_convert__` | how a declared field or parameter of Python takes a value of another type |
//! | `ffi.EnumState`, `ffi.Enum`, `ffi.IntEnum`, `ffi.StrEnum` | enumerations: OBJ-18 saves a member by its name or number |
//! | hooks of `ffi.BigInt` | integers beyond 64 bits as keys, in comparison and in the JSON graph (OBJ-10, OBJ-18) |

use super::{ArrayOf, def, kwargs, missing};
use crate::function::{Error, ErrorKind, Function, Result, SafeCall, registry};
use crate::object::reflect::column;
use crate::object::reflect::describe::{TypeDescription, field};
use crate::object::{Array, Dict, List, Map, Shape, Tensor, big_int};
use crate::value::header::{Header, Object, ObjectRef, Ref, dynamic_object};
use crate::value::heap::delete_plain;
use crate::value::types::{self, ObjectIndex, flag};
use crate::value::{Any, AnyView, Argument, Bytes, Schema, Str, index};
use std::ffi::c_void;

/// Registers the types and functions of this file, after `start` has allocated the indices of the types.
///
/// Results of registrations are dropped: a type that has a part already keeps it (VAL-15).
pub(super) fn register() {
    // The root has a size and no way to make it: a bare object is only a sentinel.
    let root = types::TypeMetadata {
        doc: crate::value::ByteArray::EMPTY,
        creator: None,
        total_size: size_of::<Header>() as i32,
        structural_kind: 0,
    };
    // SAFETY: no documentation and no creator; every object has a header.
    let _ = unsafe { types::set_metadata(index::OBJECT, root) };
    // The `sizeof` of C++, which counts the address of the table of virtual functions in front of the header.
    let module = TypeDescription::opaque(index::MODULE, 48, 0);
    // Python reads a module's imports as a field, not by a function.
    let imports = "{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"Any\"}]}";
    let behind = size_of::<Header>();
    // SAFETY: a module has the array of its imports behind its header, in this library as in C++ of every release.
    unsafe { module.field::<Array>("imports_", "", behind, index::ARRAY, 0, imports) };
    // The metadata name the type of the elements, which `Array` alone does not have.
    def("ffi.GetRegisteredTypeKeys", || {
        let keys = types::keys().into_iter();
        ArrayOf::<Str>::new(keys.map(Any::from).collect())
    });
    def("ffi.GetInvalidObject", || missing().clone());
    // The same in tvm-ffi 0.1.7 and 0.1.8, whose Python looks it up when it is imported.
    def("ffi.MapGetMissingObject", || missing().clone());
    def("ffi.GetKwargsObject", || kwargs().clone());
    def("ffi.FunctionRemoveGlobal", |name: &str| {
        registry::remove(name)
    });
    def("ffi.FunctionListGlobalNamesFunctor", list_names);
    // Borrowed C strings and byte arrays become values of their own by the conversion of the argument; there is no more to it.
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
            // Upstream makes the function all the same, and the process ends when it is called.
            if call.is_null() {
                return Err(Error::new(
                    ErrorKind::Value,
                    "the function must not be null",
                ));
            }
            type Finish = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
            // SAFETY: the caller that looked this builtin up vouches for the addresses (the contract of `registry::lookup_raw`).
            let call = unsafe { std::mem::transmute::<*mut c_void, SafeCall>(call) };
            // SAFETY: as for the function; null is None.
            let finish = unsafe { std::mem::transmute::<*mut c_void, Finish>(finish) };
            // SAFETY: the function is for this context, by that contract.
            Ok(unsafe { Function::from_c(context, call, finish) })
        },
    );
    conversions();
    enumerations();
    big_integers();
}

/// `ffi.FunctionListGlobalNamesFunctor`: a function over the names as they are now. A negative number returns how many there are,
/// any other the name at that position.
///
/// Upstream returns a function and no array, so that a frontend can list names before it knows how to read arrays.
fn list_names() -> Function {
    // A snapshot: positions stay what they are while functions are registered.
    let names = registry::names();
    Function::named(None, move |at: i64| match usize::try_from(at) {
        Err(_) => Ok(Any::from(names.len())),
        Ok(at) => names
            .get(at)
            .map(|name| Any::from(*name))
            .ok_or_else(|| Error::new(ErrorKind::Index, format!("there is no name {at}"))),
    })
}

/// The attribute that converts any value to a type.
///
/// The function takes one value and raises a TypeError that names both types where there is no conversion.
pub(super) fn convert_to<T: Argument + 'static>() -> Any
where
    Any: From<T>,
{
    converter(|value| T::try_from_view(value).map(Any::from), T::schema)
}

/// The function of [`convert_to`], without its type parameter, so that it is compiled once.
fn converter(convert: fn(AnyView<'_>) -> Option<Any>, schema: fn() -> Schema) -> Any {
    let body = move |args: &[AnyView<'_>]| {
        let [value] = args else {
            return Err(Error::new(ErrorKind::Type, "a conversion takes one value"));
        };
        convert(*value).ok_or_else(|| no_conversion(value.type_index(), schema))
    };
    Function::from_packed(body).into()
}

/// The TypeError of a conversion, in upstream's words.
#[cold]
fn no_conversion(from: i32, schema: fn() -> Schema) -> Error {
    let (from, to) = (types::key_of(from), schema().text());
    Error::new(
        ErrorKind::Type,
        format!("Cannot cast from `{from}` to `{to}`"),
    )
}

/// Registers `__ffi_convert__` of the types with a fixed index. Upstream leaves out modules and opaque objects of a frontend, too.
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

/// `ffi.EnumState`: the members of an enumeration, which the attribute `__ffi_enum__` of its type holds. Its three containers are
/// shared by all copies, and filled by the library that defines the enumeration.
#[repr(C)]
struct EnumState {
    header: Header,
    /// The members, in the order of registration.
    entries: List,
    /// The members by number and by name, which are keys of one dict: an int never equals a string (OBJ-02).
    indexes: Dict,
    /// Further values of members: by name of the attribute, a dict from the member to its value.
    attrs: Dict,
}

dynamic_object!(EnumState, "ffi.EnumState");

/// A header for a value that is not on the heap yet; [`Ref::new`] overwrites it with that of the type.
fn blank() -> Header {
    Header::new(index::OBJECT, delete_plain)
}

impl Default for EnumState {
    fn default() -> EnumState {
        EnumState {
            header: blank(),
            entries: List::new(Vec::new()),
            indexes: Dict::new(),
            attrs: Dict::new(),
        }
    }
}

impl Clone for EnumState {
    fn clone(&self) -> EnumState {
        EnumState {
            header: blank(),
            entries: self.entries.clone(),
            indexes: self.indexes.clone(),
            attrs: self.attrs.clone(),
        }
    }
}

/// Declares the Rust type of members of an enumeration: a number and a name behind the header. Those of numbered and of named
/// enumerations have the same layout, and differ in what their field `value` shows.
macro_rules! enumeration {
    ($name:ident, $key:literal $(, below $parent:ty)?) => {
        #[repr(C)]
        struct $name {
            header: Header,
            int_index: i64,
            str_index: Str,
        }

        dynamic_object!($name, $key $(, below $parent)?);

        impl Default for $name {
            fn default() -> $name {
                $name {
                    header: blank(),
                    int_index: 0,
                    str_index: Str::new(""),
                }
            }
        }

        impl Clone for $name {
            fn clone(&self) -> $name {
                $name {
                    header: blank(),
                    int_index: self.int_index,
                    str_index: self.str_index.clone(),
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

/// Type index of `ffi.Enum`, below which every enumeration lies.
pub(crate) fn enum_index() -> i32 {
    Enum::type_index().get()
}

/// Name of an enumeration's member; `None` for an object of another type.
pub(crate) fn enum_name(member: &ObjectRef) -> Option<Str> {
    member.get::<Enum>().map(|member| member.str_index.clone())
}

/// Number of an enumeration's member; `None` for an object of another type.
pub(crate) fn enum_number(member: &ObjectRef) -> Option<i64> {
    member.get::<Enum>().map(|member| member.int_index)
}

/// Describes the four types of enumerations to reflection. Names, texts and flags of the fields are those of upstream: stubs and
/// `TVMFFIGetTypeInfo` show them.
fn enumerations() {
    const INT: &str = "{\"type\":\"int\"}";
    const STR: &str = "{\"type\":\"ffi.String\"}";
    // OBJ-15: fields that no constructor takes, as upstream marks them.
    const HIDDEN: i64 = flag::INIT_OFF;
    let state = TypeDescription::<EnumState>::whole(0);
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
    // `value` shows one of the fields of `ffi.Enum` once more, so it takes no part in structural comparison and hash.
    let hidden = HIDDEN | flag::EQ_HASH_IGNORE;
    // 5: compared by identity, since each member is one object.
    let any = TypeDescription::<Enum>::whole(5);
    field!(any, Enum, int_index: i64, "_int_index", numbers, index::INT, flag::EQ_HASH_IGNORE, INT);
    field!(any, Enum, str_index: Str, "_str_index", names, index::ANY, 0, STR);
    let numbered = TypeDescription::<IntEnum>::whole(5);
    field!(numbered, IntEnum, int_index: i64, "value", numbers, index::INT, hidden, INT);
    numbered.attr(&column::CONVERT, convert_to::<Ref<IntEnum>>());
    let named = TypeDescription::<StrEnum>::whole(5);
    field!(named, StrEnum, str_index: Str, "value", names, index::ANY, hidden, STR);
    named.attr(&column::CONVERT, convert_to::<Ref<StrEnum>>());
}

/// The words of an int or a big integer, least significant first.
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

/// Sets the hooks of `ffi.BigInt`: two objects of one number are the same key, equal, and of the same hash, although they are two
/// objects (OBJ-10, OBJ-14).
fn big_integers() {
    // The fixed part: the words behind it are as many as the number needs.
    TypeDescription::opaque(index::BIG_INT, 32, 0)
        // Function objects: C++ of every tvm-ffi calls these alike, bare functions it does not (OBJ-38).
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
            // The third argument compares parts, of which a number has none.
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
            // Decimal digits as a text (OBJ-18): numbers of JSON are read as int or float, and lose what is beyond 64 bits.
            &column::DATA_TO_JSON,
            Function::named(None, |value: AnyView<'_>| {
                Ok::<String, Error>(big_int::to_decimal(&words(value)?))
            })
            .into(),
        )
        .attr(
            &column::DATA_FROM_JSON,
            // Called where a graph is read, which is a file's.
            Function::named(None, |text: &str| big_int::from_untrusted_decimal(text)).into(),
        );
}
