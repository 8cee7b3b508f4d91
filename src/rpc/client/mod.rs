//! The client: functions, modules, tensors and devices of another process, as values of this one.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `session` | [`Session`]: connects, and hands out what the server has | RPC-23 |
//! | `options` | [`SessionOptions`], [`RemoteHop`] | RPC-05 |
//! | `greeting` | how it begins, and what the first answer shows of the era | RPC-04, RPC-22, RPC-100 |
//! | `address` | [`RemoteAddress`]: `rpc://host:port/key#cpu:0`, and servers of a tracker | RPC-61 |
//! | `unanswered` | what is at an address in the place of a server | RPC-16 |
//! | `link` | a request and its answer; handles that are released | RPC-11, RPC-28 |
//! | `table` | sessions by number, and memory of servers by numbers of this process | |
//! | `place` | the place of a session among those of this process | DEV-57 |
//! | `argument` | arguments, in the encoding of the server | RPC-43, RPC-102 |
//! | `outcome` | results, as values that keep what they came from | RPC-101 |
//! | `exception` | what failed there: kind, message, backtrace | RPC-26 |
//! | `module` | [`RemoteModule`]: modules of the server as modules of this process | |
//! | `model` | graphs and executables that run here, with kernels there | |
//! | `device` | devices of the server behind the contract of every device | RPC-25, DEV-03 |
//! | `functions` | sessions by the names of the registry, for C and for frontends | RPC-103 |
//! | `evaluate` | time evaluators, which measure there | DEV-45 |
//!
//! What works on modules, functions and devices works on those of a server: executors, machines, compiled code.
//!
//! ```no_run
//! use tvmspec::rpc::client::{Session, SessionOptions};
//!
//! let session = Session::connect("localhost", 9090, "", &SessionOptions::default())?;
//! session.upload("add.so", &std::fs::read("add.so")?)?;
//! let add = session.load_module("add.so")?.require("add")?;
//! println!("{:?}", add.call(&[1_i64.into(), 2_i64.into()])?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod argument;
mod device;
mod evaluate;
mod exception;
mod functions;
mod greeting;
mod link;
mod model;
mod module;
mod options;
mod outcome;
mod place;
mod session;
mod table;
mod unanswered;

#[cfg(feature = "suite")]
pub(crate) use address::ServerPlace;
pub use address::{RemoteAddress, TrackerChoice};
pub use evaluate::RemoteTiming;
pub use module::RemoteModule;
pub use options::{RemoteHop, SessionOptions};
pub use session::Session;

pub(super) use exception::far_error;
pub(crate) use functions::provide;
pub(super) use greeting::{connected, server_era, shake_hands};
