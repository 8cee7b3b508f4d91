//! The kernels that the graphs of the cases call. They belong to the suite; a runtime reaches them through a library of
//! trampolines.

use crate::conformance::adapter::{Reply, legacy::modules};
use crate::conformance::runtime::aligned_memory::AlignedLine;
use crate::conformance::runtime::case_library::{self, SymbolContent};
use crate::conformance::runtime::legacy::{LegacyApi, LegacyValue};
use crate::function::Error;
use crate::value::DLTensor;
use crate::value::legacy::{TVMValue, code};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;

/// The maximum number of logged calls.
const LOGGED: usize = 1000;

type KernelBody = fn(&[*mut DLTensor]) -> Result<(), Error>;

/// The names of all kernels: `two` has two outputs, `touch` writes nothing, `fail` fails.
const NAMES: [&str; 5] = ["add1", "add", "two", "touch", "fail"];

/// Returns a kernel by its name. Kernels are so simple that a case can state their results by hand.
fn kernel(name: &str) -> Option<(&'static str, KernelBody)> {
    Some(match name {
        "add1" => ("add1", |args| {
            map_elements(args, 1, |values| vec![values.iter().sum::<f32>() + 1.0])
        }),
        "add" => ("add", |args| {
            map_elements(args, 2, |values| vec![values.iter().sum()])
        }),
        "two" => ("two", |args| {
            map_elements(args, 1, |values| vec![values[0] + 1.0, values[0] * 2.0])
        }),
        "touch" => ("touch", |_| Ok(())),
        "fail" => ("fail", |_| {
            Err(Error::new("ValueError", "the kernel failed"))
        }),
        _ => return None,
    })
}

/// Computes element by element: the first `inputs` arguments provide the values, the others take the results. `float32` only.
fn map_elements(
    args: &[*mut DLTensor],
    inputs: usize,
    body: fn(&[f32]) -> Vec<f32>,
) -> Result<(), Error> {
    let mut pointers = Vec::new();
    let mut count = usize::MAX;
    for tensor in args {
        // SAFETY: the executor keeps its arguments, and they are on the host.
        let tensor = unsafe { &**tensor };
        if (tensor.dtype.code, tensor.dtype.bits) != (2, 32) || tensor.device.kind != 1 {
            return Err(Error::new("TypeError", "float32 on the CPU, please"));
        }
        // SAFETY: an argument has the number of extents that it states.
        count = count.min(unsafe { tensor.elements() } as usize);
        pointers.push(
            tensor
                .data
                .cast::<u8>()
                .wrapping_add(tensor.byte_offset as usize)
                .cast::<f32>(),
        );
    }
    for at in 0..count {
        let (from, to) = pointers.split_at(inputs);
        // SAFETY: no argument has fewer elements than `count`.
        let read = |from: &*mut f32| unsafe { *from.wrapping_add(at) };
        let values: Vec<f32> = from.iter().map(read).collect();
        for (to, value) in to.iter().zip(body(&values)) {
            // SAFETY: no argument has fewer elements than `count`.
            unsafe { *to.wrapping_add(at) = value };
        }
    }
    Ok(())
}

thread_local! {
    /// The kernels called since the last time, with the shapes of their arguments.
    static LOG: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    /// The runtime in which a kernel stores its error.
    static API: Cell<Option<&'static LegacyApi>> = const { Cell::new(None) };
    /// The linked parameters of the library, by storage id; `None` for one whose address is null.
    static LINKED: RefCell<HashMap<i64, Option<Vec<AlignedLine>>>> = RefCell::default();
}

/// Begins a script: its kernels store their errors in `api`.
pub(super) fn begin(api: &'static LegacyApi) {
    API.set(Some(api));
    LOG.take();
    LINKED.take();
}

/// The additional content of a library of kernels.
#[derive(Clone, Copy, Default)]
pub(super) struct Extras<'a> {
    /// The modules of the library, as it stores them.
    pub(super) blob: Option<&'a [u8]>,
    /// True if it has a function that finds the parameters of [`link`].
    pub(super) linked: bool,
}

/// Adds a parameter for storage `id` to the library; one without bytes has a null address.
pub(super) fn link(id: i64, bytes: Option<&[u8]>) {
    LINKED.with_borrow_mut(|linked| linked.insert(id, bytes.map(AlignedLine::copy_aligned)));
}

