//! TVM's wheels, compilers and other foreign programs.

mod caches;
mod dependants;
mod device_targets;
mod eras;
mod explain_runtime;
mod exported;
mod foreign_modules;
mod installed_c_library;
mod inventory;
mod judged_generators;
mod real_params;
mod real_tracker;
mod real_tvm;
mod rpc_interop;
mod rpc_proxy_wheel;
mod rpc_server_wheel;
#[path = "../support/mod.rs"]
mod support;
mod targets;
