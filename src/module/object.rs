//! The module object: one counted handle for modules of this crate and of C++.
//!
//! | bytes   | field                                              |
//! |---------|----------------------------------------------------|
//! | -8..0   | vtable, for C++                                    |
//! | 0..24   | object header, type 73                             |
//! | 24..32  | imports, an array object                           |
//! | 32..40  | cache of lookups from the environment; C++ only    |
//!
//! A C++ runtime in the same process sees our modules as its own `ModuleObj`; a module that it created is called through its vtable.

use super::cxx::{virtual_calls, vtable};
use super::{MOD_10, ModuleKind};
use crate::function::{Error, ErrorKind, Function, borrowed};
use crate::object::{Array, VisitedObjects, sequence_of};
use crate::rule;
use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, ObjectRef, Ref, end_nested};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Object, Schema, index};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// The public part of a module, which follows the vtable pointer.
#[repr(C)]
pub struct ModuleObj {
    header: Header,
    imports: AtomicPtr<Header>,
    lookup_cache: AtomicPtr<Header>,
}

debug_fields!(ModuleObj: header);

const _: () = assert!(size_of::<ModuleObj>() == 40);

// SAFETY: `#[repr(C)]` with the header first; the index is final.
unsafe impl Object for ModuleObj {
    fn type_index() -> ObjectIndex {
        ObjectIndex::fixed(index::MODULE)
    }

    fn matches(type_index: i32) -> bool {
        type_index == index::MODULE
    }
}

/// A module of this crate: the part that C++ sees, then its implementation.
#[repr(C)]
struct ModuleCell {
    table: &'static vtable::ModuleVirtuals,
    public: ModuleObj,
    body: ManuallyDrop<ModuleBody>,
}

pub(super) struct ModuleBody {
    kind: Box<dyn ModuleKind>,
    /// A second copy of the imports, so that a lookup only locks it and does not read an array of foreign cells.
    imports: RwLock<Vec<Module>>,
    /// Cache of lookups from the environment (MOD-14), in ascending order of the names.
    pub(super) found: Mutex<Vec<(Box<str>, Function)>>,
    /// Functions of which compiled code has a borrowed handle (MOD-13).
    pub(super) kept: Mutex<Vec<Function>>,
}

/// A module. Cloning counts a reference.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(Ref<ModuleObj>);

impl Module {
    /// Creates a module of `kind` without imports.
    pub fn new(kind: impl ModuleKind) -> Module {
        Module::from_box(Box::new(kind))
    }

    /// Creates the cell of a module. The vtable pointer comes first, where C++ expects it, and the private part follows the public one.
    fn from_box(kind: Box<dyn ModuleKind>) -> Module {
        let cell = Box::new(ModuleCell {
            table: vtable::table(),
            public: ModuleObj {
                header: Header::new(index::MODULE, delete),
                // An array even without imports, as in a module of C++, because reflection shows the field as an array.
                imports: AtomicPtr::new(no_imports().into_raw()),
                // C++ sets it in lookups of its modules; ours cache their results in `found` (MOD-14).
                lookup_cache: AtomicPtr::new(std::ptr::null_mut()),
            },
            body: ManuallyDrop::new(ModuleBody {
                kind,
                imports: RwLock::new(Vec::new()),
                found: Mutex::new(Vec::new()),
                kept: Mutex::new(Vec::new()),
            }),
        });
        let cell = Box::into_raw(cell);
        let public = cell.wrapping_byte_add(std::mem::offset_of!(ModuleCell, public));
        // SAFETY: the cell was created above; its header counts one reference, which is ours.
        Module(unsafe { Ref::from_raw(public.cast()) })
    }

    /// Returns the address by which C++ and compiled code of 0.22 on know the module: 8 bytes before the object.
    pub fn context(&self) -> *mut c_void {
        self.as_object()
            .as_ptr()
            .cast::<u8>()
            .wrapping_sub(8)
            .cast()
    }

    /// Returns the module of a context symbol's value.
    ///
    /// # Safety
    ///
    /// `context` must be null, or come from [`Module::context`] or from a C++ runtime of 0.22 on, and be alive.
    pub(crate) unsafe fn from_context(context: *mut c_void) -> Option<Module> {
        if context.is_null() {
            return None;
        }
        let object = context.cast::<u8>().wrapping_add(8).cast::<Header>();
        // SAFETY: the context is alive, by this contract, and is 8 bytes before a module object.
        let object = unsafe { ObjectRef::retain(object) };
        // SAFETY: the reference was taken above, and is one of a module.
        Some(Module(unsafe { Ref::from_raw(object.into_raw()) }))
    }

