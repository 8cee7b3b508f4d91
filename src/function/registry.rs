//! The global registry: functions by name.
//!
//! Lookup takes no lock and never waits for a writer (FUN-10). Readers increment a counter while they take a reference. A writer that
//! replaces or removes a function keeps the old one until that counter is zero. A reader therefore never uses a freed object.
//!
//! The functions of this crate's chapters are added at the first lookup of an unknown name, or at the first listing. Any other function
//! replaces such a *default* without `allow_override` (`provide`).

mod custom_types;

pub(crate) use super::raw_names::is_raw;
use super::{Code, Error, FUN_10, FUN_11, Function, Result, Signature, TypedFn, signature_json};
use crate::function::ErrorKind;
use crate::rule::Kind;
use crate::value::header::{Header, ObjectRef};
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A name, which lives as long as the process. A removed name keeps its entry, so that a reader at this entry can continue.
struct RegistryEntry {
    /// Any bytes, because names from C may be invalid UTF-8.
    name: &'static [u8],
    /// True if the name is one of [`RAW`].
    raw: bool,
    /// The function; null after its removal.
    function: AtomicPtr<Header>,
    /// The previous first entry of the bucket.
    next: Option<&'static RegistryEntry>,
}

/// Names by hash. Each bucket is a list that only grows at its front, so a reader never waits, and entries never move.
static BUCKETS: [AtomicPtr<RegistryEntry>; 1 << 14] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 1 << 14];

/// The writer's data in addition to the buckets.
#[derive(Default)]
struct RegistryWriterState {
    /// The names in the order of their last registration. An overridden name moves to the end.
    listed: Vec<ListedName>,
    /// Functions that were replaced or removed while a reader was busy. A later writer drops them.
    retired: Vec<ObjectRef>,
}

/// A name with a function.
struct ListedName {
    /// The name and its function.
    entry: &'static RegistryEntry,
    /// The details of the function, which are replaced with it.
    details: Details,
    /// True if the function is a default.
    default: bool,
}

/// Additional data of a global function.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Documentation.
    pub doc: String,
    /// JSON metadata.
    pub metadata: String,
    /// Flag bits of a method.
    pub flags: i64,
}

/// The prefix of names whose functions return the address of a device table, which callers dereference (DEV-02). Safe code registers
/// devices with `device::manager::register`, which creates the table.
const TABLES: &str = "device_api.";

/// Number of threads that have read an entry but not yet taken the reference to its function.
static READERS: AtomicUsize = AtomicUsize::new(0);
/// The only lock of writers. Readers do not take it (FUN-10).
static WRITER_STATE: Mutex<RegistryWriterState> = Mutex::new(RegistryWriterState {
    listed: Vec::new(),
    retired: Vec::new(),
});

/// Returns the bucket of a name. The seed is fixed, because names come from code of this process and not from input.
#[inline]
fn bucket(name: &[u8]) -> &'static AtomicPtr<RegistryEntry> {
    &BUCKETS[FixedState::default().hash_one(name) as usize % BUCKETS.len()]
}

/// Returns the first entry of a bucket.
#[inline]
fn first(bucket: &AtomicPtr<RegistryEntry>) -> Option<&'static RegistryEntry> {
    // SAFETY: entries are published complete and never freed.
    unsafe { bucket.load(Ordering::Acquire).as_ref() }
}

/// Returns the entry of `name`, with or without a function.
#[inline]
fn find(name: &[u8]) -> Option<&'static RegistryEntry> {
    let mut entry = first(bucket(name));
    while let Some(found) = entry {
        if found.name == name {
            return Some(found);
        }
        entry = found.next;
    }
    None
}

/// Returns the function registered under `name`.
///
/// Does not return functions that cannot check their arguments, such as `ffi.ModuleLoadFromFile` and `runtime.TVMSetStream` (FUN-10).
/// [`lookup_raw`] returns those.
#[inline]
pub fn lookup(name: &str) -> Option<Function> {
    lookup_bytes(name.as_bytes())
}

