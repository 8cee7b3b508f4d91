//! Lists of values that compiled functions of the Relax VM read and write by index (MOD-27).
//!
//! Code of every release calls the same symbols, but passes its arguments differently. A list knows the convention of its code, so that
//! code of several releases can run in one process.

use super::MOD_27;
use super::symbol_names::Convention;
use crate::function::legacy::{argument, take_result};
use crate::function::{Error, FunctionObj};
use crate::rule::Kind;
use crate::thread_local::with_kept;
use crate::value::legacy::{TVMValue, code};
use crate::value::{Any, AnyPayload, AnyView, Header, RawAny, index};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// A list as compiled code sees it: an opaque handle that it passes back.
#[cfg_attr(
    not(feature = "vm"),
    allow(dead_code, reason = "only the Relax VM makes lists")
)]
pub(crate) struct AnyList {
    values: Values,
    is_writable: bool,
    convention: Convention,
    /// Index of a value that was requested but does not exist. Compiled code ignores the return values of these functions.
    wrong: Cell<Option<c_int>>,
}

/// Values that do not move while the list is used.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "vm"),
    allow(dead_code, reason = "only the Relax VM makes lists")
)]
struct Values {
    first: *mut Any,
    count: usize,
}

/// The arguments that compiled code passes after the list and the index.
#[derive(Clone, Copy)]
pub(crate) struct StackPlace {
    /// Values of the call that is being prepared: 8 bytes each up to 0.20, 16 from 0.21 on.
    pub(crate) values: *mut c_void,
    /// Array of type codes up to 0.20; from 0.21 on the number of the value, in the lower half.
    pub(crate) fourth: MaybeUninit<*mut c_void>,
    /// Number of the value up to 0.20. Later code passes no argument here.
    pub(crate) fifth: MaybeUninit<c_int>,
}

/// The place of one value of a call.
enum ValuePlace {
    Legacy(*mut TVMValue, *mut c_int),
    Cell(*mut RawAny),
}

impl StackPlace {
    /// # Safety
    ///
    /// The caller is code of `convention`, and passed the arguments that MOD-27 requires.
    unsafe fn resolve(self, convention: Convention) -> Result<ValuePlace, Error> {
        let number = |at: c_int| {
            let number = usize::try_from(at).ok();
            number.ok_or_else(|| out_of_range(format!("value {at} of a call")))
        };
        if convention == Convention::Legacy {
            // SAFETY: code of this convention passes five arguments.
            let at = number(unsafe { self.fifth.assume_init() })?;
            // SAFETY: code of this convention passes five arguments.
            let codes = unsafe { self.fourth.assume_init() };
            return Ok(ValuePlace::Legacy(
                self.values.cast::<TVMValue>().wrapping_add(at),
                codes.cast::<c_int>().wrapping_add(at),
            ));
        }
        // The upper half of the register is undefined.
        // SAFETY: the lower half is the fourth argument of this convention.
        let at = unsafe { (&raw const self.fourth).cast::<c_int>().read() };
        let cells = self.values.cast::<RawAny>();
        Ok(ValuePlace::Cell(cells.wrapping_add(number(at)?)))
    }
}

impl AnyList {
    /// Returns value `index` for reading.
    fn find_readable(&self, index: c_int) -> Result<*mut Any, Error> {
        self.find(index, true)
    }

    /// Returns value `index` for writing. Constants and functions cannot be written, because all calls share them.
    fn find_writable(&self, index: c_int) -> Result<*mut Any, Error> {
        self.find(index, self.is_writable)
    }

    fn find(&self, index: c_int, is_allowed: bool) -> Result<*mut Any, Error> {
        let at = usize::try_from(index).ok();
        let at = at.filter(|at| is_allowed && *at < self.values.count);
        at.map(|at| self.values.first.wrapping_add(at))
            .ok_or_else(|| {
                self.wrong.set(Some(index));
                self.out_of_range(index)
            })
    }

    #[cold]
    fn out_of_range(&self, index: c_int) -> Error {
        let of = if self.is_writable {
            "registers"
        } else {
            "constants or functions, which are only read"
        };
        let count = self.values.count;
        out_of_range(format!("value {index} of {count} {of}"))
    }
}

#[cold]
fn out_of_range(what: String) -> Error {
    let message = format!("compiled code asked for {what}");
    MOD_27.rejected(Kind::Limit, message).into()
}

