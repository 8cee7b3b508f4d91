//! System calls, the requests that the session itself answers: functions, memory, streams and copies (RPC-28).

use super::super::super::{PackedValue, RPC_28, RpcCode, TensorBlock};
use super::super::handles::HandleContent;
use super::super::memory::api_of;
use super::super::values::text;
use super::{ServedSession, ServerAnswer};
use crate::device::{Attribute, AttributeValue, Device, Manager, Stream, stream};
use crate::function::Result;
use crate::release::Release;
use crate::rule::Kind;

impl ServedSession<'_> {
    /// Executes a system call.
    pub(super) fn system_call(
        &mut self,
        code: RpcCode,
        args: &[PackedValue<'_>],
        release: Release,
    ) -> Result<ServerAnswer> {
        use PackedValue as V;
        let handle = |token: u64| Ok(ServerAnswer::Values(vec![V::Handle(token)]));
        match (code, args) {
            (RpcCode::GetGlobalFunc, [V::Str(name) | V::StrObject(name, _)]) => {
                // A name that is not UTF-8 belongs to no function.
                let name = std::str::from_utf8(name).unwrap_or_default();
                match self.functions.lookup(name)? {
                    Some(function) => {
                        handle(self.handles.insert(HandleContent::Function(function))?)
                    }
                    None => handle(0),
                }
            }
            // RPC-28: up to 0.20 a type code follows, which is ignored: the table knows the type of a token.
            (RpcCode::FreeHandle, [token, ..]) => self.free(number(token)),
            (RpcCode::DevSetDevice, [V::Device(device)]) => {
                api_of(*device)?.set_device(*device)?;
                Ok(ServerAnswer::Void)
            }
            (RpcCode::DevGetAttr, [V::Device(device), kind]) => attribute(*device, kind, release),
            (RpcCode::DevAllocData, [V::Device(device), nbytes, alignment, V::Dtype(hint, _)]) => {
                let (nbytes, alignment) = (int(nbytes), int(alignment));
                handle(self.memory.alloc(*device, nbytes, alignment, *hint)?)
            }
            (RpcCode::DevAllocDataWithScope, [V::Tensor(block), scope]) => {
                api_of(block.device)?;
                let scope = match scope {
                    V::Str(text) | V::StrObject(text, _) => Some(String::from_utf8_lossy(text)),
                    _ => None,
                };
                handle(self.memory.alloc_scoped(block, scope.as_deref(), release)?)
            }
            (RpcCode::DevFreeData, [V::Device(device), token]) => {
                match number(token) {
                    // Freeing null does nothing on a device of this server, as upstream.
                    0 => {
                        api_of(*device)?;
                    }
                    token => self.memory.free(*device, token)?,
                }
                Ok(ServerAnswer::Void)
            }
            (RpcCode::DevStreamSync, [V::Device(device), token]) => {
                let stream = self.handles.stream(number(token), *device)?;
                api_of(*device)?.sync(*device, stream)?;
                Ok(ServerAnswer::Void)
            }
            (RpcCode::DevCreateStream, [V::Device(device)]) => {
                let stream = api_of(*device)?.create_stream(*device)?;
                // DEV-21: a device without streams returns the default stream, which is 0 for every client and is never freed.
                if stream == Stream::DEFAULT {
                    handle(0)
                } else {
                    handle(
                        self.handles
                            .insert(HandleContent::Stream(*device, stream))?,
                    )
                }
            }
            (RpcCode::DevFreeStream, [V::Device(device), token]) => {
                let token = number(token);
                let made = self.handles.stream(token, *device)?;
                // RPC-86: `free_stream` checks the device, but is not called for the default stream.
                api_of(*device)?;
                if made != Stream::DEFAULT {
                    self.handles.remove(token)?;
                    free_stream(*device, made)?;
                }
                Ok(ServerAnswer::Void)
            }
            (RpcCode::DevSetStream, [V::Device(device), token]) => {
                api_of(*device)?;
                let made = self.handles.stream(number(token), *device)?;
                stream::set(*device, made)?;
                Ok(ServerAnswer::Void)
            }
            (RpcCode::DevGetCurrentStream, [V::Device(device)]) => {
                api_of(*device)?;
                let current = stream::current(*device);
                // RPC-85: a stream that this session did not create has no token; the client sees the default stream.
                handle(self.handles.of_stream(*device, current).unwrap_or(0))
            }
            (RpcCode::CopyAmongRemote, [V::Tensor(from), V::Tensor(to), token]) => {
                let stream = self.stream_of_copy(from, to, number(token))?;
                self.memory.copy(from, to, stream, release)?;
                Ok(ServerAnswer::Void)
            }
            (RpcCode::CopyAmongRemote, [_, _, _, _, _, V::Device(_), V::Device(_), ..]) => {
                self.copy_flat(args, release)
            }
            // RPC-28: the reader checked the types of the arguments.
            _ => Err(RPC_28
                .rejected(Kind::Type, format!("{} has other arguments", code.name()))
                .into()),
        }
    }

    /// Executes FreeHandle.
    fn free(&mut self, token: u64) -> Result<ServerAnswer> {
        // Upstream ignores null.
        if token == 0 {
            return Ok(ServerAnswer::Void);
        }
        // RPC-88: clients of 0.21 to 0.23 free a returned tensor by the handle of its data.
        let token = self.handles.of_data(token).unwrap_or(token);
        match self.handles.remove(token)? {
            HandleContent::Tensor(_, data) => self.memory.leave_tensor(data),
            HandleContent::Stream(device, stream) => free_stream(device, stream)?,
            HandleContent::Function(_)
            | HandleContent::Module(_)
            | HandleContent::Object(_)
            | HandleContent::Opaque(_) => {}
        }
        Ok(ServerAnswer::Void)
    }

    /// Returns the stream of a copy. It belongs to the device that makes the copy, which is the device that is not the host.
    fn stream_of_copy(&self, from: &TensorBlock, to: &TensorBlock, token: u64) -> Result<Stream> {
        let by = if from.device.kind == Device::CPU.kind {
            to.device
        } else {
            from.device
        };
        api_of(from.device)?;
        api_of(to.device)?;
        self.handles.stream(token, by)
    }

    /// Executes CopyAmongRemote of 0.7: `[from, offset, to, offset, bytes, device, device, element type, stream]`.
    fn copy_flat(&mut self, args: &[PackedValue<'_>], release: Release) -> Result<ServerAnswer> {
        let [
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            from_device,
            to_device,
            _,
            token,
        ] = args
        else {
            let message = "CopyAmongRemote has nine arguments";
            return Err(RPC_28.rejected(Kind::Type, message).into());
        };
        let (PackedValue::Device(from_device), PackedValue::Device(to_device)) =
            (from_device, to_device)
        else {
            // RPC-28: the reader checked the types of the arguments, so that this is not reached.
            return Ok(ServerAnswer::Void);
        };
        let block =
            |data: &PackedValue<'_>, offset: &PackedValue<'_>, device: &Device| TensorBlock {
                data: number(data),
                device: *device,
                // RPC-25: 0.7 states a number of bytes and no shape. They are copied as elements of one byte, independent of the stated
                // type.
                dtype: crate::tensor::Dtype::UINT8,
                shape: vec![int(nbytes)],
                byte_offset: u64::try_from(int(offset)).unwrap_or(u64::MAX),
            };
        let from = block(from, from_offset, from_device);
        let to = block(to, to_offset, to_device);
        let stream = self.stream_of_copy(&from, &to, number(token))?;
        self.memory.copy(&from, &to, stream, release)?;
        Ok(ServerAnswer::Void)
    }
}

/// Executes DevGetAttr.
fn attribute(device: Device, kind: &PackedValue<'_>, release: Release) -> Result<ServerAnswer> {
    let kind = int(kind);
    let known = Attribute::ALL
        .iter()
        .find(|attribute| attribute.number_in(release).map(i64::from) == Some(kind));
    // An unknown device type is rejected, except for the attribute that asks whether the device exists.
    let answer = match known {
        Some(Attribute::Exist) if api_of(device).is_err() => AttributeValue::Int(0),
        Some(attribute) => {
            api_of(device)?;
            Manager::global().attribute(device, *attribute)?
        }
        None => {
            api_of(device)?;
            AttributeValue::None
        }
    };
    Ok(ServerAnswer::Values(vec![match answer {
        AttributeValue::None => PackedValue::None,
        AttributeValue::Int(value) => PackedValue::Int(value),
        AttributeValue::Text(value) => text(value),
    }]))
}

/// Frees a stream of the session, after it was replaced as the current stream of this thread.
fn free_stream(device: Device, made: Stream) -> Result<()> {
    if stream::current(device) == made {
        stream::set(device, Stream::DEFAULT)?;
    }
    // SAFETY: made by this device, taken out of the table, and not the current stream of this thread, the only one that sets it.
    unsafe { api_of(device)?.free_stream(device, made) }
}

/// Returns a handle; none means null (RPC-28).
fn number(value: &PackedValue<'_>) -> u64 {
    match value {
        PackedValue::Handle(token) => *token,
        _ => 0,
    }
}

/// Returns an integer (RPC-28).
fn int(value: &PackedValue<'_>) -> i64 {
    match value {
        PackedValue::Int(value) | PackedValue::Bool(value) => *value,
        PackedValue::Uint(value) => i64::try_from(*value).unwrap_or(i64::MAX),
        _ => 0,
    }
}
