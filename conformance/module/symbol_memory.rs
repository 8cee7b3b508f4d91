//! A library that is not a file: symbols in memory, for cases that need no linker.

use crate::module::exports;
use crate::module::{Data, SymbolName, Symbols};
use crate::rule::Violation;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Symbols in memory. This value owns the data; code belongs to the process.
#[derive(Default)]
pub(super) struct SymbolMemory {
    /// Functions of this process.
    code: HashMap<String, AtomicPtr<c_void>>,
    /// Data with exact ends.
    data: HashMap<String, Box<[u8]>>,
    /// Words that a loader may fill. Boxed, so that their addresses do not change.
    slots: HashMap<String, Box<AtomicUsize>>,
    /// Names that the library needs, without an address.
    needs: Vec<String>,
}

impl SymbolMemory {
    /// Adds a function at `address`.
    pub(super) fn code(mut self, name: &str, address: *const c_void) -> SymbolMemory {
        self.code
            .insert(name.to_owned(), AtomicPtr::new(address.cast_mut()));
        self
    }

    /// Adds data that fills its symbol.
    pub(super) fn data(mut self, name: &str, bytes: &[u8]) -> SymbolMemory {
        self.data.insert(name.to_owned(), bytes.into());
        self
    }

    /// Adds a pointer that a loader may write.
    pub(super) fn slot(mut self, name: &str) -> SymbolMemory {
        self.slots
            .insert(name.to_owned(), Box::new(AtomicUsize::new(UNTOUCHED)));
        self
    }

    /// Adds a name that the library needs from outside.
    pub(super) fn need(mut self, name: &str) -> SymbolMemory {
        self.needs.push(name.to_owned());
        self
    }

    /// Returns the value of a slot; `None` if it was not written.
    pub(super) fn written(&self, name: &str) -> Option<usize> {
        let value = self.slots.get(name)?.load(Ordering::Relaxed);
        (value != UNTOUCHED).then_some(value)
    }
}

/// A value that no loader writes.
const UNTOUCHED: usize = usize::MAX - 1;

// Answers like a dynamic linker, from maps. `is_writable` is true only for slots, which shows a loader that writes elsewhere (MOD-05).
impl Symbols for SymbolMemory {
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        let name = name.text();
        let slot = || self.slots.get(name).map(|slot| slot.as_ptr().cast());
        let data = || {
            self.data
                .get(name)
                .map(|data| data.as_ptr().cast_mut().cast())
        };
        let code = self.code.get(name).map(|code| code.load(Ordering::Relaxed));
        NonNull::new(code.or_else(data).or_else(slot)?)
    }

    fn data(&self, name: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation> {
        let found = self.data.get(name.text());
        Ok(found.map(|bytes| Data { bytes, exact: true }))
    }

    fn is_code(&self, address: NonNull<c_void>) -> bool {
        self.code
            .values()
            .any(|code| code.load(Ordering::Relaxed) == address.as_ptr())
    }

    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool {
        let slots = self.slots.values().map(|slot| slot.as_ptr().addr());
        // Only slots, because data represents sections that a loader must not write.
        bytes <= size_of::<usize>()
            && slots
                .into_iter()
                .any(|slot| slot == address.as_ptr() as usize)
    }

    fn list(&self) -> Vec<(String, bool)> {
        let own = self
            .code
            .keys()
            .chain(self.data.keys())
            .chain(self.slots.keys());
        let own = own.map(|name| (name.clone(), false));
        own.chain(self.needs.iter().map(|name| (name.clone(), true)))
            .collect()
    }

    fn missing_functions(&self) -> Vec<String> {
        // MOD-26: a function that this crate exports is available, even if the dynamic linker does not see it.
        let unmet = self
            .needs
            .iter()
            .filter(|name| exports::find(name).is_none());
        unmet.cloned().collect()
    }

    fn describe(&self) -> String {
        "a library in memory".to_owned()
    }
}
