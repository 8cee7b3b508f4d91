//! The reflection data of a type, in the layout of the C ABI.
//!
//! Everything reachable from a [`TypeInfo`] lives forever: only [`super`] creates one, and copies the strings first.

use super::super::string::ByteArray;
use super::super::{AnyView, Header, RawAny};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// A function that reads the field at an address into a value. It returns 0 and an owned value, or a code and a raised error.
pub(crate) type Getter = unsafe extern "C-unwind" fn(field: *mut c_void, out: *mut RawAny) -> i32;

/// One field of a type (`TVMFFIFieldInfo`, 120 bytes). Only the registry creates one; see [`super::info`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FieldInfo {
    pub(crate) name: ByteArray,
    pub(crate) doc: ByteArray,
    /// JSON metadata, such as the type schema.
    pub(crate) metadata: ByteArray,
    /// Bits of [`flag`].
    pub(crate) flags: i64,
    /// Size of the field in bytes.
    pub(crate) size: i64,
    /// Alignment of the field in bytes.
    pub(crate) alignment: i64,
    /// Offset from the header.
    pub(crate) offset: i64,
    pub(crate) getter: Option<Getter>,
    /// `fn(field, value) -> rc`, or a function object if [`flag::SETTER_IS_FUNCTION`] is set.
    pub(crate) setter: *mut c_void,
    /// The default, or the function that creates it.
    pub(crate) default: RawAny,
    /// Declared type index of the field; -1 if it is not fixed.
    pub(crate) static_type_index: i32,
}

impl std::fmt::Debug for FieldInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FieldInfo({})", self.name())
    }
}

/// One method of a type (`TVMFFIMethodInfo`, 72 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MethodInfo {
    pub(crate) name: ByteArray,
    pub(crate) doc: ByteArray,
    /// JSON metadata.
    pub(crate) metadata: ByteArray,
    /// Bits of [`flag`].
    pub(crate) flags: i64,
    /// The function to call. Its first argument is the object, unless the method is static.
    pub(crate) method: RawAny,
}

impl std::fmt::Debug for MethodInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MethodInfo({})", self.name())
    }
}

/// Metadata of a type (`TVMFFITypeMetadata`, 32 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TypeMetadata {
    pub(crate) doc: ByteArray,
    /// Creates an empty object.
    pub(crate) creator: Option<unsafe extern "C-unwind" fn(out: *mut *mut Header) -> i32>,
    /// Size of the object in bytes; 0 if it varies.
    pub(crate) total_size: i32,
    /// Structural kind: 0 unsupported, 1 tree, 2 free variable, 3 DAG node, 4 const tree, 5 by identity.
    pub(crate) structural_kind: i32,
}

debug_fields!(TypeMetadata: total_size, structural_kind);

/// One type (`TVMFFITypeInfo`, 72 bytes).
#[repr(C)]
pub struct TypeInfo {
    /// The index.
    pub(crate) type_index: i32,
    /// Distance from the root.
    pub(crate) type_depth: i32,
    /// The key.
    pub(crate) type_key: ByteArray,
    /// The `type_depth` ancestors, root first.
    pub(crate) ancestors: *const *const TypeInfo,
    /// Hash of the key ([`super::key_hash`]).
    pub(crate) key_hash: u64,
    pub(crate) num_fields: AtomicI32,
    pub(crate) num_methods: AtomicI32,
    /// Fields of this type, without the fields of its ancestors.
    pub(crate) fields: AtomicPtr<FieldInfo>,
    /// Methods of this type, without the methods of its ancestors.
    pub(crate) methods: AtomicPtr<MethodInfo>,
    /// The metadata; null until it is registered.
    pub(crate) metadata: AtomicPtr<TypeMetadata>,
}

impl std::fmt::Debug for TypeInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TypeInfo({})", self.key())
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    // C and C++ index arrays of these structs by their size, so an additional field would change the ABI.
    assert!(size_of::<FieldInfo>() == 120 && offset_of!(FieldInfo, default) == 96);
    assert!(size_of::<MethodInfo>() == 72 && offset_of!(MethodInfo, method) == 56);
    assert!(size_of::<TypeMetadata>() == 32 && offset_of!(TypeMetadata, total_size) == 24);
    assert!(size_of::<TypeInfo>() == 72 && offset_of!(TypeInfo, fields) == 48);
};

