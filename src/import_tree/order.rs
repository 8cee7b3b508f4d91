//! From a graph of modules to the order in which a library stores them.
//!
//! [`order`] with [`Algorithm::V0_8`] is the export of every release from 0.8 on, [`Algorithm::V0_7`] that of 0.7.
//! [`Algorithm::Topological`] is this crate's own: it stores every graph that can be stored at all, in an order that every
//! loader accepts, and agrees with 0.8 wherever 0.8 does not reject.
//!
//! | algorithm | groups | children of a row | rejects |
//! |---|---|---|---|
//! | `0.7` | each module alone, in the order of one walk | as imported, repetitions included (TREE-26) | nothing |
//! | `0.8` | host modules merged into `_lib` (TREE-20 .. 22) | ascending, each once (TREE-23) | a child before its parent (TREE-24) |
//! | `topological` | as 0.8 | as 0.8 | a cycle of groups (TREE-24) |

use super::{TREE_02, TREE_24, TREE_25, TREE_28};
use crate::release::{ParseError, Release};
use crate::rule::{Kind, Violation};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// Modules and their imports; the first one is the root. Only what the root reaches is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleGraph {
    /// The modules; imports name them by position.
    pub modules: Vec<ModuleNode>,
}

/// One module of a [`ModuleGraph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleNode {
    /// Its kind, for messages; may be empty.
    pub kind: String,
    /// Whether its code goes into the library itself, so that the module is stored as `_lib`.
    pub dso: bool,
    /// The modules that it imports, in order.
    pub imports: Vec<usize>,
}

/// Which release's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// 0.7: one walk, nothing is merged (TREE-26).
    V0_7,
    /// 0.8 on: host modules are merged into one (TREE-20 to TREE-25).
    #[default]
    V0_8,
    /// Merged as in 0.8, every parent before its children (TREE-27).
    Topological,
}

impl Algorithm {
    /// Every order, oldest first.
    pub const ALL: [Algorithm; 3] = [Algorithm::V0_7, Algorithm::V0_8, Algorithm::Topological];

    /// The word for it: `0.7`, `0.8` or `topological`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::V0_7 => "0.7",
            Algorithm::V0_8 => "0.8",
            Algorithm::Topological => "topological",
        }
    }

    /// What `release` does; `None` before 0.7, which stored no tree.
    pub const fn of(release: Release) -> Option<Algorithm> {
        match release.minor() {
            ..=6 => None,
            // TREE-26: one release alone: 0.8 merged the host modules.
            7 => Some(Algorithm::V0_7),
            8.. => Some(Algorithm::V0_8),
        }
    }
}

impl FromStr for Algorithm {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let known = Algorithm::ALL
            .into_iter()
            .find(|known| known.name() == text);
        known.ok_or_else(|| {
            let [first, second, last] = Algorithm::ALL.map(Algorithm::name);
            ParseError::new(format!(
                "`{text}` is not a module order: there are {first}, {second} and {last}"
            ))
        })
    }
}

/// Whether `release` links the code of a module of this kind into the library, so that it is stored as `_lib` (TREE-20).
///
/// 0.7 and 0.8 compare kinds; later releases ask the module, which a kind of a user's own can answer as well.
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn is_exportable(kind: &str, release: Release) -> bool {
    match kind {
        "llvm" | "c" => true,
        "static_library" => release >= Release::of(9),
        // Before 0.12 and from 0.24 on it is stored with a payload of its own (PAY-10).
        "hexagon" => (Release::of(12)..=Release::of(23)).contains(&release),
        _ => false,
    }
}

/// The stored form of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The modules of each stored entry. One with several is the merged `_lib`.
    pub groups: Vec<Vec<usize>>,
    /// Row starts of the import tree: one word more than there are groups.
    pub indptr: Vec<u64>,
    /// Rows of the import tree, by group.
    pub indices: Vec<u64>,
}

/// Orders `graph` and makes its import tree. Costs about modules plus edges; no recursion.
///
/// # Errors
///
/// TREE-02 for a graph without modules; TREE-28 for an import that is no module of it; TREE-24 and TREE-25 for what the
/// algorithm cannot number.
pub fn order(graph: &ModuleGraph, algorithm: Algorithm) -> Result<Order, Violation> {
    // TREE-28: an import of nothing would be a module that is never numbered.
    graph.check()?;
    match algorithm {
        Algorithm::V0_7 => Ok(plain(graph)),
        Algorithm::V0_8 => {
            let groups = merged_groups(graph);
            let rows = rows(graph, &groups);
            check_descent(graph, &groups, &rows)?;
            Ok(Order::of(groups, rows))
        }
        Algorithm::Topological => topological(graph),
    }
}

