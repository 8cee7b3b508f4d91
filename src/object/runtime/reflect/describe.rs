//! Registration of Rust types with reflection, as C++ does with `refl::ObjectDef` in every library that defines types.
//!
//! Names, documentation, flags and schemas match upstream exactly: Python stubs are generated from them, and a Rust type of this library
//! replaces the C++ type with its key. The results of registrations are ignored, because a type that already has the attribute or field
//! keeps it (VAL-15).

use super::column;
use super::storage::{read_field, write_field};
use crate::function::{Code, Function, TypedFn, signature_json};
use crate::value::header::{Header, Object, Ref};
use crate::value::types::{self, FieldInfo, MethodInfo, TypeMetadata, flag};
use crate::value::{Any, Argument, ByteArray, RawAny};
use std::ffi::c_void;
use std::marker::PhantomData;

/// Adds the field `member` of the described Rust type: its name, documentation, declared type index, flags and JSON schema. Only a macro
/// can name a member of a struct.
macro_rules! field {
    (
        $describe:expr, $object:ty, $member:ident: $type:ty,
        $name:expr, $doc:expr, $index:expr, $flags:expr, $schema:expr
    ) => {{
        let describe: &$crate::object::reflect::describe::TypeDescription<$object> = &$describe;
        // Fails to compile if the member has another type.
        let _: fn(&$object) -> &$type = |object| &object.$member;
        let offset = std::mem::offset_of!($object, $member);
        // SAFETY: objects of the described type start with `$object`, which has a `$type` at this offset.
        unsafe { describe.field::<$type>($name, $doc, offset, $index, $flags, $schema) };
    }};
}
pub(crate) use field;

/// A builder that registers the Rust type `T` with reflection. With `()`, only the beginning of the objects is known here.
pub(crate) struct TypeDescription<T = ()> {
    /// The type index for all registrations.
    type_index: i32,
    /// The Rust type. A function type, so that the description can go to any thread.
    of: PhantomData<fn(&T)>,
}

impl TypeDescription {
    /// Describes a type of `size` bytes that reflection cannot create, because its objects come from a function. `structural_kind` is
    /// the kind of structural comparison: 0 none, 1 tree, 2 free variable, 3 node of a graph, 4 constant tree, 5 by identity. No other
    /// type may derive from it.
    pub(crate) fn opaque(type_index: i32, size: usize, structural_kind: i32) -> TypeDescription {
        let describe = TypeDescription::<()> {
            type_index,
            of: PhantomData,
        };
        describe.metadata(size, structural_kind, None);
        describe.attr(&column::TYPE_FINAL, Any::from(true));
        describe
    }
}

impl<T: Object + Clone + Default> TypeDescription<T> {
    /// Describes a type that can be created empty and copied. Its creator and `__ffi_new__` return `T::default()`, and
    /// `__ffi_shallow_copy__` returns a clone. The size is that of `T`, and `structural_kind` is as for [`TypeDescription::opaque`]. No
    /// other type may derive from it, not even in Python.
    pub(crate) fn creatable(structural_kind: i32) -> TypeDescription<T> {
        /// Writes an owned object and returns 0, as the creator of the type.
        unsafe extern "C-unwind" fn create<T: Object + Default>(out: *mut *mut Header) -> i32 {
            let object = Ref::new(T::default()).into_object();
            // SAFETY: a creator is called with a place for the handle.
            unsafe { out.write(object.into_raw()) }
            0
        }
        // Upstream also registers both: `__ffi_new__` wraps the creator.
        let describe = TypeDescription::<T> {
            type_index: T::type_index().get(),
            of: PhantomData,
        };
        describe.metadata(size_of::<T>(), structural_kind, Some(create::<T>));
        describe
            .attr(&column::TYPE_FINAL, Any::from(true))
            .attr(
                &column::NEW,
                Function::named(None, || Ref::new(T::default()).into_object()).into(),
            )
            .attr(
                &column::SHALLOW_COPY,
                Function::named(None, |source: Ref<T>| {
                    Ref::new((*source).clone()).into_object()
                })
                .into(),
            );
        describe
    }
}

