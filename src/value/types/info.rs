//! What reflection knows of a type, as the C ABI lays it out.
//!
//! Everything reachable from a [`TypeInfo`] lives for ever: only [`super`] makes one, and copies what it shows before that.

use super::super::string::ByteArray;
use super::super::{AnyView, Header, RawAny};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Reads the field at an address into a value: 0 and an owned value, or a code and a raised error.
pub(crate) type Getter = unsafe extern "C-unwind" fn(field: *mut c_void, out: *mut RawAny) -> i32;

/// One field of a type (`TVMFFIFieldInfo`, 120 bytes). Only the registry makes one; see [`super::info`].
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
    /// `fn(field, value) -> rc`, or a function object when [`flag::SETTER_IS_FUNCTION`] is set.
    pub(crate) setter: *mut c_void,
    /// The default, or the function that makes it.
    pub(crate) default: RawAny,
    /// Type index that the field is declared with; -1 when it is not fixed.
    pub(crate) static_type_index: i32,
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
    /// What is called: a function whose first argument is the object, unless it is static.
    pub(crate) method: RawAny,
}

/// Metadata of a type (`TVMFFITypeMetadata`, 32 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TypeMetadata {
    pub(crate) doc: ByteArray,
    /// Makes an empty object.
    pub(crate) creator: Option<unsafe extern "C-unwind" fn(out: *mut *mut Header) -> i32>,
    /// Size of the object in bytes; 0 when it varies.
    pub(crate) total_size: i32,
    /// How it is compared: 0 not at all, 1 tree, 2 free variable, 3 DAG node, 4 const tree, 5 by identity.
    pub(crate) structural_kind: i32,
}

/// One type (`TVMFFITypeInfo`, 72 bytes).
#[repr(C)]
pub struct TypeInfo {
    /// Its index.
    pub(crate) type_index: i32,
    /// Distance from the root.
    pub(crate) type_depth: i32,
    /// Its key.
    pub(crate) type_key: ByteArray,
    /// `type_depth` ancestors, root first.
    pub(crate) ancestors: *const *const TypeInfo,
    /// Hash of the key ([`super::key_hash`]).
    pub(crate) key_hash: u64,
    pub(crate) num_fields: AtomicI32,
    pub(crate) num_methods: AtomicI32,
    /// Fields of this type alone, without those of its ancestors.
    pub(crate) fields: AtomicPtr<FieldInfo>,
    /// Methods of this type alone.
    pub(crate) methods: AtomicPtr<MethodInfo>,
    /// Metadata, once registered.
    pub(crate) metadata: AtomicPtr<TypeMetadata>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    // C and C++ index arrays of these by their size: one field more is another ABI, whichever end it is at.
    assert!(size_of::<FieldInfo>() == 120 && offset_of!(FieldInfo, default) == 96);
    assert!(size_of::<MethodInfo>() == 72 && offset_of!(MethodInfo, method) == 56);
    assert!(size_of::<TypeMetadata>() == 32 && offset_of!(TypeMetadata, total_size) == 24);
    assert!(size_of::<TypeInfo>() == 72 && offset_of!(TypeInfo, fields) == 48);
};

/// Bits of field and method flags.
pub mod flag {
    /// Has a setter.
    pub const WRITABLE: i64 = 1;
    /// Has a default.
    pub const HAS_DEFAULT: i64 = 2;
    /// A method without an object.
    pub const STATIC_METHOD: i64 = 4;
    /// Skipped by structural comparison and hash.
    pub const EQ_HASH_IGNORE: i64 = 8;
    /// Defines variables, patterns included.
    pub const DEF_PATTERN: i64 = 16;
    /// The default is a function that makes it.
    pub const DEFAULT_IS_FACTORY: i64 = 32;
    /// Left out of the text form.
    pub const REPR_OFF: i64 = 64;
    /// Left out of comparison.
    pub const COMPARE_OFF: i64 = 128;
    /// Left out of the hash.
    pub const HASH_OFF: i64 = 256;
    /// Not an argument of the constructor.
    pub const INIT_OFF: i64 = 512;
    /// Only a named argument of the constructor.
    pub const KEYWORD_ONLY: i64 = 1024;
    /// `setter` is a function object.
    pub const SETTER_IS_FUNCTION: i64 = 2048;
    /// Defines one variable.
    pub const DEF_SIMPLE: i64 = 4096;
}

