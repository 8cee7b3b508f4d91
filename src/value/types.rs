//! The type table: keys, indices, inheritance, and what reflection knows of each type.
//!
//! Entries are laid out as the C ABI shows them and live for ever, so reading takes no lock. Writing takes one.

use super::string::ByteArray;
use super::{Any, RawAny, VAL_14, VAL_15, VAL_16, index};
use crate::rule::{Kind, Violation};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// One field of a type (`TVMFFIFieldInfo`, 120 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FieldInfo {
    /// Name.
    pub name: ByteArray,
    /// Documentation.
    pub doc: ByteArray,
    /// JSON metadata, such as the type schema.
    pub metadata: ByteArray,
    /// Bits of [`flag`].
    pub flags: i64,
    /// Size of the field in bytes.
    pub size: i64,
    /// Alignment of the field in bytes.
    pub alignment: i64,
    /// Offset from the header.
    pub offset: i64,
    /// Reads the field at an address into a value.
    pub getter: Option<unsafe extern "C-unwind" fn(field: *mut c_void, out: *mut RawAny) -> i32>,
    /// `fn(field, value) -> rc`, or a function object when [`flag::SETTER_IS_FUNCTION`] is set.
    pub setter: *mut c_void,
    /// The default, or the function that makes it.
    pub default: RawAny,
    /// Type index that the field is declared with; -1 when it is not fixed.
    pub static_type_index: i32,
}

/// One method of a type (`TVMFFIMethodInfo`, 72 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MethodInfo {
    /// Name.
    pub name: ByteArray,
    /// Documentation.
    pub doc: ByteArray,
    /// JSON metadata.
    pub metadata: ByteArray,
    /// Bits of [`flag`].
    pub flags: i64,
    /// The function.
    pub method: RawAny,
}

/// What a type says of itself (`TVMFFITypeMetadata`, 32 bytes).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TypeMetadata {
    /// Documentation.
    pub doc: ByteArray,
    /// Makes an empty object.
    pub creator: Option<unsafe extern "C-unwind" fn(out: *mut *mut super::Header) -> i32>,
    /// Size of the object in bytes; 0 when it varies.
    pub total_size: i32,
    /// How it is compared: 0 not at all, 1 tree, 2 free variable, 3 DAG node, 4 const tree, 5 by identity.
    pub structural_kind: i32,
}

/// One type (`TVMFFITypeInfo`, 72 bytes).
#[repr(C)]
pub struct TypeInfo {
    /// Its index.
    pub type_index: i32,
    /// Distance from the root.
    pub type_depth: i32,
    /// Its key.
    pub type_key: ByteArray,
    /// `type_depth` ancestors, root first.
    pub ancestors: *const *const TypeInfo,
    /// Hash of the key ([`key_hash`]).
    pub key_hash: u64,
    /// Number of fields.
    pub num_fields: AtomicI32,
    /// Number of methods.
    pub num_methods: AtomicI32,
    /// Fields of this type alone, without those of its ancestors.
    pub fields: AtomicPtr<FieldInfo>,
    /// Methods of this type alone.
    pub methods: AtomicPtr<MethodInfo>,
    /// Metadata, once registered.
    pub metadata: AtomicPtr<TypeMetadata>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
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

// SAFETY: pointers in these entries go to memory that is never freed; counts and lists are atomic.
unsafe impl Send for TypeInfo {}
// SAFETY: as above.
unsafe impl Sync for TypeInfo {}
// SAFETY: plain data over memory that is never freed.
unsafe impl Send for FieldInfo {}
// SAFETY: as above.
unsafe impl Sync for FieldInfo {}

impl TypeInfo {
    /// The key.
    pub fn key(&self) -> &'static str {
        // SAFETY: keys are copied to memory that is never freed.
        let bytes: &'static [u8] = unsafe { self.type_key.as_slice() };
        std::str::from_utf8(bytes).unwrap_or("(a key that is not UTF-8)")
    }