impl<T> TypeDescription<T> {
    /// Registers size, structural kind and creator of the type.
    fn metadata(
        &self,
        size: usize,
        structural_kind: i32,
        creator: Option<unsafe extern "C-unwind" fn(*mut *mut Header) -> i32>,
    ) {
        let metadata = TypeMetadata {
            doc: ByteArray::EMPTY,
            creator,
            total_size: size as i32,
            structural_kind,
        };
        // SAFETY: no documentation; `creatable` passes a creator of this very type; the size is that of the Rust type or, for an abstract one,
        // of the common beginning of all its objects.
        let _ = unsafe { types::set_metadata(self.type_index, metadata) };
    }

    /// Sets an attribute of the type. An existing attribute stays.
    pub(crate) fn attr(&self, column: &column::TypeAttribute, value: Any) -> &TypeDescription<T> {
        let _ = types::set_attr(self.type_index, column.name(), value);
        self
    }

    /// Adds a field of Rust type `F`, `offset` bytes after the beginning of the header. `static_type_index` is the declared index, -1 for
    /// any value. `flags` are bits of [`flag`], and `schema` is a type schema as JSON.
    ///
    /// # Safety
    /// Objects of the type have an `F` at `offset`.
    pub(crate) unsafe fn field<F: Argument + Clone>(
        &self,
        name: &str,
        doc: &str,
        offset: usize,
        static_type_index: i32,
        flags: i64,
        schema: &str,
    ) -> &TypeDescription<T>
    where
        Any: From<F>,
    {
        let metadata = schema_json(schema);
        let field = FieldInfo {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::of(doc.as_bytes()),
            metadata: ByteArray::of(metadata.as_bytes()),
            flags,
            size: size_of::<F>() as i64,
            alignment: align_of::<F>() as i64,
            offset: offset as i64,
            getter: Some(read_field::<F>),
            // Without the flag for writable fields, Python shows it as read-only. Creation of objects still needs the setter.
            setter: write_field::<F> as *mut c_void,
            default: RawAny::NONE,
            static_type_index,
        };
        // SAFETY: the strings are borrowed for the call; the field is there by this contract, and is read and written with its own type;
        // there is no default.
        let _ = unsafe { types::push_field(self.type_index, field) };
        self
    }

    /// Adds a method or a static method, with the metadata of the types of `body`. The first parameter of a method is the object.
    pub(crate) fn method<P: 'static, F: TypedFn<P>>(
        &self,
        name: &'static str,
        doc: &str,
        is_static: bool,
        body: F,
    ) -> &TypeDescription<T> {
        self.push_method(name, doc, is_static, Code::from_body(body))
    }

    /// Does the work of [`TypeDescription::method`] without its type parameters, so that it is compiled once for each described type.
    fn push_method(
        &self,
        name: &'static str,
        doc: &str,
        is_static: bool,
        code: Code,
    ) -> &TypeDescription<T> {
        let metadata = signature_json(&code.signature.typed());
        let function = Function::from_code(Some(name), code);
        let method = MethodInfo {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::of(doc.as_bytes()),
            metadata: ByteArray::of(metadata.as_bytes()),
            flags: if is_static { flag::STATIC_METHOD } else { 0 },
            method: Any::from(function).into_raw(),
        };
        // SAFETY: the strings are borrowed for the call, and the entry keeps the function's reference forever.
        let _ = unsafe { types::push_method(self.type_index, method) };
        self
    }
}

/// Returns `{"type_schema":"<schema as JSON text>"}`. Upstream stores the schema as text inside the JSON, not as an object.
fn schema_json(schema: &str) -> String {
    format!(
        "{{\"type_schema\":\"{}\"}}",
        schema.replace('\\', "\\\\").replace('"', "\\\"")
    )
}
