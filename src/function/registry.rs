//! The global registry: functions by name.
//!
//! Looking up takes no lock and never waits for a writer (FUN-10). Readers announce themselves in a counter while they
//! take a reference; a writer that replaced or removed a function keeps the old one until it has seen that counter at
//! zero, so a reader never counts up an object that is gone.
//!
//! What the chapters of this crate bring is entered when a name is first looked up, or the names are first listed; any
//! other function takes the place of such a *default* without `allow_override` (`provide`).

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

/// A name, for the life of the process: one that is removed keeps its entry, and a reader in it never loses its footing.
struct RegistryEntry {
    /// Any bytes: C registers names that need not be UTF-8.
    name: &'static [u8],
    /// Whether the name is one of [`RAW`].
    raw: bool,
    /// The function; null once removed.
    function: AtomicPtr<Header>,
    /// What was first in the bucket before this.
    next: Option<&'static RegistryEntry>,
}

/// Names by their hash, each bucket a list that only grows at its front: a reader never waits, and nothing ever moves.
static BUCKETS: [AtomicPtr<RegistryEntry>; 1 << 14] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 1 << 14];

/// What the writer keeps beside the buckets.
#[derive(Default)]
struct Ledger {
    /// In the order of the last registration of each name; an overridden name moves to the end.
    listed: Vec<ListedName>,
    /// Functions that were replaced or removed while a reader was busy. They end with a later writer.
    retired: Vec<ObjectRef>,
}

/// A name with a function.
struct ListedName {
    /// Its name and function.
    entry: &'static RegistryEntry,
    /// What goes with the function; replaced with it.
    details: Details,
    /// Whether the function is a default.
    default: bool,
}

/// What is known of a global function besides itself.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Documentation.
    pub doc: String,
    /// JSON metadata.
    pub metadata: String,
    /// Flag bits of a method.
    pub flags: i64,
}

/// The function of a name that begins so returns the address of a device table, which is followed (DEV-02): safe code registers
/// devices with `device::manager::register`, which makes the table.
const TABLES: &str = "device_api.";

/// How many threads are between reading an entry and counting its function up.
static READERS: AtomicUsize = AtomicUsize::new(0);
/// The one lock of writers. Readers do not take it (FUN-10).
static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    listed: Vec::new(),
    retired: Vec::new(),
});

/// With a fixed seed: names come from code of this process, not from input.
#[inline]
fn bucket(name: &[u8]) -> &'static AtomicPtr<RegistryEntry> {
    &BUCKETS[FixedState::default().hash_one(name) as usize % BUCKETS.len()]
}

/// The first entry of a bucket.
#[inline]
fn first(bucket: &AtomicPtr<RegistryEntry>) -> Option<&'static RegistryEntry> {
    // SAFETY: entries are published complete and never freed.
    unsafe { bucket.load(Ordering::Acquire).as_ref() }
}

/// The entry of `name`, with or without a function.
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

/// The function registered under `name`.
///
/// Functions that cannot check their arguments, such as `ffi.ModuleLoadFromFile` and `runtime.TVMSetStream`, are not
/// among them (FUN-10): [`lookup_raw`] returns those.
#[inline]
pub fn lookup(name: &str) -> Option<Function> {
    lookup_bytes(name.as_bytes())
}

/// [`lookup`] for a name as bytes.
#[inline]
pub(crate) fn lookup_bytes(name: &[u8]) -> Option<Function> {
    let entry = find_any(name)?;
    if entry.raw { None } else { entry.function() }
}

/// The function registered under `name`, whatever it does with its arguments.
///
/// ```
/// use tvmspec::function::{Function, registry};
///
/// registry::register("example.twice", Function::from_typed(|n: i64| 2 * n), false)?;
/// // SAFETY: this function takes a number.
/// let twice = unsafe { registry::lookup_raw(b"example.twice") }.expect("it is registered");
/// assert_eq!(i64::try_from(&twice.call(&[21i64.into()])?)?, 42);
/// // SAFETY: nothing is called.
/// assert!(unsafe { registry::lookup_raw(b"example.thrice") }.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Safety
///
/// Where the function loads a library, that library keeps the contract of [`crate::module::load`]; where it takes the
/// address of a stream, the stream is one of that device and not freed; where it empties a place of a tuple, nothing looks at
/// that element; where it makes a function of addresses, they are those of functions with the conventions that it calls.
#[inline]
pub unsafe fn lookup_raw(name: &[u8]) -> Option<Function> {
    find_any(name)?.function()
}

