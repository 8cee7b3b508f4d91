//! Clients, servers, trackers and proxies of the RPC protocol.

mod rpc_client;
mod rpc_farm;
mod rpc_functions;
mod rpc_hops;
mod rpc_process_fuzz;
mod rpc_proxy;
mod rpc_server;
mod rpc_server_process;
mod rpc_silent_peers;
mod rpc_stress;
mod rpc_tracker;
#[path = "../support/mod.rs"]
mod support;
mod transport;
