//! Values of extensions (VAL-22): handles of a framework, each with a type code of the framework.
//!
//! | form | location | destroyed by |
//! |---|---|---|
//! | handle and code | the C interface of 0.2 to 0.20 | the caller that received it from a function, with `TVMExtTypeFree` |
//! | cell with the negated code as tag | [`AnyView`] | nothing: it is an argument, and the caller keeps it |
//! | [`Extension`] | [`Any`] | its last reference |
//!
//! ```
//! use tvmspec::value::{Extension, cast, register_extension};
//!
//! #[derive(Clone)]
//! struct Layout(&'static str);
//!
//! register_extension::<Layout>(65)?;
//! let value = tvmspec::value::Any::from(Extension::new(Layout("NCHW"))?);
//! let extension: Extension = cast(value.view())?;
//! assert_eq!(extension.code(), 65);
//! assert_eq!(extension.get::<Layout>().map(|layout| layout.0), Some("NCHW"));
//! # Ok::<(), tvmspec::rule::Violation>(())
//! ```

use super::header::{FRESH, HeaderSlot, Ref, dynamic_object};
use super::{Any, AnyPayload, AnyView, Argument, RawAny, Schema, VAL_22};
use crate::rule::{Kind, Rule, Violation};
use std::any::TypeId;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The codes of extensions. Up to 0.17 the range begins at 15, but no release looks up a pair for 15.
const CODES: Range<i32> = 16..128;

/// Destroys a handle.
pub(crate) type ExtensionDestroy = unsafe extern "C-unwind" fn(handle: *mut c_void);

/// Copies the value of a handle and returns a new handle.
pub(crate) type ExtensionClone = unsafe extern "C-unwind" fn(handle: *mut c_void) -> *mut c_void;

/// The functions of an extension type, in the order of upstream's `ExtTypeVTable`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ExtensionPair {
    /// Destroys a handle of the type.
    pub(crate) destroy: ExtensionDestroy,
    /// Copies the value of a handle of the type.
    pub(crate) clone: ExtensionClone,
    /// The Rust type whose boxes are the handles; `None` for a pair of C functions.
    of: Option<TypeId>,
}

/// The pairs by code minus 16. They live forever, because C++ keeps their addresses.
static PAIRS: RwLock<[Option<&'static ExtensionPair>; 112]> = RwLock::new([None; 112]);

fn pairs() -> RwLockReadGuard<'static, [Option<&'static ExtensionPair>; 112]> {
    PAIRS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Registers `T` as the extension type with `code`, 16 to 127 (VAL-22). C values with this code are handles of boxes of `T`.
///
/// # Errors
///
/// Returns VAL-22: missing for a code outside the range, and duplicate for a code with another pair or a type with another code.
/// Repeating a registration is not an error.
pub fn register_extension<T: Clone + Send + Sync + 'static>(code: i32) -> Result<(), Violation> {
    let at = pair_index(code)?;
    let own = Some(TypeId::of::<T>());
    let mut pairs = PAIRS.write().unwrap_or_else(PoisonError::into_inner);
    let taken = pairs
        .iter()
        .position(|pair| pair.is_some_and(|pair| pair.of == own));
    // VAL-22: a type has only one code, because `Extension::new` looks up the code by the type.
    match (taken, &pairs[at]) {
        (Some(taken), _) if taken == at => return Ok(()),
        (None, None) => {}
        _ => {
            let name = std::any::type_name::<T>();
            let message =
                format!("`{name}` has another code than {code}, or the code another type");
            return Err(VAL_22.rejected(Kind::Duplicate, message));
        }
    }
    pairs[at] = Some(Box::leak(Box::new(ExtensionPair {
        destroy: destroy_boxed::<T>,
        clone: clone_boxed::<T>,
        of: own,
    })));
    Ok(())
}

/// Registers C functions for `code`, and replaces an existing pair of C functions, as upstream does. Returns the pair, which lives forever.
///
/// # Safety
///
/// Both may be called with each handle that is passed under this code, from any thread. Handles of an earlier pair are no longer used.
pub(crate) unsafe fn register_pair(
    code: i32,
    clone: ExtensionClone,
    destroy: ExtensionDestroy,
) -> Result<&'static ExtensionPair, Violation> {
    let at = pair_index(code)?;
    let pair: &'static ExtensionPair = Box::leak(Box::new(ExtensionPair {
        destroy,
        clone,
        of: None,
    }));
    let mut pairs = PAIRS.write().unwrap_or_else(PoisonError::into_inner);
    // VAL-22: values of a Rust type are boxes created by safe code, which no C function may copy or destroy.
    if pairs[at].is_some_and(|pair| pair.of.is_some()) {
        let message = format!("type code {code} is already used by a Rust type");
        return Err(VAL_22.rejected(Kind::Duplicate, message));
    }
    pairs[at] = Some(pair);
    Ok(pair)
}

