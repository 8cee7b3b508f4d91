//! The type table: keys, indices, inheritance, and what reflection knows of each type.
//!
//! Entries are laid out as the C ABI shows them and live for ever, so reading takes no lock. Writing takes one.

mod column;
mod info;

pub use column::Column;
pub(crate) use info::Getter;
pub use info::{FieldInfo, MethodInfo, TypeInfo, TypeMetadata, flag};

use super::string::ByteArray;
use super::{Any, VAL_14, VAL_15, index};
use crate::rule::{Kind, Violation};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Hash of a type key: MurmurHash64A with the seed of libstdc++, which structural hashes depend on.
pub fn key_hash(key: &[u8]) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let shift_mix = |word: u64| word ^ (word >> 47);
    let mut hash = SEED ^ (key.len() as u64).wrapping_mul(MUL);
    let mut words = key.chunks_exact(8);
    for word in words.by_ref() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        let data = shift_mix(u64::from_le_bytes(bytes).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ data).wrapping_mul(MUL);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(MUL);
    }
    shift_mix(shift_mix(hash).wrapping_mul(MUL))
}

const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;
/// How many types there can be.
const INDICES: i32 = (CHUNK * CHUNKS) as i32;
type Chunk = [AtomicPtr<Entry>; CHUNK];

/// A type, and the indices that it still has for types derived from it.
struct Entry {
    info: TypeInfo,
    total: i32,
    /// Changes under the writer's lock.
    taken: AtomicI32,
    can_overflow: bool,
    /// A [`Layout`], or 0 while nothing is known.
    layout: AtomicU8,
}

/// Who lays the objects of a type out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A Rust type of this library.
    Rust = 1,
    /// Reflection alone: fields in zeroed memory.
    Record = 2,
}

static TYPES: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

struct Writer {
    /// By key, ascending.
    keys: Vec<(&'static [u8], i32)>,
    next: i32,
    columns: Vec<(&'static [u8], &'static Column)>,
}

/// Enters the types that are there from the start, once.
#[inline]
fn fill() {
    static FILLED: Once = Once::new();
    FILLED.call_once(|| {
        let mut writer = lock();
        let mut enter = |at, key: &str, parent, can_overflow| {
            writer.enter(key.as_bytes(), at, parent, 0, can_overflow);
        };
        enter(index::OBJECT, index::OBJECT_KEYS[0], None, true);
        for (at, key) in (0..).zip(index::PLAIN_KEYS) {
            enter(at, key, None, false);
        }
        let root = published(index::OBJECT);
        for (at, key) in (index::OBJECT..).zip(index::OBJECT_KEYS).skip(1) {
            enter(at, key, root, false);
        }
    });
}

fn lock() -> MutexGuard<'static, Writer> {
    static WRITER: Mutex<Writer> = Mutex::new(Writer {
        keys: Vec::new(),
        next: index::DYNAMIC_BEGIN,
        columns: Vec::new(),
    });
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn writer() -> MutexGuard<'static, Writer> {
    fill();
    lock()
}

#[inline]
fn published(type_index: i32) -> Option<&'static Entry> {
    let at = usize::try_from(type_index).ok()?;
    let chunk = TYPES.get(at / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: null, or a chunk that was published complete and is never freed.
    let chunk = unsafe { chunk.as_ref()? };
    // SAFETY: null, or an entry that was published complete and is never freed.
    unsafe { chunk[at % CHUNK].load(Ordering::Acquire).as_ref() }
}

impl Writer {
    fn index_of(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.binary_search_by(|(known, _)| (*known).cmp(key))
    }

    fn column(&self, name: &[u8]) -> Option<&'static Column> {
        for &(known, column) in &self.columns {
            if known == name {
                return Some(column);
            }
        }
        None
    }

    fn enter(
        &mut self,
        key: &[u8],
        type_index: i32,
        parent: Option<&'static Entry>,
        child_slots: i32,
        can_overflow: bool,
    ) {
        let key: &'static [u8] = leak_bytes(key);
        let mut ancestors: Vec<&'static TypeInfo> = Vec::new();
        if let Some(parent) = parent {
            ancestors.extend_from_slice(parent.info.ancestors());
            ancestors.push(&parent.info);
        }
        let ancestors: &'static [&'static TypeInfo] = Vec::leak(ancestors);
        let entry = Box::leak(Box::new(Entry {
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
            taken: AtomicI32::new(1),
            can_overflow,
            layout: AtomicU8::new(0),
        }));
        let at = type_index as usize;
        let chunk = &TYPES[at / CHUNK];
        if chunk.load(Ordering::Acquire).is_null() {
            let fresh: Chunk = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNK];
            chunk.store(Box::leak(Box::new(fresh)), Ordering::Release);
        }
        // SAFETY: the chunk was just ensured, and is never freed.
        let chunk: &Chunk = unsafe { &*chunk.load(Ordering::Acquire) };
        chunk[at % CHUNK].store(entry, Ordering::Release);
        let (Ok(place) | Err(place)) = self.index_of(key);
        self.keys.insert(place, (key, type_index));
    }
}