/// Returns the calls since the last time.
pub(super) fn take_log() -> Vec<Value> {
    LOG.take()
}

/// A compiled function of these releases: values, codes, count, result, its code, resource.
type Compiled = unsafe extern "C" fn(
    *const TVMValue,
    *const c_int,
    c_int,
    *mut TVMValue,
    *mut c_int,
    *mut c_void,
) -> c_int;

/// Creates the module of kernels.
pub(super) fn library(api: &'static LegacyApi, extras: Extras<'_>) -> Result<LegacyValue, Reply> {
    modules::library(api, |path| write(path, extras))
}

/// Writes the library of kernels to `path`.
pub(super) fn write(path: &Path, extras: Extras<'_>) -> std::io::Result<()> {
    let all: [Compiled; NAMES.len()] = [run::<0>, run::<1>, run::<2>, run::<3>, run::<4>];
    let named = NAMES.into_iter().zip(all);
    let jumps = named.map(|(name, run)| (name, SymbolContent::Jump(run as usize)));
    let lookup = (
        "_lookup_linked_param",
        SymbolContent::Jump(lookup as Compiled as usize),
    );
    let symbols: Vec<(&str, SymbolContent)> =
        jumps.chain(extras.linked.then_some(lookup)).collect();
    let blob = extras.blob.map(|blob| ("__tvm_dev_mblob", blob));
    let data: Vec<(&str, &[u8])> = blob.into_iter().collect();
    case_library::write_symbols(&symbols, &data, path)
}

/// Returns the address of a linked parameter, or None; arguments: `(storage id)`.
unsafe extern "C" fn lookup(
    values: *const TVMValue,
    _: *const c_int,
    _: c_int,
    out: *mut TVMValue,
    out_code: *mut c_int,
    _: *mut c_void,
) -> c_int {
    // SAFETY: it is called with one integer.
    let id = unsafe { *values };
    // SAFETY: any eight bytes are an integer.
    let id = unsafe { id.v_int64 };
    let (v_handle, type_code) = LINKED.with_borrow(|linked| match linked.get(&id) {
        Some(Some(lines)) => (lines.as_ptr().cast_mut().cast(), code::HANDLE),
        Some(None) => (ptr::null_mut(), code::HANDLE),
        None => (ptr::null_mut(), code::NULL),
    });
    // SAFETY: an out pointer for the result.
    unsafe { *out = TVMValue { v_handle } };
    // SAFETY: an out pointer for its code.
    unsafe { *out_code = type_code };
    0
}

/// Runs kernel `N` with the convention of compiled code up to 0.20 (MOD-03). The arguments are tensors, with the outputs after the
/// inputs, and the return code states success. Each call is logged with the shapes of its arguments, which shows `flatten_data`
/// (GRF-39).
unsafe extern "C" fn run<const N: usize>(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    _: *mut TVMValue,
    _: *mut c_int,
    _: *mut c_void,
) -> c_int {
    let (Ok(count), Some((name, kernel))) = (
        usize::try_from(count),
        NAMES.get(N).and_then(|name| kernel(name)),
    ) else {
        return -1;
    };
    let mut tensors = Vec::new();
    let mut shapes = Vec::new();
    for at in 0..count {
        // SAFETY: there are that many values.
        let value = unsafe { *values.wrapping_add(at) };
        // SAFETY: there is a code for every value.
        let type_code = unsafe { *codes.wrapping_add(at) };
        if !matches!(type_code, code::DLTENSOR | code::NDARRAY) {
            return -1;
        }
        // SAFETY: the code says that it is the address of a tensor.
        let tensor = unsafe { value.v_handle }.cast::<DLTensor>();
        // SAFETY: the executor keeps the tensor for the call.
        let described = unsafe { &*tensor };
        // SAFETY: an argument has the number of extents that it states.
        shapes.push(json!(unsafe { described.shape() }));
        tensors.push(tensor);
    }
    LOG.with_borrow_mut(|log| {
        // The log is limited, because a measurement makes any number of calls.
        if log.len() < LOGGED {
            log.push(json!([name, shapes]));
        }
    });
    match kernel(&tensors) {
        Ok(()) => 0,
        Err(error) => {
            if let Some(api) = API.get() {
                api.set_error(&error.to_string());
            }
            -1
        }
    }
}
