//! The operation `device.pool`: a workspace pool, driven by a script and a log.

use super::forms::{rejected_or, value};
use crate::conformance::op::{Answer, OpError};
use crate::device::pool::{SpaceSource, WorkspacePool};
use crate::device::{Device, Dtype, Result as DeviceResult, Space};
use crate::lock::lock;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;

/// A source that counts blocks instead of allocating them: block n has the handle n.
#[derive(Default)]
struct BlockCounter {
    calls: Mutex<Vec<Value>>,
    next: Mutex<usize>,
}

// DEV-26: handles count from 1, because null is not a block. A script shows the reused block by its number.
impl SpaceSource for BlockCounter {
    fn alloc(&self, _: Device, nbytes: usize, alignment: usize, _: Dtype) -> DeviceResult<Space> {
        let mut next = lock(&self.next);
        *next += 1;
        lock(&self.calls).push(json!(["alloc", *next, nbytes, alignment]));
        Ok(Space(std::ptr::without_provenance_mut(*next)))
    }

    unsafe fn free(&self, _: Device, space: Space) -> DeviceResult<()> {
        lock(&self.calls).push(json!(["free", space.address()]));
        Ok(())
    }
}

/// Runs the script and returns `{"calls":[...],"blocks":[...]}`.
///
/// DEV-24 to DEV-33: `calls` are those that reach the device of the pool, and `blocks` the block of each `alloc`.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let wrong = || {
        OpError::Unsupported(
            "`value` is a list of [\"alloc\",name,bytes] and [\"free\",name]".into(),
        )
    };
    let script = args
        .get("value")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?;
    let source = BlockCounter::default();
    let mut pool = WorkspacePool::default();
    let mut blocks = Vec::new();
    let mut named: HashMap<&str, Space> = HashMap::new();
    for step in script {
        let name = step.get(1).and_then(Value::as_str).ok_or_else(wrong)?;
        match step.get(0).and_then(Value::as_str) {
            Some("alloc") => {
                let nbytes = step.get(2).and_then(Value::as_u64).ok_or_else(wrong)?;
                // SAFETY: one source and one device for this pool.
                match unsafe { pool.alloc(&source, Device::ext_dev(0), nbytes as usize) } {
                    Ok(space) => {
                        named.insert(name, space);
                        blocks.push(space.address());
                    }
                    Err(error) => return rejected_or::<Value>(Err(error)),
                }
            }
            Some("free") => {
                // A name that was never defined stands for a foreign pointer.
                let space = named.get(name).copied().unwrap_or(Space::NULL);
                if let Err(error) = pool.free(space) {
                    return rejected_or::<Value>(Err(error));
                }
            }
            _ => return Err(wrong()),
        }
    }
    let calls = lock(&source.calls).clone();
    Ok(value(json!({"calls": calls, "blocks": blocks})))
}
