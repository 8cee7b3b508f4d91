//! Remote devices with the interface of every device: one API for all sessions; the device type contains the session (DEV-03, DEV-57).

use super::super::{CopyTarget, PackedValue, Packet, RpcCode, TensorBlock};
use super::argument::{allocated, deallocated};
use super::link::{Link, handle_of, unexpected};
use super::session_table::{RemoteSpace, find_space, session_of};
use crate::device::{Attribute, AttributeValue, DEV_18, Device, Dtype, Result, stream};
use crate::device::{CopyRequest, DeviceApi, Space, Stream};
use crate::function::{Error, ErrorKind};
use crate::release::Release;
use crate::rule::Kind;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of bytes that one packet copies. The server must hold the whole packet in memory.
const MOST: usize = 32 << 20;

/// The API of all remote devices.
struct RemoteDevices;

/// Returns the API that the manager finds as `device_api.rpc` (DEV-03).
pub(super) fn remote_devices() -> &'static dyn DeviceApi {
    &RemoteDevices
}

/// A part of an allocation on a server, from an offset on.
pub(super) struct RemotePart {
    pub(super) handle: u64,
    /// Device, with the server's own number.
    pub(super) device: Device,
    /// Offset in bytes.
    pub(super) offset: usize,
    /// Element type, for servers that swap bytes by it.
    pub(super) dtype: Dtype,
}

impl RemotePart {
    /// Returns the target of a copy of `nbytes` bytes, which begins `skipped` bytes after the part's offset (RPC-25).
    fn target(&self, link: &Link, skipped: usize, nbytes: usize) -> CopyTarget {
        let offset = self.offset.saturating_add(skipped) as u64;
        if link.era.release.minor() <= 7 {
            return CopyTarget::Flat(self.handle, offset, self.device, self.dtype);
        }
        let size = usize::from(self.dtype.bits) * usize::from(self.dtype.lanes) / 8;
        // For a device other than the CPU, the server compares the number of bytes with the tensor. Data that does not fill whole elements
        // is sent as bytes.
        let whole = size > 0
            && nbytes.is_multiple_of(size)
            && (usize::from(self.dtype.bits) * usize::from(self.dtype.lanes)).is_multiple_of(8);
        let (dtype, extent) = if whole {
            (self.dtype, nbytes / size)
        } else {
            (Dtype::UINT8, nbytes)
        };
        CopyTarget::Block(TensorBlock {
            data: self.handle,
            device: self.device,
            dtype,
            shape: vec![i64::try_from(extent).unwrap_or(i64::MAX)],
            byte_offset: offset,
        })
    }
}

/// Copies bytes from the host to a server, in packets of at most [`MOST`] bytes.
pub(super) fn write(link: &Link, to: &RemotePart, bytes: &[u8]) -> Result<()> {
    let most = largest(link)?;
    for (at, chunk) in bytes.chunks(most).enumerate() {
        let target = to.target(link, at * most, chunk.len());
        let request = Packet::CopyToRemote(target, Cow::Borrowed(chunk));
        link.request(&request, |packet| match packet {
            Packet::Return(_) => Ok(()),
            other => Err(unexpected("CopyToRemote", &other)),
        })?;
    }
    Ok(())
}

/// Copies bytes from a server to the host, in packets of at most [`MOST`] bytes.
pub(super) fn read(link: &Link, from: &RemotePart, bytes: &mut [u8]) -> Result<()> {
    let most = largest(link)?;
    for (at, chunk) in bytes.chunks_mut(most).enumerate() {
        let target = from.target(link, at * most, chunk.len());
        let request = Packet::CopyFromRemote(target, chunk.len() as u64);
        link.request(&request, |packet| match packet {
            // RPC-27: the server chooses the length of the packet; a shorter one would leave the rest of the tensor unchanged.
            Packet::CopyAck(content) if content.len() == chunk.len() => {
                chunk.copy_from_slice(&content);
                Ok(())
            }
            Packet::CopyAck(content) => Err(Error::new(
                ErrorKind::Runtime,
                format!(
                    "the server returns {} bytes of {}",
                    content.len(),
                    chunk.len()
                ),
            )),
            other => Err(unexpected("CopyFromRemote", &other)),
        })?;
    }
    Ok(())
}