    /// The ancestors, root first.
    pub fn ancestors(&self) -> &'static [&'static TypeInfo] {
        let count = self.type_depth as usize;
        if count == 0 {
            return &[];
        }
        // SAFETY: `ancestors` holds `type_depth` pointers to entries that live for ever.
        unsafe { std::slice::from_raw_parts(self.ancestors.cast(), count) }
    }

    /// The parent.
    pub fn parent(&self) -> Option<&'static TypeInfo> {
        self.ancestors().last().copied()
    }

    /// Fields of this type alone.
    pub fn fields(&self) -> &'static [FieldInfo] {
        let count = self.num_fields.load(Ordering::Acquire) as usize;
        let list = self.fields.load(Ordering::Acquire);
        if count == 0 || list.is_null() {
            return &[];
        }
        // SAFETY: the list is published before the count, holds at least that many, and is never freed.
        unsafe { std::slice::from_raw_parts(list, count) }
    }

    /// Methods of this type alone.
    pub fn methods(&self) -> &'static [MethodInfo] {
        let count = self.num_methods.load(Ordering::Acquire) as usize;
        let list = self.methods.load(Ordering::Acquire);
        if count == 0 || list.is_null() {
            return &[];
        }
        // SAFETY: as in `fields`.
        unsafe { std::slice::from_raw_parts(list, count) }
    }

    /// Fields of the ancestors, root first, then its own.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static FieldInfo> + use<> {
        let own = self.fields();
        self.ancestors()
            .iter()
            .flat_map(|ancestor| ancestor.fields())
            .chain(own)
    }

    /// What the type says of itself.
    pub fn metadata(&self) -> Option<&'static TypeMetadata> {
        // SAFETY: either null or memory that is never freed.
        unsafe { self.metadata.load(Ordering::Acquire).as_ref() }
    }
}

impl FieldInfo {
    /// The name.
    pub fn name(&self) -> &'static str {
        // SAFETY: names are copied to memory that is never freed.
        std::str::from_utf8(unsafe { self.name.as_slice() }).unwrap_or("?")
    }
}

impl MethodInfo {
    /// The name.
    pub fn name(&self) -> &'static str {
        // SAFETY: names are copied to memory that is never freed.
        std::str::from_utf8(unsafe { self.name.as_slice() }).unwrap_or("?")
    }
}

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
}

static TYPES: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

struct Writer {
    /// By key, ascending.
    keys: Vec<(&'static [u8], i32)>,
    next: i32,
    columns: Vec<(&'static [u8], &'static Column)>,
}

/// One attribute of types (`TVMFFITypeAttrColumn`): a value per type index. The address of the column never changes.
#[repr(C)]
pub struct Column {
    /// Values from `begin_index` on.
    pub data: AtomicPtr<RawAny>,
    /// Number of values.
    pub size: AtomicI32,
    /// Always 0.
    pub begin_index: i32,
}

const _: () = assert!(size_of::<Column>() == 16);

impl Column {
    /// The attribute of `type_index`, if registered.
    pub fn value(&self, type_index: i32) -> Option<super::AnyView<'static>> {
        let size = self.size.load(Ordering::Acquire);
        if type_index < 0 || type_index >= size {
            return None;
        }
        // SAFETY: the data is published before the size, holds at least that many cells, and is never freed; what the
        // cells hold is retained for ever.
        let view = unsafe {
            let cell = self.data.load(Ordering::Acquire).add(type_index as usize);
            super::AnyView::from_raw(*cell)
        };
        (!view.is_none()).then_some(view)
    }
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
    // SAFETY: chunks and entries are published complete and never freed.
    unsafe { chunk.as_ref()?[at % CHUNK].load(Ordering::Acquire).as_ref() }
}

impl Writer {
    fn index_of(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.binary_search_by(|(known, _)| (*known).cmp(key))
    }

