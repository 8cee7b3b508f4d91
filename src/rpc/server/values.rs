//! Conversion of packet values to function arguments, and of results to packet values (RPC-88).

use super::super::{PackedValue, RPC_85, RPC_88, TensorBlock};
use super::era::Era;
use super::handles::{HandleContent, HandleTable};
use super::memory::SessionMemory;
use crate::function::{Error, Function, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::value::{
    Any, AnyPayload, AnyView, ByteArray, DLTensor, ObjectRef, RawAny, Str, bytes_bytes, index,
    str_bytes,
};
use std::borrow::Cow;
use std::ffi::{CString, c_void};

/// A prepared argument, which owns the data that its view borrows.
pub(super) enum Prepared {
    Value(Any),
    Text(CString),
    Bytes(Box<ByteArray>),
    Tensor(Box<(DLTensor, Vec<i64>)>),
    Pointer(*mut c_void),
}

/// Converts packet values to arguments of a function.
///
/// # Safety
///
/// The bytes that `args` borrow must outlive the returned arguments.
pub(super) unsafe fn prepare(
    args: &[PackedValue<'_>],
    handles: &HandleTable,
    memory: &SessionMemory,
    era: &Era,
) -> Result<Vec<Prepared>> {
    let one = |arg: &PackedValue<'_>| -> Result<Prepared> {
        Ok(match arg {
            PackedValue::None => Prepared::Value(Any::none()),
            PackedValue::Int(value) => Prepared::Value((*value).into()),
            // Upstream has only one integer type, of 64 bits, and reads this code as such.
            PackedValue::Uint(value) => Prepared::Value((*value).into()),
            PackedValue::Bool(value) => Prepared::Value((*value != 0).into()),
            PackedValue::Float(value) => Prepared::Value((*value).into()),
            PackedValue::Dtype(dtype, _) => Prepared::Value((*dtype).into()),
            PackedValue::Device(device) => Prepared::Value((*device).into()),
            PackedValue::Handle(token) => Prepared::Pointer(pointer(*token, handles)?),
            PackedValue::Tensor(block) => Prepared::Tensor(tensor(block, memory, era)?),
            PackedValue::Str(text) => Prepared::Text(c_string(text)),
            PackedValue::StrObject(text, _) => Prepared::Value(Str::new(text).into()),
            PackedValue::Bytes(bytes) | PackedValue::BytesObject(bytes, _) => {
                Prepared::Bytes(Box::new(ByteArray::of(bytes)))
            }
            PackedValue::Module(token) => Prepared::Value(handles.module(*token)?.clone().into()),
            PackedValue::Function(token) => {
                Prepared::Value(handles.function(*token)?.clone().into_object().into())
            }
            PackedValue::Object(token, _) => Prepared::Value(object(*token, handles)?),
        })
    };
    args.iter().map(one).collect()
}

impl Prepared {
    /// Returns the argument that is passed to the function.
    pub(super) fn view(&self) -> AnyView<'_> {
        match self {
            Prepared::Value(value) => value.view(),
            Prepared::Text(text) => AnyView::c_str(text),
            Prepared::Bytes(bytes) => {
                let ptr = (&raw const **bytes).cast_mut().cast();
                let cell = RawAny::of(index::BYTE_ARRAY, AnyPayload { ptr });
                // SAFETY: a byte array, which this owns, of bytes that live as long (the contract of `prepare`).
                unsafe { AnyView::from_raw(cell) }
            }
            // SAFETY: `tensor` described memory of the session, whose shape this owns.
            Prepared::Tensor(described) => unsafe { AnyView::dltensor(&described.0) },
            // SAFETY: null, or a pointer that a function of this process returned for others.
            Prepared::Pointer(pointer) => unsafe { AnyView::handle(*pointer) },
        }
    }
}

/// Returns the object of a token, of any type.
fn object(token: u64, handles: &HandleTable) -> Result<Any> {
    Ok(match handles.get(token)? {
        HandleContent::Object(object) => object.clone().into(),
        HandleContent::Tensor(tensor, _) => tensor.clone().into(),
        HandleContent::Module(module) => module.clone().into(),
        HandleContent::Function(function) => function.clone().into_object().into(),
        HandleContent::Opaque(_) | HandleContent::Stream(..) => {
            let message = format!("handle {token:#x} is not an object");
            return Err(RPC_85.rejected(Kind::Type, message).into());
        }
    })
}

