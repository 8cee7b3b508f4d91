//! Functions for tests of connections: upstream's `tvm.rpc.testing`, which every Python server registers, and functions of its library that
//! the tests of TVM call on a server (RPC-89). None of them has side effects.

use crate::device::Device;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::{Shape, Tensor};
use crate::value::dlpack::DLTensor;
use crate::value::{Any, AnyView, Argument as _, Str, dtype_from_text};
use std::collections::BTreeMap;

/// Adds the functions, by name.
pub(super) fn add(own: &mut BTreeMap<&'static str, Function>) {
    own.insert(
        "rpc.test.addone",
        // Wraps, as in C++: a client must not end the session with a large number.
        Function::from_typed(|value: i64| value.wrapping_add(1)),
    );
    own.insert(
        "rpc.test.add_to_lhs",
        Function::from_typed(|left: i64| {
            Function::from_typed(move |right: i64| left.wrapping_add(right))
        }),
    );
    texts(own);
    tensors(own);
    shapes(own);
    errors(own);
    own.insert(
        "testing.echo",
        Function::from_packed(|args| {
            Ok(args.first().map(|first| first.to_any()).unwrap_or_default())
        }),
    );
}

/// Adds functions on texts.
fn texts(own: &mut BTreeMap<&'static str, Function>) {
    own.insert(
        "rpc.test.strcat",
        Function::from_typed(|text: Str, number: i64| format!("{}:{number}", text.to_text())),
    );
    own.insert(
        "rpc.test.runtime_str_concat",
        Function::from_typed(|left: Str, right: Str| {
            format!("{}{}", left.to_text(), right.to_text())
        }),
    );
}

/// Adds functions on tensors: one with a tensor as argument, and one that returns functions, which return a tensor and read it.
fn tensors(own: &mut BTreeMap<&'static str, Function>) {
    let ones = Function::from_packed(|args| {
        let (shape, content) = on_host(args, "float64")?;
        let is_ones = shape == [3, 4] && content == [1.0_f64; 12].map(f64::to_ne_bytes).concat();
        if is_ones {
            Ok(Any::none())
        } else {
            Err(Error::new(
                ErrorKind::Value,
                "the tensor is not 3 by 4 ones",
            ))
        }
    });
    // The name up to 0.21, and the name from 0.22 on.
    own.insert("rpc.test.remote_array_func", ones.clone());
    own.insert("rpc.test.remote_tensor_func", ones);
    own.insert(
        "rpc.test.remote_return_nd",
        Function::from_typed(|name: Str| -> Result<Function> {
            let tensor = Tensor::from_slice(&[0.0_f32; 10], &[10])?;
            Ok(match name.as_bytes() {
                b"get_arr" => Function::from_typed(move || tensor.clone()),
                // A test of TVM frees the tensor on its side, and then checks that the server has freed its reference (RPC-85).
                b"ref_count" => Function::from_typed(move || {
                    i64::from(tensor.as_object().header().strong_count())
                }),
                b"get_elem" => {
                    Function::from_typed(move |at: i64| element(&tensor.to_bytes()?, at))
                }
                b"get_arr_elem" => Function::from_packed(|args| {
                    let (_, content) = on_host(args, "float32")?;
                    let at = args.get(1).and_then(|at| i64::try_from(*at).ok());
                    Ok(element(&content, at.unwrap_or(-1))?.into())
                }),
                _ => return Err(Error::new(ErrorKind::Runtime, "unknown name")),
            })
        }),
    );
}

/// Returns the element at `at` of float32 data.
fn element(content: &[u8], at: i64) -> Result<f64> {
    let mut elements = content.as_chunks::<4>().0.iter();
    let element = usize::try_from(at).ok().and_then(|at| elements.nth(at));
    let element = element.ok_or_else(|| Error::new(ErrorKind::Index, format!("no element {at}")));
    Ok(f64::from(f32::from_ne_bytes(*element?)))
}

