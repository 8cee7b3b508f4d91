//! The values that a loader writes into a library: slots and context symbols.

use super::symbol_names::Convention;
use super::{Module, SymbolName, Symbols, any_list, exports, symbol_names};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// Addresses of slots that were added at run time (0.22 on).
static ADDED: RwLock<Vec<AddedSlot>> = RwLock::new(Vec::new());

struct AddedSlot {
    name: String,
    hash: u32,
    address: Pointer,
}

/// Slot of the function that calls functions, from 0.21 on.
const FUNCTION_CALL: &str = "__TVMFFIFunctionCall";

/// Every context symbol that was written, with the module that it names. For each symbol the last entry is valid.
static WRITTEN: Mutex<Vec<(Pointer, Pointer)>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq)]
struct Pointer(*mut c_void);

// SAFETY: an address; it is followed under the lock of `WRITTEN`, or as an address of `register`, which any thread may use.
unsafe impl Send for Pointer {}
// SAFETY: an address; it is followed under the lock of `WRITTEN`, or as an address of `register`, which any thread may use.
unsafe impl Sync for Pointer {}

/// Adds a slot: from now on, `address` is written into the data symbol `name` of each library that is loaded (MOD-05).
///
/// # Safety
///
/// `address` is the value that libraries expect in their symbol of that name, usually a function of its type. It stays valid for the
/// life of the process.
pub(crate) unsafe fn register(name: &str, address: *mut c_void) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let address = Pointer(address);
    // MOD-05: one entry for each name: releases keep both and write the slot twice, so that the later address wins there as well.
    match added.iter_mut().find(|known| known.name == name) {
        Some(known) => known.address = address,
        None => added.push(AddedSlot {
            name: name.to_owned(),
            hash: SymbolName::of(name).hash(),
            address,
        }),
    }
}

/// Returns every slot that was added at run time, in no particular order.
#[cfg(feature = "cxx")]
pub(crate) fn added() -> Vec<(String, *mut c_void)> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let all = added.iter();
    all.map(|added| (added.name.clone(), added.address.0))
        .collect()
}

/// Fills the slots of the library, and returns their names (MOD-05).
pub(super) fn fill_slots(symbols: &dyn Symbols, convention: Convention) -> Vec<String> {
    let mut filled = Vec::new();
    let mut fill = |name: &str, slot: NonNull<c_void>, function: Pointer| {
        if is_writable_slot(symbols, slot) {
            // SAFETY: `is_writable_slot` checked that a pointer can be written there; a symbol of this name is a slot, by the contract of `load`.
            unsafe { slot.cast::<*mut c_void>().write_unaligned(function.0) };
            filled.push(name.to_owned());
        }
    };
    let (names, functions) = own_slots();
    symbols.addresses(names, &mut |at, slot| {
        let name = names[at].text();
        let function = match (name, convention) {
            // MOD-25: code of 0.21 passes descriptions even if the called function needs the tensor object.
            (FUNCTION_CALL, Convention::Ffi021) => {
                Pointer(any_list::function_call_0_21 as *mut c_void)
            }
            _ => functions[at],
        };
        fill(name, slot, function);
    });
    // MOD-05: names of the program come last, so that they replace ours if both exist.
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    for added in added.iter() {
        if let Some(slot) = symbols.address(SymbolName::hashed(&added.name, added.hash)) {
            fill(&added.name, slot, added.address);
        }
    }
    filled
}

/// Returns the slots of all releases that this crate has functions for: the names, and the functions in the same order.
fn own_slots() -> &'static (Vec<SymbolName<'static>>, Vec<Pointer>) {
    static OWN: OnceLock<(Vec<SymbolName<'static>>, Vec<Pointer>)> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = symbol_names::all_slots().filter_map(|slot| {
            let function = exports::find(slot.strip_prefix("__")?)?;
            Some((SymbolName::of(slot), Pointer(function.address())))
        });
        own.unzip()
    })
}

/// Writes `module` into the context symbol `name`, if the library has one (MOD-06). `None` writes null.
///
/// The returned guard removes the module from the symbol on drop; the library must stay mapped until then.
pub(super) fn set(
    symbols: &dyn Symbols,
    name: SymbolName<'_>,
    module: Option<&Module>,
) -> Option<ContextGuard> {
    let slot = symbols
        .address(name)
        .filter(|slot| is_writable_slot(symbols, *slot))?;
    let value = module.map_or(std::ptr::null_mut(), Module::context);
    // Locked before the write: of two loads of one file, the last entry in the list must be the module in the symbol.
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `is_writable_slot` checked that a pointer can be written there; a symbol of this name is a context, by the contract of `load`.
    unsafe { slot.cast::<*mut c_void>().write_unaligned(value) };
    // MOD-06: up to 0.21 a tree without `_lib` writes null, which needs no removal.
    if value.is_null() {
        return None;
    }
    let (slot, context) = (Pointer(slot.as_ptr()), Pointer(value));
    written.push((slot, context));
    Some(ContextGuard { slot, context })
}

/// A module that a context symbol names. On drop, the symbol is set to another live module of the same mapping, or to null.
pub(super) struct ContextGuard {
    slot: Pointer,
    context: Pointer,
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (self.slot, self.context);
        written.retain(|entry| *entry != own);
        // MOD-06: a file that was opened twice has one mapping, whose symbol is set to the module before this one.
        let before = written.iter().rfind(|(slot, _)| *slot == self.slot);
        let now = before.map_or(std::ptr::null_mut(), |(_, module)| module.0);
        let slot = self.slot.0.cast::<*mut c_void>();
        // MOD-06: a symbol that a later load of the same mapping has written is kept.
        // SAFETY: `set` checked that a pointer can be written there, and the library is mapped until this is dropped.
        if unsafe { slot.read_unaligned() } == self.context.0 {
            // SAFETY: `set` checked that a pointer can be written there, and the library is mapped until this is dropped.
            unsafe { slot.write_unaligned(now) };
        }
    }
}

fn is_writable_slot(symbols: &dyn Symbols, slot: NonNull<c_void>) -> bool {
    symbols.is_writable(slot, size_of::<*mut c_void>())
}
