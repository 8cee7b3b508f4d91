//! Entries that are the same bytes, and the calls that take them: what changes when one input gets memory of its own.

use super::Graph;
use super::executor::Step;
use super::memory::Tensor;
use std::collections::HashMap;
use std::sync::Arc;

/// Built once for a graph, so that an input is set by reference without a walk over all nodes.
pub(super) struct Aliases {
    /// The entries of its group, ascending, for each entry that is in a group of several.
    groups: HashMap<usize, Arc<[usize]>>,
    /// The steps that take an entry as an argument.
    steps: HashMap<usize, Vec<usize>>,
}

impl Aliases {
    pub(super) fn new(graph: &Graph, entries: &[Tensor], steps: &[Step]) -> Aliases {
        let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            if let Step::Call { arguments, .. } = step {
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

    /// `entry`, and every other entry that is the same bytes under another shape: in the same pool, and joined to it by `__nop`. Ascending.
    ///
    /// Other entries of the pool hold other values at other times, and may be larger: they stay where they are.
    pub(super) fn of(&self, entry: usize) -> Arc<[usize]> {
        let group = self.groups.get(&entry);
        group.map_or_else(|| [entry].into(), Arc::clone)
    }

    /// The steps that take one of `entries`, which may name a step several times.
    pub(super) fn users(&self, entries: &[usize]) -> impl Iterator<Item = usize> {
        let users = entries.iter().filter_map(|entry| self.steps.get(entry));
        users.flatten().copied()
    }
}

/// Joins the entries of every `__nop` that are in one pool and of one size.
fn groups(graph: &Graph, entries: &[Tensor]) -> HashMap<usize, Arc<[usize]>> {
    let mut leader: HashMap<usize, usize> = HashMap::new();
    let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node
            .call
            .as_ref()
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
            let known = |id: usize| leader.get(&id).copied().unwrap_or(id);
            let (mut keep, mut join) = (known(other), known(id));
            if keep == join {
                continue;
            }
            // The smaller group moves, so that a chain of many nodes costs little.
            let size = |id: usize| groups.get(&id).map_or(1, Vec::len);
            if size(keep) < size(join) {
                (keep, join) = (join, keep);
            }
            let moved = groups.remove(&join).unwrap_or_else(|| vec![join]);
            leader.insert(keep, keep);
            leader.extend(moved.iter().map(|id| (*id, keep)));
            groups
                .entry(keep)
                .or_insert_with(|| vec![keep])
                .extend(moved);
        }
    }
    let mut shared = HashMap::new();
    for mut group in groups.into_values() {
        group.sort_unstable();
        let group: Arc<[usize]> = group.into();
        shared.extend(group.iter().map(|id| (*id, Arc::clone(&group))));
    }
    shared
}