/// Returns the shape and the bytes of the first argument, which must be a host tensor of element type `dtype`.
fn on_host(args: &[AnyView<'_>], dtype: &str) -> Result<(Vec<i64>, Vec<u8>)> {
    let wrong = || {
        Error::new(
            ErrorKind::Type,
            format!("takes a tensor of {dtype} on the CPU"),
        )
    };
    let argument = args.first().copied().ok_or_else(wrong)?;
    let pointer = <*mut DLTensor>::try_from_view(argument).ok_or_else(wrong)?;
    // SAFETY: an argument of this type points to a description that lives as long as the argument (FUN-02).
    let dl = unsafe { pointer.as_ref() }.ok_or_else(wrong)?;
    // SAFETY: the description of an argument has readable extents.
    let shape = unsafe { dl.shape() };
    // SAFETY: as for the extents, and so are its strides.
    let is_whole = unsafe { dl.is_contiguous() };
    let is_there = is_whole && dl.device == Device::CPU && !dl.data.is_null();
    let is_right = is_there && Some(dl.dtype) == dtype_from_text(dtype).ok();
    let count = shape.iter().try_fold(1_usize, |count, extent| {
        count.checked_mul(usize::try_from(*extent).ok()?)
    });
    let size = usize::from(dl.dtype.bits) / 8;
    let bytes = count.and_then(|count| count.checked_mul(size));
    let bytes = bytes.filter(|_| is_right).ok_or_else(wrong)?;
    let begin = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
    // SAFETY: a contiguous tensor has its elements in one piece from there on, and the session holds its memory for the call (RPC-86).
    let content = unsafe { std::slice::from_raw_parts(begin, bytes) };
    Ok((shape.to_vec(), content.to_vec()))
}

/// Adds functions on an object that stays on the server, under the names of both eras.
fn shapes(own: &mut BTreeMap<&'static str, Function>) {
    let make = Function::from_packed(|args| {
        // RPC-88: a shape stays on the server, and the client gets a handle.
        let extents: Result<Vec<i64>> = args.iter().map(|arg| Ok(i64::try_from(*arg)?)).collect();
        Ok(Shape::new(&extents?).into())
    });
    let size = Function::from_typed(|shape: Shape| shape.as_slice().len() as i64);
    let element = Function::from_typed(|shape: Shape, at: i64| -> Result<i64> {
        let extent = usize::try_from(at)
            .ok()
            .and_then(|at| shape.as_slice().get(at).copied());
        extent.ok_or_else(|| Error::new(ErrorKind::Index, format!("no extent {at}")))
    });
    for name in ["ffi.Shape", "runtime.ShapeTuple"] {
        own.insert(name, make.clone());
    }
    for name in ["rpc.testing.GetShapeSize", "runtime.GetShapeTupleSize"] {
        own.insert(name, size.clone());
    }
    for name in ["rpc.testing.GetShapeElem", "runtime.GetShapeTupleElem"] {
        own.insert(name, element.clone());
    }
}

/// Adds functions that fail.
fn errors(own: &mut BTreeMap<&'static str, Function>) {
    let failed = |kind: &Str, message: &Str| -> Result<Any> {
        let kind = kind.to_text();
        Err(Error::new(
            // RPC-26: the client chooses the kind, so that any text is allowed: the test checks that it comes back in the message.
            ErrorKind::Other(&kind),
            message.to_text().as_bytes(),
        ))
    };
    own.insert(
        "rpc.test.except",
        Function::from_typed(|text: Str| -> Result<Any> {
            Err(Error::new(ErrorKind::Value, text.to_text().as_bytes()))
        }),
    );
    own.insert(
        "testing.test_raise_error",
        Function::from_typed(move |kind: Str, message: Str| failed(&kind, &message)),
    );
    own.insert(
        "testing.test_raise_error_callback",
        Function::from_typed(move |kind: Str| {
            Function::from_typed(move || failed(&kind, &Str::new("raised")))
        }),
    );
}