/// Returns the pointer of a token, which a function has returned or which is a stream. Token 0 is null.
fn pointer(token: u64, handles: &HandleTable) -> Result<*mut c_void> {
    if token == 0 {
        return Ok(std::ptr::null_mut());
    }
    match handles.get(token)? {
        HandleContent::Opaque(pointer) => Ok(*pointer),
        HandleContent::Stream(_, stream) => Ok(stream.handle()),
        // RPC-85: any other number would be used as an address.
        _ => {
            let message = format!("handle {token:#x} is not a pointer");
            Err(RPC_85.rejected(Kind::Type, message).into())
        }
    }
}

/// Describes the memory that `block` names.
fn tensor(
    block: &TensorBlock,
    memory: &SessionMemory,
    era: &Era,
) -> Result<Box<(DLTensor, Vec<i64>)>> {
    let place = memory.place_of(block, era.release())?;
    let mut shape = block.shape.clone();
    let dl = DLTensor {
        data: place.space.0,
        device: block.device,
        // Fits into an i32, because the packet stores it as one.
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype: block.dtype,
        // The heap allocation does not move when the vector is moved.
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: place.offset as u64,
    };
    Ok(Box::new((dl, shape)))
}

/// Converts a text up to its first NUL, which is the part that its receiver reads (RPC-44).
fn c_string(text: &[u8]) -> CString {
    let end = text.iter().position(|byte| *byte == 0);
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Creates a string of a packet.
pub(super) fn text(text: impl Into<Vec<u8>>) -> PackedValue<'static> {
    let mut bytes = text.into();
    // RPC-44: the client reads only up to the first NUL.
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    PackedValue::Str(Cow::Owned(bytes))
}

/// Type codes of results up to 0.20, by their type index from 0.21 on.
const LEGACY_TAGS: &[(i32, i64)] = &[
    (index::NONE, 4),
    (index::INT, 0),
    (index::BOOL, 15),
    (index::FLOAT, 2),
    (index::OPAQUE, 3),
    (index::DATA_TYPE, 5),
    (index::DEVICE, 6),
    (index::STR, 11),
    (index::SMALL_STR, 11),
    (index::BYTES, 12),
    (index::SMALL_BYTES, 12),
    (index::FUNCTION, 10),
    (index::TENSOR, 13),
    (index::MODULE, 9),
];

/// Returns the type of a result, in the numbering of the client's era.
fn tag(of: i32, era: &Era) -> i64 {
    if era.release().minor() >= 22 {
        return of.into();
    }
    if era.release().minor() == 21 {
        // RPC-43: 0.22 renumbered five objects.
        return match of {
            index::ARRAY => 69,
            index::MAP => 70,
            index::SHAPE => 71,
            index::TENSOR => 72,
            // In 0.21, strings and bytes of up to seven bytes are objects like longer ones.
            index::SMALL_STR => 65,
            index::SMALL_BYTES => 66,
            _ => of.into(),
        };
    }
    let found = LEGACY_TAGS.iter().find(|(index, _)| *index == of);
    // All other objects share one code.
    found.map_or(8, |(_, tag)| *tag)
}