/// Returns the pair of `code`.
pub(crate) fn pair(code: i32) -> Result<&'static ExtensionPair, Violation> {
    let found = pairs()[pair_index(code)?];
    found.ok_or_else(|| {
        let message = format!("Extension type not registered: code {code}");
        VAL_22.rejected(Kind::Missing, message)
    })
}

/// Returns the position of the pair of `code`.
fn pair_index(code: i32) -> Result<usize, Violation> {
    let at = code.checked_sub(CODES.start).map(usize::try_from);
    match at {
        Some(Ok(at)) if CODES.contains(&code) => Ok(at),
        _ => {
            let message = format!("type code {code}: expected the code of an extension, 16 to 127");
            Err(VAL_22.rejected(Kind::Missing, message))
        }
    }
}

/// An owned value of an extension: a counted object, whose last reference destroys the handle.
#[derive(Clone)]
pub struct Extension(Ref<ExtensionObj>);

#[repr(C)]
struct ExtensionObj {
    header: HeaderSlot,
    code: i32,
    /// The functions of `code` when the handle arrived. A later pair may not know the handle.
    pair: &'static ExtensionPair,
    /// Null after it was passed on.
    handle: *mut c_void,
}

// SAFETY: a handle and its functions may be used from any thread: `register_extension` requires it of the type, `register_pair` of its
// caller.
unsafe impl Send for ExtensionObj {}
// SAFETY: as for `Send`: several threads may read the value of a handle.
unsafe impl Sync for ExtensionObj {}

dynamic_object!(ExtensionObj, "tvmspec.Extension");

impl Drop for ExtensionObj {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: a handle of the pair (the contract of `adopt`), which only this object owns.
            unsafe { (self.pair.destroy)(self.handle) }
        }
    }
}

impl Extension {
    /// Creates the value of an extension that is registered from Rust.
    ///
    /// # Errors
    ///
    /// Returns VAL-22 (missing) if no code is registered for `T`.
    pub fn new<T: Clone + Send + Sync + 'static>(value: T) -> Result<Extension, Violation> {
        let own = Some(TypeId::of::<T>());
        let found = pairs()
            .iter()
            .zip(CODES)
            .find_map(|(pair, code)| pair.filter(|pair| pair.of == own).map(|pair| (code, pair)));
        let Some((code, pair)) = found else {
            let message = format!(
                "Extension type not registered: `{}`",
                std::any::type_name::<T>()
            );
            return Err(VAL_22.rejected(Kind::Missing, message));
        };
        let handle = Box::into_raw(Box::new(value)).cast();
        Ok(Extension::holding(code, pair, handle))
    }

    /// Returns the type code, 16 to 127.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Returns the address that C uses, which is valid while `self` lives.
    pub fn handle(&self) -> *mut c_void {
        self.0.handle
    }

    /// Returns the value if its code is registered for `T` from Rust.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let is_one = self.0.pair.of == Some(TypeId::of::<T>());
        // SAFETY: null, or a handle of the pair of `T` (the contract of `adopt`), which is a box of it that `self` keeps.
        is_one.then(|| unsafe { self.0.handle.cast::<T>().as_ref() })?
    }

    /// Takes over a handle that a function returned. Returns `None` if the code has no pair.
    ///
    /// # Safety
    ///
    /// `handle` is null or a handle of the pair of `code`, which the caller owns.
    pub(crate) unsafe fn adopt(code: i32, handle: *mut c_void) -> Option<Extension> {
        let pair = pair(code).ok()?;
        Some(Extension::holding(code, pair, handle))
    }

    /// Returns a handle for a C caller, who then owns it. If nothing else refers to the object, it is this object's handle, otherwise a
    /// copy.
    pub(crate) fn into_handle(self) -> (*mut c_void, i32) {
        let (code, object) = (self.0.code, self.0.as_object());
        // Both counts are read at once, because between two reads a weak reference may become a strong one. Acquire: the writes of threads
        // that dropped their references are visible.
        if object.header().combined.load(Ordering::Acquire) == FRESH {
            let object = self.0.as_ptr();
            // SAFETY: `self` is the only reference, strong or weak, so nothing else reads or writes the field.
            let handle = unsafe { &mut (*object).handle };
            return (std::mem::replace(handle, std::ptr::null_mut()), code);
        }
        // SAFETY: null, or a handle of the pair that `self` keeps.
        (unsafe { copied(self.0.pair, self.0.handle) }, code)
    }

    /// Returns the extension in `value`, or `value` itself.
    pub(crate) fn from_any(value: Any) -> Result<Extension, Any> {
        match value
            .as_object()
            .and_then(Ref::<ExtensionObj>::downcast_boxed)
        {
            None => Err(value),
            Some(_) => match value.into_object() {
                // SAFETY: `made` found that the object starts with an `ExtensionObj`; its reference moves.
                Ok(object) => Ok(Extension(unsafe { Ref::from_raw(object.into_raw()) })),
                Err(value) => Err(value),
            },
        }
    }

    fn holding(code: i32, pair: &'static ExtensionPair, handle: *mut c_void) -> Extension {
        Extension(Ref::new(ExtensionObj {
            header: HeaderSlot::default(),
            code,
            pair,
            handle,
        }))
    }
}