/// Copies to memory that is never freed, with a NUL behind.
pub(crate) fn leak_bytes(bytes: &[u8]) -> &'static [u8] {
    &Vec::leak([bytes, b"\0"].concat())[..bytes.len()]
}

/// The entry of `type_index`.
#[inline]
pub fn info(type_index: i32) -> Option<&'static TypeInfo> {
    fill();
    published(type_index).map(|entry| &entry.info)
}

/// The key of `type_index`, or a text that says that there is none.
pub fn key_of(type_index: i32) -> &'static str {
    info(type_index).map_or("(unregistered type)", TypeInfo::key)
}

/// The index of `key`.
pub fn index_of(key: &str) -> Option<i32> {
    index_of_bytes(key.as_bytes())
}

fn index_of_bytes(key: &[u8]) -> Option<i32> {
    let writer = writer();
    writer.index_of(key).ok().map(|at| writer.keys[at].1)
}

/// All keys, by ascending index.
pub fn keys() -> Vec<&'static str> {
    let mut indices: Vec<i32> = writer().keys.iter().map(|(_, at)| *at).collect();
    indices.sort_unstable();
    indices.into_iter().map(key_of).collect()
}

/// Whether an object of type `type_index` is also one of type `ancestor` (VAL-16).
#[inline]
pub fn is_instance(type_index: i32, ancestor: i32) -> bool {
    type_index == ancestor || is_derived(type_index, ancestor)
}

fn is_derived(type_index: i32, ancestor: i32) -> bool {
    let (Some(own), Some(target)) = (info(type_index), info(ancestor)) else {
        return false;
    };
    own.ancestors()
        .get(target.type_depth as usize)
        .is_some_and(|found| found.type_index == ancestor)
}

/// What a new type asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewType<'a> {
    /// Its key.
    pub(crate) key: &'a str,
    /// A fixed index, or -1 to be given one.
    pub(crate) static_index: i32,
    /// Distance from the root that the caller believes in; `None` to take the parent's plus one.
    pub(crate) depth: Option<i32>,
    /// How many indices behind its own to reserve for derived types.
    pub(crate) child_slots: i32,
    /// Whether derived types beyond those may take indices from elsewhere.
    pub(crate) can_overflow: bool,
    /// Index of the parent.
    pub(crate) parent: i32,
}

