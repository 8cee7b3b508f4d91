//! The memory of a CPU tensor: reading and writing its bytes (OBJ-11).

use super::Tensor;
use crate::function::{Error, Result};
use crate::object::{OBJ_11, OBJ_12};
use crate::rule::Kind;
use crate::tensor::{Device, Packing};
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// Orders reads and writes of tensor memory by safe code. One lock for all tensors, because they may share memory.
static COPIES: RwLock<()> = RwLock::new(());

/// Locks out all reads and writes of tensor memory by safe code, for a copy from one tensor to another.
pub(crate) fn copying() -> std::sync::RwLockWriteGuard<'static, ()> {
    COPIES.write().unwrap_or_else(PoisonError::into_inner)
}

impl Tensor {
    /// Returns a copy of the bytes of a compact CPU tensor: [`Tensor::nbytes`] of them, with row-major elements in native byte order. No
    /// [`Tensor::fill`] runs at the same time. The callers of compiled functions order the writes of those functions.
    ///
    /// # Errors
    ///
    /// Returns OBJ-11 of kind unsupported for a tensor that is not compact or not on the CPU.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: safe code writes nothing meanwhile (`COPIES`), and neither do compiled functions, by the contract of loading them.
        Ok(unsafe { self.bytes() }?.to_vec())
    }

    /// Like [`Tensor::to_bytes`], with whole bytes for each element, as compiled CPU code stores sub-byte elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_bytes`], and OBJ-11 of kind unsupported if the memory is not known to be that large.
    pub fn to_whole_bytes(&self) -> Result<Vec<u8>> {
        let memory = self.whole_memory()?;
        let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: memory of this tensor, which lives while `self` does. Safe code writes nothing meanwhile (`COPIES`), and neither do
        // compiled functions, by the contract of loading them.
        Ok(unsafe { memory.as_ref() }.to_vec())
    }

    /// Like [`Tensor::fill`], with whole bytes for each element.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::fill`], and OBJ-11 of kind unsupported if the memory is not known to be that large.
    pub fn fill_whole_bytes(&self, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let room = self.whole_memory()?;
        write(room, bytes)
    }

    /// Returns the memory with whole bytes for each element.
    fn whole_memory(&self) -> Result<NonNull<[u8]>> {
        let memory = self.memory()?;
        let size = Packing::Each.bytes(self.dl().dtype, self.shape());
        match size.and_then(|size| usize::try_from(size).ok()) {
            Some(size) if self.has_whole_bytes() => {
                Ok(NonNull::slice_from_raw_parts(memory.cast(), size))
            }
            _ => {
                let message = "the tensor is not known to have whole bytes for each element";
                Err(OBJ_11.rejected(Kind::Unsupported, message).into())
            }
        }
    }

    /// Borrows the bytes of a compact CPU tensor in place.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_bytes`].
    ///
    /// # Safety
    /// Nothing writes to the memory while the slice lives. This includes compiled functions, [`Tensor::fill`], and other holders of the
    /// tensor or of its memory, on any thread.
    pub unsafe fn bytes(&self) -> Result<&[u8]> {
        let memory = self.memory()?;
        // SAFETY: memory of this tensor, which lives while `self` does; nothing writes to it meanwhile, by this contract.
        Ok(unsafe { memory.as_ref() })
    }

    /// Returns the location of the bytes of a compact CPU tensor.
    fn memory(&self) -> Result<NonNull<[u8]>> {
        let dl = self.dl();
        // SAFETY: tensors of this ABI have readable shapes and strides.
        let compact = unsafe { dl.is_contiguous() };
        if !is_cpu(dl.device) || !compact {
            return Err(out_of_reach());
        }
        let count = self.nbytes();
        // Without elements the address may be null, but a slice needs a non-null address.
        let Some(data) = NonNull::new(dl.data.cast::<u8>()).filter(|_| count != 0) else {
            return Ok(NonNull::slice_from_raw_parts(NonNull::dangling(), 0));
        };
        // SAFETY: the data of a CPU tensor is memory of that many bytes after the offset.
        let first = unsafe { data.add(dl.byte_offset as usize) };
        Ok(NonNull::slice_from_raw_parts(first, count))
    }

    /// Calls `each` with the bytes of every element of a CPU tensor in row-major order, for any strides. Elements take whole bytes. A lock
    /// excludes [`Tensor::fill`] meanwhile, so `each` must not call it.
    pub(super) fn each_element(&self, mut each: impl FnMut(&[u8])) -> Result<()> {
        let dl = self.dl();
        let size = usize::from(dl.dtype.bits / 8) * usize::from(dl.dtype.lanes);
        // SAFETY: tensors of this ABI have readable shapes and strides.
        let strides = if unsafe { dl.is_contiguous() } {
            None
        } else {
            // SAFETY: tensors of this ABI have readable shapes and strides.
            unsafe { dl.strides() }
        };
        let Some(strides) = strides.filter(|_| is_cpu(dl.device)) else {
            let memory = self.memory()?;
            let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: memory of this tensor, which lives while `self` does. Safe code writes nothing meanwhile (`COPIES`), and neither do
            // compiled functions, by the contract of loading them.
            let bytes = unsafe { memory.as_ref() };
            bytes.chunks_exact(size).for_each(each);
            return Ok(());
        };
        let shape = self.shape();
        if dl.data.is_null() || shape.iter().any(|extent| *extent <= 0) {
            return Ok(());
        }
        let first = dl.data.cast::<u8>();
        let first = first.wrapping_add(dl.byte_offset as usize);
        let _reading = COPIES.read().unwrap_or_else(PoisonError::into_inner);
        let mut at = vec![0_i64; shape.len()];
        loop {
            let steps = at.iter().zip(strides).fold(0_i64, |steps, (at, stride)| {
                steps.wrapping_add(at.wrapping_mul(*stride))
            });
            let place = first.wrapping_offset((steps as isize).wrapping_mul(size as isize));
            // SAFETY: an element inside the extents of a description of CPU memory. The memory is live, by the contracts of the functions
            // that create tensors; writes to it are ordered as above.
            each(unsafe { std::slice::from_raw_parts(place, size) });
            // Counts like an odometer: the innermost index that can advance does, and the ones inside it restart at 0.
            let next = (0..at.len()).rev().find(|&axis| at[axis] + 1 < shape[axis]);
            let Some(axis) = next else { return Ok(()) };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }

    /// Copies `bytes` into a compact CPU tensor of exactly that size. No [`Tensor::to_bytes`] runs at the same time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_bytes`], and OBJ-11 of kind malformed for another number of bytes. Returns OBJ-12 of kind
    /// unsupported for a tensor that [is read-only](Tensor::is_read_only).
    pub fn fill(&self, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        write(self.memory()?, bytes)
    }

    /// Returns an error if the producer of the tensor forbids writing.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_read_only() {
            let message = "the producer of the tensor marks its memory read-only";
            return Err(OBJ_12.rejected(Kind::Unsupported, message).into());
        }
        Ok(())
    }
}

