//! RPC: what a client and a server of TVM write to each other, in every release from 0.2 on.
//!
//! A connection begins with a hello and its answer; from then on both sides write packets. A client asks, the server answers, and
//! nothing says which answer is to which request but their order.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `format/hello` | [`Hello`], [`HelloAnswer`]: how a connection begins | RPC-01 .. RPC-05 |
//! | `format/packet` | [`Packet`]: a length, a code, a body | RPC-10 .. RPC-16, RPC-21 .. RPC-27 |
//! | `format/code` | [`RpcCode`]: the codes of both tables | RPC-20 |
//! | `format/protocol` | [`Protocol`]: whose stream it is, and by which release's rules it is read | RPC-23, RPC-27 |
//! | `format/system_call` | what the arguments of a system call are | RPC-28 |
//! | `format/tensor_block` | [`TensorBlock`]: a tensor without its data | RPC-30, RPC-31 |
//! | `format/packed`, `format/packed_code` | [`PackedValue`]: arguments and results, in the encodings of both eras | RPC-40 .. RPC-49 |
//! | `format/connection` | [`Connection`]: both sides of a whole session, and which releases speak like that | RPC-23 |
//! | `format/tracker`, `format/tracker_request`, `format/tracker_reply` | [`TrackerHello`], [`TrackerRequest`], [`TrackerReply`] | RPC-50 .. RPC-58 |
//! | `format/proxy` | what a proxy reads in a hello | RPC-70 |
//! | `proxy/` | a proxy that runs; feature `runtime` | RPC-67, RPC-70 .. RPC-74, RPC-76 |
//! | `tracker/` | a tracker that runs; feature `runtime` | RPC-60 .. RPC-66 |
//! | `format/json`, `format/relay_json`, `format/connection_json` | the JSON forms | |
//! | `client/` | a session with a server, and what it hands out; feature `runtime` | RPC-100 .. RPC-103 |
//! | `transport/` | `Transport`: hellos and packets over a blocking stream; feature `runtime` | RPC-10, RPC-13, RPC-16 |
//! | `handshake` | connections without a hello: how many, and for how long; feature `runtime` | RPC-66, RPC-83 |
//! | `threads` | threads where memory may end; feature `runtime` | |
//! | `server/` | `server::serve`: one session; feature `runtime` | RPC-80 .. RPC-94 |
//!
//! The encoding of arguments changed in 0.21, and the version that both sides compare did not: bytes do not say which release
//! wrote them. A caller states it, in a [`Protocol`].
//!
//! Reading is of streams: what has come in so far may end anywhere, and then the answer is [`Progress::Short`], which is no error.
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
/// The formats live together for their lints alone, as those of the crate's root do.
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
mod rules;
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
pub use rules::*;
