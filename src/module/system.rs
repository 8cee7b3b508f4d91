//! The system library: symbols of statically linked code, which are registered before the first lookup.

use super::symbols::Data;
use super::{SymbolName, Symbols};
use crate::object::Dict;
use crate::rule::{Kind, Violation};
use crate::value::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// Addresses by name. Its public hash does no harm, because code of this process chose the names, not a file.
static TABLE: RwLock<Option<Dict>> = RwLock::new(None);

/// Registers a symbol like [`register`], for the C interfaces of both eras, and warns if another address was replaced (MOD-16).
///
/// # Safety
///
/// As for [`register`].
pub(crate) unsafe fn register_or_warn(name: &str, address: *mut c_void) {
    // SAFETY: as for this function.
    if unsafe { register(name, address) } {
        eprintln!(
            "warning: the system library symbol `{name}` is registered again, at another address"
        );
    }
}

/// Registers `address` under `name`, or removes the name if the address is null. Returns whether another address was replaced (MOD-17).
///
/// # Safety
///
/// `address` must stay valid for the life of the process. A function's name must have the address of a function with the convention
/// that the other names imply. The function must keep the contract of [`super::load`]. The name of a context symbol or slot must have
/// the address of a writable pointer. The name of a blob must have the address of a blob.
pub(crate) unsafe fn register(name: &str, address: *mut c_void) -> bool {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let table = table.get_or_insert_with(Dict::new);
    let key = Any::from(name);
    let before = address_in(table, &key);
    // Cannot fail, because texts always have a hash.
    let _ = if address.is_null() {
        table.remove(key.view()).map(drop)
    } else {
        // SAFETY: `address` is valid for the life of the process and fits its name, by this contract.
        let address = unsafe { Any::handle(address) };
        table.set(key, address)
    };
    // MOD-17: `TVMFFIEnvModRegisterSystemLibSymbol` warns in this case, as releases do. Registering the same address again is not a
    // replacement.
    before.is_some_and(|before| before.as_ptr() != address)
}

/// The symbols of the system library under one prefix (MOD-16).
#[derive(Debug)]
pub(crate) struct SystemSymbols {
    prefix: String,
}

impl SystemSymbols {
    /// Creates the source of symbols under `prefix`, which may be empty.
    pub(crate) fn new(prefix: &str) -> SystemSymbols {
        SystemSymbols {
            prefix: prefix.to_owned(),
        }
    }
}

impl Symbols for SystemSymbols {
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        let name = name.text();
        // MOD-16: the name with the prefix takes precedence over the name without it.
        let found = exact(&format!("{}{name}", self.prefix));
        found.or_else(|| exact(name))
    }

    /// Returns the bytes from the symbol to the end of its segment. A registered symbol has no size, but it is in the executable or a
    /// library.
    fn data(&self, name: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation> {
        let Some(address) = self.address(name) else {
            return Ok(None);
        };
        let room = super::dso::readable_bytes_from(address).ok_or_else(|| {
            let name = name.text();
            let text = format!("it is not known where `{name}` of the system library ends");
            super::MOD_18.rejected(Kind::Unsupported, text)
        })?;
        // SAFETY: `room_behind` found that many bytes after the address in a readable segment; a registered address stays valid for the
        // life of the process (`register`).
        let bytes = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), room) };
        Ok(Some(Data {
            bytes,
            exact: false,
        }))
    }

    fn function(&self, before: &str, name: &str) -> Option<NonNull<c_void>> {
        // MOD-16: from 0.22 on, the prefix of the library comes after the prefix of functions. Before, it comes first.
        let prefixed = format!("{before}{}{name}", self.prefix);
        let found = exact(&prefixed);
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
        let pairs = table.iter().flat_map(Dict::to_vec);
        let names = pairs.filter_map(|(name, _)| String::try_from(&name).ok());
        names.map(|name| (name, false)).collect()
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
    address_in(table.as_ref()?, &Any::from(name))
}

fn address_in(table: &Dict, name: &Any) -> Option<NonNull<c_void>> {
    NonNull::new(table.get(name.view()).ok()??.as_raw().ptr())
}
