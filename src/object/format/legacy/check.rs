//! What is checked of a legacy graph once its nodes are read (OBJ-24, OBJ-27).

use super::{Container, LegacyNode};
use crate::object::{OBJ_24, OBJ_27};
use crate::rule::{Kind, Violation};

/// OBJ-24: a map has as many keys as values, or, without keys, pairs.
pub(super) fn check_container(node: &LegacyNode, at: u64) -> Result<(), Violation> {
    let (keys, values) = (node.keys.len(), node.data.len());
    let kept = match node.container() {
        None | Some(Container::Array) => true,
        // OBJ-24: also the empty map, which has neither member.
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

/// OBJ-27, along `data`: takes away nodes that nothing refers to until none is left.
pub(super) fn check_cycles(nodes: &[LegacyNode], starts: &[u64]) -> Result<(), Violation> {
    let mut referrers = vec![0usize; nodes.len()];
    for node in nodes {
        for child in &node.data {
            // OBJ-23 has been checked, so that each is there.
            if let Some(count) = referrers.get_mut(*child) {
                *count = count.saturating_add(1);
            }
        }
    }
    // Without recursion: a chain may be as long as the file.
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
            // Once for each reference, as it was counted: a node may name another several times.
            *count = count.saturating_sub(1);
            if *count == 0 {
                ready.push(*child);
            }
        }
    }
    // What still has a referrer is on a cycle or below one; the first of these nodes is named.
    let left = referrers.iter().position(|count| *count != 0);
    let at = left.and_then(|index| starts.get(index).copied());
    OBJ_27.require_as(Kind::Cycle, left.is_none(), at.unwrap_or(0), || {
        format!("node {} contains itself", left.unwrap_or_default())
    })
}