// SAFETY: the pointers go to memory that is never freed and never written again; counts and lists are atomic.
unsafe impl Send for TypeInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for TypeInfo {}
// SAFETY: the pointers go to memory that is never freed and never written again.
unsafe impl Send for FieldInfo {}
// SAFETY: as for `Send`.
unsafe impl Sync for FieldInfo {}

/// The text in memory that is never freed.
fn text(bytes: &ByteArray) -> &'static str {
    // SAFETY: `super` shows only entries whose strings it has copied to memory that is never freed.
    let bytes: &'static [u8] = unsafe { bytes.as_slice() };
    // A library of C may register any bytes; who lists the types sees that, and no error.
    std::str::from_utf8(bytes).unwrap_or("(not UTF-8)")
}

/// A published list.
fn list<T>(first: &AtomicPtr<T>, count: &AtomicI32) -> &'static [T] {
    // The count first: a list that grew is published before its count, so that an old count goes with any list.
    let count = count.load(Ordering::Acquire) as usize;
    match NonNull::new(first.load(Ordering::Acquire)) {
        // SAFETY: `super` publishes a list before its count, with at least that many elements, and never frees it.
        Some(first) => unsafe { std::slice::from_raw_parts(first.as_ptr(), count) },
        None => &[],
    }
}

impl TypeInfo {
    /// The index in the table of types: below 128 fixed by the ABI, above it handed out by this process.
    pub const fn type_index(&self) -> i32 {
        self.type_index
    }

    /// The key, such as `ffi.Array`, which is the same in every process.
    pub fn key(&self) -> &'static str {
        text(&self.type_key)
    }

    /// The ancestors, root first.
    pub fn ancestors(&self) -> &'static [&'static TypeInfo] {
        // SAFETY: `ancestors` is not null and holds `type_depth` references to entries that live for ever.
        unsafe { std::slice::from_raw_parts(self.ancestors.cast(), self.type_depth as usize) }
    }

    /// The type that this one extends; `None` for the root, `ffi.Object`.
    pub fn parent(&self) -> Option<&'static TypeInfo> {
        self.ancestors().last().copied()
    }

    /// Fields of this type alone.
    pub fn fields(&self) -> &'static [FieldInfo] {
        list(&self.fields, &self.num_fields)
    }

    /// Methods of this type alone.
    pub fn methods(&self) -> &'static [MethodInfo] {
        list(&self.methods, &self.num_methods)
    }

    /// Fields of the ancestors, root first, then its own.
    pub(crate) fn all_fields(&self) -> impl Iterator<Item = &'static FieldInfo> + use<> {
        let own = self.fields();
        self.ancestors()
            .iter()
            .flat_map(|ancestor| ancestor.fields())
            .chain(own)
    }

    /// The metadata, once registered.
    pub fn metadata(&self) -> Option<&'static TypeMetadata> {
        // SAFETY: either null or memory that is never freed and never written again.
        unsafe { self.metadata.load(Ordering::Acquire).as_ref() }
    }
}

impl FieldInfo {
    /// The name, as it was registered.
    pub fn name(&self) -> &'static str {
        text(&self.name)
    }

    /// Bits of [`flag`].
    pub const fn flags(&self) -> i64 {
        self.flags
    }

    /// Type index that the field is declared with; -1 when it is not fixed.
    pub const fn static_type_index(&self) -> i32 {
        self.static_type_index
    }

    /// The default, or the function that makes it.
    pub(crate) const fn default_value(&self) -> AnyView<'static> {
        // SAFETY: the caller that registers a default keeps it for ever (the contract of `super::push_field`).
        unsafe { AnyView::from_raw(self.default) }
    }
}

impl MethodInfo {
    /// The name, as it was registered.
    pub fn name(&self) -> &'static str {
        text(&self.name)
    }
}
