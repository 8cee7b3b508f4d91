//! The module of a shared object: its exported functions, in either convention.

use super::context::ContextGuard;
use super::symbol_names::{self, Convention, Dialect, EntryPoint};
use super::{MOD_25, Module, ModuleKind, Symbols, legacy};
use crate::function::{Error, ErrorKind, Function, SafeCall, take_call_error};
use crate::rule;
use crate::value::{
    Any, AnyPayload, AnyView, ByteArray, Header, RawAny, bytes_bytes, c_str, cast, index, types,
};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// A module of kind `library`.
pub struct Library {
    // Declared before `symbols`, because its drop writes into the library.
    context: OnceLock<ContextGuard>,
    symbols: Arc<dyn Symbols>,
    names: Dialect,
}

debug_fields!(Library: names);

impl Library {
    /// Creates the module of the functions that `symbols` export under `names`.
    pub(super) fn new(symbols: Arc<dyn Symbols>, names: Dialect) -> Library {
        Library {
            context: OnceLock::new(),
            symbols,
            names,
        }
    }

    /// Keeps the guard that removes the module from the library's context symbol on drop.
    pub(super) fn keep(&self, context: ContextGuard) {
        // Set only once, by the code that creates the module.
        let _ = self.context.set(context);
    }

    /// Returns the implementation of a library module; `None` for modules of other kinds.
    pub fn of(module: &Module) -> Option<&Library> {
        let kind: &dyn std::any::Any = module.implementation()?;
        kind.downcast_ref()
    }

    /// Returns the naming dialect of this library.
    pub fn names(&self) -> &Dialect {
        &self.names
    }

    /// Returns the address of the function `name`, including the entry point.
    fn address(&self, name: &str) -> Option<NonNull<c_void>> {
        // MOD-04: up to 0.21 `__tvm_main__` is data that contains the name of the function.
        let prefix = self.names.prefix;
        let meant = match self.names.entry {
            EntryPoint::NameOf(entry) if name == entry => {
                symbol_names::entry_name(&*self.symbols, entry)
            }
            _ => None,
        };
        self.symbols
            .function(prefix, meant.as_deref().unwrap_or(name))
    }

    /// Calls the function `symbol`, which takes no arguments and returns a text: metadata or documentation.
    fn text(&self, module: &Module, kind: &str, name: &str) -> Result<Option<String>, Error> {
        // Up to 0.21 a library exports no documentation, so that a function of that name is the user's own.
        if self.names.entry != EntryPoint::Prefixed {
            return Ok(None);
        }
        let Some(function) = self.function(module, &format!("{kind}{name}"))? else {
            return Ok(None);
        };
        Ok(Some(cast(function.call_packed(&[])?.view())?))
    }
}

impl ModuleKind for Library {
    fn kind(&self) -> &str {
        "library"
    }

    /// Returns the names of its exported functions, without their prefix; `None` if they cannot be listed.
    fn functions(&self) -> Option<Vec<String>> {
        let list = self
            .symbols
            .list()
            .into_iter()
            .filter(|(_, needed)| !needed);
        let own = list.filter_map(|(symbol, _)| {
            let prefix = self.names.prefix;
            let name = symbol.strip_prefix(prefix)?;
            // Up to 0.21 functions have no prefix: a name that begins with an underscore is a slot, a context, or a helper of the compiler.
            let is_plumbing = self.names.prefix.is_empty() && name.starts_with('_')
                || name.starts_with("_metadata_")
                || name.starts_with("_doc_");
            let is_function = !is_plumbing && self.symbols.function(prefix, name).is_some();
            is_function.then(|| name.to_owned())
        });
        Some(own.collect())
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error> {
        let Some(address) = self.address(name) else {
            return Ok(None);
        };
        // MOD-12: the function keeps the module alive, and with it the mapping of its code.
        let alive = module.clone();
        Ok(Some(match self.names.convention {
            Convention::Legacy => {
                // SAFETY: the symbol is a function of the convention of its release (MOD-03), the second clause of `module::load`.
                let body: legacy::PackedC = unsafe { std::mem::transmute(address) };
                Function::from_packed(move |args| {
                    let _alive = &alive;
                    // SAFETY: `body` follows that convention and gets the arguments that it was compiled for, the second and third clause
                    // of `module::load`; the library is mapped while `alive` exists.
                    unsafe { legacy::call(body, args) }
                })
            }
            convention => {
                // SAFETY: the symbol is a function of the convention of its release (MOD-03), the second clause of `module::load`.
                let body: SafeCall = unsafe { std::mem::transmute(address) };
                let flat = convention == Convention::Ffi021;
                Function::from_packed(move |args| {
                    let _alive = &alive;
                    let flat = if flat { Some(flattened(args)?) } else { None };
                    let views = flat.as_ref().map(Flat::views);
                    let args = views.as_deref().unwrap_or(args);
                    // SAFETY: `body` follows that convention and gets the arguments that it was compiled for, the second and third clause
                    // of `module::load`; the library is mapped while `alive` exists.
                    unsafe { call_ffi(body, args) }
                })
            }
        }))
    }

    fn implements(&self, _module: &Module, name: &str) -> Result<bool, Error> {
        Ok(self.address(name).is_some())
    }

    fn metadata(&self, module: &Module, name: &str) -> Result<Option<String>, Error> {
        self.text(module, "_metadata_", name)
    }

    fn doc(&self, module: &Module, name: &str) -> Result<Option<String>, Error> {
        self.text(module, "_doc_", name)
    }
}

/// Calls a function in the convention of 0.21 and later.
///
/// # Safety
///
/// `body` must follow that convention.
unsafe fn call_ffi(body: SafeCall, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let mut result = RawAny::NONE;
    let count = i32::try_from(args.len())
        .map_err(|_| Error::new(ErrorKind::Value, "too many arguments"))?;
    // SAFETY: `body` follows the convention, by this contract; a view is one cell, and there are `count`.
    let code = unsafe {
        body(
            std::ptr::null_mut(),
            args.as_ptr().cast(),
            count,
            &raw mut result,
        )
    };
    if code == 0 {
        // SAFETY: with code 0 the convention leaves an owned value in the result.
        return Ok(unsafe { Any::from_raw(result) });
    }
    Err(take_call_error(code))
}

/// Arguments without objects whose form 0.21 does not know (MOD-25).
struct Flat<'a> {
    cells: Vec<AnyView<'a>>,
    arrays: Vec<ByteArray>,
}

