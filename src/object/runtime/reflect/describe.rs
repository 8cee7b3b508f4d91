//! Describing Rust types to reflection.

use super::column;
use super::storage::{read_field, write_field};
use crate::function::{Code, Function, TypedFn, signature_json};
use crate::value::header::{Header, Object, Ref};
use crate::value::types::{self, FieldInfo, MethodInfo, TypeMetadata, flag};
use crate::value::{Any, Argument, ByteArray, RawAny};
use std::ffi::c_void;
use std::marker::PhantomData;

/// Adds the field `member` of the Rust type that is described.
macro_rules! field {
    (
        $describe:expr, $object:ty, $member:ident: $type:ty,
        $name:expr, $doc:expr, $index:expr, $flags:expr, $schema:expr
    ) => {{
        let describe: &$crate::object::reflect::describe::Describe<$object> = &$describe;
        // The member has this type, or this does not compile.
        let _: fn(&$object) -> &$type = |object| &object.$member;
        let offset = std::mem::offset_of!($object, $member);
        // SAFETY: objects of the type that is described start with `$object`, which has a `$type` at this offset.
        unsafe { describe.field::<$type>($name, $doc, offset, $index, $flags, $schema) };
    }};
}
pub(crate) use field;

/// Describes the Rust type `T`, or an abstract one, to reflection.
pub(crate) struct Describe<T = ()> {
    type_index: i32,
    of: PhantomData<fn(&T)>,
}

impl Describe {
    /// An abstract type of another size.
    pub(crate) fn opaque(type_index: i32, size: usize, structural_kind: i32) -> Describe {
        let describe = Describe::<()> {
            type_index,
            of: PhantomData,
        };
        describe.metadata(size, structural_kind, None);
        describe.attr(&column::TYPE_FINAL, Any::from(true));
        describe
    }
}

impl<T: Object + Clone + Default> Describe<T> {
    /// A type that can be made empty and copied.
    pub(crate) fn whole(structural_kind: i32) -> Describe<T> {
        unsafe extern "C-unwind" fn create<T: Object + Default>(out: *mut *mut Header) -> i32 {
            let object = Ref::new(T::default()).into_object();
            // SAFETY: a creator is called with a place for the handle.
            unsafe { out.write(object.into_raw()) }
            0
        }
        let describe = Describe::<T> {
            type_index: T::type_index(),
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

impl<T> Describe<T> {
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
        // SAFETY: no documentation; `whole` passes a creator of this very type, and size is that of the Rust type or, for an
        // abstract one, of what all objects of it start with.
        let _ = unsafe { types::set_metadata(self.type_index, metadata) };
    }

    /// Sets an attribute.
    pub(crate) fn attr(&self, column: &column::TypeAttribute, value: Any) -> &Describe<T> {
        let _ = types::set_attr(self.type_index, column.name(), value);
        self
    }

    /// Adds a field of Rust type `F`.
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
    ) -> &Describe<T>
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
            setter: write_field::<F> as *mut c_void,
            default: RawAny::NONE,
            static_type_index,
        };
        // SAFETY: strings that are borrowed for the call; the field is there by this contract, read and written as the type
        // that it is; there is no default.
        let _ = unsafe { types::push_field(self.type_index, field) };
        self
    }

    /// Adds a method, or a static method.
    pub(crate) fn method<P: 'static, F: TypedFn<P>>(
        &self,
        name: &'static str,
        doc: &str,
        is_static: bool,
        body: F,
    ) -> &Describe<T> {
        self.push_method(name, doc, is_static, Code::of(body))
    }

    fn push_method(
        &self,
        name: &'static str,
        doc: &str,
        is_static: bool,
        code: Code,
    ) -> &Describe<T> {
        let metadata = signature_json(&code.signature.typed());
        let function = Function::plain(Some(name), code);
        let method = MethodInfo {
            name: ByteArray::of(name.as_bytes()),
            doc: ByteArray::of(doc.as_bytes()),
            metadata: ByteArray::of(metadata.as_bytes()),
            flags: if is_static { flag::STATIC_METHOD } else { 0 },
            method: Any::from(function).into_raw(),
        };
        // SAFETY: strings that are borrowed for the call, and a function whose reference the entry keeps for ever.
        let _ = unsafe { types::push_method(self.type_index, method) };
        self
    }
}

/// `{"type_schema":"<schema as JSON text>"}`.
fn schema_json(schema: &str) -> String {
    format!(
        "{{\"type_schema\":\"{}\"}}",
        schema.replace('\\', "\\\\").replace('"', "\\\"")
    )
}
