//! The client: functions, modules, tensors and devices of another process, as values of this one.
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `session` | [`Session`]: connects, and returns the server's functions, modules and memory | RPC-23 |
//! | `options` | [`SessionOptions`], [`RemoteHop`] | RPC-05 |
//! | `session_start` | the start of a session, and detection of the era from the first answer | RPC-04, RPC-22, RPC-100 |
//! | `address` | [`RemoteAddress`]: `rpc://host:port/key#cpu:0`, and servers of a tracker | RPC-61 |
//! | `hello_error` | detection of other services at the address of a server | RPC-16 |
//! | `link` | a request and its answer; handles that are released | RPC-11, RPC-28 |
//! | `session_table` | sessions by number, and memory of servers by numbers of this process | |
//! | `session_place` | the place of a session among those of this process | DEV-57 |
//! | `argument` | arguments, in the encoding of the server | RPC-43, RPC-102 |
//! | `call_result` | results, as values that keep their remote objects alive | RPC-101 |
//! | `exception` | remote errors: kind, message, backtrace | RPC-26 |
//! | `module` | [`RemoteModule`]: modules of the server as modules of this process | |
//! | `model` | graphs and executables that run here, with kernels on the server | |
//! | `device` | devices of the server with the interface of every device | RPC-25, DEV-03 |
//! | `functions` | the registered functions for sessions, for C and for frontends | RPC-103 |
//! | `evaluate` | time evaluators, which measure on the server | DEV-45 |
//!
//! Executors, virtual machines and compiled code work with remote modules, functions and devices as with local ones.
//!
//! ```no_run
//! use tvmspec::rpc::client::{Session, SessionOptions};
//!
//! let session = Session::connect("localhost", 9090, "", &SessionOptions::default())?;
//! session.upload("add.so", &std::fs::read("add.so")?)?;
//! let add = session.load_module("add.so")?.require("add")?;
//! println!("{:?}", add.call((1_i64, 2_i64))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod argument;
mod call_result;
mod device;
mod evaluate;
mod exception;
mod functions;
mod hello_error;
mod link;
mod model;
mod module;
mod options;
mod session;
mod session_place;
mod session_start;
mod session_table;

#[cfg(feature = "suite")]
pub(crate) use address::ServerPlace;
pub use address::{RemoteAddress, TrackerChoice};
pub use evaluate::RemoteTiming;
pub use module::RemoteModule;
pub use options::{RemoteHop, SessionOptions};
pub use session::Session;

pub(super) use exception::far_error;
pub(crate) use functions::provide;
pub(super) use session_start::{connected, server_era, shake_hands};
