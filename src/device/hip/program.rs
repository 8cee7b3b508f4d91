//! Kernels of HIP modules: kinds `hip` and `hsaco`.

use super::library::{PARAM_BUFFER_POINTER, PARAM_BUFFER_SIZE, PARAM_END};
use super::{Hip, HipDevice};
use crate::device::backend::Driver;
use crate::device::backend::code::{FormattedCode, KernelDriver, c_name};
use crate::device::error::reject;
use crate::device::launch::{Packed, WorkSizes};
use crate::device::module::KernelDescription;
use crate::device::{DEV_47, Result, Stream};
use crate::rule::Kind;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A module on one device, with the image that it was loaded from. The driver does not copy the image, and reads it as long as the
/// module is loaded.
pub(crate) struct HipModule(
    *mut c_void,
    #[allow(dead_code, reason = "held, and not read")] Vec<u8>,
);

// SAFETY: modules of the driver may be used from any thread.
unsafe impl Send for HipModule {}
// SAFETY: modules of the driver may be used from any thread.
unsafe impl Sync for HipModule {}

/// A function of a module.
pub(crate) struct HipFunction(*mut c_void);

// SAFETY: functions of the driver may be used from any thread.
unsafe impl Send for HipFunction {}
// SAFETY: functions of the driver may be used from any thread.
unsafe impl Sync for HipFunction {}

impl KernelDriver for Hip {
    type Code = FormattedCode;
    type Program = HipModule;
    type Kernel = HipFunction;

    /// Loads the code. The driver recognizes the format from the bytes, so the stated format is ignored, as upstream does.
    fn load(on: &HipDevice, code: &FormattedCode) -> Result<HipModule> {
        let mut module = ptr::null_mut();
        // A code object states its own size. Text, which no driver accepts, ends with this NUL.
        let mut image = code.data.clone();
        image.push(0);
        // SAFETY: the image is complete and stays with the module; the driver validates it itself.
        let loaded = unsafe { (on.library.load_module)(&raw mut module, image.as_ptr().cast()) };
        let call = format!("hipModuleLoadData ({})", code.format);
        on.checked(&call, loaded)?;
        Ok(HipModule(module, image))
    }

    fn kernel(
        on: &HipDevice,
        program: &HipModule,
        info: &KernelDescription,
    ) -> Result<HipFunction> {
        let name = c_name(info)?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is unloaded after the last launch (`KernelDriver::unload`), and the name is NUL-terminated.
        let found =
            unsafe { (on.library.module_function)(&raw mut function, program.0, name.as_ptr()) };
        on.checked(&format!("hipModuleGetFunction `{}`", info.name), found)?;
        Ok(HipFunction(function))
    }

    unsafe fn launch(
        (_, on): (i32, &HipDevice),
        kernel: &HipFunction,
        info: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()> {
        // DEV-47: `programmatic` is accepted, because a kernel that may begin early may also begin in order.
        if sizes.cluster != [1; 3] || sizes.cooperative {
            return reject(
                DEV_47,
                Kind::Unsupported,
                "HIP launches neither clusters of blocks nor blocks that wait for each other",
            );
        }
        // DEV-52: HIP takes one block of arguments, not a list. The block has the layout of 0.16 and later.
        let mut block = args.block(true);
        let mut nbytes = block.len();
        let mut config = [
            ptr::without_provenance_mut(PARAM_BUFFER_POINTER),
            block.as_mut_ptr().cast(),
            ptr::without_provenance_mut(PARAM_BUFFER_SIZE),
            (&raw mut nbytes).cast(),
            ptr::without_provenance_mut(PARAM_END),
        ];
        let ([x, y, z], [bx, by, bz]) = (sizes.grid_u32(), sizes.block_u32());
        let shared = sizes.shared_u32();
        // SAFETY: the block is of the types that the kernel was compiled for, and the driver copies it before it returns;
        // the memory that it names stays (`LoadedCode::launch`).
        let code = unsafe {
            (on.library.launch)(
                kernel.0,
                x,
                y,
                z,
                bx,
                by,
                bz,
                shared,
                stream.handle(),
                ptr::null_mut(),
                config.as_mut_ptr(),
            )
        };
        on.library.ok(code).map_err(|failure| {
            let call = format!(
                "hipModuleLaunchKernel `{}`, grid [{x}, {y}, {z}], block [{bx}, {by}, {bz}], shared {shared}",
                info.name
            );
            Hip::failure(call, failure)
        })
    }

    fn unload(on: &HipDevice, program: &mut HipModule, _: impl Iterator<Item = Arc<HipFunction>>) {
        // SAFETY: only this function unloads the module, and none of its functions is still in use (`KernelDriver::unload`).
        let _ = unsafe { (on.library.unload_module)(program.0) };
    }
}
