//! Checks on a legacy graph after its nodes are read (OBJ-24, OBJ-27).

use super::{Container, LegacyNode};
use crate::object::{OBJ_24, OBJ_27};
use crate::rule::{Kind, Violation};

/// Checks OBJ-24: a map has as many keys as values, or it has no keys and stores pairs.
pub(super) fn check_container(node: &LegacyNode, at: u64) -> Result<(), Violation> {
    let (keys, values) = (node.keys.len(), node.data.len());
    let kept = match node.container() {
        None | Some(Container::Array) => true,
        // OBJ-24: this arm also accepts the empty map, which has neither member.
        Some(Container::Map) if keys == 0 => values.is_multiple_of(2),
        Some(Container::Map | Container::StrMap) => keys == values,
    };
    OBJ_24.require(kept, at, || match keys {
        0 if node.container() == Some(Container::Map) => {
            format!("a map without `keys` holds keys and values in turn, but {values} indices")
        }
        _ => format!("a map has {keys} keys and {values} values"),
    })
}

/// Checks OBJ-27 along `data`: removes nodes without a referrer until no such node remains.
pub(super) fn check_cycles(nodes: &[LegacyNode], starts: &[u64]) -> Result<(), Violation> {
    let mut referrers = vec![0usize; nodes.len()];
    for node in nodes {
        for child in &node.data {
            // The index is valid: OBJ-23 has been checked.
            if let Some(count) = referrers.get_mut(*child) {
                *count = count.saturating_add(1);
            }
        }
    }
    // An explicit stack instead of recursion: a chain can be as long as the file.
    let free = referrers
        .iter()
        .enumerate()
        .filter(|(_, count)| **count == 0);
    let mut ready: Vec<usize> = free.map(|(index, _)| index).collect();
    while let Some(index) = ready.pop() {
        let node = nodes.get(index);
        for child in node.map(|node| node.data.as_slice()).unwrap_or_default() {
            let Some(count) = referrers.get_mut(*child) else {
                continue;
            };
            // Once for each reference, because a node may refer to another one several times.
            *count = count.saturating_sub(1);
            if *count == 0 {
                ready.push(*child);
            }
        }
    }
    // A node that still has a referrer is on a cycle or reachable from one. The message names the first such node.
    let left = referrers.iter().position(|count| *count != 0);
    let at = left.and_then(|index| starts.get(index).copied());
    OBJ_27.require_as(Kind::Cycle, left.is_none(), at.unwrap_or(0), || {
        format!("node {} contains itself", left.unwrap_or_default())
    })
}
