//! Bytes of a connection to values and back: no I/O, no `unsafe`, no panic.

mod code;
mod connection;
mod hello;
pub mod json;
mod packed;
mod packet;
mod protocol;
mod system_call;
mod tensor_block;

pub use code::RpcCode;
pub use connection::{Connection, ConnectionMessage, ConnectionSide};
pub use hello::{Hello, HelloAnswer};
pub use packed::PackedValue;
pub use packet::{CopyTarget, Packet};
pub use protocol::{Progress, Protocol, Speaker};
pub use tensor_block::TensorBlock;
