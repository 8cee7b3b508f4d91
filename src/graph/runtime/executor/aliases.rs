//! Entries that are the same bytes, and the calls that take them: what changes when one input gets memory of its own.

use super::PoolTensor;
use super::op_exec::OpExec;
use crate::graph::Graph;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Built once for a graph, so that an input is set by reference without a walk over all nodes.
pub(super) struct Aliases {
    /// The entries of its group, for each entry that a `__nop` reads or makes.
    groups: HashMap<usize, Arc<HashSet<usize>>>,
    /// The steps that take an entry as an argument.
    steps: HashMap<usize, Vec<usize>>,
}

impl Aliases {
    /// Walks over all nodes twice: once for the arguments, once for `__nop`.
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

    /// `entry`, and every other entry that is the same bytes under another shape: in the same pool, and joined to it by `__nop`.
    ///
    /// Other entries of the pool hold other values at other times, and may be larger: they stay where they are.
    pub(super) fn of(&self, entry: usize) -> Arc<HashSet<usize>> {
        let group = self.groups.get(&entry);
        group.map_or_else(|| Arc::new(HashSet::from([entry])), Arc::clone)
    }

    /// The steps that take one of `entries`, which may name a step several times.
    pub(super) fn users(&self, entries: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let users = entries.iter().filter_map(|entry| self.steps.get(entry));
        users.flatten().copied()
    }
}

/// Joins the entries of every `__nop` that are in one pool and of one size.
fn groups(graph: &Graph, entries: &[PoolTensor]) -> HashMap<usize, Arc<HashSet<usize>>> {
    let mut joined: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node
            .call
            .as_ref()
            // GRF-31: `__nop` alone leaves in its outputs what its inputs hold.
            .is_none_or(|call| call.func_name != "__nop")
        {
            continue;
        }
        let inputs = node
            .inputs
            .iter()
            .filter_map(|input| graph.entry_id(*input));
        let outputs = graph.node_row_ptr[index]..graph.node_row_ptr[index + 1];
        // The first of this node's entries in a pool and of a size.
        let mut first: HashMap<(usize, usize), usize> = HashMap::new();
        for id in inputs.chain(outputs) {
            let Some(entry) = graph.entries.get(id) else {
                continue;
            };
            let other = *first
                .entry((entry.storage_id, entries[id].nbytes()))
                .or_insert(id);
            // Both ways, because either of them may be the one that moves (GRF-48).
            joined.entry(other).or_default().push(id);
            joined.entry(id).or_default().push(other);
        }
    }
    let mut groups = HashMap::new();
    let all: Vec<usize> = joined.keys().copied().collect();
    for id in all {
        // What is joined to `id`, step by step; nothing where an earlier one led here.
        // A list and no recursion: a chain of `__nop` may be as long as the graph.
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
