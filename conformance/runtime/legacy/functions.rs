//! Calls, errors and the registry of the C interface of 0.2 to 0.20, as a table of its functions.

use crate::capi::legacy::{TVMPackedCFunc, TVMPackedCFuncFinalizer};
use crate::conformance::runtime::RawHandle;
use crate::value::legacy::TVMValue;
use std::ffi::{c_char, c_int};

/// The functions of the interface that a script needs.
#[derive(Clone, Copy)]
pub(crate) struct Interface {
    /// `TVMFuncCall`
    pub call: unsafe extern "C-unwind" fn(
        RawHandle,
        *mut TVMValue,
        *mut c_int,
        c_int,
        *mut TVMValue,
        *mut c_int,
    ) -> c_int,
    /// `TVMFuncCreateFromCFunc`
    pub create: unsafe extern "C" fn(
        TVMPackedCFunc,
        RawHandle,
        Option<TVMPackedCFuncFinalizer>,
        *mut RawHandle,
    ) -> c_int,
    /// `TVMCFuncSetReturn`
    pub give_result: unsafe extern "C" fn(RawHandle, *mut TVMValue, *mut c_int, c_int) -> c_int,
    /// `TVMCbArgToReturn`
    pub own_argument: unsafe extern "C" fn(*mut TVMValue, *mut c_int) -> c_int,
    /// `TVMFuncRegisterGlobal`
    pub register: unsafe extern "C" fn(*const c_char, RawHandle, c_int) -> c_int,
    /// `TVMFuncGetGlobal`
    pub find: unsafe extern "C" fn(*const c_char, *mut RawHandle) -> c_int,
    /// `TVMFuncListGlobalNames`
    pub names: unsafe extern "C" fn(*mut c_int, *mut *const *const c_char) -> c_int,
    /// `TVMFuncRemoveGlobal`, from 0.8 on
    pub remove: Option<unsafe extern "C" fn(*const c_char) -> c_int>,
    /// `TVMFuncFree`
    pub free: unsafe extern "C" fn(RawHandle) -> c_int,
    /// `TVMGetLastError`
    pub last_error: unsafe extern "C" fn() -> *const c_char,
    /// `TVMAPISetLastError`
    pub set_last_error: unsafe extern "C" fn(*const c_char),
    /// The functions for errors of a Python frontend, from 0.14 on
    pub frontend: Option<Frontend>,
}

/// The functions for the errors of a Python frontend.
#[derive(Clone, Copy)]
pub(crate) struct Frontend {
    /// `TVMBackendRegisterEnvCAPI`
    pub register: unsafe extern "C" fn(*const c_char, RawHandle) -> c_int,
    /// `TVMAPISetLastPythonError`
    pub set_error: unsafe extern "C" fn(RawHandle),
    /// `TVMGetLastPythonError`
    pub error: unsafe extern "C" fn() -> RawHandle,
    /// `TVMDropLastPythonError`
    pub drop_error: unsafe extern "C" fn(),
}
