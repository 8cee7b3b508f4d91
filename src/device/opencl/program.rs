//! Kernels of OpenCL modules.

use super::{Buffer, Inner, Opened, checked, forget, opencl};
use crate::device::error::refuse;
use crate::device::launch::{ArgType, Packed, WorkSizes};
use crate::device::module::{Driver, KernelInfo, Loaded};
use crate::device::{DEV_54, Device, Error, Result, Space, Stream};
use crate::rule::Kind;
use opencl3::command_queue::enqueue_nd_range_kernel;
use opencl3::error_codes::error_text;
use opencl3::kernel::{create_kernel, release_kernel, set_kernel_arg};
use opencl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary, create_program_with_source,
    get_program_build_data, release_program,
};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// Code of an OpenCL module: what its payload holds.
pub(crate) struct OpenClCode {
    /// `cl` for source; everything else is a binary of the device's compiler.
    pub format: String,
    /// Source text or binary.
    pub data: Vec<u8>,
}

impl Driver for OpenClCode {
    fn device_kind(&self) -> i32 {
        Device::opencl(0).kind
    }

    fn load(&self, id: i32) -> Result<Arc<dyn Loaded>> {
        let inner = &opencl().inner;
        let opened = inner.device(Device::opencl(id))?;
        let program = if self.format == "cl" {
            let Ok(source) = std::str::from_utf8(&self.data) else {
                return refuse(DEV_54, Kind::Malformed, "the OpenCL source is not UTF-8");
            };
            checked(
                "clCreateProgramWithSource",
                create_program_with_source(opened.context, &[source]),
            )?
        } else {
            // SAFETY: the device and its context are ours; the driver checks the binary.
            let created =
                unsafe { create_program_with_binary(opened.context, &[opened.id], &[&self.data]) };
            checked(
                &format!("clCreateProgramWithBinary ({})", self.format),
                created,
            )?
        };
        let program = Program(program);
        if let Err(code) = build_program(program.0, &[opened.id], c"", None, ptr::null_mut()) {
            let log = get_program_build_data(program.0, opened.id, CL_PROGRAM_BUILD_LOG)
                .unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let meaning = format!(
                "{}\n{}",
                error_text(code),
                log.trim_end_matches('\0').trim()
            );
            return Err(Error::driver(
                "opencl",
                "clBuildProgram",
                code.into(),
                meaning,
            ));
        }
        Ok(Arc::new(Built {
            id,
            program,
            kernels: Mutex::default(),
        }))
    }
}

/// A program, released with its last owner.
struct Program(*mut c_void);

// SAFETY: a program may be used from any thread.
unsafe impl Send for Program {}
// SAFETY: a program may be used from any thread.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: ours. A failure at the end of the process changes nothing.
        let _ = unsafe { release_program(self.0) };
    }
}

/// A kernel object. Its arguments are part of it, so that it belongs to one launch at a time.
struct KernelObject(*mut c_void);

// SAFETY: only used under the lock of the table that holds it.
unsafe impl Send for KernelObject {}

impl Drop for KernelObject {
    fn drop(&mut self) {
        // SAFETY: ours.
        let _ = unsafe { release_kernel(self.0) };
    }
}

/// A program that was built for a device.
struct Built {
    id: i32,
    program: Program,
    kernels: Mutex<HashMap<String, KernelObject>>,
}

impl Loaded for Built {
    unsafe fn launch(
        &self,
        kernel: &KernelInfo,
        args: &mut Packed,
        sizes: &WorkSizes,
        _: Stream,
    ) -> Result<()> {
        let inner: &Inner = &opencl().inner;
        let opened = inner.device(Device::opencl(self.id))?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let object = match kernels.get(&kernel.name) {
            Some(object) => object.0,
            None => {
                let Ok(name) = CString::new(kernel.name.as_str()) else {
                    let message = format!("no driver has a kernel called {:?}", kernel.name);
                    return refuse(DEV_54, Kind::Malformed, message);
                };
                let made = create_kernel(self.program.0, &name);
                let made = checked(&format!("clCreateKernel `{}`", kernel.name), made)?;
                kernels.insert(kernel.name.clone(), KernelObject(made));
                made
            }
        };
        for (at, (of, bytes)) in args.values().enumerate() {
            set_argument(inner, object, at, of, bytes)?;
        }
        enqueue(opened, object, kernel, sizes)
    }
}

fn set_argument(
    inner: &Inner,
    kernel: *mut c_void,
    at: usize,
    of: ArgType,
    bytes: &[u8],
) -> Result<()> {
    let failed = |code| {
        Error::driver(
            "opencl",
            format!("clSetKernelArg {at}"),
            i64::from(code),
            error_text(code),
        )
    };
    if of == ArgType::Handle {
        let address = bytes.try_into().map_or(0, usize::from_ne_bytes);
        let memory = match address {
            0 => ptr::null_mut(),
            address => {
                let Buffer { memory, .. } =
                    inner.buffer(Space(ptr::without_provenance_mut(address)))?;
                memory
            }
        };
        // SAFETY: a buffer argument is the address of a buffer handle.
        return unsafe {
            set_kernel_arg(
                kernel,
                at as u32,
                size_of::<*mut c_void>(),
                (&raw const memory).cast(),
            )
        }
        .map_err(failed);
    }
    // SAFETY: the bytes are there, and OpenCL compares their number with the kernel's declaration.
    unsafe { set_kernel_arg(kernel, at as u32, bytes.len(), bytes.as_ptr().cast()) }.map_err(failed)
}

/// The global size of OpenCL is blocks times threads.
fn enqueue(
    opened: &Opened,
    kernel: *mut c_void,
    info: &KernelInfo,
    sizes: &WorkSizes,
) -> Result<()> {
    let local = sizes.block;
    let mut global = sizes.block;
    for (global, grid) in global.iter_mut().zip(sizes.grid) {
        *global = global.saturating_mul(grid);
    }
    // SAFETY: sizes have three axes, of which `dimensions` are in use.
    let event = unsafe {
        enqueue_nd_range_kernel(
            opened.queue,
            kernel,
            sizes.dimensions,
            ptr::null(),
            global.as_ptr(),
            local.as_ptr(),
            0,
            ptr::null(),
        )
    };
    let call = || {
        format!(
            "clEnqueueNDRangeKernel `{}`, global {global:?}, local {local:?}",
            info.name
        )
    };
    forget(event.map_err(|code| Error::driver("opencl", call(), code.into(), error_text(code)))?);
    Ok(())
}