/// The index of a type, given out on first request; a known key keeps its index whatever else is asked (VAL-14, VAL-15).
pub(crate) fn get_or_alloc(new: NewType<'_>) -> Result<i32, Violation> {
    let mut writer = writer();
    if let Ok(at) = writer.index_of(new.key.as_bytes()) {
        return Ok(writer.keys[at].1);
    }
    let refuse = |message: String| VAL_15.refused(Kind::Type, message);
    let Some(slots) = published(new.parent) else {
        return Err(refuse(format!("type `{}` has no known parent", new.key)));
    };
    let parent = &slots.info;
    let depth = parent.type_depth + 1;
    let fits = new.depth.is_none_or(|asked| asked == depth);
    VAL_15.demand(Kind::Type, fits, || {
        format!(
            "type `{}` says depth {:?}, but its parent `{}` is at {}",
            new.key,
            new.depth,
            parent.key(),
            parent.type_depth
        )
    })?;
    let wanted = new.child_slots.max(0).saturating_add(1);
    let mut next = writer.next;
    let taken = slots.taken.load(Ordering::Relaxed);
    // What a parent forbids, its children forbid too.
    let can_overflow = new.can_overflow && slots.can_overflow;
    let mut inside = false;
    let type_index = if new.static_index >= 0 {
        if let Some(other) = info(new.static_index) {
            return Err(VAL_14.refused(
                Kind::Duplicate,
                format!(
                    "conflicting static index {} between `{}` and `{}`",
                    new.static_index,
                    other.key(),
                    new.key
                ),
            ));
        }
        new.static_index
    } else if wanted <= slots.total.saturating_sub(taken) {
        inside = true;
        new.parent.saturating_add(taken)
    } else {
        if !slots.can_overflow {
            return Err(refuse(format!(
                "reach maximum number of sub-classes for `{}`",
                parent.key()
            )));
        }
        // A caller may have asked for just this one before.
        let free = (next..INDICES).find(|&at| published(at).is_none());
        let given = free.unwrap_or(INDICES);
        next = given.saturating_add(wanted);
        if next > INDICES {
            return Err(refuse(format!(
                "type `{}` asks for {wanted} indices, and {} are left",
                new.key,
                INDICES - given
            )));
        }
        given
    };
    if type_index <= new.parent || type_index >= INDICES || published(type_index).is_some() {
        return Err(refuse(format!(
            "type `{}` would get index {type_index}, its parent has {}",
            new.key, new.parent
        )));
    }
    if inside {
        slots.taken.store(taken + wanted, Ordering::Relaxed);
    }
    writer.next = next;
    writer.enter(
        new.key.as_bytes(),
        type_index,
        Some(slots),
        new.child_slots.max(0),
        can_overflow,
    );
    Ok(type_index)
}

/// Registers a type below `parent` (`ffi.Object` by default) with room to overflow.
///
/// # Errors
///
/// VAL-15 for an unknown parent, one that has no room for more children, and when all type indices are taken.
pub fn register(key: &str, parent: i32) -> Result<i32, Violation> {
    get_or_alloc(NewType {
        key,
        static_index: -1,
        depth: None,
        child_slots: 0,
        can_overflow: true,
        parent,
    })
}

/// Says who lays the objects of a type out; false where another library does already.
pub(crate) fn lay_out(type_index: i32, layout: Layout) -> bool {
    let Some(entry) = published(type_index) else {
        return false;
    };
    let wanted = layout as u8;
    let known = entry
        .layout
        .compare_exchange(0, wanted, Ordering::AcqRel, Ordering::Acquire);
    known.is_ok() || known == Err(wanted)
}

/// A type of this library whose index is given out at the first request for it.
pub(crate) struct Dynamic {
    key: &'static str,
    parent: fn() -> i32,
    /// 0 until it is known.
    index: AtomicI32,
}

impl Dynamic {
    pub(crate) const fn new(key: &'static str, parent: fn() -> i32) -> Dynamic {
        Dynamic {
            key,
            parent,
            index: AtomicI32::new(0),
        }
    }

    #[inline]
    pub(crate) fn index(&self) -> i32 {
        match self.index.load(Ordering::Relaxed) {
            0 => self.give(),
            known => known,
        }
    }

    /// Callers at the same time get the same. No object has the index that stands for none: that of a type whose
    /// key another library uses for objects of its own, or for which no index is left.
    #[cold]
    fn give(&self) -> i32 {
        let index = register(self.key, (self.parent)()).ok();
        let index = index.filter(|&index| lay_out(index, Layout::Rust));
        let index = index.unwrap_or(index::ANY);
        self.index.store(index, Ordering::Relaxed);
        index
    }
}

/// Copies a text to memory that is never freed.
///
/// # Safety
/// `text` describes bytes that are readable now.
unsafe fn leak_text(text: ByteArray) -> ByteArray {
    // SAFETY: readable now, by the contract of this function.
    ByteArray::of(leak_bytes(unsafe { text.as_slice() }))
}

/// Appends a field.
///
/// # Safety
/// * The strings of `field` are readable now; they are copied.
/// * Every object of the type, and of types derived from it, has the field: at `offset` from its header lies something that
///   `getter` reads, that `setter` writes (a function of its kind, or a function object where the flag says so), and
///   that is a cell, a reference or plain memory as `static_type_index` and `size` say.
/// * `default`, and a setter that is a function object, are valid for ever.
pub(crate) unsafe fn push_field(type_index: i32, mut field: FieldInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = known(type_index)?;
    // SAFETY: the first clause of this contract.
    field.name = unsafe { leak_text(field.name) };
    let name = field.name();
    if info.fields().iter().any(|known| known.name() == name) {
        return Err(VAL_15.refused(
            Kind::Duplicate,
            format!("type `{}` already has a field `{name}`", info.key()),
        ));
    }
    // SAFETY: the first clause of this contract.
    field.doc = unsafe { leak_text(field.doc) };
    // SAFETY: the first clause of this contract.
    field.metadata = unsafe { leak_text(field.metadata) };
    let mut list = info.fields().to_vec();
    list.push(field);
    let count = list.len() as i32;
    info.fields
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_fields.store(count, Ordering::Release);
    Ok(())
}

