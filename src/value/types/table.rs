//! The type table: by index for readers, which take no lock, and by key for the writer, which holds a lock.

use super::layout_owner::ObjectLayout;
use super::{Column, TypeInfo, key_hash};
use crate::value::index;
use crate::value::string::ByteArray;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;
/// Maximum number of types.
pub(super) const INDICES: i32 = (CHUNK * CHUNKS) as i32;
type Chunk = [AtomicPtr<TypeEntry>; CHUNK];

/// A type with its remaining reserve of indices for derived types (VAL-14).
pub(super) struct TypeEntry {
    pub(super) info: TypeInfo,
    /// Number of indices: the index of the type and the indices reserved after it.
    pub(super) total: i32,
    /// Number of these indices that have a type. Changes only under the writer's lock.
    pub(super) taken: AtomicI32,
    pub(super) can_overflow: bool,
    pub(super) layout: ObjectLayout,
}

// Chunks that never move: readers hold no lock, and a growing list would move while they read.
static TYPES: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

pub(super) struct TypeWriter {
    /// By key, ascending.
    pub(super) keys: Vec<(&'static [u8], i32)>,
    pub(super) next: i32,
    pub(super) columns: Vec<(&'static [u8], &'static Column)>,
}

/// Adds the predefined types, once.
#[inline]
pub(super) fn fill() {
    static FILLED: Once = Once::new();
    FILLED.call_once(|| {
        // Not through `writer`, which calls this function: a `Once` deadlocks if it is re-entered.
        let mut writer = lock();
        let mut enter = |at, key: &str, parent, can_overflow| {
            writer.enter(key.as_bytes(), at, parent, 0, can_overflow);
        };
        // VAL-15: among the predefined types, only `ffi.Object` accepts children without a fixed index.
        enter(index::OBJECT, index::OBJECT_KEYS[0], None, true);
        // VAL-10, VAL-16: these have no parent, because a value without an object is not an instance of `ffi.Object`.
        for (at, key) in (0..).zip(index::PLAIN_KEYS) {
            enter(at, key, None, false);
        }
        let root = published(index::OBJECT);
        for (at, key) in (index::OBJECT..).zip(index::OBJECT_KEYS).skip(1) {
            enter(at, key, root, false);
        }
    });
}

fn lock() -> MutexGuard<'static, TypeWriter> {
    static WRITER: Mutex<TypeWriter> = Mutex::new(TypeWriter {
        keys: Vec::new(),
        next: index::DYNAMIC_BEGIN,
        columns: Vec::new(),
    });
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn writer() -> MutexGuard<'static, TypeWriter> {
    fill();
    lock()
}

#[inline]
pub(super) fn published(type_index: i32) -> Option<&'static TypeEntry> {
    // No type has an index below zero. Views of extensions have such tags (VAL-22), and -1 means a failed registration.
    let at = usize::try_from(type_index).ok()?;
    let chunk = TYPES.get(at / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: null, or a chunk that was published complete and is never freed.
    let chunk = unsafe { chunk.as_ref()? };
    // SAFETY: null, or an entry that was published complete and is never freed.
    unsafe { chunk[at % CHUNK].load(Ordering::Acquire).as_ref() }
}

impl TypeWriter {
    pub(super) fn index_of(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.binary_search_by(|(known, _)| (*known).cmp(key))
    }

    pub(super) fn column(&self, name: &[u8]) -> Option<&'static Column> {
        for &(known, column) in &self.columns {
            if known == name {
                return Some(column);
            }
        }
        None
    }

    /// Enters a type. It stays forever with everything that it refers to, because C and C++ keep its address (VAL-14, VAL-16).
    pub(super) fn enter(
        &mut self,
        key: &[u8],
        type_index: i32,
        parent: Option<&'static TypeEntry>,
        child_slots: i32,
        can_overflow: bool,
    ) {
        // VAL-15: texts are copied, because the caller may change them. A type lives as long as the process.
        let key: &'static [u8] = leak_bytes(key);
        let mut ancestors: Vec<&'static TypeInfo> = Vec::new();
        if let Some(parent) = parent {
            ancestors.extend_from_slice(parent.info.ancestors());
            ancestors.push(&parent.info);
        }
        let ancestors: &'static [&'static TypeInfo] = Vec::leak(ancestors);
        let entry = Box::leak(Box::new(TypeEntry {
            info: TypeInfo {
                type_index,
                type_depth: ancestors.len() as i32,
                type_key: ByteArray::of(key),
                ancestors: ancestors.as_ptr().cast(),
                key_hash: key_hash(key),
                num_fields: AtomicI32::new(0),
                num_methods: AtomicI32::new(0),
                fields: AtomicPtr::new(std::ptr::null_mut()),
                methods: AtomicPtr::new(std::ptr::null_mut()),
                metadata: AtomicPtr::new(std::ptr::null_mut()),
            },
            total: child_slots.saturating_add(1),
            // VAL-14: a type's own index is the first one of its reserve.
            taken: AtomicI32::new(1),
            can_overflow,
            layout: ObjectLayout::unknown(),
        }));
        let at = type_index as usize;
        let chunk = &TYPES[at / CHUNK];
        if chunk.load(Ordering::Acquire).is_null() {
            let fresh: Chunk = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNK];
            chunk.store(Box::leak(Box::new(fresh)), Ordering::Release);
        }
        // SAFETY: the chunk was just ensured, and is never freed.
        let chunk: &Chunk = unsafe { &*chunk.load(Ordering::Acquire) };
        // Everything is written before this, because readers take no lock and can now find the type by its index.
        chunk[at % CHUNK].store(entry, Ordering::Release);
        // A known key stays with its first type. A Rust type whose key was taken has only an index.
        if let Err(place) = self.index_of(key) {
            self.keys.insert(place, (key, type_index));
        }
    }
}

/// Copies bytes to memory that is never freed, and appends a NUL.
pub(crate) fn leak_bytes(bytes: &[u8]) -> &'static [u8] {
    &Vec::leak([bytes, b"\0"].concat())[..bytes.len()]
}
