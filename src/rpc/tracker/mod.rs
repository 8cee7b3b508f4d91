//! A tracker: servers offer themselves to it, and clients ask it for one (RPC-50 .. RPC-66).
//!
//! | file | what | rules |
//! |---|---|---|
//! | `schedule` | [`TrackerSchedule`]: who gets which server, without sockets | RPC-60 .. RPC-65 |
//! | `client` | [`TrackerClient`]: what servers, clients and proxies ask | RPC-50, RPC-61 |
//! | `server` | [`TrackerServer`]: the same for peers that connect | RPC-66 |

mod client;
mod schedule;
mod server;

pub use client::{TrackedServer, TrackerClient};
pub use schedule::{TrackerLimits, TrackerOutcome, TrackerSchedule};
pub use server::{TrackerEvent, TrackerHandle, TrackerServer};
