//! Arguments of a call in the encoding of the server, and the host tensors among them.

use super::super::{PackedValue, RPC_102, RpcCode, TensorBlock};
use super::call_result::RemoteObject;
use super::device;
use super::link::{Link, handle_of};
use super::module::RemoteModule;
use super::session_table::{RemoteSpace, add_space, find_space, remove_space};
use crate::device::{Device, Dtype, Space, byte_size};
use crate::function::{Error, ErrorKind, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::release::Release;
use crate::rule::Kind;
use crate::value::{AnyView, Argument, DLTensor, Ref, bytes_bytes, cast, index, str_bytes};
use std::borrow::Cow;
use std::sync::Arc;

/// The arguments of a call: encoded values, and copies of host tensors on the server.
pub(super) struct CallArguments<'a> {
    pub(super) values: Vec<PackedValue<'a>>,
    copies: Vec<HostTensor<'a>>,
}

/// A tensor of the host and its copy on the server (RPC-102).
///
/// A remote function can only use tensors where it runs. A host tensor is therefore copied to the server before the call, and back after
/// it. Upstream rejects such a call.
struct HostTensor<'a> {
    here: &'a DLTensor,
    nbytes: usize,
    there: Space,
    device: Device,
    /// True if the function may write to the tensor.
    writable: bool,
}

impl<'a> CallArguments<'a> {
    /// Encodes `args`, and copies host tensors to the server's CPU.
    pub(super) fn encode(link: &Arc<Link>, args: &'a [AnyView<'_>]) -> Result<CallArguments<'a>> {
        let mut made = CallArguments {
            values: Vec::with_capacity(args.len()),
            copies: Vec::new(),
        };
        for view in args {
            let value = made.value(link, view)?;
            made.values.push(value);
        }
        Ok(made)
    }

    /// Encodes one argument. Text and bytes are borrowed: they are written before the call returns.
    fn value(&mut self, link: &Arc<Link>, view: &'a AnyView<'_>) -> Result<PackedValue<'a>> {
        let raw = view.as_raw();
        Ok(match view.type_index() {
            index::NONE => PackedValue::None,
            index::INT => PackedValue::Int(raw.int()),
            // RPC-43: up to 0.17 a bool is an integer, and all releases up to 0.20 accept one.
            index::BOOL if !link.era.is_ffi() => PackedValue::Int(raw.int()),
            index::BOOL => PackedValue::Bool(raw.int()),
            index::FLOAT => PackedValue::Float(raw.float()),
            index::DATA_TYPE => PackedValue::Dtype(raw.dtype(), 0),
            index::DEVICE => PackedValue::Device(link.unmasked(raw.device())?),
            index::DLTENSOR_PTR | index::TENSOR => self.tensor(link, view)?,
            index::RAW_STR | index::SMALL_STR | index::STR => {
                // RPC-43: a C string in both eras, as upstream writes it. It cannot contain a NUL (RPC-44).
                let text = str_bytes(view).unwrap_or_default();
                PackedValue::Str(Cow::Borrowed(text))
            }
            index::BYTE_ARRAY | index::SMALL_BYTES | index::BYTES => {
                PackedValue::Bytes(Cow::Borrowed(bytes_bytes(view).unwrap_or_default()))
            }
            index::MODULE => module(link, view)?,
            _ => object(link, view)?,
        })
    }

    /// Encodes a tensor: one of this session by its handle on the server, a host tensor by a copy.
    fn tensor(&mut self, link: &Arc<Link>, view: &'a AnyView<'_>) -> Result<PackedValue<'a>> {
        let dl = cast::<*mut DLTensor>(*view)?;
        // SAFETY: an argument of this type points to a description that lives as long as the view.
        let dl: &'a DLTensor = unsafe { &*dl };
        // SAFETY: its extents are readable for as long.
        let shape = unsafe { dl.shape() };
        // SAFETY: extents and strides are readable for as long.
        let compact = unsafe { dl.is_contiguous() };
        if !compact {
            let text = "a tensor with strides: a server is passed compact ones";
            return Err(Error::new(ErrorKind::Value, text));
        }
        let device = dl.device;
        let mut block = TensorBlock {
            data: 0,
            device: link.unmasked(device)?,
            dtype: dl.dtype,
            shape: shape.to_vec(),
            byte_offset: dl.byte_offset,
        };
        if device.session().is_some() {
            block.data = data_of(link, Space(dl.data))?;
            return Ok(PackedValue::Tensor(block));
        }
        // RPC-102: clients of TVM reject every tensor that is not of their session, even a host tensor.
        if device.kind != Device::CPU.kind {
            let text = format!(
                "a tensor of device type {} of this process: a server is passed tensors of its own, and copies of the host's",
                device.kind
            );
            return Err(RPC_102.rejected(Kind::Unsupported, text).into());
        }
        let nbytes = byte_size(shape, block.dtype, Release::LAST).ok_or_else(|| {
            Error::new(
                ErrorKind::Value,
                "a tensor whose size is not a number of bytes",
            )
        })?;
        block.device = Device::CPU;
        // RPC-102: the copy begins with the first element: `start` skips the offset on the host.
        block.byte_offset = 0;
        let there = device::alloc(link, Device::CPU, nbytes, 64, block.dtype)?;
        let writable = Tensor::try_from_view(*view).is_none_or(|tensor| !tensor.is_read_only());
        let copy = HostTensor {
            here: dl,
            nbytes,
            there,
            device: Device::CPU,
            writable,
        };
        block.data = data_of(link, there)?;
        // SAFETY: the caller of a function keeps the memory of its arguments for the call.
        let sent = unsafe { copy.send(link) };
        // Recorded before the error is returned, so that the copy's memory is freed if sending fails.
        self.copies.push(copy);
        sent?;
        Ok(PackedValue::Tensor(block))
    }

    /// Copies the host tensors back, after the call has returned.
    pub(super) fn fetch(&self, link: &Link) -> Result<()> {
        self.copies
            .iter()
            .filter(|copy| copy.writable)
            // SAFETY: the caller of a function keeps the memory of its arguments for the call.
            .try_for_each(|copy| unsafe { copy.fetch(link) })
    }
}