    /// Implements `Module::from_context` for a pointer that may also be the object's own address, like handles up to 0.20.
    ///
    /// # Safety
    ///
    /// As for `Module::from_context`, and the module must be one of this crate.
    pub unsafe fn from_context_or_handle(pointer: *mut c_void) -> Option<Module> {
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the first word is readable in both forms: the vtable pointer, or the counts of the object, which another thread may be
        // changing.
        let first = unsafe { AtomicUsize::from_ptr(pointer.cast()) }.load(Ordering::Relaxed);
        if first == std::ptr::from_ref(vtable::table()).addr() {
            // SAFETY: only modules of this crate have this vtable pointer before the object.
            return unsafe { Module::from_context(pointer) };
        }
        // SAFETY: the pointer is the address of the module object itself, which is alive, by this contract.
        let object = unsafe { ObjectRef::retain(pointer.cast()) };
        // SAFETY: the reference was taken above, and is one of a module.
        Some(Module(unsafe { Ref::from_raw(object.into_raw()) }))
    }

    /// Returns the private part of a module; `None` for one of C++.
    pub(super) fn body(&self) -> Option<&ModuleBody> {
        let cell = self.context().cast::<ModuleCell>();
        let table = cell.cast::<*const vtable::ModuleVirtuals>();
        // SAFETY: every module has a pointer to its vtable before its header.
        let table = unsafe { table.read() };
        // The vtable decides, not the type index, which modules of C++ have as well.
        if !std::ptr::eq(table, vtable::table()) {
            return None;
        }
        // SAFETY: only modules of this crate have this vtable, and they are whole cells; `&self` keeps this one alive.
        let body = unsafe { &(*cell).body };
        Some(body)
    }

    /// Returns the kind's implementation, if this crate created the module.
    pub fn implementation(&self) -> Option<&dyn ModuleKind> {
        Some(&*self.body()?.kind)
    }

    /// Returns the imports, in order.
    pub fn imports(&self) -> Vec<Module> {
        match self.body() {
            Some(body) => body
                .imports
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            // The array of C++ has no lock: another thread may replace it between reading the field and counting the reference.
            None => virtual_calls::run_exclusively(|| self.foreign_imports()),
        }
    }

    /// Returns the imports of a C++ module from the array in the object.
    fn foreign_imports(&self) -> Vec<Module> {
        let object = self.0.imports.load(Ordering::Acquire);
        // SAFETY: the field holds an array object or null, and the module owns a reference to it.
        let array = unsafe { ObjectRef::from_nullable(object) }.map(std::mem::ManuallyDrop::new);
        let Some(array) = array else {
            return Vec::new();
        };
        let items = sequence_of(AnyView::from(&*array)).unwrap_or_default();
        let objects = items.iter().filter_map(|item| item.as_object().cloned());
        objects
            .filter_map(|object| Module::from_object(object).ok())
            .collect()
    }

    /// Appends `other` to the imports. Rejects it if this module can be reached from `other` (MOD-10). A C++ module uses its virtual
    /// function.
    ///
    /// # Errors
    ///
    /// Returns MOD-10 (cycle), as a RuntimeError; exceptions of a C++ module.
    pub fn import(&self, other: Module) -> Result<(), Error> {
        if self.body().is_none() {
            return virtual_calls::import(self, &other);
        }
        // MOD-10: checked before the imports are locked, because the search locks each module that it visits.
        other.reject_if_reaches(self)?;
        self.add_imports(vec![other])
    }