    fn column(&self, name: &[u8]) -> Option<&'static Column> {
        let found = self.columns.iter().find(|(known, _)| *known == name);
        found.map(|(_, column)| *column)
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
pub fn leak_bytes(bytes: &[u8]) -> &'static [u8] {
    let mut copy = Vec::with_capacity(bytes.len() + 1);
    copy.extend_from_slice(bytes);
    copy.push(0);
    &Vec::leak(copy)[..bytes.len()]
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

/// [`index_of`] for a key as bytes.
pub fn index_of_bytes(key: &[u8]) -> Option<i32> {
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
pub fn is_instance(type_index: i32, ancestor: i32) -> bool {
    if type_index == ancestor {
        return true;
    }
    let (Some(own), Some(target)) = (info(type_index), info(ancestor)) else {
        return false;
    };
    own.ancestors()
        .get(target.type_depth as usize)
        .is_some_and(|found| found.type_index == ancestor)
        && !VAL_16.is_off()
}

/// What a new type asks for.
#[derive(Clone, Copy, Debug)]
pub struct NewType<'a> {
    /// Its key.
    pub key: &'a str,
    /// A fixed index, or -1 to be given one.
    pub static_index: i32,
    /// Distance from the root that the caller believes in; `None` to take the parent's plus one.
    pub depth: Option<i32>,
    /// How many indices behind its own to reserve for derived types.
    pub child_slots: i32,
    /// Whether derived types beyond those may take indices from elsewhere.
    pub can_overflow: bool,
    /// Index of the parent.
    pub parent: i32,
}

/// The index of a type, given out on first request; a known key keeps its index whatever else is asked (VAL-14, VAL-15).
pub fn get_or_alloc(new: NewType<'_>) -> Result<i32, Violation> {
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
    if new.depth.is_some_and(|asked| asked != depth) && !VAL_15.is_off() {
        return Err(refuse(format!(
            "type `{}` says depth {:?}, but its parent `{}` is at {}",
            new.key,
            new.depth,
            parent.key(),
            parent.type_depth
        )));
    }
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
    } else if wanted <= slots.total.saturating_sub(taken) && !VAL_14.is_off() {
        inside = true;
        new.parent.saturating_add(taken)
    } else {
        if !slots.can_overflow {
            return Err(refuse(format!(
                "reach maximum number of sub-classes for `{}`",
                parent.key()
            )));
        }
        // Somebody may have asked for just this one before.
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

/// A type of this library whose index is given out when somebody first asks for it.
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

    /// Whoever asks at the same time is given the same.
    #[cold]
    fn give(&self) -> i32 {
        let index = register(self.key, (self.parent)()).unwrap_or(index::OBJECT);
        self.index.store(index, Ordering::Relaxed);
        index
    }
}

/// Appends a field. Strings are copied; the default and a function setter are retained by the caller for ever.
pub fn push_field(type_index: i32, mut field: FieldInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = known(type_index)?;
    let name = field.name();
    if info.fields().iter().any(|known| known.name() == name) {
        return Err(VAL_15.refused(
            Kind::Duplicate,
            format!("type `{}` already has a field `{name}`", info.key()),
        ));
    }
    // SAFETY: the caller's strings are readable now.
    unsafe {
        field.name = ByteArray::of(leak_bytes(field.name.as_slice()));
        field.doc = ByteArray::of(leak_bytes(field.doc.as_slice()));
        field.metadata = ByteArray::of(leak_bytes(field.metadata.as_slice()));
    }
    let mut list = info.fields().to_vec();
    list.push(field);
    let count = list.len() as i32;
    info.fields
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_fields.store(count, Ordering::Release);
    Ok(())
}

/// Appends a method, or replaces the one of the same name.
pub fn push_method(type_index: i32, mut method: MethodInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = known(type_index)?;
    // SAFETY: the caller's strings are readable now.
    unsafe {
        method.name = ByteArray::of(leak_bytes(method.name.as_slice()));
        method.doc = ByteArray::of(leak_bytes(method.doc.as_slice()));
        method.metadata = ByteArray::of(leak_bytes(method.metadata.as_slice()));
    }
    let mut list = info.methods().to_vec();
    list.push(method);
    let count = list.len() as i32;
    info.methods
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_methods.store(count, Ordering::Release);
    Ok(())
}

/// Sets the metadata, once.
pub fn set_metadata(type_index: i32, mut metadata: TypeMetadata) -> Result<(), Violation> {
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
    // SAFETY: the caller's string is readable now.
    metadata.doc = ByteArray::of(leak_bytes(unsafe { metadata.doc.as_slice() }));
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

/// Sets attribute `name` of a type, once. Index 0 only makes the column.
///
/// # Errors
///
/// VAL-15 where no type has this index, and where the type has the attribute already.
pub fn set_attr(type_index: i32, name: &str, value: Any) -> Result<(), Violation> {
    let mut writer = writer();
    let column = match writer.column(name.as_bytes()) {
        Some(column) => column,
        None => {
            let column: &'static Column = Box::leak(Box::new(Column {
                data: AtomicPtr::new(std::ptr::null_mut()),
                size: AtomicI32::new(0),
                begin_index: 0,
            }));
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
    let at = type_index as usize;
    let size = column.size.load(Ordering::Acquire) as usize;
    let cell = value.into_raw();
    let capacity = if size == 0 {
        0
    } else {
        size.next_power_of_two()
    };
    if at < capacity {
        // SAFETY: inside the list; a cell that readers may see changes from None to a complete value, which
        // registration before use makes safe, as the ABI demands.
        unsafe { column.data.load(Ordering::Acquire).add(at).write(cell) };
        column
            .size
            .store(size.max(at + 1) as i32, Ordering::Release);
        return Ok(());
    }
    let mut list = Vec::with_capacity((at + 1).next_power_of_two());
    if size > 0 {
        // SAFETY: the published list holds `size` cells.
        list.extend_from_slice(unsafe {
            std::slice::from_raw_parts(column.data.load(Ordering::Acquire), size)
        });
    }
    list.resize(at, RawAny::NONE);
    list.push(cell);
    list.resize((at + 1).next_power_of_two(), RawAny::NONE);
    column
        .data
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    column.size.store(at as i32 + 1, Ordering::Release);
    Ok(())
}