/// Like [`lookup`], for a name as bytes.
#[inline]
pub(crate) fn lookup_bytes(name: &[u8]) -> Option<Function> {
    let entry = find_any(name)?;
    if entry.raw { None } else { entry.function() }
}

/// Returns the function registered under `name`, even if it cannot check its arguments.
///
/// ```
/// use tvmspec::function::{Function, registry};
///
/// registry::register("example.twice", Function::from_typed(|n: i64| 2 * n), false)?;
/// // SAFETY: this function takes a number.
/// let twice = unsafe { registry::lookup_raw(b"example.twice") }.expect("it is registered");
/// assert_eq!(i64::try_from(&twice.call((21i64,))?)?, 42);
/// // SAFETY: nothing is called.
/// assert!(unsafe { registry::lookup_raw(b"example.thrice") }.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Safety
///
/// * If the function loads a library, that library keeps the contract of [`crate::module::load`].
/// * If it takes the address of a stream, the stream belongs to that device and is not freed.
/// * If it empties an element of a tuple, nothing reads that element.
/// * If it creates a function from addresses, they are those of functions with the expected conventions.
#[inline]
pub unsafe fn lookup_raw(name: &[u8]) -> Option<Function> {
    find_any(name)?.function()
}

impl RegistryEntry {
    /// Returns the current function with a new reference; `None` after a removal.
    #[inline]
    fn function(&self) -> Option<Function> {
        // Incremented before the load, and both in one total order with the writer's swap and its read of the counter. A writer that sees
        // no reader knows that later readers see the new function.
        READERS.fetch_add(1, Ordering::SeqCst);
        let object = self.function.load(Ordering::SeqCst);
        let function = if object.is_null() {
            None
        } else {
            // SAFETY: the thread that takes this object out of the entry drops it only after seeing no reader, and this thread is one.
            let object = unsafe { ObjectRef::retain(object) };
            // SAFETY: only functions are entered.
            Some(unsafe { std::mem::transmute::<ObjectRef, Function>(object) })
        };
        // After the reference is counted: a writer that sees the counter at zero also sees that reference.
        READERS.fetch_sub(1, Ordering::Release);
        function
    }
}

/// Returns the entry of `name`, which may be a default.
#[inline(always)]
fn find_any(name: &[u8]) -> Option<&'static RegistryEntry> {
    // Read before the search: if another thread enters the defaults meanwhile, the search is repeated. A name that exists is found without
    // a wait (FUN-10).
    let settled = crate::install::is_complete();
    match find(name) {
        None if !settled => find_default(name),
        found => found,
    }
}

/// Like [`find_any`], for a name that does not exist yet. Adds the functions of the chapters, then searches again.
#[cold]
fn find_default(name: &[u8]) -> Option<&'static RegistryEntry> {
    crate::install();
    find(name)
}

/// Registers `function` as the default for `name`. A default yields to every other function, registered before or after it (FUN-11).
pub(crate) fn provide(name: &str, function: Function) {
    // An existing function stays.
    // SAFETY: the chapters of this crate provide the tables of their own devices (`device::install`).
    let _ = unsafe { enter(name.as_bytes(), function, Claim::Default, plain_details()) };
}

/// The behaviour of a registration if the name is taken. Every variant replaces a default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Keeps the existing function, and yields to every later registration (`provide`).
    Default,
    /// Keeps the existing function.
    New,
    /// Replaces the existing function.
    Override,
}

impl Claim {
    /// Converts the flag of `TVMFFIFunctionSetGlobal` (FUN-11).
    const fn of(override_existing: bool) -> Claim {
        if override_existing {
            Claim::Override
        } else {
            Claim::New
        }
    }
}

/// Locks the writer's state. It is consistent even after a panic of a writer, because no code of callers runs under the lock.
fn lock() -> MutexGuard<'static, RegistryWriterState> {
    WRITER_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the writer's state after entering the functions of the chapters, for listing and removing names (FUN-12).