    /// Removes all imports. The cache of lookups from the environment is kept (MOD-14).
    ///
    /// # Errors
    ///
    /// Exceptions of a C++ module; none for a module of this crate.
    pub fn clear_imports(&self) -> Result<(), Error> {
        let Some(body) = self.body() else {
            return virtual_calls::clear_imports(self);
        };
        let mut imports = body.imports.write().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *imports);
        self.publish(&imports);
        // In this order: code that runs when a module is freed may read these imports, and would wait for the lock.
        drop(imports);
        drop(taken);
        Ok(())
    }

    /// Adds imports that are known to create no cycle.
    pub(super) fn add_imports(&self, more: Vec<Module>) -> Result<(), Error> {
        let Some(body) = self.body() else {
            return more
                .iter()
                .try_for_each(|each| virtual_calls::import(self, each));
        };
        let mut imports = body.imports.write().unwrap_or_else(PoisonError::into_inner);
        if imports.is_empty() {
            // Loading a library adds all imports of a module at once. This avoids a second allocation.
            *imports = more;
        } else {
            imports.extend(more);
        }
        self.publish(&imports);
        Ok(())
    }

    /// Writes the imports to the field that C++ and reflection read. The previous array is released.
    fn publish(&self, imports: &[Module]) {
        let items = imports.iter().cloned().map(Any::from);
        let array = Array::new(items).into_object().into_raw();
        let before = self.0.imports.swap(array, Ordering::AcqRel);
        // SAFETY: the field owned one reference to its previous value, or was null.
        drop(unsafe { ObjectRef::from_nullable(before) });
    }

    /// Implements `ImportModule` of the C++ base class (MOD-10): replaces the array in the object. Classes that do not override it, which
    /// are all known ones, reach this function through their vtable.
    #[cfg(feature = "cxx")]
    pub(crate) fn import_in_object(&self, other: Module) -> Result<(), Error> {
        if self.body().is_some() {
            return self.import(other);
        }
        other.reject_if_reaches(self)?;
        virtual_calls::run_exclusively(|| {
            let mut imports = self.foreign_imports();
            imports.push(other);
            self.publish(&imports);
        });
        Ok(())
    }

    /// Implements `ClearImports` of the C++ base class.
    #[cfg(feature = "cxx")]
    pub(crate) fn clear_imports_in_object(&self) -> Result<(), Error> {
        if self.body().is_some() {
            return self.clear_imports();
        }
        virtual_calls::run_exclusively(|| self.publish(&[]));
        Ok(())
    }

    fn reject_if_reaches(&self, importer: &Module) -> Result<(), Error> {
        let text = || "Cyclic dependency detected during import".to_owned();
        // MOD-10: loaders of releases do not check the imports of a library. Here TREE-08 and TREE-09 are checked when the blob is read.
        MOD_10
            .demand(rule::Kind::Cycle, !self.reaches(importer)?, text)
            .map_err(|broken| Error::of_violation(ErrorKind::Runtime, broken))
    }

    /// Returns whether `target` is this module or one of its direct or indirect imports. Visits each module once, and does not recurse.
    fn reaches(&self, target: &Module) -> Result<bool, Error> {
        let seen = VisitedObjects::new();
        let mut open = vec![self.clone()];
        while let Some(module) = open.pop() {
            if module == *target {
                return Ok(true);
            }
            if seen.add(module.as_object())? {
                open.extend(module.imports());
            }
        }
        Ok(false)
    }
}

impl PartialEq for Module {
    /// Modules are equal when they are one object.
    fn eq(&self, other: &Module) -> bool {
        std::ptr::eq(self.as_object().as_ptr(), other.as_object().as_ptr())
    }
}

impl Eq for Module {}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Module[{}]({:p})",
            self.kind(),
            self.as_object().as_ptr()
        )
    }
}

crate::value::handle_value!(Module, ModuleObj, Schema::plain("ffi.Module"));
crate::value::handle_object!(Module);
borrowed!(Module, ModuleObj, index::MODULE);

/// Returns the shared array of all modules without imports. Adding to a shared array creates a new one.
fn no_imports() -> ObjectRef {
    static NONE: OnceLock<ObjectRef> = OnceLock::new();
    NONE.get_or_init(|| Array::new([]).into_object()).clone()
}

/// Frees a module of this crate. Counting follows the rules of the object header; the memory begins 8 bytes before it.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: the caller of a deleter follows VAL-05, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// Implements [`delete`].
///
/// # Safety
/// A caller must follow the contract of a deleter (VAL-05).
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    let cell = object
        .cast::<u8>()
        .wrapping_sub(std::mem::offset_of!(ModuleCell, public))
        .cast::<ModuleCell>();
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the flag comes once, when no strong reference is left (VAL-05).
        let body = unsafe { &mut (*cell).body };
        // SAFETY: the body is not read again.
        let body = unsafe { ManuallyDrop::take(body) };
        // SAFETY: the memory stays until the second flag comes.
        let public = unsafe { &(*cell).public };
        let fields = [&public.imports, &public.lookup_cache].map(|field| {
            let object = field.swap(std::ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: each field owns one reference to its object, or is null.
            unsafe { ObjectRef::from_nullable(object) }
        });
        drop((fields, body));
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: the flag comes once, when no reference is left; the body was taken out before.
        drop(unsafe { Box::from_raw(cell) });
    }
}
