//! The codes of packets: one table up to 0.6, another from 0.7 on (RPC-20).

use super::protocol::Speaker;
use crate::release::Release;

/// The kind of a packet. Its number differs between the two tables.
///
/// The codes that 0.7 dropped are included: since then a function call or `FreeHandle` does their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the specification")]
#[non_exhaustive]
pub enum RpcCode {
    Shutdown,
    InitServer,
    CallFunc,
    Return,
    Exception,
    CopyFromRemote,
    CopyToRemote,
    CopyAck,
    GetGlobalFunc,
    FreeHandle,
    DevSetDevice,
    DevGetAttr,
    DevAllocData,
    DevFreeData,
    DevStreamSync,
    CopyAmongRemote,
    DevAllocDataWithScope,
    DevCreateStream,
    DevFreeStream,
    DevSetStream,
    DevGetCurrentStream,
    GetTimeEvaluator,
    FreeFunc,
    ModuleLoad,
    ModuleImport,
    ModuleFree,
    ModuleGetFunc,
    ModuleGetSource,
    NDArrayFree,
}

use RpcCode as C;

/// A code, its name, its number up to 0.6, and its number from 0.7 on with the first minor version that has it.
type CodeRow = (RpcCode, &'static str, Option<i32>, Option<(i32, u8)>);

/// The codes (RPC-20), in the order of the newer table, followed by those that only the older table has. Number 8 of the older table
/// and number 0 of the newer one are left out. They mark the start of a range or have no meaning, and no peer writes them.
const TABLE: &[CodeRow] = &[
    (C::Shutdown, "Shutdown", Some(4), Some((1, 7))),
    (C::InitServer, "InitServer", None, Some((2, 7))),
    (C::CallFunc, "CallFunc", Some(1), Some((3, 7))),
    (C::Return, "Return", Some(2), Some((4, 7))),
    (C::Exception, "Exception", Some(3), Some((5, 7))),
    (C::CopyFromRemote, "CopyFromRemote", Some(5), Some((6, 7))),
    (C::CopyToRemote, "CopyToRemote", Some(6), Some((7, 7))),
    (C::CopyAck, "CopyAck", Some(7), Some((8, 7))),
    (C::GetGlobalFunc, "GetGlobalFunc", Some(9), Some((9, 7))),
    (C::FreeHandle, "FreeHandle", None, Some((10, 7))),
    (C::DevSetDevice, "DevSetDevice", Some(12), Some((11, 7))),
    (C::DevGetAttr, "DevGetAttr", Some(13), Some((12, 7))),
    (C::DevAllocData, "DevAllocData", Some(14), Some((13, 7))),
    (C::DevFreeData, "DevFreeData", Some(15), Some((14, 7))),
    (C::DevStreamSync, "DevStreamSync", Some(16), Some((15, 7))),
    (
        C::CopyAmongRemote,
        "CopyAmongRemote",
        Some(17),
        Some((16, 7)),
    ),
    (
        C::DevAllocDataWithScope,
        "DevAllocDataWithScope",
        None,
        Some((17, 8)),
    ),
    (C::DevCreateStream, "DevCreateStream", None, Some((18, 8))),
    (C::DevFreeStream, "DevFreeStream", None, Some((19, 8))),
    (C::DevSetStream, "DevSetStream", None, Some((20, 8))),
    (
        C::DevGetCurrentStream,
        "DevGetCurrentStream",
        None,
        Some((21, 16)),
    ),
    (C::GetTimeEvaluator, "GetTimeEvaluator", Some(10), None),
    (C::FreeFunc, "FreeFunc", Some(11), None),
    (C::ModuleLoad, "ModuleLoad", Some(18), None),
    (C::ModuleImport, "ModuleImport", Some(19), None),
    (C::ModuleFree, "ModuleFree", Some(20), None),
    (C::ModuleGetFunc, "ModuleGetFunc", Some(21), None),
    (C::ModuleGetSource, "ModuleGetSource", Some(22), None),
    (C::NDArrayFree, "NDArrayFree", Some(23), None),
];

impl RpcCode {
    /// Every code of both tables.
    pub fn all() -> impl Iterator<Item = RpcCode> {
        TABLE.iter().map(|(code, ..)| *code)
    }

    /// Returns the code with this number in `release`.
    ///
    /// Returns `None` for a number without a meaning there, which a reader rejects (RPC-20).
    pub fn from_number(number: i32, release: Release) -> Option<RpcCode> {
        // The number needs its release: 4 is Shutdown up to 0.6, and Return from 0.7 on.
        RpcCode::all().find(|code| code.number(release) == Some(number))
    }

    /// Returns the number in `release`, or `None` if that release has no such code.
    ///
    /// A writer then rejects the code as unsupported (RPC-20).
    pub fn number(self, release: Release) -> Option<i32> {
        let (.., old, new) = TABLE.iter().find(|(code, ..)| *code == self)?;
        match (release.minor(), *new) {
            // RPC-20: the code that frees an array came with 0.5.
            (..=4, _) if self == RpcCode::NDArrayFree => None,
            // A code that came with 0.7 has no older number.
            (..=6, _) => *old,
            // RPC-20: five codes came after 0.7; a reader of an earlier release rejects them as unknown.
            (minor, Some((number, since))) if minor >= since => Some(number),
            _ => None,
        }
    }

    /// Returns the name without the `k` of the source: `CallFunc`.
    ///
    /// The JSON forms also use it.
    pub fn name(self) -> &'static str {
        // Every code has a row, so that the empty name is never returned.
        let row = TABLE.iter().find(|(code, ..)| *code == self);
        row.map_or("", |(_, name, ..)| name)
    }

    /// Returns the code with this name.
    ///
    /// Returns `None` if neither table has the name. Both tables share the names, so that a name does not tell the release.
    pub fn from_name(name: &str) -> Option<RpcCode> {
        RpcCode::all().find(|code| code.name() == name)
    }

    /// Returns the side that writes the code (RPC-21), or `None` if either does.
    ///
    /// This holds from 0.7 on. Before, a server could call back and was answered.
    pub const fn speaker(self) -> Option<Speaker> {
        match self {
            // RPC-20: either side ends a session. An upstream endpoint also writes it when it ends with an error.
            RpcCode::Shutdown => None,
            RpcCode::Return | RpcCode::Exception | RpcCode::CopyAck => Some(Speaker::Server),
            _ => Some(Speaker::Client),
        }
    }

    /// Returns whether the body consists only of the arguments of a call that the session itself answers.
    ///
    /// RPC-28 defines these arguments from 0.7 on.
    pub const fn is_system_call(self) -> bool {
        !matches!(
            self,
            RpcCode::Shutdown
                | RpcCode::InitServer
                | RpcCode::CallFunc
                | RpcCode::Return
                | RpcCode::Exception
                | RpcCode::CopyFromRemote
                | RpcCode::CopyToRemote
                | RpcCode::CopyAck
        )
    }
}
