//! The arguments of system calls: their number and their types (RPC-28).

use super::super::RPC_28;
use super::code::RpcCode;
use super::packed::PackedValue;
use crate::release::Release;
use crate::rule::{Kind, Violation};

/// The type of an argument (RPC-28).
#[derive(Clone, Copy, Debug)]
enum ArgumentType {
    /// A string, as a C string or by value.
    Str,
    /// A string, or none for the default memory of the device.
    Scope,
    /// An integer or a bool: up to 0.17 they have the same code.
    Int,
    /// A handle, or none for the default stream.
    Handle,
    /// A device.
    Device,
    /// An element type.
    Dtype,
    /// A tensor without its data.
    Tensor,
}

use ArgumentType as W;

/// Returns the argument types of `code` in `release`. Returns `None` for other codes, and for all codes up to 0.6, whose functions accepted
/// any arguments.
fn argument_types(code: RpcCode, release: Release) -> Option<&'static [ArgumentType]> {
    let minor = release.minor();
    Some(match code {
        // RPC-28 begins with 0.7.
        _ if minor < 7 => return None,
        RpcCode::GetGlobalFunc => &[W::Str],
        // RPC-28: from 0.21 on an object knows its own type, so that FreeHandle has no type code.
        RpcCode::FreeHandle if minor >= 21 => &[W::Handle],
        RpcCode::FreeHandle => &[W::Handle, W::Int],
        RpcCode::DevSetDevice | RpcCode::DevCreateStream | RpcCode::DevGetCurrentStream => {
            &[W::Device]
        }
        // The integer is the number of the attribute.
        RpcCode::DevGetAttr => &[W::Device, W::Int],
        RpcCode::DevAllocData => &[W::Device, W::Int, W::Int, W::Dtype],
        RpcCode::DevFreeData
        | RpcCode::DevStreamSync
        | RpcCode::DevFreeStream
        | RpcCode::DevSetStream => &[W::Device, W::Handle],
        RpcCode::CopyAmongRemote if minor >= 8 => &[W::Tensor, W::Tensor, W::Handle],
        // RPC-28: in 0.7 both sides are handles and offsets, as in RPC-25.
        RpcCode::CopyAmongRemote => &[
            W::Handle,
            W::Int,
            W::Handle,
            W::Int,
            W::Int,
            W::Device,
            W::Device,
            W::Dtype,
            W::Handle,
        ],
        RpcCode::DevAllocDataWithScope => &[W::Tensor, W::Scope],
        _ => return None,
    })
}

impl ArgumentType {
    /// Returns whether an argument of this type may be `value`.
    fn accepts(self, value: &PackedValue<'_>) -> bool {
        use PackedValue as V;
        match self {
            W::Str => matches!(value, V::Str(_) | V::StrObject(..)),
            W::Scope => matches!(value, V::Str(_) | V::StrObject(..) | V::None),
            // RPC-28: a bool is an integer here.
            W::Int => matches!(value, V::Int(_) | V::Uint(_) | V::Bool(_)),
            // RPC-28: clients write a null handle as none, and servers read it as null.
            W::Handle => matches!(value, V::Handle(_) | V::None),
            W::Device => matches!(value, V::Device(_)),
            W::Dtype => matches!(value, V::Dtype(..)),
            W::Tensor => matches!(value, V::Tensor(_)),
        }
    }
}

/// Checks the arguments of a call against RPC-28. `place` is the offset of the first argument.
pub(super) fn check(
    code: RpcCode,
    args: &[PackedValue<'_>],
    release: Release,
    place: u64,
) -> Result<(), Violation> {
    let Some(wanted) = argument_types(code, release) else {
        return Ok(());
    };
    // RPC-28: with too few arguments a server of 0.27 reads past their end, and crashes.
    let fits = wanted.len() == args.len()
        && wanted
            .iter()
            .zip(args)
            .all(|(wanted, value)| wanted.accepts(value));
    RPC_28.require_as(Kind::Type, fits, place, || {
        format!("{} takes {wanted:?}, and not {args:?}", code.name())
    })
}
