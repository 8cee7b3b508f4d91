//! Device types of the suite's own devices. All of them may be registered in one process, each by the first case that uses it.
//! Their numbers are distinct, and no release uses them.

/// A simulated device that counts live memory.
pub(in crate::conformance) const COUNTED: i32 = 98;
/// A simulated device that logs its calls.
pub(super) const SIMULATED: i32 = 97;
/// A simulated device of servers.
pub(in crate::conformance) const OF_SERVERS: i32 = 95;