impl ModuleGraph {
    /// Holds the graph to what the walks rely on.
    fn check(&self) -> Result<(), Violation> {
        TREE_02.demand(Kind::Malformed, !self.modules.is_empty(), || {
            "there is no module to store".into()
        })?;
        let modules = self.modules.len();
        for (parent, node) in self.modules.iter().enumerate() {
            for child in &node.imports {
                TREE_28.demand(Kind::Malformed, *child < modules, || {
                    format!("module {parent} imports module {child}, but there are only {modules}")
                })?;
            }
        }
        Ok(())
    }

    /// The imports of `module`, in order.
    fn imports(&self, module: usize) -> &[usize] {
        self.modules
            .get(module)
            .map_or(&[], |node| node.imports.as_slice())
    }

    /// Whether `module` is merged into `_lib` (TREE-20).
    fn is_dso(&self, module: usize) -> bool {
        self.modules.get(module).is_some_and(|node| node.dso)
    }

    /// What messages call a group: its first module, by kind and number.
    fn name_of(&self, group: &[usize]) -> String {
        let first = group.first().copied().unwrap_or(0);
        match self.modules.get(first) {
            // TREE-24: the message names both kinds, as that of the releases does; the number tells two of one kind apart.
            Some(node) if !node.kind.is_empty() => format!("{} (module {first})", node.kind),
            _ => format!("module {first}"),
        }
    }
}

impl Order {
    /// These groups, with `rows` in compressed form: the children of each, by number of group.
    fn of(groups: Vec<Vec<usize>>, rows: Vec<Vec<usize>>) -> Order {
        let mut indptr = vec![0];
        let mut indices = Vec::new();
        for row in rows {
            indices.extend(row.into_iter().map(|child| child as u64));
            indptr.push(indices.len() as u64);
        }
        Order {
            groups,
            indptr,
            indices,
        }
    }
}

/// The walk of every release: a stack, and a module is seen when it is put there, not when it is taken (TREE-21).
struct Stack {
    /// Whether a module was ever put on the stack.
    seen: Vec<bool>,
    stack: Vec<usize>,
}

impl Stack {
    /// With the root on it alone.
    fn new(graph: &ModuleGraph) -> Stack {
        let mut stack = Stack {
            seen: vec![false; graph.modules.len()],
            stack: Vec::new(),
        };
        stack.push(0);
        stack
    }

    /// Puts `module` on the stack, unless it ever was there.
    fn push(&mut self, module: usize) {
        if let Some(seen) = self.seen.get_mut(module)
            && !*seen
        {
            // TREE-21: here, and not where it is taken: what hangs below two modules is numbered by where it was put first.
            *seen = true;
            self.stack.push(module);
        }
    }

    /// Puts what `module` imports on the stack in the order of import, so that the last is followed first (TREE-21).
    fn push_imports(&mut self, graph: &ModuleGraph, module: usize) {
        for child in graph.imports(module) {
            self.push(*child);
        }
    }
}

/// 0.7 (TREE-26): every module is a group, children stand as imported, nothing is checked.
fn plain(graph: &ModuleGraph) -> Order {
    let mut walk = Stack::new(graph);
    let mut groups = Vec::new();
    while let Some(module) = walk.stack.pop() {
        groups.push(vec![module]);
        walk.push_imports(graph, module);
    }
    // TREE-26: in the order of import, as often as imported, and without a look for cycles.
    let index = index_of(graph, &groups);
    let rows = groups.iter().flatten().map(|module| {
        let imports = graph.imports(*module).iter();
        imports
            .filter_map(|child| index.get(*child).copied())
            .collect()
    });
    let rows = rows.collect();
    Order::of(groups, rows)
}

/// 0.8 on (TREE-20, TREE-22): device modules above the first host modules, then all host modules as one group, then
/// the device modules below them.
fn merged_groups(graph: &ModuleGraph) -> Vec<Vec<usize>> {
    let mut walk = Stack::new(graph);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut boundary = Vec::new();
    // TREE-22, first phase: exportable modules are set aside, neither numbered nor followed.
    while let Some(module) = walk.stack.pop() {
        if graph.is_dso(module) {
            boundary.push(module);
            continue;
        }
        groups.push(vec![module]);
        walk.push_imports(graph, module);
    }
    // TREE-22: without host modules there is no `_lib`, and BLOB-13 is left as a finding.
    if boundary.is_empty() {
        return groups;
    }
    // Now `_lib` gets its number; which modules it is made of the second phase finds.
    let place = groups.len();
    groups.push(Vec::new());
    let mut library = Vec::new();
    // TREE-22, second phase: what is seen stays seen, and the module set aside last is followed first.
    walk.stack = boundary;
    while let Some(module) = walk.stack.pop() {
        // TREE-20: a host module gets no number of its own: it is part of `_lib`.
        if graph.is_dso(module) {
            library.push(module);
        } else {
            groups.push(vec![module]);
        }
        walk.push_imports(graph, module);
    }
    if let Some(group) = groups.get_mut(place) {
        *group = library;
    }
    groups
}