fn lock_writer_state() -> MutexGuard<'static, RegistryWriterState> {
    crate::install();
    lock()
}

/// Registers `function` under `name`. Rejects a taken name unless `override_existing` (FUN-11).
///
/// # Errors
///
/// Returns FUN-11 for a taken name. Rejects the name of a device, whose function returns an address that callers dereference. Use
/// `device::manager::register` or `register_with` for those.
pub fn register(name: &str, function: Function, override_existing: bool) -> Result<()> {
    enter_safely(
        name,
        function,
        Claim::of(override_existing),
        plain_details(),
    )
}

/// Registers for safe code. Rejects names of devices (FUN-10).
fn enter_safely(name: &str, function: Function, claim: Claim, details: Details) -> Result<()> {
    if name.starts_with(TABLES) {
        let message = format!(
            "`{name}` returns the address of a device table: device::manager::register makes one of a device"
        );
        return Err(Error::new(ErrorKind::Value, message));
    }
    // SAFETY: not the name of a device, as checked above.
    unsafe { enter(name.as_bytes(), function, claim, details) }
}

/// Returns the details of a plain registration, which counts as a static method.
fn plain_details() -> Details {
    Details {
        flags: crate::value::types::flag::STATIC_METHOD,
        ..Details::default()
    }
}

/// Registers a typed Rust function under `name`, with the metadata of its types.
///
/// # Errors
///
/// Returns FUN-11 for a taken name. Returns a ValueError for a name that begins with `device_api.`, whose function returns an address that
/// callers dereference. Use `device::manager::register` for those.
pub fn register_typed<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) -> Result<()> {
    let details = signed(const { &F::SIGNATURE });
    enter_safely(name, Function::named(Some(name), body), Claim::New, details)
}

/// Registers a builtin. If a user has taken the name before, the user's function stays.
pub(crate) fn define(name: &'static str, code: Code) {
    let function = Function::from_code(Some(name), code);
    let _ = enter_safely(name, function, Claim::New, signed(code.signature));
}

/// Like [`plain_details`], with the metadata of known types.
fn signed(signature: &Signature) -> Details {
    Details {
        metadata: signature_json(&signature.typed()),
        ..plain_details()
    }
}

/// Like [`register`], with documentation and metadata, and for every name.
///
/// # Safety
///
/// Under a name that begins with `device_api.`, the function returns null or the address of at least eight bytes. If they are the magic
/// number, they begin a whole [`DeviceTable`](crate::device::c_table::DeviceTable) that lives forever.
pub(crate) unsafe fn register_with(
    name: &[u8],
    function: Function,
    override_existing: bool,
    details: Details,
) -> Result<()> {
    // SAFETY: as for this function.
    unsafe { enter(name, function, Claim::of(override_existing), details) }
}

/// Registers a function and drops the replaced one.
///
/// # Safety
/// As for [`register_with`].
unsafe fn enter(name: &[u8], function: Function, claim: Claim, details: Details) -> Result<()> {
    // VAL-21: custom types are functions of the registry, so they cannot exist before the first registration.
    custom_types::serve();
    // Dropped after the lock is released, because a destructor may use the registry.
    replaced(name, function, claim, details).map(drop)
}

/// Registers a function, and returns the retired ones for the caller to drop.
fn replaced(
    name: &[u8],
    function: Function,
    claim: Claim,
    details: Details,
) -> Result<Vec<ObjectRef>> {
    let mut state = lock();
    let (entry, place) = match find(name) {
        Some(entry) => (entry, state.place(name)),
        None => (add(name), None),
    };
    if let Some(place) = place {
        // FUN-11: a default yields to any registration, including a later default.
        if claim != Claim::Override && !state.listed[place].default {
            return Err(already_registered(name));
        }
        // FUN-22: the new function replaces the old one in the entry, and holders of the old one keep it. Up to 0.6, calls through the
        // address from `Registry::Get` run the new body from then on.
        // FUN-12: an overridden name moves to the end.
        state.listed.remove(place);
    }
    state.listed.push(ListedName {
        entry,
        details,
        default: claim == Claim::Default,
    });
    Ok(state.replace(entry, function.into_object().into_raw()))
}

