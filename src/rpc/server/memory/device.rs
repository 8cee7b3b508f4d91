//! Memory of this machine's devices.

use super::CheckedSpan;
use crate::device::{CopyRequest, Device, DeviceApi, Dtype, Manager, Stream, TensorRef, byte_size};
use crate::function::{Error, Result};
use crate::release::Release;
use crate::rpc::{RPC_86, RPC_87, TensorBlock};
use crate::rule::Kind;

/// Copies with the device `by`, and waits for the end of the copy.
///
/// # Safety
///
/// Both sides must have `nbytes` bytes.
pub(super) unsafe fn copy(
    (from, from_device): (CheckedSpan, Device),
    (to, to_device): (CheckedSpan, Device),
    nbytes: usize,
    by: Device,
) -> Result<()> {
    if nbytes == 0 {
        return Ok(());
    }
    let api = api_of(by)?;
    let request = CopyRequest {
        from: from.space,
        from_offset: from.offset,
        to: to.space,
        to_offset: to.offset,
        nbytes,
        from_device,
        to_device,
        hint: Dtype::UINT8,
    };
    // SAFETY: by this contract; both sides live until the sync below.
    unsafe { api.copy(&request, Stream::DEFAULT) }?;
    // DEV-36: waits before the answer is written, because the client then considers the copy done.
    api.sync(by, Stream::DEFAULT)
}

/// Returns the API of a device of this machine.
pub(in crate::rpc::server) fn api_of(device: Device) -> Result<&'static dyn DeviceApi> {
    // RPC-86: upstream passes types from 128 on to its own RPC client, and for -1 reads outside its table.
    RPC_86.demand(Kind::Unsupported, (1..128).contains(&device.kind), || {
        format!("{} is not a type of device that a server has", device.kind)
    })?;
    Manager::global().api(device.kind)
}

/// Returns the size of a tensor, in bytes.
pub(in crate::rpc::server) fn size_of(block: &TensorBlock, release: Release) -> Result<u64> {
    // DEV-15: counted as the client counts: up to 0.20 three `int4` take three bytes, later two.
    match byte_size(&block.shape, block.dtype, release) {
        Some(nbytes) => Ok(nbytes as u64),
        None => {
            let message = format!("a tensor of shape {:?} has no size in bytes", block.shape);
            let broken: Error = RPC_87.rejected(Kind::Malformed, message).into();
            Err(broken)
        }
    }
}

/// Describes a tensor at its checked place.
pub(super) fn tensor_ref(block: &TensorBlock, place: CheckedSpan) -> TensorRef<'_> {
    TensorRef {
        data: place.space,
        device: block.device,
        dtype: block.dtype,
        shape: &block.shape,
        strides: None,
        byte_offset: place.offset as u64,
    }
}

/// Converts a size. The crate supports only 64-bit machines.
pub(super) fn size_of_host(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
