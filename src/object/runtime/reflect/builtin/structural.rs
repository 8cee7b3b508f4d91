//! Registration of structural equality and hash, and a key type that uses them.
//!
//! The two flags of these functions come from upstream. With `map_free_vars`, two free variables are equal if each corresponds only to the
//! other. `skip` ignores the contents of tensors. Hashes are 64 bits stored in an int, so half of them are negative.

use super::def;
use super::path::AccessPath;
use crate::function::{Error, ErrorKind, Function, Result, ResultSchema};
use crate::object::reflect::column;
use crate::object::reflect::describe::{TypeDescription, field};
use crate::object::structural;
use crate::value::header::{HeaderSlot, Object, Ref, dynamic_object};
use crate::value::types::{self, ObjectIndex};
use crate::value::{Any, AnyView, Argument, Schema, cast, index};

/// A value with its structural hash, for use as a map key.
///
/// | bytes | field |
/// |---|---|
/// | 24..40 | the value |
/// | 40..48 | its structural hash, as i64 |
#[repr(C)]
#[derive(Clone, Default)]
struct Key {
    header: HeaderSlot,
    /// The compared value.
    key: Any,
    /// Structural hash at the time of creation. A key whose value changes afterwards is no longer found.
    hash: i64,
}

const _: () = assert!(size_of::<Key>() == 48);

dynamic_object!(Key, "ffi.StructuralKey");

/// Returns the type index of `ffi.StructuralKey`.
pub(super) fn key_index() -> ObjectIndex {
    Key::type_index()
}

/// Creates a key for `value`, and computes its structural hash once.
fn key_of(value: Any) -> Result<Ref<Key>> {
    // OBJ-14: as in upstream, free variables are not mapped, and the contents of tensors count.
    let hash = structural::hash(value.view(), false, false)? as i64;
    Ok(Ref::new(Key {
        header: HeaderSlot::default(),
        key: value,
        hash,
    }))
}

/// Returns whether the values of two keys are structurally equal. The hashes are compared first, because most unequal values differ
/// there.
fn same_key(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let (left, right) = (cast::<Ref<Key>>(left)?, cast::<Ref<Key>>(right)?);
    // An object equals itself, independent of its content. Contents are compared only if the hashes are equal.
    Ok(left.as_ptr() == right.as_ptr()
        || (left.hash == right.hash
            && structural::equal(left.key.view(), right.key.view(), false, false)?))
}

/// The paths to the first difference on the left and on the right, as the pair that `ffi.GetFirstStructuralMismatch` returns; None without
/// a difference.
struct Mismatch(Option<(AccessPath, AccessPath)>);

impl From<Mismatch> for Any {
    fn from(found: Mismatch) -> Any {
        structural::mismatch_value(found.0)
    }
}

impl ResultSchema for Mismatch {
    fn result_schema() -> Schema {
        // C++ returns a tuple, which is an array of fixed length in this ABI.
        let pair = || Schema::with("Tuple", &[AccessPath::schema, AccessPath::schema]);
        Schema::with("Optional", &[pair])
    }
}

/// Registers the functions of this file, and describes `ffi.StructuralKey`: a map key whose hash and equality are structural.
pub(super) fn register() {
    def(
        "ffi.StructuralEqual",
        |left: Any, right: Any, map_free_vars: bool, skip: bool| {
            structural::equal(left.view(), right.view(), map_free_vars, skip)
        },
    );
    def(
        "ffi.GetFirstStructuralMismatch",
        |left: Any, right: Any, map_free_vars: bool, skip: bool| {
            structural::first_mismatch(left.view(), right.view(), map_free_vars, skip).map(Mismatch)
        },
    );
    def(
        "ffi.StructuralHash",
        |value: Any, map_free_vars: bool, skip: bool| {
            structural::hash(value.view(), map_free_vars, skip).map(|hash| hash as i64)
        },
    );
    def("ffi.StructuralKey", key_of);
    def("ffi.StructuralKeyEqual", |left: Any, right: Any| {
        for side in [&left, &right] {
            // The signature accepts any objects. Another type is reported as an internal error, as in the reference.
            if <Ref<Key>>::try_from_view(side.view()).is_none() {
                let key = types::key_of(side.type_index());
                let message = format!("`{key}` is not a `ffi.StructuralKey`");
                return Err(Error::new(ErrorKind::Internal, message));
            }
        }
        same_key(left.view(), right.view())
    });
    let any = "{\"type\":\"Any\"}";
    let int = "{\"type\":\"int\"}";
    let describe = TypeDescription::<Key>::creatable(0);
    field!(describe, Key, key: Any, "key", "", index::ANY, 0, any);
    field!(describe, Key, hash: i64, "hash_i64", "", index::INT, 0, int);
    describe
        .method(
            "__ffi_init__",
            "Constructor that takes any key and computes its structural hash",
            true,
            |key: Any| key_of(key).map(Ref::into_object),
        )
        .attr(&column::INIT, Function::named(None, key_of).into())
        // Function objects: C++ of every tvm-ffi calls these in the same way, which is not true of bare functions (OBJ-38).
        .attr(
            &column::ANY_HASH,
            Function::named(None, |key: AnyView<'_>| {
                Ok::<i64, Error>(cast::<Ref<Key>>(key)?.hash)
            })
            .into(),
        )
        .attr(
            &column::ANY_EQUAL,
            Function::named(None, |left: AnyView<'_>, right: AnyView<'_>| {
                same_key(left, right)
            })
            .into(),
        );
}