/// Bits of field and method flags.
pub mod flag {
    /// The field has a setter.
    pub const WRITABLE: i64 = 1;
    /// The field has a default.
    pub const HAS_DEFAULT: i64 = 2;
    /// The flag for a method that takes no object.
    pub const STATIC_METHOD: i64 = 4;
    /// Structural comparison and hash skip the field.
    pub const EQ_HASH_IGNORE: i64 = 8;
    /// The field defines variables, including those in patterns.
    pub const DEF_PATTERN: i64 = 16;
    /// The default is a function that creates it.
    pub const DEFAULT_IS_FACTORY: i64 = 32;
    /// The text form omits the field.
    pub const REPR_OFF: i64 = 64;
    /// Comparison skips the field.
    pub const COMPARE_OFF: i64 = 128;
    /// The hash skips the field.
    pub const HASH_OFF: i64 = 256;
    /// The field is not a parameter of the constructor.
    pub const INIT_OFF: i64 = 512;
    /// The field is only a named parameter of the constructor.
    pub const KEYWORD_ONLY: i64 = 1024;
    /// `setter` is a function object.
    pub const SETTER_IS_FUNCTION: i64 = 2048;
    /// The field defines one variable.
    pub const DEF_SIMPLE: i64 = 4096;
}

// SAFETY: the pointers refer to memory that is never freed and never written again; counts and lists are atomic.
unsafe impl Send for TypeInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for TypeInfo {}
// SAFETY: the pointers refer to memory that is never freed and never written again.
unsafe impl Send for FieldInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for FieldInfo {}

/// Returns a text from memory that is never freed.
fn text(bytes: &ByteArray) -> &'static str {
    // SAFETY: `super` publishes only entries whose strings it has copied to memory that is never freed.
    let bytes: &'static [u8] = unsafe { bytes.as_slice() };
    // A C library may register any bytes. A list of types then shows this text instead of an error.
    std::str::from_utf8(bytes).unwrap_or("(not UTF-8)")
}

/// Returns a published list.
fn list<T>(first: &AtomicPtr<T>, count: &AtomicI32) -> &'static [T] {
    // The count is read first: a longer list is published before its count, so an old count fits any list.
    let count = count.load(Ordering::Acquire) as usize;
    match NonNull::new(first.load(Ordering::Acquire)) {
        // SAFETY: `super` publishes a list before its count, with at least that many elements, and never frees it.
        Some(first) => unsafe { std::slice::from_raw_parts(first.as_ptr(), count) },
        None => &[],
    }
}

impl TypeInfo {
    /// Returns the index in the type table: fixed by the ABI below 128, allocated by this process above.
    pub const fn type_index(&self) -> i32 {
        self.type_index
    }

    /// Returns the key, such as `ffi.Array`, which is the same in every process.
    pub fn key(&self) -> &'static str {
        text(&self.type_key)
    }

    /// Returns the ancestors, root first.
    pub fn ancestors(&self) -> &'static [&'static TypeInfo] {
        // SAFETY: `ancestors` is not null and holds `type_depth` references to entries that live forever.
        unsafe { std::slice::from_raw_parts(self.ancestors.cast(), self.type_depth as usize) }
    }

    /// Returns the type that this one extends; `None` for the root, `ffi.Object`.
    pub fn parent(&self) -> Option<&'static TypeInfo> {
        self.ancestors().last().copied()
    }

    /// Returns the fields of this type, without the fields of its ancestors.
    pub fn fields(&self) -> &'static [FieldInfo] {
        list(&self.fields, &self.num_fields)
    }

    /// Returns the methods of this type, without the methods of its ancestors.
    pub fn methods(&self) -> &'static [MethodInfo] {
        list(&self.methods, &self.num_methods)
    }

    /// Returns the fields of the ancestors, root first, then those of this type.
    pub(crate) fn all_fields(&self) -> impl Iterator<Item = &'static FieldInfo> + use<> {
        let own = self.fields();
        self.ancestors()
            .iter()
            .flat_map(|ancestor| ancestor.fields())
            .chain(own)
    }

    /// Returns the metadata, if registered.
    pub fn metadata(&self) -> Option<&'static TypeMetadata> {
        // SAFETY: either null or memory that is never freed and never written again.
        unsafe { self.metadata.load(Ordering::Acquire).as_ref() }
    }
}

impl FieldInfo {
    /// Returns the registered name.
    pub fn name(&self) -> &'static str {
        text(&self.name)
    }

    /// Returns bits of [`flag`].
    pub const fn flags(&self) -> i64 {
        self.flags
    }

    /// Returns the declared type index of the field; -1 if it is not fixed.
    pub const fn static_type_index(&self) -> i32 {
        self.static_type_index
    }

    /// Returns the default, or the function that creates it.
    pub(crate) const fn default_value(&self) -> AnyView<'static> {
        // SAFETY: the caller that registers a default keeps it forever (the contract of `super::push_field`).
        unsafe { AnyView::from_raw(self.default) }
    }
}

impl MethodInfo {
    /// Returns the registered name.
    pub fn name(&self) -> &'static str {
        text(&self.name)
    }
}