/// Copies `bytes` to `room`, the memory of a tensor that the caller keeps alive.
fn write(room: NonNull<[u8]>, bytes: &[u8]) -> Result<()> {
    if room.len() != bytes.len() {
        return Err(OBJ_11
            .rejected(
                Kind::Malformed,
                format!("{} bytes for a tensor of {}", bytes.len(), room.len()),
            )
            .into());
    }
    let _writing = COPIES.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: room for that many bytes, which nothing borrows (`Tensor::bytes`) or copies (`COPIES`).
    unsafe { std::ptr::copy(bytes.as_ptr(), room.as_ptr().cast(), bytes.len()) }
    Ok(())
}

/// Returns the error for a tensor whose bytes are not contiguous in CPU memory (OBJ-11).
#[cold]
pub(super) fn out_of_reach() -> Error {
    let message =
        "expected a compact tensor on the CPU; `Tensor::to_cpu` copies one of another device";
    OBJ_11.rejected(Kind::Unsupported, message).into()
}

/// Returns whether the CPU can read memory of the device: its own memory, pinned memory of CUDA (3) and ROCm (11), managed memory of CUDA
/// (13).
pub(super) fn is_cpu(device: Device) -> bool {
    matches!(device.kind, 1 | 3 | 11 | 13)
}