/// Adds an entry without a function, under the lock.
fn add(name: &[u8]) -> &'static RegistryEntry {
    let bucket = bucket(name);
    let entry = Box::leak(Box::new(RegistryEntry {
        name: crate::value::types::leak_bytes(name),
        raw: is_raw(name),
        function: AtomicPtr::new(std::ptr::null_mut()),
        next: first(bucket),
    }));
    // Published complete, with the rest of its bucket after it: a reader sees the old list or the new one.
    bucket.store(entry, Ordering::Release);
    entry
}

impl RegistryWriterState {
    /// Returns the position of `name` in the list. A name is listed while it has a function.
    fn place(&self, name: &[u8]) -> Option<usize> {
        for (at, listed) in self.listed.iter().enumerate() {
            if listed.entry.name == name {
                return Some(at);
            }
        }
        None
    }

    /// Stores `function` (null for none) in `entry`, and returns retired functions that no reader can be using any more.
    fn replace(&mut self, entry: &RegistryEntry, function: *mut Header) -> Vec<ObjectRef> {
        let before = entry.function.swap(function, Ordering::SeqCst);
        // SAFETY: the entry owned a reference to its content.
        self.retired
            .extend(unsafe { ObjectRef::from_nullable(before) });
        // A reader finishes quickly. If one does not, the next writer frees the old function.
        for _ in PATIENCE {
            if READERS.load(Ordering::SeqCst) == 0 {
                return std::mem::take(&mut self.retired);
            }
        }
        Vec::new()
    }
}

/// Number of times that a writer checks whether readers have finished.
const PATIENCE: Range<u32> = 0..10_000;

/// Returns FUN-11, in upstream's words.
#[cold]
fn already_registered(name: &[u8]) -> Error {
    FUN_11
        .rejected(
            Kind::Duplicate,
            format!(
                "Global Function `{}` is already registered",
                String::from_utf8_lossy(name)
            ),
        )
        .into()
}

/// Removes `name`. Returns false if it was not there (FUN-12, FUN-23).
pub fn remove(name: &str) -> bool {
    // Dropped after the lock is released, because a destructor may use the registry.
    unregister(name.as_bytes()).is_some()
}

/// Removes `name`, and returns the retired functions for the caller to drop.
fn unregister(name: &[u8]) -> Option<Vec<ObjectRef>> {
    let mut state = lock_writer_state();
    let place = state.place(name)?;
    // A removed default leaves no trace: the next function under this name is not a default.
    // FUN-12, FUN-23: the entry stays in its bucket without a function, because a reader may be using it. Earlier results of lookups stay
    // valid.
    let ListedName { entry, .. } = state.listed.remove(place);
    Some(state.replace(entry, std::ptr::null_mut()))
}

/// Returns all names, in the order of their last registration (FUN-12). Invalid UTF-8 is replaced by a text that says so.
pub fn names() -> Vec<&'static str> {
    lock_writer_state()
        .listed
        .iter()
        .map(|listed| {
            std::str::from_utf8(listed.entry.name).unwrap_or("(a name that is not UTF-8)")
        })
        .collect()
}

/// Returns documentation and metadata of `name`; `None` if it is not registered.
pub fn details(name: &str) -> Option<Details> {
    let state = lock_writer_state();
    let place = state.place(name.as_bytes())?;
    Some(state.listed[place].details.clone())
}

/// Like [`lookup`], but returns an error that names the missing function (FUN-10).
///
/// # Errors
///
/// Returns FUN-10, also for a function that only [`lookup_raw`] returns.
pub fn require(name: &str) -> Result<Function> {
    lookup(name).ok_or_else(|| {
        FUN_10
            .rejected(
                Kind::Missing,
                format!("Cannot find global function `{name}`"),
            )
            .into()
    })
}
