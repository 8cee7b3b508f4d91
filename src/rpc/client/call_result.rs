//! Results of a call as values of this process, which keep their remote objects alive.

use super::super::{PackedValue, Packet, RPC_101, TensorBlock};
use super::argument::CallArguments;
use super::link::{HandleKind, Link, RemoteHandle};
use super::module::RemoteModule;
use super::session_table::{RemoteSpace, add_space, remove_space};
use crate::function::{Error, Function, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::value::header::{HeaderSlot, dynamic_object};
use crate::value::{Any, AnyView, Bytes, DLTensor, Ref, Str, index};
use std::sync::Arc;

/// Returns a function of the server as a function of this process.
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
    // RPC-102: copied back only after a successful call: a failed call leaves the host tensors unchanged.
    made.fetch(link)?;
    Ok(result)
}

/// Calls a function without arguments whose result is an integer.
pub(super) fn call_for_integer(link: &Link, function: u64) -> Result<i64> {
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

/// Converts the result of a call (RPC-101): its type code, its value, and for a tensor also its owner.
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
        // No release writes it. A value that does not fit into an i64 is rejected.
        [V::Uint(value)] => i64::try_from(*value).map_err(|_| broken(&values))?.into(),
        [V::Bool(value)] => (*value != 0).into(),
        [V::Float(value)] => (*value).into(),
        [V::Dtype(value, _)] => (*value).into(),
        [V::Device(value)] => (*value).into(),
        [V::Str(text) | V::StrObject(text, _)] => Str::new(text).into(),
        [V::Bytes(bytes) | V::BytesObject(bytes, _)] => Bytes::new(bytes).into(),
        [V::Handle(handle)] => wrap_handle(link, of, *handle),
        _ => return Err(broken(&values)),
    })
}

/// Converts a handle to an object of the kind that `of` states.
fn wrap_handle(link: &Arc<Link>, of: i32, handle: u64) -> Any {
    let take = |kind| RemoteHandle::new(link, handle, kind);
    match (of, link.era.is_ffi()) {
        (10, false) | (index::FUNCTION, true) => function(take(HandleKind::Function)).into(),
        (9, false) | (index::MODULE, true) => {
            Module::new(RemoteModule::new(take(HandleKind::Module))).into()
        }
        // An address of the server, for which no reference is counted.
        (3, false) | (index::OPAQUE, true) => {
            RemoteObject::address(link, handle).into_object().into()
        }
        _ => RemoteObject::object(take(HandleKind::Object))
            .into_object()
            .into(),
    }
}

/// Converts a tensor of the server. Its memory is kept until the last reference here is dropped.
fn tensor(link: &Arc<Link>, block: &TensorBlock, owner: u64) -> Result<Tensor> {
    // Created first, so that the reference is released if anything below fails.
    let owner = RemoteHandle::new(link, owner, HandleKind::Tensor);
    let device = link.masked(block.device.without_session())?;
    // Nothing here reads the elements, but their size is computed and must be valid.
    let mut shape = block.shape.clone();
    let dtype = block.dtype;
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
        device,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: block.byte_offset,
    };
    let finish = Box::new(move || {
        // The local number is removed first: afterwards the server may reuse the memory for another tensor.
        let _ = remove_space(data);
        drop(owner);
    });
    // SAFETY: `shape` lives for the call, which copies it. The memory is on the server, which keeps it for `owner`, and no safe code of
    // this process dereferences its number.
    Ok(unsafe { Tensor::over(description, finish) })
}

/// An object of the server (`runtime.RPCObjectRef`), or an address there. It can only be passed back.
#[repr(C)]
pub(super) struct RemoteObject {
    header: HeaderSlot,
    what: RemoteThing,
}

/// The remote value that a [`RemoteObject`] refers to.
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
            header: HeaderSlot::default(),
            what,
        })
    }

    /// Returns the session of the object.
    pub(super) fn link(&self) -> &Arc<Link> {
        match &self.what {
            RemoteThing::Object(handle) => &handle.link,
            RemoteThing::Address(link, _) => link,
        }
    }

    /// Encodes the object as an argument (RPC-47).
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