/// Appends a method. Of two with one name the later one counts.
///
/// # Safety
/// The strings of `method` are readable now; they are copied. The function is valid for ever.
pub(crate) unsafe fn push_method(type_index: i32, mut method: MethodInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = known(type_index)?;
    // SAFETY: readable now, by this contract.
    method.name = unsafe { leak_text(method.name) };
    // SAFETY: readable now, by this contract.
    method.doc = unsafe { leak_text(method.doc) };
    // SAFETY: readable now, by this contract.
    method.metadata = unsafe { leak_text(method.metadata) };
    let mut list = info.methods().to_vec();
    list.push(method);
    let count = list.len() as i32;
    info.methods
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_methods.store(count, Ordering::Release);
    Ok(())
}

/// Sets the metadata, once.
///
/// # Safety
/// The documentation is readable now; it is copied. `creator` makes an object of the type, and `total_size` is no more than
/// the size of each object of the type.
pub(crate) unsafe fn set_metadata(
    type_index: i32,
    mut metadata: TypeMetadata,
) -> Result<(), Violation> {
    let _writer = writer();
    let info = known(type_index)?;
    if info.metadata().is_some() {
        return Err(VAL_15.refused(
            Kind::Duplicate,
            format!(
                "Overriding `{}`, possible causes:\n- two object definitions with the same type key\n- a library was loaded twice",
                info.key()
            ),
        ));
    }
    // SAFETY: readable now, by this contract.
    metadata.doc = unsafe { leak_text(metadata.doc) };
    info.metadata
        .store(Box::leak(Box::new(metadata)), Ordering::Release);
    Ok(())
}

fn known(type_index: i32) -> Result<&'static TypeInfo, Violation> {
    info(type_index).ok_or_else(|| {
        VAL_15.refused(
            Kind::UnknownKind,
            format!("unknown type index {type_index}"),
        )
    })
}

/// The attribute column `name`, if anything was ever registered under it.
pub fn column(name: &str) -> Option<&'static Column> {
    writer().column(name.as_bytes())
}

/// Sets attribute `name` of a type, once. Index 0 only makes the column. An opaque pointer is refused: attributes that are
/// pointers are called as C functions, and nothing shows that this one is.
///
/// # Errors
///
/// VAL-15 where no type has this index, where the type has the attribute already, and for an opaque pointer.
pub fn set_attr(type_index: i32, name: &str, value: Any) -> Result<(), Violation> {
    if value.type_index() == index::OPAQUE {
        let message = format!("TypeAttr `{name}` is a bare pointer, which only C may register");
        return Err(VAL_15.refused(Kind::Type, message));
    }
    // SAFETY: not an opaque pointer.
    unsafe { set_any_attr(type_index, name, value) }
}

/// [`set_attr`] for any value.
///
/// # Safety
/// An opaque pointer is the address of a C function that follows the convention of the attribute, for ever.
pub(crate) unsafe fn set_any_attr(
    type_index: i32,
    name: &str,
    value: Any,
) -> Result<(), Violation> {
    let mut writer = writer();
    let column = match writer.column(name.as_bytes()) {
        Some(column) => column,
        None => {
            let column: &'static Column = Box::leak(Box::new(Column::new()));
            let name = leak_bytes(name.as_bytes());
            writer.columns.push((name, column));
            column
        }
    };
    if type_index == index::NONE {
        return Ok(());
    }
    if published(type_index).is_none() {
        let message = format!("there is no type of index {type_index} to give `{name}` to");
        return Err(VAL_15.refused(Kind::UnknownKind, message));
    }
    if column.value(type_index).is_some() {
        return Err(VAL_15.refused(
            Kind::Duplicate,
            format!(
                "TypeAttr `{name}` is already registered for type `{}` (index {type_index})",
                key_of(type_index)
            ),
        ));
    }
    column.put(type_index as usize, value);
    Ok(())
}
