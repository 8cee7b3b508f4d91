//! Device memory of a session, and copies. A client knows memory by tokens, ranges of numbers that are not addresses. Every range that it
//! names is checked against the allocation before a device sees it (RPC-86, RPC-87).

mod device;

pub(super) use device::api_of;
use device::{copy, size_of, size_of_host, tensor_ref};

use super::super::{RPC_86, RPC_87, TensorBlock};
use crate::device::{Device, DeviceApi, Dtype, Manager, Space, Stream};
use crate::function::Result;
use crate::object::Tensor;
use crate::release::Release;
use crate::rule::Kind;
use std::collections::BTreeMap;

/// First token. It is larger than all handles.
const FIRST: u64 = 1 << 40;

/// Maximum number of allocations of a session at a time: even empty ones cost the server memory.
const MOST: usize = 1 << 20;

/// Minimum distance between the end of an allocation and the next token, so that a number past the end of an allocation is invalid.
const GUARD: u64 = 1 << 12;

/// Alignment of tensor memory without larger elements, in bytes (DEV-14).
const ALIGNMENT: usize = 64;

/// The allocations of a session.
pub(super) struct SessionMemory {
    next: u64,
    regions: BTreeMap<u64, Allocation>,
    /// Number of bytes that may still be allocated.
    left: u64,
}

/// One allocation.
struct Allocation {
    device: Device,
    space: Space,
    size: u64,
    /// True if the client allocated the memory and must free it. Memory of a tensor is freed with the tensor.
    is_client: bool,
    writable: bool,
}

/// A checked place: `offset` bytes from the start of `space`, with enough bytes after it.
#[derive(Clone, Copy)]
pub(super) struct CheckedSpan {
    pub(super) space: Space,
    pub(super) offset: usize,
}

/// The content of a copy to the client.
pub(super) enum CopyContent {
    /// Bytes that were copied from a device.
    Owned(Vec<u8>),
    /// Bytes in host memory, which stay valid until the next request.
    InPlace(Space, usize),
}

impl CopyContent {
    /// Returns the bytes of either.
    ///
    /// # Safety
    ///
    /// No request was processed since the content was created, and none is processed while the slice lives.
    pub(super) unsafe fn as_slice(&self) -> &[u8] {
        match self {
            CopyContent::Owned(bytes) => bytes,
            // SAFETY: `SessionMemory::read` checked that the allocation has these bytes, which were written when it was made; only
            // requests free it or write to it.
            CopyContent::InPlace(space, nbytes) => unsafe {
                std::slice::from_raw_parts(space.0.cast(), *nbytes)
            },
        }
    }
}

impl SessionMemory {
    /// Creates a memory without allocations, in which at most `bytes` may be allocated at a time.
    pub(super) fn new(bytes: u64) -> SessionMemory {
        SessionMemory {
            next: FIRST,
            regions: BTreeMap::new(),
            left: bytes,
        }
    }

    /// Allocates bytes.
    pub(super) fn alloc(
        &mut self,
        device: Device,
        nbytes: i64,
        alignment: i64,
        hint: Dtype,
    ) -> Result<u64> {
        let size = u64::try_from(nbytes).unwrap_or(u64::MAX);
        // A negative alignment becomes a value that every device rejects.
        let alignment = usize::try_from(alignment).unwrap_or(usize::MAX);
        self.make(device, size, |api| {
            api.alloc(device, size_of_host(size), alignment, hint)
        })
    }

    /// Allocates memory for a tensor.
    pub(super) fn alloc_scoped(
        &mut self,
        block: &TensorBlock,
        scope: Option<&str>,
        release: Release,
    ) -> Result<u64> {
        let size = size_of(block, release)?;
        // DEV-15: devices allocate by the last release, which packs elements of fewer than eight bits. For older clients each element has a
        // byte.
        if size != size_of(block, Release::LAST)? {
            let flat = scope.is_none_or(|scope| matches!(scope, "" | "global"));
            RPC_86.demand(Kind::Unsupported, flat, || {
                "elements of fewer than eight bits are in no memory scope".to_owned()
            })?;
            let hint = block.dtype;
            return self.make(block.device, size, |api| {
                api.alloc(block.device, size_of_host(size), ALIGNMENT, hint)
            });
        }
        self.make(block.device, size, |api| {
            api.alloc_scoped(block.device, &block.shape, block.dtype, scope)
        })
    }