impl Drop for CallArguments<'_> {
    fn drop(&mut self) {
        for copy in &self.copies {
            // A drop cannot report an error of freeing.
            let _ = device::free(copy.there, copy.device);
        }
    }
}

impl HostTensor<'_> {
    /// Returns the address of the first byte of the tensor.
    fn start(&self) -> *mut u8 {
        let offset = usize::try_from(self.here.byte_offset).unwrap_or(usize::MAX);
        self.here.data.cast::<u8>().wrapping_add(offset)
    }

    /// # Safety
    ///
    /// The memory of the tensor is valid during the call, and nothing writes to it.
    unsafe fn send(&self, link: &Link) -> Result<()> {
        if self.nbytes == 0 {
            return Ok(());
        }
        // SAFETY: the tensor has that many bytes, which do not change during the call, by this contract.
        let bytes = unsafe { std::slice::from_raw_parts(self.start(), self.nbytes) };
        device::write(link, &self.part()?, bytes)
    }

    /// # Safety
    ///
    /// The memory of the tensor is valid during the call, and nothing else reads it or writes to it.
    unsafe fn fetch(&self, link: &Link) -> Result<()> {
        if self.nbytes == 0 {
            return Ok(());
        }
        // SAFETY: the tensor has that many bytes, and nothing else uses them during the call, by this contract.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start(), self.nbytes) };
        device::read(link, &self.part()?, bytes)
    }

    /// Returns the whole copy.
    fn part(&self) -> Result<device::RemotePart> {
        Ok(device::RemotePart {
            handle: find_space(self.there)?.handle,
            device: self.device,
            offset: 0,
            dtype: Dtype::UINT8,
        })
    }
}

/// Returns the number by which the server knows the memory of a tensor of this session.
fn data_of(link: &Arc<Link>, space: Space) -> Result<u64> {
    if space.is_null() {
        // A tensor without elements has no memory.
        return Ok(0);
    }
    let found = find_space(space)?;
    if !Arc::ptr_eq(&found.link, link) {
        let text = "a tensor of another session: copy it to the host first";
        return Err(Error::new(ErrorKind::Value, text));
    }
    Ok(found.handle)
}

/// Encodes a module of this session.
fn module(link: &Arc<Link>, view: &AnyView<'_>) -> Result<PackedValue<'static>> {
    let module = cast::<Module>(*view)?;
    let remote =
        RemoteModule::from_module(&module).filter(|remote| Arc::ptr_eq(&remote.handle.link, link));
    remote
        .map(|remote| PackedValue::Module(remote.handle.handle))
        .ok_or_else(|| {
            let text = "a module that the server does not have: upload and load it there";
            Error::new(ErrorKind::Type, text)
        })
}

/// Encodes an object of this session.
fn object(link: &Arc<Link>, view: &AnyView<'_>) -> Result<PackedValue<'static>> {
    let object = view
        .as_object()
        .and_then(Ref::<RemoteObject>::downcast_boxed);
    if let Some(object) = object.filter(|object| Arc::ptr_eq(object.link(), link)) {
        return Ok(object.packed());
    }
    let text = format!(
        "a server cannot be passed a value of type `{}`",
        crate::value::types::key_of(view.type_index())
    );
    Err(Error::new(ErrorKind::Type, text))
}

/// Requests memory from the server, which the server counts for this session.
pub(super) fn allocated(
    link: &Arc<Link>,
    code: RpcCode,
    args: Vec<PackedValue<'_>>,
) -> Result<Space> {
    let handle = link.system(code, args, handle_of)?;
    Ok(add_space(RemoteSpace {
        link: Arc::clone(link),
        handle,
    }))
}

/// Frees memory that [`allocated`] returned.
pub(super) fn deallocated(space: Space, device: Device) -> Result<()> {
    let found = remove_space(space)?;
    let args = vec![
        PackedValue::Device(device.without_session()),
        PackedValue::Handle(found.handle),
    ];
    found.link.command(RpcCode::DevFreeData, args)
}