impl From<Extension> for Any {
    fn from(extension: Extension) -> Any {
        extension.0.into()
    }
}

impl Argument for Extension {
    const RULE: Rule = VAL_22;

    fn schema() -> Schema {
        Schema::plain("tvmspec.Extension")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Extension> {
        borrowed(&view)?;
        Extension::from_any(view.to_any()).ok()
    }
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<extension {}>", self.code())
    }
}

/// Creates an argument from a handle that a C caller keeps. Returns `None` if the code has no pair.
///
/// # Safety
///
/// `handle` is null or a handle of the pair of `code`, and stays valid for `'a`.
pub(crate) unsafe fn argument<'a>(code: i32, handle: *mut c_void) -> Option<AnyView<'a>> {
    pair(code).ok()?;
    let cell = RawAny::of(-code, AnyPayload { ptr: handle });
    // SAFETY: only this module uses tags below zero, and the handle matches the tag for `'a`, by this contract.
    Some(unsafe { AnyView::from_raw(cell) })
}

/// Returns the handle and the code of an extension's value, borrowed or owned, without taking it.
pub(crate) fn borrowed(view: &AnyView<'_>) -> Option<(*mut c_void, i32)> {
    let code = view.type_index().wrapping_neg();
    if CODES.contains(&code) {
        return Some((view.as_raw().ptr(), code));
    }
    let object = Ref::<ExtensionObj>::downcast_boxed(view.as_object()?)?;
    Some((object.handle, object.code))
}

/// Returns an owned copy of an argument whose tag is below zero (VAL-22). Returns None without a pair, which every result of [`argument`]
/// has.
#[cold]
pub(super) fn owned_copy(view: AnyView<'_>) -> Any {
    let code = view.type_index().wrapping_neg();
    let Ok(pair) = pair(code) else {
        return Any::none();
    };
    // SAFETY: null, or a handle of the pair while the view lives (the contract of `argument`).
    let handle = unsafe { copied(pair, view.as_raw().ptr()) };
    Extension::holding(code, pair, handle).into()
}

/// Copies a handle. Null stays null.
///
/// # Safety
///
/// `handle` is null or a live handle of `pair`.
unsafe fn copied(pair: &ExtensionPair, handle: *mut c_void) -> *mut c_void {
    if handle.is_null() {
        handle
    } else {
        // SAFETY: a live handle of the pair, by this contract.
        unsafe { (pair.clone)(handle) }
    }
}

unsafe extern "C-unwind" fn clone_boxed<T: Clone>(handle: *mut c_void) -> *mut c_void {
    // SAFETY: a live handle of the pair with this function, so a box of `T`.
    let value = unsafe { &*handle.cast::<T>() };
    Box::into_raw(Box::new(value.clone())).cast()
}

unsafe extern "C-unwind" fn destroy_boxed<T>(handle: *mut c_void) {
    // SAFETY: a handle of the pair with this function, so a box of `T`, destroyed once.
    drop(unsafe { Box::from_raw(handle.cast::<T>()) });
}