/// Returns the maximum number of content bytes in a packet to this server (RPC-104).
fn largest(link: &Link) -> Result<usize> {
    // RPC-104: only microTVM has the function, which was removed in 0.19.
    if link.era.is_ffi() {
        return Ok(MOST);
    }
    // Requested once for a session, because otherwise every copy would need another call.
    if let Some(known) = link.content.get() {
        return Ok(*known);
    }
    let Some(asked) = link.cached_global("tvm.rpc.server.GetCRTMaxPacketSize")? else {
        return Ok(MOST);
    };
    let limit = super::call_result::call_for_integer(link, asked)?;
    // The packet also contains the code, a tensor of one dimension and the number of bytes.
    let overhead = 52;
    let content = usize::try_from(limit)
        .ok()
        .and_then(|limit| limit.checked_sub(overhead));
    let content = content.filter(|content| *content > 0);
    Ok(*link
        .content
        .get_or_init(|| content.unwrap_or(MOST).min(MOST)))
}

/// Allocates memory of the server.
pub(super) fn alloc(
    link: &Arc<Link>,
    device: Device,
    nbytes: usize,
    alignment: usize,
    hint: Dtype,
) -> Result<Space> {
    let number = |number: usize| PackedValue::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let args = vec![
        // RPC-86: a server knows device types from 1 to 127; the session part belongs to this process (DEV-57).
        PackedValue::Device(device.without_session()),
        number(nbytes),
        number(alignment),
        PackedValue::Dtype(hint, 0),
    ];
    allocated(link, RpcCode::DevAllocData, args)
}

/// Frees memory that [`alloc`] returned.
pub(super) fn free(space: Space, device: Device) -> Result<()> {
    deallocated(space, device)
}

/// Returns the session of a device, and the device as the server knows it.
fn remote_device(device: Device) -> Result<(Arc<Link>, Device)> {
    Ok((session_of(device)?, device.without_session()))
}

/// Returns the remote side of a copy.
fn copy_side(
    space: Space,
    device: Device,
    offset: usize,
    dtype: Dtype,
) -> Result<(RemoteSpace, RemotePart)> {
    let found = find_space(space)?;
    let device = found.link.unmasked(device)?;
    let part = RemotePart {
        handle: found.handle,
        device,
        offset,
        dtype,
    };
    Ok((found, part))
}

impl DeviceApi for RemoteDevices {
    fn set_device(&self, device: Device) -> Result<()> {
        let (link, device) = remote_device(device)?;
        link.command(RpcCode::DevSetDevice, vec![PackedValue::Device(device)])
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        let (link, device) = remote_device(device)?;
        // RPC-23: for a server of unknown release the oldest of its era is assumed, so that no unknown attribute is requested.
        let release = match (link.era.stated, link.era.is_ffi()) {
            (false, false) => Release::of(8),
            (false, true) => Release::of(21),
            (true, _) => link.era.release,
        };
        // DEV-09: attributes have the numbers of the server's release; an attribute without a number has no value.
        let Some(number) = attribute.number_in(release) else {
            return Ok(AttributeValue::None);
        };
        let args = vec![
            PackedValue::Device(device),
            PackedValue::Int(i64::from(number)),
        ];
        link.system(RpcCode::DevGetAttr, args, |value| {
            Some(match value {
                PackedValue::Int(number) | PackedValue::Bool(number) => {
                    AttributeValue::Int(*number)
                }
                PackedValue::Str(text) | PackedValue::StrObject(text, _) => {
                    AttributeValue::Text(String::from_utf8_lossy(text).into_owned())
                }
                PackedValue::None => AttributeValue::None,
                _ => return None,
            })
        })
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        let (link, device) = remote_device(device)?;
        alloc(&link, device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        free(space, device)
    }

    fn alloc_scoped(
        &self,
        device: Device,
        shape: &[i64],
        dtype: Dtype,
        scope: Option<&str>,
    ) -> Result<Space> {
        let (link, device) = remote_device(device)?;
        // The server defines the scopes. A session that may be of 0.7 has only memory without a scope.
        if !link.era.has(8) {
            // DEV-15: a shape without a valid size requests more than any server has, and the server rejects it.
            let nbytes = crate::device::byte_size(shape, dtype, link.era.release);
            return alloc(&link, device, nbytes.unwrap_or(usize::MAX), 64, dtype);
        }
        let block = TensorBlock {
            data: 0,
            device,
            dtype,
            shape: shape.to_vec(),
            byte_offset: 0,
        };
        let scope = match scope {
            // DEV-13: the empty scope means plain memory only since 0.14; none means it in every release.
            None | Some("") => PackedValue::None,
            Some(scope) => PackedValue::Str(Cow::Borrowed(scope.as_bytes())),
        };
        let args = vec![PackedValue::Tensor(block), scope];
        allocated(&link, RpcCode::DevAllocDataWithScope, args)
    }

    /// Returns when the copy is done, because packets are answered in order.
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        if copy.nbytes == 0 {
            return Ok(());
        }
        let (from, to) = (copy.from_device, copy.to_device);
        let host = |space: Space, offset: usize| space.0.cast::<u8>().wrapping_add(offset);
        match (from.session(), to.session()) {
            (None, Some(_)) if from.is_host() => {
                let (space, part) = copy_side(copy.to, to, copy.to_offset, copy.hint)?;
                let start = host(copy.from, copy.from_offset);
                // SAFETY: the host's side has that many bytes from there on, which do not change until a sync, by this contract.
                let bytes = unsafe { std::slice::from_raw_parts(start, copy.nbytes) };
                write(&space.link, &part, bytes)
            }
            (Some(_), None) if to.is_host() => {
                let (space, part) = copy_side(copy.from, from, copy.from_offset, copy.hint)?;
                let start = host(copy.to, copy.to_offset);
                // SAFETY: the host's side has that many bytes from there on, and nothing else uses them until a sync, by this contract.
                let bytes = unsafe { std::slice::from_raw_parts_mut(start, copy.nbytes) };
                read(&space.link, &part, bytes)
            }
            (Some(_), Some(_)) => copy_on_server(copy, stream),
            _ => Err(DEV_18
                .rejected(
                    Kind::Unsupported,
                    format!(
                        "no copy between device type {} of this process and a server: copy to the host first",
                        if from.session().is_none() { from.kind } else { to.kind }
                    ),
                )
                .into()),
        }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let handle = stream.handle_for(device)?.addr() as u64;
        let (link, device) = remote_device(device)?;
        let args = vec![PackedValue::Device(device), PackedValue::Handle(handle)];
        link.command(RpcCode::DevStreamSync, args)
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        let (link, own) = remote_device(device)?;
        // RPC-20: the codes of streams came with 0.8.
        if !link.era.has(8) {
            return Ok(Stream::DEFAULT);
        }
        let args = vec![PackedValue::Device(own)];
        let handle = link.system(RpcCode::DevCreateStream, args, handle_of)?;
        let handle = usize::try_from(handle).unwrap_or_default();
        // SAFETY: a handle of this device type is used only by methods of this API, which pass it back to the server.
        Ok(unsafe { Stream::from_handle(device, std::ptr::without_provenance_mut(handle)) })
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let handle = stream.handle_for(device)?.addr() as u64;
        if handle == 0 {
            return Ok(());
        }
        let (link, device) = remote_device(device)?;
        let args = vec![PackedValue::Device(device), PackedValue::Handle(handle)];
        link.command(RpcCode::DevFreeStream, args)
    }