    /// Calls `alloc`, and adds its result to the table.
    fn make(
        &mut self,
        device: Device,
        size: u64,
        alloc: impl FnOnce(&dyn DeviceApi) -> Result<Space>,
    ) -> Result<u64> {
        let left = self.left.checked_sub(size);
        // RPC-86: checked before the device is called, which may reserve memory that the session must not have.
        let Some(left) = left else {
            let message = format!("{size} bytes, this session may allocate {} more", self.left);
            return Err(RPC_86.rejected(Kind::Limit, message).into());
        };
        RPC_86.demand(Kind::Limit, self.regions.len() < MOST, || {
            format!("a session has {MOST} allocations at most: free some")
        })?;
        let api = api_of(device)?;
        let space = alloc(api)?;
        if device.kind == Device::CPU.kind && !space.is_null() {
            // The memory is cleared, because its old content may belong to another session or to the server.
            // SAFETY: the device just allocated that many bytes.
            unsafe { std::ptr::write_bytes(space.0.cast::<u8>(), 0, size_of_host(size)) };
        }
        self.left = left;
        Ok(self.enter(Allocation {
            device,
            space,
            size,
            is_client: true,
            writable: true,
        }))
    }

    /// Adds the memory of a tensor that a function returned.
    pub(super) fn enter_tensor(&mut self, tensor: &Tensor) -> u64 {
        let dl = tensor.dl();
        let size = dl.byte_offset.saturating_add(tensor.nbytes() as u64);
        self.enter(Allocation {
            device: dl.device,
            space: Space(dl.data),
            size,
            is_client: false,
            writable: !tensor.is_read_only(),
        })
    }

    fn enter(&mut self, region: Allocation) -> u64 {
        let token = self.next;
        let room = region.size.saturating_add(GUARD).next_multiple_of(GUARD);
        self.next = token.saturating_add(room);
        self.regions.insert(token, region);
        token
    }

    /// Removes the memory of a tensor that was freed, whose data had this token.
    pub(super) fn leave_tensor(&mut self, token: u64) {
        self.regions.remove(&token);
    }

    /// Frees an allocation of the client.
    pub(super) fn free(&mut self, device: Device, token: u64) -> Result<()> {
        let own = self
            .regions
            .get(&token)
            .is_some_and(|region| region.is_client && region.device == device);
        let region = own.then(|| self.regions.remove(&token)).flatten();
        let Some(region) = region else {
            let message = format!("{token:#x} is not an allocation of this client on this device");
            return Err(RPC_86.rejected(Kind::Missing, message).into());
        };
        self.left = self.left.saturating_add(region.size);
        region.free()
    }

    /// Returns the place of `nbytes` bytes at `offset` from the address with the token `data`.
    pub(super) fn check_span(
        &self,
        data: u64,
        device: Device,
        offset: u64,
        nbytes: u64,
        write: bool,
    ) -> Result<CheckedSpan> {
        if nbytes == 0 && data == 0 {
            return Ok(CheckedSpan {
                space: Space::NULL,
                offset: 0,
            });
        }
        // RPC-86: a token may include an offset, because released clients do arithmetic with tokens as if they were addresses.
        let found = self.regions.range(..=data).next_back();
        let within = found.filter(|(token, region)| data - **token <= region.size);
        let Some((token, region)) = within else {
            let message = format!("{data:#x} is not memory of this session, or was freed");
            return Err(RPC_86.rejected(Kind::Missing, message).into());
        };
        RPC_86.demand(Kind::Type, region.device == device, || {
            format!(
                "memory {data:#x} is of {:?}, not of {device:?}",
                region.device
            )
        })?;
        let start = (data - token).checked_add(offset);
        let end = start.and_then(|start| start.checked_add(nbytes));
        // RPC-87: released servers do not compare the number of bytes for host memory. A client can therefore read and write beyond the
        // allocation.
        RPC_87.demand(
            Kind::Malformed,
            end.is_some_and(|end| end <= region.size),
            || {
                let size = region.size;
                format!(
                    "{nbytes} bytes at {offset} of memory {data:#x} are beyond its {size} bytes"
                )
            },
        )?;
        RPC_87.demand(Kind::Malformed, region.writable || !write, || {
            format!("memory {data:#x} is not to be written")
        })?;
        Ok(CheckedSpan {
            space: region.space,
            offset: size_of_host(start.unwrap_or_default()),
        })
    }

