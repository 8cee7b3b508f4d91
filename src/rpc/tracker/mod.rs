//! A tracker: servers offer themselves to it, and clients request a server from it (RPC-50 .. RPC-66).
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `schedule` | [`TrackerSchedule`]: the assignment of servers to clients, without sockets | RPC-60 .. RPC-65 |
//! | `client` | [`TrackerClient`]: the requests of servers, clients and proxies | RPC-50, RPC-61 |
//! | `server` | [`TrackerServer`]: the schedule for peers that connect | RPC-66 |

mod client;
mod schedule;
mod server;

pub use client::{TrackedServer, TrackerClient};
pub use schedule::{TrackerLimits, TrackerOutcome, TrackerSchedule};
pub use server::{TrackerEvent, TrackerHandle, TrackerServer};
