//! What a loader writes into a library: slots, and the context.

use super::{MOD_05, MOD_06, Module, Symbols, names};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError, RwLock};

/// Addresses for slots that were added at run time (0.22 on).
static ADDED: RwLock<Option<HashMap<String, Pointer>>> = RwLock::new(None);

/// For every context symbol that was written: the modules that it names or named, the last one valid.
static WRITTEN: Mutex<Vec<(Pointer, Vec<Pointer>)>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq)]
struct Pointer(*mut c_void);

// SAFETY: an address; it is followed only where the comments below say why.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

/// From now on libraries that have a data symbol `name` get `address` written there (MOD-05).
pub fn register(name: &str, address: *mut c_void) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added
        .get_or_insert_default()
        .insert(name.to_owned(), Pointer(address));
}

/// Every slot that was added at run time, in no order.
pub fn added() -> Vec<(String, *mut c_void)> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let all = added.iter().flatten();
    all.map(|(name, address)| (name.clone(), address.0))
        .collect()
}

/// Fills the slots that the library has, and returns their names (MOD-05).
pub(super) fn fill_slots(symbols: &dyn Symbols) -> Vec<String> {
    let own = names::all_slots().filter_map(|slot| {
        let function = crate::capi::function(slot.strip_prefix("__")?)?;
        Some((slot.to_owned(), function))
    });
    let added = added().into_iter().filter(|_| !MOD_05.is_off());
    let mut filled = Vec::new();
    for (name, function) in own.chain(added) {
        let Some(slot) = symbols.address(&name).filter(|slot| fits(symbols, *slot)) else {
            continue;
        };
        // SAFETY: `fits` checked that a pointer can be written there; the library waits for it under this name.
        unsafe { slot.cast::<*mut c_void>().write_unaligned(function) };
        filled.push(name);
    }
    filled
}

/// Writes `module` into the context symbol `name`, where the library has one (MOD-06). `None` writes null.
///
/// What is returned takes the module out of the symbol when it is dropped; the library must be mapped until then.
pub(super) fn set(symbols: &dyn Symbols, name: &str, module: Option<&Module>) -> Option<Written> {
    let slot = symbols
        .address(name)
        .filter(|slot| fits(symbols, *slot) && !MOD_06.is_off())?;
    let value = module.map_or(std::ptr::null_mut(), Module::context);
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `fits` checked that a pointer can be written there.
    unsafe { slot.cast::<*mut c_void>().write_unaligned(value) };
    if value.is_null() {
        return None;
    }
    let (slot, context) = (Pointer(slot.as_ptr()), Pointer(value));
    match written.iter_mut().find(|(known, _)| *known == slot) {
        Some((_, modules)) => modules.push(context),
        None => written.push((slot, vec![context])),
    }
    Some(Written { slot, context })
}

/// A module that a context symbol names. When this is dropped, the symbol names another module of the same mapping that
/// still lives, or nothing.
pub(super) struct Written {
    slot: Pointer,
    context: Pointer,
}

impl Drop for Written {
    fn drop(&mut self) {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = written.iter().position(|(known, _)| *known == self.slot) else {
            return;
        };
        let modules = &mut written[at].1;
        if let Some(last) = modules.iter().rposition(|module| *module == self.context) {
            modules.remove(last);
        }
        let now = modules
            .last()
            .map_or(std::ptr::null_mut(), |module| module.0);
        let slot = self.slot.0.cast::<*mut c_void>();
        // SAFETY: `set` checked that a pointer can be written there, and the library is mapped until this is dropped.
        unsafe {
            if slot.read_unaligned() == self.context.0 {
                slot.write_unaligned(now);
            }
        }
        if modules.is_empty() {
            written.swap_remove(at);
        }
    }
}

fn fits(symbols: &dyn Symbols, slot: NonNull<c_void>) -> bool {
    symbols.is_writable(slot, size_of::<*mut c_void>())
}
