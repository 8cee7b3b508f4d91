//! Conversion between the bytes of a connection and values: no I/O, no `unsafe`, no panic.

mod code;
mod connection;
mod connection_json;
mod hello;
pub mod json;
mod packed;
mod packed_code;
mod packet;
mod protocol;
mod proxy;
pub mod relay_json;
mod system_call;
mod tensor_block;
mod tracker;
mod tracker_reply;
mod tracker_request;

pub use code::RpcCode;
pub use connection::{Connection, ConnectionMessage, ConnectionMessages, ConnectionSide};
pub use hello::{Hello, HelloAnswer};
pub use packed::PackedValue;
pub use packet::{CopyTarget, Packet};
pub use protocol::{Progress, Protocol, Speaker};
pub use tensor_block::TensorBlock;
pub use tracker::TrackerHello;
pub use tracker_reply::{TrackerCount, TrackerReply, TrackerSummary};
pub use tracker_request::{TrackerOffer, TrackerPeer, TrackerRequest};
