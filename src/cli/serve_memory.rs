//! The memory of a session: the default of its options, and the limit that the system enforces on its process.

use super::CliError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// The maximal default for the memory that a session may allocate, in bytes.
const MOST: u64 = 16 << 30;

/// Returns the memory that a session may allocate if no option states it: at most half of the available memory. Its process may use
/// twice as much, so that the machine keeps running.
pub(super) fn default_memory() -> u64 {
    let all = [available(), control_group()];
    let least = all.into_iter().flatten().min();
    least.map_or(MOST, |least| MOST.min(least / 2))
}

/// Returns the memory that the system could provide without swapping; `None` if it does not state that.
fn available() -> Option<u64> {
    let stated = fs::read_to_string("/proc/meminfo").ok()?;
    let line = stated
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    number.checked_mul(1 << 10)
}

/// Returns the memory limit of the control group of this process, or of a group around it, as containers have it.
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, |file| fs::read_to_string(file).ok())
}

/// Returns the smallest limit of `groups`, in the form of `/proc/self/cgroup`. `read` returns the content of a file.
fn limit_of(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (root, name) = match fields.next() {
            // Version 2 has one tree for all controllers, and names none here.
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(kinds) if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = fields.next().unwrap_or_default().trim_start_matches('/');
        let inner = Path::new(root).join(group);
        // Inside a container the path does not exist, and the root is the container's own group.
        let around = inner.ancestors().take_while(|path| path.starts_with(root));
        // `max` is not a number, and means no limit.
        limits.extend(around.filter_map(|path| read(&path.join(name))?.trim().parse::<u64>().ok()));
    }
    limits.into_iter().min()
}

/// Makes the system end this process before others when memory runs out, so that the server and other sessions survive.
pub(super) fn prefer_for_oom_kill() {
    // If the system does not support this, it chooses a process itself.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Limits the writable memory of the process (RPC-86), because the code of a client allocates freely. Drivers of devices reserve more
/// addresses than there is memory, which does not count.
pub(super) fn bound_memory(bytes: u64) -> Result<(), CliError> {
    let own = getrlimit(Resource::Data).maximum;
    // A lower limit of the process stays, because raising it needs a privilege.
    let most = own.map_or(bytes, |own| own.min(bytes));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Data, limit)
        .map_err(|error| CliError::Message(format!("--process-memory {bytes}: {error}")))
}