/// Encodes the result of a call: its type, and its value or a handle of it (RPC-88).
pub(super) fn encode(
    value: Any,
    handles: &mut HandleTable,
    memory: &mut SessionMemory,
    era: &Era,
) -> Result<Vec<PackedValue<'static>>> {
    let of = value.type_index();
    let view = value.view();
    let raw = view.as_raw();
    let mut number = tag(of, era);
    let plain = match of {
        index::NONE => PackedValue::None,
        index::INT => PackedValue::Int(raw.int()),
        index::BOOL if era.has_bool() => PackedValue::Bool(raw.int()),
        // RPC-43: up to 0.17 there is no code for a bool. It is sent as an integer, and the type index states that it is a bool.
        index::BOOL => {
            number = tag(index::INT, era);
            PackedValue::Int(raw.int())
        }
        index::FLOAT => PackedValue::Float(raw.float()),
        index::DATA_TYPE => PackedValue::Dtype(raw.dtype(), 0),
        index::DEVICE => PackedValue::Device(raw.device()),
        index::OPAQUE => PackedValue::Handle(match raw.ptr() {
            pointer if pointer.is_null() => 0,
            // RPC-85: the client gets a token, not an address of this process; released servers send the address itself.
            pointer => handles.insert(HandleContent::Opaque(pointer))?,
        }),
        index::STR | index::SMALL_STR => text(str_bytes(&view).unwrap_or_default()),
        index::BYTES | index::SMALL_BYTES => {
            let bytes = bytes_bytes(&view).unwrap_or_default();
            PackedValue::Bytes(Cow::Owned(bytes.to_vec()))
        }
        _ => return encode_object(value, number, handles, memory, era),
    };
    Ok(vec![PackedValue::Int(number), plain])
}

/// Encodes a result that is an object, which stays on the server.
fn encode_object(
    value: Any,
    number: i64,
    handles: &mut HandleTable,
    memory: &mut SessionMemory,
    era: &Era,
) -> Result<Vec<PackedValue<'static>>> {
    let object = value
        .into_object()
        .map_err(|value| unsupported(value.type_index()))?;
    // RPC-88: checked first, because tensors are the only objects whose data the client can access.
    let object = match Tensor::try_from(&Any::from(object.clone())) {
        Ok(tensor) => return encode_tensor(tensor, number, handles, memory),
        Err(_) => object,
    };
    let object = match Module::from_object(object) {
        Ok(module) => {
            let token = handles.insert(HandleContent::Module(module))?;
            return Ok(vec![PackedValue::Int(number), PackedValue::Handle(token)]);
        }
        Err(object) => object,
    };
    let held = match Function::from_object(object) {
        Ok(function) => HandleContent::Function(function),
        Err(object) => other_object(object, era)?,
    };
    let token = handles.insert(held)?;
    Ok(vec![PackedValue::Int(number), PackedValue::Handle(token)])
}

/// Wraps an object of a type that clients do not know.
fn other_object(object: ObjectRef, era: &Era) -> Result<HandleContent> {
    if era.has_objects() {
        Ok(HandleContent::Object(object))
    } else {
        Err(unsupported(index::OBJECT))
    }
}

/// Encodes a result that is a tensor: the place of its data, and a handle of the tensor itself.
fn encode_tensor(
    tensor: Tensor,
    number: i64,
    handles: &mut HandleTable,
    memory: &mut SessionMemory,
) -> Result<Vec<PackedValue<'static>>> {
    let dl = tensor.dl();
    let contiguous = crate::device::is_contiguous(
        tensor.shape(),
        strides_of(&tensor),
        crate::release::Release::LAST,
    );
    // RPC-30: a block has no strides.
    RPC_88.demand(Kind::Unsupported, contiguous, || {
        "a tensor that does not lie in one piece".to_owned()
    })?;
    let (device, dtype) = (dl.device, dl.dtype);
    let (shape, byte_offset) = (tensor.shape().to_vec(), dl.byte_offset);
    let data = memory.enter_tensor(&tensor);
    let token = handles.insert(HandleContent::Tensor(tensor, data));
    // If the tensor gets no handle, its memory is removed from the table again.
    let token = token.inspect_err(|_| memory.leave_tensor(data))?;
    let block = TensorBlock {
        data,
        device,
        dtype,
        shape,
        byte_offset,
    };
    Ok(vec![
        PackedValue::Int(number),
        PackedValue::Tensor(block),
        PackedValue::Handle(token),
    ])
}

/// Returns the strides of a tensor.
fn strides_of(tensor: &Tensor) -> Option<&[i64]> {
    // SAFETY: the tensor is there, and its description with it.
    unsafe { tensor.dl().strides() }
}

/// Creates the error for a result without an encoding (RPC-88).
fn unsupported(of: i32) -> Error {
    let message = format!("a result of type index {of} has no form for clients of this release");
    RPC_88.rejected(Kind::Unsupported, message).into()
}