impl RegistryEntry {
    /// The function that is here now, counted up; none after a removal.
    #[inline]
    fn function(&self) -> Option<Function> {
        // Announced before the load, both in one order with the writer's swap and its look at the counter: a writer that sees no reader
        // knows that a later one sees the new function.
        READERS.fetch_add(1, Ordering::SeqCst);
        let object = self.function.load(Ordering::SeqCst);
        let function = if object.is_null() {
            None
        } else {
            // SAFETY: the thread that takes this object out of the entry drops it only after seeing no reader, and we are one.
            let object = unsafe { ObjectRef::retain(object) };
            // SAFETY: only functions are entered.
            Some(unsafe { std::mem::transmute::<ObjectRef, Function>(object) })
        };
        // After the function was counted: a writer that sees the counter at zero sees that reference too.
        READERS.fetch_sub(1, Ordering::Release);
        function
    }
}

/// The entry of `name`, which may be that of a default.
#[inline(always)]
fn find_any(name: &[u8]) -> Option<&'static RegistryEntry> {
    // Asked before the search: defaults that another thread brings meanwhile are searched for once more. What is there is found
    // without a wait (FUN-10).
    let settled = crate::install::is_complete();
    match find(name) {
        None if !settled => find_default(name),
        found => found,
    }
}

/// [`find_any`] of a name that is not there yet: enters what the chapters bring, then searches again.
#[cold]
fn find_default(name: &[u8]) -> Option<&'static RegistryEntry> {
    crate::install();
    find(name)
}

/// Registers `function` as the default for `name`: one that yields to every other, before or after it (FUN-11).
pub(crate) fn provide(name: &str, function: Function) {
    // A name that is taken keeps its function.
    // SAFETY: the chapters of this crate provide the tables of their own devices (`device::install`).
    let _ = unsafe { enter(name.as_bytes(), function, Claim::Default, plain()) };
}

/// What a registration does about a name that is taken. Each takes that of a default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Leaves it, and yields to every later registration (`provide`).
    Default,
    /// Leaves it.
    New,
    /// Takes it.
    Override,
}

impl Claim {
    /// As `TVMFFIFunctionSetGlobal` has it: a flag (FUN-11).
    const fn of(override_existing: bool) -> Claim {
        if override_existing {
            Claim::Override
        } else {
            Claim::New
        }
    }
}

/// The ledger. A writer that panicked has left it whole: nothing of a caller runs under the lock.
fn lock() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ledger with what the chapters bring, for whatever lists or removes names (FUN-12).
fn ledger() -> MutexGuard<'static, Ledger> {
    crate::install();
    lock()
}

/// Registers `function` under `name`. A name that is taken is rejected unless `override_existing` (FUN-11).
///
/// # Errors
///
/// FUN-11; and a name of a device, whose function returns an address that is followed: those go through
/// `device::manager::register`, or `register_with`.
pub fn register(name: &str, function: Function, override_existing: bool) -> Result<()> {
    enter_safely(name, function, Claim::of(override_existing), plain())
}

/// Registers for safe code: not under a name of a device (FUN-10).
fn enter_safely(name: &str, function: Function, claim: Claim, details: Details) -> Result<()> {
    if name.starts_with(TABLES) {
        let message = format!(
            "`{name}` returns the address of a device table: device::manager::register makes one of a device"
        );
        return Err(Error::new(ErrorKind::Value, message));
    }
    // SAFETY: no name of a device, as just seen.
    unsafe { enter(name.as_bytes(), function, claim, details) }
}

/// Plain registration counts as a static method.
fn plain() -> Details {
    Details {
        flags: crate::value::types::flag::STATIC_METHOD,
        ..Details::default()
    }
}

/// Registers a typed Rust function under `name`, with the metadata of its types.
///
/// # Errors
///
/// FUN-11 for a name that is taken; a ValueError for a name that begins with `device_api.`, whose function returns an address
/// that is followed: `device::manager::register` enters those.
pub fn register_typed<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) -> Result<()> {
    let details = signed(const { &F::SIGNATURE });
    enter_safely(name, Function::named(Some(name), body), Claim::New, details)
}

/// Registers a builtin. A name that a user took before is left to him.
pub(crate) fn define(name: &'static str, code: Code) {
    let function = Function::plain(Some(name), code);
    let _ = enter_safely(name, function, Claim::New, signed(code.signature));
}

/// [`plain`], with the metadata of known types.
fn signed(signature: &Signature) -> Details {
    Details {
        metadata: signature_json(&signature.typed()),
        ..plain()
    }
}

/// [`register`] with documentation and metadata, and for every name.
///
/// # Safety
///
/// Under a name that begins with `device_api.`, the function returns null, or the address of at least eight bytes, and of a
/// whole [`DeviceTable`](crate::device::c_table::DeviceTable) that lives for ever if they are its magic.
pub(crate) unsafe fn register_with(
    name: &[u8],
    function: Function,
    override_existing: bool,
    details: Details,
) -> Result<()> {
    // SAFETY: as for this function.
    unsafe { enter(name, function, Claim::of(override_existing), details) }
}

