//! How much memory a session has: what its options leave open, and what the system holds its process to.

use super::CliError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// The most that a session allocates where no option states it.
const MOST: u64 = 16 << 30;

/// What a session may allocate where no option states it: not more than half of what there is, so that its process, which may have twice as
/// much, leaves the machine standing.
pub(super) fn default_memory() -> u64 {
    let all = [available(), control_group()];
    let least = all.into_iter().flatten().min();
    least.map_or(MOST, |least| MOST.min(least / 2))
}

/// What the system could hand out without swapping; `None` where it does not state that.
fn available() -> Option<u64> {
    let stated = fs::read_to_string("/proc/meminfo").ok()?;
    let line = stated
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    number.checked_mul(1 << 10)
}

/// The limit of the control group of this process, or of one around it, as containers have it.
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, |file| fs::read_to_string(file).ok())
}

/// The smallest limit of `groups`, in the form of `/proc/self/cgroup`. `read` has the content of a file.
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
        // Inside of a container the path is one that is not there, and the root is the container's own group.
        let around = inner.ancestors().take_while(|path| path.starts_with(root));
        // `max` is no number, and no limit.
        limits.extend(around.filter_map(|path| read(&path.join(name))?.trim().parse::<u64>().ok()));
    }
    limits.into_iter().min()
}

/// Where memory runs out the system ends this process in front of others: the server and the sessions of others stand.
pub(super) fn go_first() {
    // Where the system has no such thing it chooses by itself.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// RPC-86: bounds what the process writes to, since the code of a client allocates as it likes. Drivers of devices reserve addresses beyond
/// any memory, which is not counted.
pub(super) fn bound_memory(bytes: u64) -> Result<(), CliError> {
    let own = getrlimit(Resource::Data).maximum;
    // A lower limit of the process stays: raising it takes a privilege.
    let most = own.map_or(bytes, |own| own.min(bytes));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Data, limit)
        .map_err(|error| CliError::Message(format!("--process-memory {bytes}: {error}")))
}