    /// Returns the place of the elements of a tensor.
    pub(super) fn place_of(&self, block: &TensorBlock, release: Release) -> Result<CheckedSpan> {
        let nbytes = size_of(block, release)?;
        self.check_span(block.data, block.device, block.byte_offset, nbytes, false)
    }

    /// Reads `nbytes` bytes for the client.
    pub(super) fn read(
        &self,
        data: u64,
        device: Device,
        offset: u64,
        nbytes: u64,
    ) -> Result<CopyContent> {
        let place = self.check_span(data, device, offset, nbytes, false)?;
        // At most the size of the allocation, as `check_span` has checked.
        let nbytes = size_of_host(nbytes);
        if device.kind == Device::CPU.kind {
            if nbytes == 0 {
                return Ok(CopyContent::Owned(Vec::new()));
            }
            let start = place.space.0.cast::<u8>().wrapping_add(place.offset);
            return Ok(CopyContent::InPlace(Space(start.cast()), nbytes));
        }
        let mut bytes = vec![0; nbytes];
        let host = CheckedSpan {
            space: Space(bytes.as_mut_ptr().cast()),
            offset: 0,
        };
        // SAFETY: `check_span` has the bytes, and so has `bytes`, which lives until the copy is done.
        unsafe { copy((place, device), (host, Device::CPU), nbytes, device) }?;
        Ok(CopyContent::Owned(bytes))
    }

    /// Writes bytes of the client to device memory.
    pub(super) fn write(&self, data: u64, device: Device, offset: u64, bytes: &[u8]) -> Result<()> {
        let place = self.check_span(data, device, offset, bytes.len() as u64, true)?;
        let host = CheckedSpan {
            space: Space::host(bytes.as_ptr()),
            offset: 0,
        };
        // SAFETY: `check_span` has as many bytes as `bytes`, which lives until the copy is done.
        unsafe { copy((host, Device::CPU), (place, device), bytes.len(), device) }
    }

    /// Copies between two tensors of the session.
    pub(super) fn copy(
        &self,
        from: &TensorBlock,
        to: &TensorBlock,
        stream: Stream,
        release: Release,
    ) -> Result<()> {
        let source = self.place_of(from, release)?;
        let nbytes = size_of(to, release)?;
        let target = self.check_span(to.data, to.device, to.byte_offset, nbytes, true)?;
        let (from, to) = (tensor_ref(from, source), tensor_ref(to, target));
        // SAFETY: both places were held to their allocations.
        unsafe { Manager::global().copy_tensor(&from, &to, stream) }
    }
}

impl Allocation {
    /// Returns the memory to its device.
    fn free(self) -> Result<()> {
        let api = api_of(self.device)?;
        // SAFETY: allocated by this device in `SessionMemory::make`, and taken out of the table, so that it is not freed or used again.
        unsafe { api.free(self.device, self.space) }
    }
}

impl Drop for SessionMemory {
    fn drop(&mut self) {
        for (_, region) in std::mem::take(&mut self.regions) {
            if region.is_client {
                // There is no caller to report an error to.
                drop(region.free());
            }
        }
    }
}