impl Flat<'_> {
    /// Returns the arguments, with byte arrays at their final addresses.
    fn views(&self) -> Vec<AnyView<'_>> {
        let mut arrays = self.arrays.iter();
        let each = self.cells.iter().map(|cell| match cell.type_index() {
            index::BYTE_ARRAY => arrays.next().map_or(*cell, |array| byte_array(array)),
            _ => *cell,
        });
        each.collect()
    }
}

fn byte_array(array: &ByteArray) -> AnyView<'_> {
    let ptr = std::ptr::from_ref(array).cast_mut().cast();
    // SAFETY: the array lives as long as the view, and describes bytes that an argument of the call owns.
    unsafe { AnyView::from_raw(RawAny::of(index::BYTE_ARRAY, AnyPayload { ptr })) }
}

/// Converts arguments for code of 0.21 (MOD-25). A tensor becomes its description, text a C string, and bytes a byte array. Functions
/// and modules are handles that only this crate dereferences. Any other object is rejected.
fn flattened<'a>(args: &'a [AnyView<'_>]) -> Result<Flat<'a>, Error> {
    let mut flat = Flat {
        cells: Vec::with_capacity(args.len()),
        arrays: Vec::new(),
    };
    for arg in args {
        let raw = arg.as_raw();
        let pointer = |index, ptr: *const c_void| {
            let ptr = ptr.cast_mut();
            // SAFETY: the pointer is into an argument, which lives as long as `args`.
            unsafe { AnyView::from_raw(RawAny::of(index, AnyPayload { ptr })) }
        };
        flat.cells.push(match raw.type_index {
            // MOD-25: in 0.21, this number, 70, is the index of a map.
            index::TENSOR => {
                let description = raw.ptr().cast::<u8>().wrapping_add(size_of::<Header>());
                pointer(index::DLTENSOR_PTR, description.cast())
            }
            // VAL-02, VAL-06: both forms end with a NUL.
            index::SMALL_STR | index::STR => {
                pointer(index::RAW_STR, c_str(arg).unwrap_or(c"".as_ptr()).cast())
            }
            index::SMALL_BYTES | index::BYTES => {
                flat.arrays
                    .push(ByteArray::of(bytes_bytes(arg).unwrap_or_default()));
                // `Flat::views` sets the address, after the list has reached its final place.
                pointer(index::BYTE_ARRAY, std::ptr::null())
            }
            index::BYTE_ARRAY => {
                // SAFETY: a cell of this type points to an array that lives for the call.
                flat.arrays.push(unsafe { *raw.ptr().cast::<ByteArray>() });
                pointer(index::BYTE_ARRAY, std::ptr::null())
            }
            // MOD-25: compiled code only passes these handles on, and never dereferences them.
            index::FUNCTION | index::MODULE => pointer(raw.type_index, raw.ptr()),
            other if other >= index::OBJECT_BEGIN => {
                let text = format!(
                    "code of 0.21 cannot take an object of type `{}`",
                    types::key_of(other)
                );
                return Err(MOD_25.rejected(rule::Kind::Unsupported, text).into());
            }
            // MOD-25, VAL-22: code of tvm-ffi copies only the bits, and has no function to copy the handle of an extension.
            other if other < index::ANY => {
                let text = format!("code of 0.21 cannot take a value of extension {}", -other);
                return Err(MOD_25.rejected(rule::Kind::Unsupported, text).into());
            }
            // SAFETY: plain values and borrowed pointers live as long as `args`.
            _ => unsafe { AnyView::from_raw(*raw) },
        });
    }
    Ok(flat)
}
