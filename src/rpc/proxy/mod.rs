//! A proxy. It pairs servers and clients by key and forwards their bytes, or it forwards to a single server. It records the traffic in
//! the form that `tvmspec rpc-decode` reads (RPC-67, RPC-70 .. RPC-76).

mod options;
mod peers;
mod relay;
mod report;
mod server;
#[cfg(feature = "web")]
mod web;

pub use options::{ProxyEvent, ProxyOptions};
pub use server::{ProxyHandle, ProxyServer};
