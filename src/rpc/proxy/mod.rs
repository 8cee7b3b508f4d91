//! A proxy: it pairs servers and clients by key and passes on what they write; or it is in front of one server. It records what
//! passes, as `tvmspec rpc-decode` reads it (RPC-67, RPC-70 .. RPC-76).

mod options;
mod peers;
mod relay;
mod report;
mod server;
#[cfg(feature = "web")]
mod web;

pub use options::{ProxyEvent, ProxyOptions};
pub use server::{ProxyHandle, ProxyServer};
