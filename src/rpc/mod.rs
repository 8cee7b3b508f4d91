//! RPC: the protocol between a client and a server of TVM, in every release from 0.2 on.
//!
//! A connection begins with a hello and its answer; then both sides write packets. The client writes requests and the server answers them
//! in order. An answer carries no number of its request.
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `format/hello` | [`Hello`], [`HelloAnswer`]: how a connection begins | RPC-01 .. RPC-05 |
//! | `format/packet` | [`Packet`]: a length, a code, a body | RPC-10 .. RPC-16, RPC-21 .. RPC-27 |
//! | `format/code` | [`RpcCode`]: the codes of both tables | RPC-20 |
//! | `format/protocol` | [`Protocol`]: which side wrote a stream, and the release whose rules it follows | RPC-23, RPC-27 |
//! | `format/system_call` | the arguments of system calls | RPC-28 |
//! | `format/tensor_block` | [`TensorBlock`]: a tensor without its data | RPC-30, RPC-31 |
//! | `format/packed`, `format/packed_code` | [`PackedValue`]: arguments and results, in the encodings of both eras | RPC-40 .. RPC-49 |
//! | `format/connection` | [`Connection`]: both sides of a whole session, and the releases that use such a protocol | RPC-23 |
//! | `format/tracker`, `format/tracker_request`, `format/tracker_reply` | [`TrackerHello`], [`TrackerRequest`], [`TrackerReply`] | RPC-50 .. RPC-58 |
//! | `format/proxy` | the parts of a hello that a proxy reads | RPC-70 |
//! | `proxy/` | a running proxy; feature `runtime` | RPC-67, RPC-70 .. RPC-74, RPC-76 |
//! | `tracker/` | a running tracker; feature `runtime` | RPC-60 .. RPC-66 |
//! | `format/json`, `format/relay_json`, `format/connection_json` | the JSON forms | |
//! | `client/` | a session with a server, and the values that it returns; feature `runtime` | RPC-100 .. RPC-103 |
//! | `transport/` | `Transport`: hellos and packets over a blocking stream; feature `runtime` | RPC-10, RPC-13, RPC-16 |
//! | `handshake` | connections without a hello: their number and their time limit; feature `runtime` | RPC-66, RPC-83 |
//! | `threads` | threads that fail to start, instead of a process that runs out of memory; feature `runtime` | |
//! | `server/` | `server::serve`: one session; feature `runtime` | RPC-80 .. RPC-94 |
//!
//! The encoding of arguments changed in 0.21, but the version that both sides compare did not. The bytes therefore do not show which
//! release wrote them. The caller states the release in a [`Protocol`].
//!
//! The reader works on streams, and the bytes that have arrived may end anywhere. An incomplete message is [`Progress::Short`], not an
//! error.
//!
//! ```
//! use tvmspec::release::Release;
//! use tvmspec::rpc::{Protocol, Packet, Progress, Speaker};
//! use tvmspec::rule::Findings;
//! use tvmspec::wire::Cursor;
//!
//! // kShutdown: a length of 4, and code 1.
//! let bytes = [4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
//! let spoken = Protocol::new(Release::of(27), Speaker::Client);
//! let mut findings = Findings::default();
//! let read = Packet::read(&mut Cursor::new(&bytes), &spoken, &mut findings)?;
//! assert_eq!(read, Progress::Whole(Packet::Shutdown));
//! let cut = Packet::read(&mut Cursor::new(&bytes[..11]), &spoken, &mut findings)?;
//! assert_eq!(cut, Progress::Short(1));
//! # Ok::<(), tvmspec::rule::Violation>(())
//! ```

#[cfg(feature = "runtime")]
pub mod client;
/// The formats share one module only for their lints, like those of the crate's root.
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod format;
#[cfg(feature = "runtime")]
pub mod handshake;
#[cfg(feature = "runtime")]
pub mod proxy;
#[cfg(feature = "runtime")]
pub mod server;
#[cfg(feature = "runtime")]
pub mod threads;
#[cfg(feature = "runtime")]
pub mod tracker;
#[cfg(feature = "runtime")]
pub mod transport;

pub use format::{
    Connection, ConnectionMessage, ConnectionMessages, ConnectionSide, CopyTarget, Hello,
    HelloAnswer, PackedValue, Packet, Progress, Protocol, RpcCode, Speaker, TensorBlock,
    TrackerCount, TrackerHello, TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest,
    TrackerSummary, json, relay_json,
};
crate::rule::chapter_rules!("rpc");
pub(crate) use rules::*;
