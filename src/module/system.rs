//! The system library: symbols of statically linked code, registered before anybody asks for them.

use super::dso::Data;
use super::{MOD_16, MOD_17, Name, Symbols};
use crate::rule::{Kind, Violation};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

static TABLE: RwLock<Option<HashMap<String, Address>>> = RwLock::new(None);

#[derive(Clone, Copy)]
struct Address(NonNull<c_void>);

// SAFETY: the address of code or data that lives as long as the process; the table only hands it out.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// Registers `address` under `name`; a null address takes the name away. Returns whether another address was replaced (MOD-17).
pub fn register(name: &str, address: *mut c_void) -> bool {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let table = table.get_or_insert_default();
    let before = match NonNull::new(address) {
        Some(address) if MOD_17.is_off() => {
            let entry = table.entry(name.to_owned()).or_insert(Address(address));
            Some(*entry)
        }
        Some(address) => table.insert(name.to_owned(), Address(address)),
        None => table.remove(name),
    };
    before.is_some_and(|before| before.0.as_ptr() != address)
}

/// The symbols of the system library under one prefix (MOD-16).
#[derive(Debug)]
pub struct SystemSymbols {
    prefix: String,
}

impl SystemSymbols {
    /// Under `prefix`, which may be empty.
    pub fn new(prefix: &str) -> SystemSymbols {
        SystemSymbols {
            prefix: prefix.to_owned(),
        }
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl Symbols for SystemSymbols {
    fn address(&self, name: Name<'_>) -> Option<NonNull<c_void>> {
        let name = name.text();
        let found = exact(&format!("{}{name}", self.prefix)).filter(|_| !MOD_16.is_off());
        found.or_else(|| exact(name))
    }

    /// A registered symbol has no size. It lies in the executable or a library, whose segment bounds it.
    fn data(&self, name: Name<'_>) -> Result<Option<Data<'_>>, Violation> {
        let Some(address) = self.address(name) else {
            return Ok(None);
        };
        let room = super::dso::room_behind(address).ok_or_else(|| {
            let name = name.text();
            let text = format!("cannot tell where `{name}` of the system library ends");
            super::MOD_18.refused(Kind::Unsupported, text)
        })?;
        // SAFETY: mapped and readable for `room` bytes; statically linked code is never unmapped.
        let bytes = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), room) };
        Ok(Some(Data {
            bytes,
            exact: false,
        }))
    }

    fn function(&self, before: &str, name: &str) -> Option<NonNull<c_void>> {
        let prefixed = format!("{before}{}{name}", self.prefix);
        let found = exact(&prefixed).filter(|_| !MOD_16.is_off());
        found.or_else(|| exact(&format!("{before}{name}")))
    }

    fn is_code(&self, address: NonNull<c_void>) -> bool {
        super::dso::can_execute(address)
    }

    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool {
        super::dso::can_write(address, bytes)
    }

    fn list(&self) -> Vec<(String, bool)> {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        let names = table.iter().flat_map(HashMap::keys);
        names.map(|name| (name.clone(), false)).collect()
    }

    fn describe(&self) -> String {
        match self.prefix.as_str() {
            "" => "the system library".to_owned(),
            prefix => format!("the system library with prefix `{prefix}`"),
        }
    }
}

fn exact(name: &str) -> Option<NonNull<c_void>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.as_ref()?.get(name).map(|address| address.0)
}
