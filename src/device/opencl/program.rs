//! Kernels of OpenCL modules.

use super::{OpenCl, OpenClDevice, forget};
use crate::device::backend::Driver;
use crate::device::backend::code::{FormattedCode, KernelDriver, c_name};
use crate::device::error::{driver_error, reject};
use crate::device::launch::{ArgType, Packed, WorkSizes};
use crate::device::module::KernelDescription;
use crate::device::{DEV_54, Result, Space, Stream};
use crate::rule::Kind;
use opencl3::command_queue::enqueue_nd_range_kernel;
use opencl3::error_codes::error_text;
use opencl3::kernel::{create_kernel, release_kernel, set_kernel_arg};
use opencl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary, create_program_with_source,
    get_program_build_data, release_program,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// A program, which is released when it is dropped.
pub(crate) struct OpenClProgram(*mut c_void);

// SAFETY: a program may be used from any thread.
unsafe impl Send for OpenClProgram {}
// SAFETY: a program may be used from any thread.
unsafe impl Sync for OpenClProgram {}

impl Drop for OpenClProgram {
    fn drop(&mut self) {
        // SAFETY: this value owns it, and it is released once. A failure at the end of the process changes nothing.
        let _ = unsafe { release_program(self.0) };
    }
}

/// A kernel object.
pub(crate) struct OpenClKernel(*mut c_void);

// SAFETY: a kernel may be used from any thread, by one at a time. The lock of `KernelDriver::Kernel` ensures this.
unsafe impl Send for OpenClKernel {}

impl Drop for OpenClKernel {
    fn drop(&mut self) {
        // SAFETY: this value owns it, and it is released once.
        let _ = unsafe { release_kernel(self.0) };
    }
}

impl KernelDriver for OpenCl {
    type Code = FormattedCode;
    type Program = OpenClProgram;
    /// A kernel object in a lock: OpenCL stores the arguments in the object, so only one launch at a time may use it.
    type Kernel = Mutex<OpenClKernel>;

    fn load(on: &OpenClDevice, code: &FormattedCode) -> Result<OpenClProgram> {
        let program = OpenClProgram(if code.format == "cl" {
            let Ok(source) = std::str::from_utf8(&code.data) else {
                return reject(DEV_54, Kind::Malformed, "the OpenCL source is not UTF-8");
            };
            let created = create_program_with_source(on.context, &[source]);
            OpenCl::checked("clCreateProgramWithSource", created)?
        } else {
            // Every other format is a binary of the device's compiler.
            // SAFETY: the device and its context are ours; the driver checks the binary.
            let created =
                unsafe { create_program_with_binary(on.context, &[on.id], &[&code.data]) };
            OpenCl::checked(
                format!("clCreateProgramWithBinary ({})", code.format),
                created,
            )?
        });
        // A binary is also built, because OpenCL creates no kernels before.
        if let Err(code) = build_program(program.0, &[on.id], c"", None, ptr::null_mut()) {
            // The error number says only that the build failed; the log contains the reason.
            let log = get_program_build_data(program.0, on.id, CL_PROGRAM_BUILD_LOG);
            let log = log.unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let log = log.trim_end_matches('\0').trim();
            let meaning = format!("{}\n{log}", error_text(code));
            let error = driver_error(OpenCl::KEY, "clBuildProgram", code.into(), meaning);
            return Err(error);
        }
        Ok(program)
    }

    fn kernel(
        _: &OpenClDevice,
        program: &OpenClProgram,
        info: &KernelDescription,
    ) -> Result<Mutex<OpenClKernel>> {
        let made = create_kernel(program.0, &c_name(info)?);
        let made = OpenCl::checked(format!("clCreateKernel `{}`", info.name), made)?;
        Ok(Mutex::new(OpenClKernel(made)))
    }

    unsafe fn launch(
        (_, on): (i32, &OpenClDevice),
        kernel: &Mutex<OpenClKernel>,
        info: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        _: Stream,
    ) -> Result<()> {
        let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, (of, bytes)) in args.values().enumerate() {
            kernel.set_argument(at, of, bytes)?;
        }
        kernel.enqueue(on, info, sizes)
    }
}

impl OpenClKernel {
    /// Sets argument `at` to `bytes`, the bytes of a handle or of a number.
    fn set_argument(&mut self, at: usize, of: ArgType, bytes: &[u8]) -> Result<()> {
        // A null handle remains null, which OpenCL treats as a missing buffer.
        let mut memory = ptr::null_mut();
        let (nbytes, value) = if of == ArgType::Handle {
            let address = bytes.try_into().map_or(0, usize::from_ne_bytes);
            if address != 0 {
                let space = Space(ptr::without_provenance_mut(address));
                memory = OpenCl::backend().memory(space)?.1.0;
            }
            // The kernel gets the buffer, not the handle of the callers.
            (size_of::<*mut c_void>(), (&raw const memory).cast())
        } else {
            (bytes.len(), bytes.as_ptr().cast())
        };
        // SAFETY: the value has these bytes, and OpenCL compares their number with the kernel's declaration.
        let set = unsafe { set_kernel_arg(self.0, at as u32, nbytes, value) };
        set.map_err(|code| OpenCl::failure(format!("clSetKernelArg {at}"), code))
    }

    /// Queues the kernel with the arguments that were set last.
    fn enqueue(
        &mut self,
        on: &OpenClDevice,
        info: &KernelDescription,
        sizes: &WorkSizes,
    ) -> Result<()> {
        let local = sizes.block;
        // The global size of OpenCL is blocks times threads.
        let mut global = sizes.block;
        for (global, grid) in global.iter_mut().zip(sizes.grid) {
            // DEV-47: the driver rejects sizes that are too large for the machine.
            *global = global.saturating_mul(grid);
        }
        // SAFETY: sizes have three axes, of which `dimensions` are in use.
        let event = unsafe {
            enqueue_nd_range_kernel(
                on.queue,
                self.0,
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
        forget(event.map_err(|code| OpenCl::failure(call(), code))?);
        Ok(())
    }
}