/// The group of each module; `usize::MAX` for modules that the root does not reach.
fn index_of(graph: &ModuleGraph, groups: &[Vec<usize>]) -> Vec<usize> {
    let mut index = vec![usize::MAX; graph.modules.len()];
    for (place, group) in groups.iter().enumerate() {
        for module in group {
            if let Some(slot) = index.get_mut(*module) {
                *slot = place;
            }
        }
    }
    index
}

/// The children of each group: ascending, each once, never the group itself (TREE-23).
fn rows(graph: &ModuleGraph, groups: &[Vec<usize>]) -> Vec<Vec<usize>> {
    // TREE-23: `_lib` is one entry, however many modules it is made of.
    let index = index_of(graph, groups);
    let row = |(parent, group): (usize, &Vec<usize>)| {
        let imports = group.iter().flat_map(|module| graph.imports(*module));
        let children = imports.filter_map(|child| index.get(*child).copied());
        let mut row: Vec<usize> = children.filter(|child| *child != parent).collect();
        // TREE-23: imports between host modules have become imports of `_lib` by itself, and are gone.
        row.sort_unstable();
        row.dedup();
        row
    };
    groups.iter().enumerate().map(row).collect()
}

/// Rejects what the releases reject: a group whose first child does not come behind it (TREE-24, TREE-25).
fn check_descent(
    graph: &ModuleGraph,
    groups: &[Vec<usize>],
    rows: &[Vec<usize>],
) -> Result<(), Violation> {
    let backward = rows.iter().enumerate().find_map(|(parent, row)| {
        // TREE-25: releases compare the smallest child only, which is the first of an ascending row.
        let child = row.first().copied().filter(|child| *child <= parent)?;
        Some((parent, child))
    });
    let Some((parent, child)) = backward else {
        return Ok(());
    };
    let kind_of = |place: usize| graph.name_of(groups.get(place).map_or(&[], Vec::as_slice));
    let (parent, child) = (kind_of(parent), kind_of(child));
    // Releases report a cycle in both cases. A graph that has none can be stored after all, by another order of imports
    // (TREE-27), so the message differs.
    if parents_first(rows).is_none() {
        return TREE_24.demand(Kind::Cycle, false, || {
            format!(
                "the host modules cannot be merged: parent {parent} and child {child} would import each other"
            )
        });
    }
    TREE_25.demand(Kind::Cycle, false, || {
        format!(
            "parent {parent} is reached after its child {child}; there is no cycle, but releases reject this order of imports. Import the child later, or write with the order `topological`"
        )
    })
}

/// The groups of 0.8 in an order where every parent comes before its children (TREE-27).
fn topological(graph: &ModuleGraph) -> Result<Order, Violation> {
    let groups = merged_groups(graph);
    let children = rows(graph, &groups);
    let Some(order) = parents_first(&children) else {
        let message = "the host modules cannot be merged: two groups would import each other";
        return Err(TREE_24.rejected(Kind::Cycle, message));
    };
    let mut groups = groups;
    let ordered = order
        .into_iter()
        .filter_map(|place| groups.get_mut(place).map(std::mem::take))
        .collect::<Vec<_>>();
    // TREE-23: rows are by number, and the numbers are new.
    let rows = rows(graph, &ordered);
    Ok(Order::of(ordered, rows))
}

/// Repeatedly takes, of the groups whose parents are all taken, the one that comes first; `None` if there is a cycle.
fn parents_first(rows: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting_for = vec![0_usize; rows.len()];
    for child in rows.iter().flatten() {
        if let Some(parents) = waiting_for.get_mut(*child) {
            *parents = parents.saturating_add(1);
        }
    }
    let ready = waiting_for.iter().enumerate();
    let mut ready: BinaryHeap<Reverse<usize>> = ready
        .filter(|(_, parents)| **parents == 0)
        .map(|(place, _)| Reverse(place))
        .collect();
    let mut order = Vec::with_capacity(rows.len());
    // TREE-27: the smallest number first, so that the order is that of 0.8 wherever that one is good.
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        for child in rows.get(place).into_iter().flatten() {
            let Some(parents) = waiting_for.get_mut(*child) else {
                continue;
            };
            // Rows have each child once (TREE-23), so that every edge is counted down once.
            *parents = parents.saturating_sub(1);
            if *parents == 0 {
                ready.push(Reverse(*child));
            }
        }
    }
    (order.len() == rows.len()).then_some(order)
}
