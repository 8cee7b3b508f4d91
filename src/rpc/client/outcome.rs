//! Results of a call as values of this process, which keep what they stand for alive on the server.

use super::super::{PackedValue, Packet, RPC_101, TensorBlock};
use super::argument::CallArguments;
use super::link::{HandleKind, Link, RemoteHandle};
use super::module::RemoteModule;
use super::table::{RemoteSpace, add_space, remove_space};
use crate::function::{Error, Function, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::value::header::{Header, dynamic_object};
use crate::value::{Any, AnyView, Bytes, DLDataType, DLDevice, DLTensor, Ref, Str, index};
use std::sync::Arc;

/// A function of the server as a function of this process.
pub(super) fn function(handle: RemoteHandle) -> Function {
    Function::from_packed(move |args| call(&handle.link, handle.handle, args))
}

/// Calls a function of the server.
pub(super) fn call(link: &Arc<Link>, function: u64, args: &[AnyView<'_>]) -> Result {
    let mut made = CallArguments::encode(link, args)?;
    let values = std::mem::take(&mut made.values);
    let result = link.request(&Packet::CallFunc(function, values), |packet| match packet {
        Packet::Return(values) => outcome(link, values),
        other => Err(super::link::unexpected("CallFunc", &other)),
    })?;
    // RPC-102: behind a call that succeeded: one that failed leaves the tensors of the host as they were.
    made.fetch(link)?;
    Ok(result)
}

/// A call without arguments whose result is an integer.
pub(super) fn call_of(link: &Link, function: u64) -> Result<i64> {
    let request = Packet::CallFunc(function, Vec::new());
    link.request(&request, |packet| {
        let value = match &packet {
            Packet::Return(values) => match values.as_slice() {
                [PackedValue::Int(_), PackedValue::Int(value)] => Some(*value),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| super::link::unexpected("CallFunc", &packet))
    })
}

/// RPC-101: the result of a call is what it is, and the value; for a tensor its owner as well.
fn outcome(link: &Arc<Link>, values: Vec<PackedValue<'_>>) -> Result {
    use PackedValue as V;
    let broken = |values: &[PackedValue<'_>]| -> Error {
        let text = format!("the server returns {values:?}, which is not a result of a call");
        RPC_101.rejected(Kind::Malformed, text).into()
    };
    let of = match values.first() {
        Some(V::Int(of)) => i32::try_from(*of).map_err(|_| broken(&values))?,
        _ => return Err(broken(&values)),
    };
    Ok(match values.get(1..).unwrap_or_default() {
        [V::Tensor(block), V::Handle(owner)] => tensor(link, block, *owner)?.into(),
        [V::None] => Any::none(),
        [V::Int(value)] if of == index::BOOL && link.era.is_ffi() => (*value != 0).into(),
        [V::Int(value)] => (*value).into(),
        // No release writes it. As large a number as this is none of an i64.
        [V::Uint(value)] => i64::try_from(*value).map_err(|_| broken(&values))?.into(),
        [V::Bool(value)] => (*value != 0).into(),
        [V::Float(value)] => (*value).into(),
        [V::Dtype(value, _)] => DLDataType::from(*value).into(),
        [V::Device(value)] => DLDevice::from(*value).into(),
        [V::Str(text) | V::StrObject(text, _)] => Str::new(text).into(),
        [V::Bytes(bytes) | V::BytesObject(bytes, _)] => Bytes::new(bytes).into(),
        [V::Handle(handle)] => held(link, of, *handle),
        _ => return Err(broken(&values)),
    })
}

/// A handle of what `of` says.
fn held(link: &Arc<Link>, of: i32, handle: u64) -> Any {
    let take = |kind| RemoteHandle::new(link, handle, kind);
    match (of, link.era.is_ffi()) {
        (10, false) | (index::FUNCTION, true) => function(take(HandleKind::Function)).into(),
        (9, false) | (index::MODULE, true) => {
            Module::new(RemoteModule::new(take(HandleKind::Module))).into()
        }
        // An address of the server: no reference is counted for it.
        (3, false) | (index::OPAQUE, true) => {
            RemoteObject::address(link, handle).into_object().into()
        }
        _ => RemoteObject::object(take(HandleKind::Object))
            .into_object()
            .into(),
    }
}

/// A tensor of the server, whose memory stays until the last reference here goes.
fn tensor(link: &Arc<Link>, block: &TensorBlock, owner: u64) -> Result<Tensor> {
    // First of all: whatever fails below, the reference is released.
    let owner = RemoteHandle::new(link, owner, HandleKind::Tensor);
    let device = link.masked(block.device.without_session())?;
    // The elements that the shape promises: nothing here reads them, but their number is computed.
    let mut shape = block.shape.clone();
    let dtype = DLDataType::from(block.dtype);
    let size = crate::device::byte_size(&shape, block.dtype, crate::release::Release::LAST);
    RPC_101.demand(Kind::Malformed, size.is_some(), || {
        format!("the server returns a tensor of shape {shape:?}")
    })?;
    let data = add_space(RemoteSpace {
        link: Arc::clone(link),
        handle: block.data,
    });
    let description = DLTensor {
        data: data.0,
        device: device.into(),
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: block.byte_offset,
    };
    let finish = Box::new(move || {
        // The number first: it must lead nowhere once the server may use the memory for another tensor.
        let _ = remove_space(data);
        drop(owner);
    });
    // SAFETY: `shape` lives for the call, which copies it; the memory is on the server, which holds it for `owner`, and no safe code of
    // this process follows its number.
    Ok(unsafe { Tensor::over(description, finish) })
}

/// An object of the server (`runtime.RPCObjectRef`), or an address there: to be passed back, and nothing else.
#[repr(C)]
pub(super) struct RemoteObject {
    header: Header,
    what: RemoteThing,
}

/// What a [`RemoteObject`] is of.
enum RemoteThing {
    Object(RemoteHandle),
    Address(Arc<Link>, u64),
}

dynamic_object!(RemoteObject, "tvmspec.rpc.RemoteObject");

impl RemoteObject {
    fn object(handle: RemoteHandle) -> Ref<RemoteObject> {
        RemoteObject::make(RemoteThing::Object(handle))
    }

    fn address(link: &Arc<Link>, address: u64) -> Ref<RemoteObject> {
        RemoteObject::make(RemoteThing::Address(Arc::clone(link), address))
    }

    fn make(what: RemoteThing) -> Ref<RemoteObject> {
        Ref::new(RemoteObject {
            // Overwritten by `Ref::new`.
            header: Header::new(index::OBJECT, crate::value::heap::delete_plain),
            what,
        })
    }

    /// The session that it is of.
    pub(super) fn link(&self) -> &Arc<Link> {
        match &self.what {
            RemoteThing::Object(handle) => &handle.link,
            RemoteThing::Address(link, _) => link,
        }
    }

    /// It as an argument (RPC-47).
    pub(super) fn packed(&self) -> PackedValue<'static> {
        match &self.what {
            RemoteThing::Address(_, address) => PackedValue::Handle(*address),
            RemoteThing::Object(handle) => {
                let outer = if handle.link.era.is_ffi() { 115 } else { 8 };
                PackedValue::Object(handle.handle, outer)
            }
        }
    }
}