/// # Safety
///
/// As for [`register_with`].
unsafe fn enter(name: &[u8], function: Function, claim: Claim, details: Details) -> Result<()> {
    // VAL-21: custom types are functions of the registry, so that before the first one is registered there are none.
    custom_types::serve();
    // What it replaced ends behind the lock: a destructor may come back here.
    replaced(name, function, claim, details).map(drop)
}

/// Registers, and returns what ended by that, for the caller to drop.
fn replaced(
    name: &[u8],
    function: Function,
    claim: Claim,
    details: Details,
) -> Result<Vec<ObjectRef>> {
    let mut ledger = lock();
    let (entry, place) = match find(name) {
        Some(entry) => (entry, ledger.place(name)),
        None => (add(name), None),
    };
    if let Some(place) = place {
        // FUN-11: a default yields to any registration, and to a later default as well.
        if claim != Claim::Override && !ledger.listed[place].default {
            return Err(already_registered(name));
        }
        // FUN-22: the new function takes the place in the entry, and who found the old one keeps it. Up to 0.6 the address that
        // `Registry::Get` returned calls the new body from then on.
        // FUN-12: an overridden name moves to the end.
        ledger.listed.remove(place);
    }
    ledger.listed.push(ListedName {
        entry,
        details,
        default: claim == Claim::Default,
    });
    Ok(ledger.replace(entry, function.into_object().into_raw()))
}

/// A new entry, under the lock, without a function.
fn add(name: &[u8]) -> &'static RegistryEntry {
    let bucket = bucket(name);
    let entry = Box::leak(Box::new(RegistryEntry {
        name: crate::value::types::leak_bytes(name),
        raw: is_raw(name),
        function: AtomicPtr::new(std::ptr::null_mut()),
        next: first(bucket),
    }));
    // Whole before it is seen, with the rest of its bucket behind it: a reader meets the old list or the new one.
    bucket.store(entry, Ordering::Release);
    entry
}

impl Ledger {
    /// Where `name` is listed, which it is while it has a function.
    fn place(&self, name: &[u8]) -> Option<usize> {
        for (at, listed) in self.listed.iter().enumerate() {
            if listed.entry.name == name {
                return Some(at);
            }
        }
        None
    }

    /// Puts `function` (null for none) into `entry`, and returns what no reader can be looking at any more.
    fn replace(&mut self, entry: &RegistryEntry, function: *mut Header) -> Vec<ObjectRef> {
        let before = entry.function.swap(function, Ordering::SeqCst);
        // SAFETY: the entry owned a reference of what was in it.
        self.retired
            .extend(unsafe { ObjectRef::from_nullable(before) });
        // A reader is done in a moment; one that is not leaves this to the next writer.
        for _ in PATIENCE {
            if READERS.load(Ordering::SeqCst) == 0 {
                return std::mem::take(&mut self.retired);
            }
        }
        Vec::new()
    }
}

/// How often a writer looks whether readers are done.
const PATIENCE: Range<u32> = 0..10_000;

/// FUN-11, in upstream's words.
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

/// Removes `name`; false when it was not there (FUN-12, FUN-23).
pub fn remove(name: &str) -> bool {
    // What is removed ends behind the lock: a destructor may come back here.
    removed(name.as_bytes()).is_some()
}

/// Removes `name`, and returns what ended by that, for the caller to drop.
fn removed(name: &[u8]) -> Option<Vec<ObjectRef>> {
    let mut ledger = ledger();
    let place = ledger.place(name)?;
    // A default that is removed is none any more: what takes the name next keeps it.
    // FUN-12, FUN-23: the entry stays in its bucket, without a function: a reader may be at it, and handles that were found keep theirs.
    let ListedName { entry, .. } = ledger.listed.remove(place);
    Some(ledger.replace(entry, std::ptr::null_mut()))
}

/// All names, in the order of their last registration (FUN-12); one that is no UTF-8 as a text that says so.
pub fn names() -> Vec<&'static str> {
    ledger()
        .listed
        .iter()
        .map(|listed| {
            std::str::from_utf8(listed.entry.name).unwrap_or("(a name that is not UTF-8)")
        })
        .collect()
}

/// Documentation and metadata of `name`; none for a name that is not registered.
pub fn details(name: &str) -> Option<Details> {
    let ledger = ledger();
    let place = ledger.place(name.as_bytes())?;
    Some(ledger.listed[place].details.clone())
}

/// [`lookup`], or an error that names what is missing (FUN-10).
///
/// # Errors
///
/// FUN-10, also for a function that only [`lookup_raw`] returns.
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