impl Values {
    /// Returns the values as cells.
    fn cells(self) -> impl Iterator<Item = RawAny> {
        let (first, count) = (self.first.cast::<RawAny>(), self.count);
        // SAFETY: a value is one cell, and the list lives while this is used (`OF_0_21`).
        (0..count).map(move |at| unsafe { first.wrapping_add(at).read() })
    }
}

/// Implements `TVMBackendAnyListSetPackedArg`: passes a value of the list in the next call (MOD-27).
///
/// # Safety
///
/// `list` is a list of `RunningLists`. The caller is code of the list's convention and provides the place.
pub(crate) unsafe fn set_packed_arg(
    list: *mut AnyList,
    index: c_int,
    place: StackPlace,
) -> Result<(), Error> {
    // SAFETY: a list, by this contract.
    let list = unsafe { &*list };
    // SAFETY: the caller is code of its convention, by this contract.
    let place = unsafe { place.resolve(list.convention) }?;
    let value = list.find_readable(index);
    match place {
        ValuePlace::Legacy(values, codes) => {
            // SAFETY: the caller has the place, by this contract.
            unsafe { values.write(TVMValue::ZERO) };
            // The place holds None until the value is known, because the caller continues even after an error.
            // SAFETY: the caller has the place, by this contract.
            unsafe { codes.write(code::NULL) };
            // SAFETY: a value has the layout of a view, which borrows it; it is not changed until the call is over.
            let (value, code) = legacy_argument(unsafe { &*value?.cast::<AnyView<'_>>() })?;
            // SAFETY: the caller has the place, by this contract.
            unsafe { values.write(value) };
            // SAFETY: the caller has the place, by this contract.
            unsafe { codes.write(code) };
        }
        ValuePlace::Cell(cell) => {
            // The place holds None until the value is known, because the caller continues even after an error.
            // SAFETY: the caller has the place, by this contract.
            unsafe { cell.write(RawAny::NONE) };
            // SAFETY: a value is one cell.
            let mut value = unsafe { value?.cast::<RawAny>().read() };
            // MOD-25: code of 0.21 would treat the index of a tensor object as that of a map. `function_call_0_21` restores the object.
            if list.convention == Convention::Ffi021 && value.type_index == index::TENSOR {
                let ptr = description_of(value);
                value = RawAny::of(index::DLTENSOR_PTR, AnyPayload { ptr });
            }
            // SAFETY: the caller has the place, by this contract.
            unsafe { cell.write(value) };
        }
    }
    Ok(())
}

/// Implements `TVMBackendAnyListResetItem`: sets a register to None (MOD-27).
///
/// # Safety
///
/// `list` is a list of `RunningLists`.
pub(crate) unsafe fn reset_item(list: *mut AnyList, index: c_int) -> Result<(), Error> {
    // SAFETY: a list, by this contract.
    let register = unsafe { &*list }.find_writable(index)?;
    // SAFETY: only the function that runs uses its registers.
    drop(unsafe { register.replace(Any::none()) });
    Ok(())
}

/// Implements `TVMBackendAnyListMoveFromPackedReturn`: moves the result of a call into a register (MOD-27).
///
/// # Safety
///
/// As for [`set_packed_arg`]. The place holds the result of a call, which is not used again.
pub(crate) unsafe fn move_from_packed_return(
    list: *mut AnyList,
    index: c_int,
    place: StackPlace,
) -> Result<(), Error> {
    // SAFETY: a list, by this contract.
    let list = unsafe { &*list };
    // SAFETY: the caller is code of its convention, by this contract.
    let place = unsafe { place.resolve(list.convention) }?;
    let register = list.find_writable(index)?;
    let value = match place {
        ValuePlace::Legacy(values, codes) => {
            // SAFETY: the place holds a result, by this contract.
            let value = unsafe { values.read() };
            // SAFETY: the place holds a result, by this contract.
            let code = unsafe { codes.read() };
            // SAFETY: the list takes over the result, by this contract.
            unsafe { take_result(value, code) }?
        }
        ValuePlace::Cell(cell) => {
            // SAFETY: the place holds a result, by this contract.
            let value = unsafe { cell.read() };
            // SAFETY: the list takes over the result, by this contract.
            unsafe { Any::from_raw(value) }
        }
    };
    // SAFETY: only the function that runs uses its registers.
    drop(unsafe { register.replace(value) });
    Ok(())
}

/// Returns an argument of 8 bytes. A tensor stays an object, so that the called function can keep a reference.
fn legacy_argument(view: &AnyView<'_>) -> Result<(TVMValue, c_int), Error> {
    let raw = view.as_raw();
    if raw.type_index == index::TENSOR {
        let v_handle = description_of(*raw);
        return Ok((TVMValue { v_handle }, code::NDARRAY));
    }
    argument(view)
}

/// Returns the address of the description inside a tensor object.
fn description_of(tensor: RawAny) -> *mut c_void {
    tensor.ptr().wrapping_byte_add(size_of::<Header>())
}

/// The three lists of a compiled function, for one call. Only the Relax VM creates them.
#[cfg(feature = "vm")]
pub(crate) struct RunningLists([AnyList; 3]);

thread_local! {
    /// Lists of the functions of 0.21 that run on this thread, the innermost last.
    static OF_0_21: RefCell<Vec<[Values; 3]>> = const { RefCell::new(Vec::new()) };
}

#[cfg(feature = "vm")]
impl RunningLists {
    /// Creates the lists for code of `convention`. Registers belong to the call; constants and functions are read-only. None of them may
    /// move until the lists are dropped.
    pub(crate) fn new(
        registers: &mut [Any],
        constants: &[Any],
        functions: &[Any],
        convention: Convention,
    ) -> RunningLists {
        let list = |values, is_writable| AnyList {
            values,
            is_writable,
            convention,
            wrong: Cell::new(None),
        };
        let count = registers.len();
        let first = registers.as_mut_ptr();
        let shared = |values: &[Any]| {
            let (first, count) = (values.as_ptr().cast_mut(), values.len());
            list(Values { first, count }, false)
        };
        let lists = [
            list(Values { first, count }, true),
            shared(constants),
            shared(functions),
        ];
        if convention == Convention::Ffi021 {
            let values = lists.each_ref().map(|list| list.values);
            with_kept(&OF_0_21, |running| running.push(values));
        }
        RunningLists(lists)
    }

    /// Returns an error if compiled code requested a value that does not exist, and went on.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut wrong = self
            .0
            .iter()
            .filter_map(|list| Some((list, list.wrong.get()?)));
        wrong
            .next()
            .map_or(Ok(()), |(list, index)| Err(list.out_of_range(index)))
    }

    /// Returns the handles: registers, constants, functions.
    pub(crate) fn handles(&self) -> [AnyView<'_>; 3] {
        self.0.each_ref().map(|list| {
            let address = std::ptr::from_ref(list).cast_mut().cast();
            // SAFETY: code that receives these handles uses them as lists.
            unsafe { AnyView::handle(address) }
        })
    }
}

#[cfg(feature = "vm")]
impl Drop for RunningLists {
    fn drop(&mut self) {
        if self.0[0].convention == Convention::Ffi021 {
            with_kept(&OF_0_21, |running| running.pop());
        }
    }
}

/// `TVMFFIFunctionCall` for code of 0.21. Replaces a description that [`set_packed_arg`] passed by its tensor object, so that the called
/// function can keep a reference.
///
/// # Safety
///
/// As for `TVMFFIFunctionCall`.
pub(super) unsafe extern "C-unwind" fn function_call_0_21(
    function: *mut FunctionObj,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: `count` cells, by this contract.
    let args = unsafe { AnyView::slice(args, count.max(0) as usize) };
    let tensor = |description: *mut c_void| {
        with_kept(&OF_0_21, |running| {
            let lists = running.iter().rev().flatten();
            let mut cells = lists.flat_map(|values| values.cells());
            cells.find(|cell| {
                cell.type_index == index::TENSOR && description_of(*cell) == description
            })
        })
    };
    let each = args.iter().map(|arg| match arg.as_raw() {
        raw if raw.type_index == index::DLTENSOR_PTR => tensor(raw.ptr()).unwrap_or(*raw),
        raw => *raw,
    });
    let cells: Vec<RawAny> = each.collect();
    // SAFETY: `function` is a function, by this contract.
    let call = unsafe { (*function).safe_call };
    // SAFETY: as many cells as before, and `result` follows the convention, by this contract.
    unsafe { call(function.cast(), cells.as_ptr(), count, result) }
}
