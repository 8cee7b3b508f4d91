//! Entries that share bytes, and the calls that use them. They all change when an input gets separate memory.

use super::PoolTensor;
use super::op_exec::OpExec;
use crate::graph::Graph;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The aliases of a graph. They are built once, so that setting an input by reference does not walk over all nodes.
pub(super) struct Aliases {
    /// The group of each entry that a `__nop` reads or writes, as a set of entries.
    groups: HashMap<usize, Arc<HashSet<usize>>>,
    /// The steps that take an entry as an argument.
    steps: HashMap<usize, Vec<usize>>,
}

impl Aliases {
    /// Builds the aliases in two passes over the nodes: one for the arguments, one for `__nop`.
    pub(super) fn new(graph: &Graph, entries: &[PoolTensor], steps: &[OpExec]) -> Aliases {
        let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            if let OpExec::Call { arguments, .. } = step {
                for entry in arguments.entries() {
                    users.entry(*entry).or_default().push(index);
                }
            }
        }
        Aliases {
            groups: groups(graph, entries),
            steps: users,
        }
    }

    /// Returns `entry` and every other entry that has the same bytes with another shape: entries in the same pool that are connected by
    /// `__nop`.
    ///
    /// Other entries of the pool contain other values at other times, and may be larger, so they do not move.
    pub(super) fn entries_sharing(&self, entry: usize) -> Arc<HashSet<usize>> {
        let group = self.groups.get(&entry);
        group.map_or_else(|| Arc::new(HashSet::from([entry])), Arc::clone)
    }

    /// Returns the steps that take one of `entries`. A step may be returned several times.
    pub(super) fn users(&self, entries: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let users = entries.iter().filter_map(|entry| self.steps.get(entry));
        users.flatten().copied()
    }
}

/// Groups the entries of every `__nop` that have the same pool and size.
fn groups(graph: &Graph, entries: &[PoolTensor]) -> HashMap<usize, Arc<HashSet<usize>>> {
    let mut joined: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node
            .call
            .as_ref()
            // GRF-31: only `__nop` leaves the contents of its inputs in its outputs.
            .is_none_or(|call| call.func_name != "__nop")
        {
            continue;
        }
        let inputs = node
            .inputs
            .iter()
            .filter_map(|input| graph.entry_id(*input));
        let outputs = graph.node_row_ptr[index]..graph.node_row_ptr[index + 1];
        // The first entry of this node for each pool and size.
        let mut first: HashMap<(usize, usize), usize> = HashMap::new();
        for id in inputs.chain(outputs) {
            let Some(entry) = graph.entries.get(id) else {
                continue;
            };
            let other = *first
                .entry((entry.storage_id, entries[id].nbytes()))
                .or_insert(id);
            // GRF-48: in both directions, because either entry may be the one that moves.
            joined.entry(other).or_default().push(id);
            joined.entry(id).or_default().push(other);
        }
    }
    let mut groups = HashMap::new();
    let all: Vec<usize> = joined.keys().copied().collect();
    for id in all {
        // Collects the entries that are connected to `id`, step by step. An entry of an earlier group is already removed. A list
        // replaces recursion, because a chain of `__nop` may be as long as the graph.
        let (mut group, mut next) = (HashSet::new(), vec![id]);
        while let Some(id) = next.pop() {
            if let Some(others) = joined.remove(&id) {
                group.insert(id);
                next.extend(others);
            }
        }
        let group = Arc::new(group);
        groups.extend(group.iter().map(|id| (*id, Arc::clone(&group))));
    }
    groups
}