    fn set_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let handle = stream.handle_for(device)?.addr() as u64;
        let (link, own) = remote_device(device)?;
        let before = stream::set(device, stream)?;
        // The server keeps one stream for each device of the session, independent of the threads of this process.
        if before == stream || !link.era.has(8) {
            return Ok(());
        }
        let args = vec![PackedValue::Device(own), PackedValue::Handle(handle)];
        link.command(RpcCode::DevSetStream, args)
    }
}

/// Copies between two places on one server.
fn copy_on_server(copy: &CopyRequest, stream: Stream) -> Result<()> {
    let (from, source) = copy_side(copy.from, copy.from_device, copy.from_offset, copy.hint)?;
    let (to, target) = copy_side(copy.to, copy.to_device, copy.to_offset, copy.hint)?;
    // RPC-85: a handle of one server is invalid on another, or names other memory there.
    if !Arc::ptr_eq(&from.link, &to.link) {
        let text = "a copy between two sessions: copy to the host first";
        return Err(Error::new(ErrorKind::Value, text));
    }
    let link = &from.link;
    let stream = PackedValue::Handle(stream.handle().addr() as u64);
    let mut args = Vec::new();
    match (
        source.target(link, 0, copy.nbytes),
        target.target(link, 0, copy.nbytes),
    ) {
        (CopyTarget::Block(source), CopyTarget::Block(target)) => {
            args.extend([
                PackedValue::Tensor(source),
                PackedValue::Tensor(target),
                stream,
            ]);
        }
        _ => {
            // RPC-28: in 0.7 handles, offsets, the number of bytes, both devices and the element type.
            let number =
                |number: usize| PackedValue::Int(i64::try_from(number).unwrap_or(i64::MAX));
            args.extend([
                PackedValue::Handle(source.handle),
                number(source.offset),
                PackedValue::Handle(target.handle),
                number(target.offset),
                number(copy.nbytes),
                PackedValue::Device(source.device),
                PackedValue::Device(target.device),
                PackedValue::Dtype(copy.hint, 0),
                stream,
            ]);
        }
    }
    link.command(RpcCode::CopyAmongRemote, args)
}
