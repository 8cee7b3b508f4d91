//! Memory of the devices of this machine.

use super::CheckedSpan;
use crate::device::{CopyRequest, Device, DeviceApi, Dtype, Manager, Stream, TensorRef, byte_size};
use crate::function::{Error, Result};
use crate::release::Release;
use crate::rpc::{RPC_86, RPC_87, TensorBlock};
use crate::rule::Kind;

/// Copies by the device `by`, and waits for it.
///
/// # Safety
///
/// Both sides have `nbytes` bytes.
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
    // DEV-36: before the answer goes out, by which the client takes the copy for done.
    api.sync(by, Stream::DEFAULT)
}

/// The API of a device of this machine.
pub(in crate::rpc::server) fn api_of(device: Device) -> Result<&'static dyn DeviceApi> {
    // RPC-86: upstream hands 128 and above to its own client of RPC, and follows -1 out of its table.
    RPC_86.demand(Kind::Unsupported, (1..128).contains(&device.kind), || {
        format!("{} is not a type of device that a server has", device.kind)
    })?;
    Manager::global().api(device.kind)
}

/// The bytes of a tensor.
pub(in crate::rpc::server) fn size_of(block: &TensorBlock, release: Release) -> Result<u64> {
    // DEV-15: as the client counts: up to 0.20 three `int4` are three bytes, later two.
    match byte_size(&block.shape, block.dtype, release) {
        Some(nbytes) => Ok(nbytes as u64),
        None => {
            let message = format!("a tensor of shape {:?} has no size in bytes", block.shape);
            let broken: Error = RPC_87.rejected(Kind::Malformed, message).into();
            Err(broken)
        }
    }
}

/// A tensor where it was found.
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

/// The crate is for machines of 64 bits.
pub(super) fn size_of_host(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
