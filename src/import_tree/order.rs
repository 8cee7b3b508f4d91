//! Conversion of a graph of modules into the order in which a library stores them.
//!
//! [`order`] with [`Algorithm::V0_8`] orders modules as every release from 0.8 on, and [`Algorithm::V0_7`] orders them as 0.7.
//! [`Algorithm::Topological`] exists only in this crate. It stores every graph that can be stored, in an order that every loader
//! accepts. If 0.8 accepts the graph, the order is the same as that of 0.8.
//!
//! | algorithm | groups | children of a row | rejects |
//! |---|---|---|---|
//! | `0.7` | each module alone, in the order of one walk | as imported, repetitions included (TREE-26) | no graph |
//! | `0.8` | host modules merged into `_lib` (TREE-20 .. 22) | ascending, each once (TREE-23) | a child before its parent (TREE-24) |
//! | `topological` | as 0.8 | as 0.8 | a cycle of groups (TREE-24) |

use super::{TREE_02, TREE_24, TREE_25, TREE_28};
use crate::release::{ParseError, Release};
use crate::rule::{Kind, Violation};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// Modules and their imports; the first module is the root. Only modules that the root reaches are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleGraph {
    /// The modules; imports refer to them by position.
    pub modules: Vec<ModuleNode>,
}

/// One module of a [`ModuleGraph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleNode {
    /// Its kind, for messages; may be empty.
    pub kind: String,
    /// True if its code becomes part of the library itself, so that the module is stored as `_lib`.
    pub dso: bool,
    /// The modules that it imports, in order.
    pub imports: Vec<usize>,
}

/// The order of modules that a release uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// 0.7: one walk, no merging (TREE-26).
    V0_7,
    /// 0.8 and later: host modules are merged into one (TREE-20 to TREE-25).
    #[default]
    V0_8,
    /// Merged as in 0.8, with every parent before its children (TREE-27).
    Topological,
}

impl Algorithm {
    /// Every order, oldest first.
    pub const ALL: [Algorithm; 3] = [Algorithm::V0_7, Algorithm::V0_8, Algorithm::Topological];

    /// Returns its name: `0.7`, `0.8` or `topological`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::V0_7 => "0.7",
            Algorithm::V0_8 => "0.8",
            Algorithm::Topological => "topological",
        }
    }

    /// Returns the order of `release`; `None` before 0.7, which stored no tree.
    pub const fn of(release: Release) -> Option<Algorithm> {
        match release.minor() {
            ..=6 => None,
            // TREE-26: only one release, because 0.8 merged the host modules.
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

/// Returns whether `release` links the code of a module of this kind into the library, so that it is stored as `_lib` (TREE-20).
///
/// 0.7 and 0.8 compare kinds. Later releases ask the module, so that a user-defined kind can answer too.
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn is_exportable(kind: &str, release: Release) -> bool {
    match kind {
        "llvm" | "c" => true,
        "static_library" => release >= Release::of(9),
        // Before 0.12 and from 0.24 on, it is stored with its own payload (PAY-10).
        "hexagon" => (Release::of(12)..=Release::of(23)).contains(&release),
        _ => false,
    }
}

/// The stored form of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The modules of each stored entry. A group of several modules is the merged `_lib`.
    pub groups: Vec<Vec<usize>>,
    /// Row starts of the import tree: one word more than the number of groups.
    pub indptr: Vec<u64>,
    /// Rows of the import tree, as indices of groups.
    pub indices: Vec<u64>,
}

/// Orders `graph` and creates its import tree, in time about linear in modules and edges, without recursion.
///
/// # Errors
///
/// Returns TREE-02 for a graph without modules, and TREE-28 for an import of a module that does not exist. Returns TREE-24 or TREE-25
/// for a graph that the algorithm cannot order.
pub fn order(graph: &ModuleGraph, algorithm: Algorithm) -> Result<Order, Violation> {
    // TREE-28: an import of a missing module would never get a number.
    graph.check()?;
    match algorithm {
        Algorithm::V0_7 => Ok(order_ungrouped(graph)),
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
    /// Checks the graph before a walk.
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

    /// Returns the imports of `module`, in order.
    fn imports(&self, module: usize) -> &[usize] {
        self.modules
            .get(module)
            .map_or(&[], |node| node.imports.as_slice())
    }

    /// Returns whether `module` is merged into `_lib` (TREE-20).
    fn is_dso(&self, module: usize) -> bool {
        self.modules.get(module).is_some_and(|node| node.dso)
    }

    /// Returns the name of a group for messages: the kind and number of its first module.
    fn name_of(&self, group: &[usize]) -> String {
        let first = group.first().copied().unwrap_or(0);
        match self.modules.get(first) {
            // TREE-24: the message names both kinds, as the message of the releases does. The number distinguishes modules of one kind.
            Some(node) if !node.kind.is_empty() => format!("{} (module {first})", node.kind),
            _ => format!("module {first}"),
        }
    }
}

impl Order {
    /// Creates the order of these groups. `rows` has the children of each, as indices of groups, and is compressed here.
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

/// The stack of the walk in every release. A module counts as seen when it is pushed, not when it is popped (TREE-21).
struct Stack {
    /// True if the module was pushed before.
    seen: Vec<bool>,
    stack: Vec<usize>,
}

impl Stack {
    /// Creates a stack that contains only the root.
    fn new(graph: &ModuleGraph) -> Stack {
        let mut stack = Stack {
            seen: vec![false; graph.modules.len()],
            stack: Vec::new(),
        };
        stack.push(0);
        stack
    }

    /// Pushes `module`, unless it was pushed before.
    fn push(&mut self, module: usize) {
        if let Some(seen) = self.seen.get_mut(module)
            && !*seen
        {
            // TREE-21: marked here and not when popped, so that a module below two parents is numbered by its first push.
            *seen = true;
            self.stack.push(module);
        }
    }

    /// Pushes the imports of `module` in order, so that the last one is visited first (TREE-21).
    fn push_imports(&mut self, graph: &ModuleGraph, module: usize) {
        for child in graph.imports(module) {
            self.push(*child);
        }
    }
}

/// Orders modules as in 0.7 (TREE-26): every module is a group, children keep the order of imports, and nothing is checked.
fn order_ungrouped(graph: &ModuleGraph) -> Order {
    let mut walk = Stack::new(graph);
    let mut groups = Vec::new();
    while let Some(module) = walk.stack.pop() {
        groups.push(vec![module]);
        walk.push_imports(graph, module);
    }
    // TREE-26: in the order of import, as often as imported, and without a check for cycles.
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

/// Groups modules as in 0.8 and later (TREE-20, TREE-22). The device modules above the first host modules come first. Then all host
/// modules form one group. The device modules below them come last.
fn merged_groups(graph: &ModuleGraph) -> Vec<Vec<usize>> {
    let mut walk = Stack::new(graph);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut boundary = Vec::new();
    // TREE-22, first phase: exportable modules are set aside, without a number and without their imports.
    while let Some(module) = walk.stack.pop() {
        if graph.is_dso(module) {
            boundary.push(module);
            continue;
        }
        groups.push(vec![module]);
        walk.push_imports(graph, module);
    }
    // TREE-22: without host modules there is no `_lib`; BLOB-13 remains a finding.
    if boundary.is_empty() {
        return groups;
    }
    // `_lib` gets its number now; the second phase finds the modules that it consists of.
    let place = groups.len();
    groups.push(Vec::new());
    let mut library = Vec::new();
    // TREE-22, second phase: seen modules stay seen, and the module that was set aside last is visited first.
    walk.stack = boundary;
    while let Some(module) = walk.stack.pop() {
        // TREE-20: a host module gets no number, because it is part of `_lib`.
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

/// Returns the group of each module; `usize::MAX` for modules that the root does not reach.
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

/// Returns the children of each group: ascending, without repetition and without the group itself (TREE-23).
fn rows(graph: &ModuleGraph, groups: &[Vec<usize>]) -> Vec<Vec<usize>> {
    // TREE-23: `_lib` is one entry for all its modules.
    let index = index_of(graph, groups);
    let row = |(parent, group): (usize, &Vec<usize>)| {
        let imports = group.iter().flat_map(|module| graph.imports(*module));
        let children = imports.filter_map(|child| index.get(*child).copied());
        let mut row: Vec<usize> = children.filter(|child| *child != parent).collect();
        // TREE-23: imports between host modules became imports of `_lib` by itself, and were removed above.
        row.sort_unstable();
        row.dedup();
        row
    };
    groups.iter().enumerate().map(row).collect()
}

/// Rejects the graphs that releases reject: a group whose first child does not come after it (TREE-24, TREE-25).
fn check_descent(
    graph: &ModuleGraph,
    groups: &[Vec<usize>],
    rows: &[Vec<usize>],
) -> Result<(), Violation> {
    let Some((parent, child)) = backward_import(graph, groups, rows) else {
        return Ok(());
    };
    // Releases report a cycle in both cases. A graph without a cycle can be stored if the imports are reordered (TREE-27), so its message
    // differs.
    if parents_first(rows).is_none() {
        return TREE_24.demand(Kind::Cycle, false, || cycle_message(&parent, &child));
    }
    TREE_25.demand(Kind::Cycle, false, || {
        format!(
            "parent {parent} is reached after its child {child}; there is no cycle, but releases reject this order of imports. Import the child later, or write with the order `topological`"
        )
    })
}

/// Returns the names of the first group with a child that does not come after it, and of its smallest child.
fn backward_import(
    graph: &ModuleGraph,
    groups: &[Vec<usize>],
    rows: &[Vec<usize>],
) -> Option<(String, String)> {
    let (parent, child) = rows.iter().enumerate().find_map(|(parent, row)| {
        // TREE-25: releases compare only the smallest child, which is the first of an ascending row.
        let child = row.first().copied().filter(|child| *child <= parent)?;
        Some((parent, child))
    })?;
    let name = |place: usize| graph.name_of(groups.get(place).map_or(&[], Vec::as_slice));
    Some((name(parent), name(child)))
}

/// Returns the message for groups that import each other (TREE-24).
fn cycle_message(parent: &str, child: &str) -> String {
    format!(
        "the host modules cannot be merged: parent {parent} and child {child} would import each other"
    )
}

/// Orders the groups of 0.8 so that every parent comes before its children (TREE-27).
fn topological(graph: &ModuleGraph) -> Result<Order, Violation> {
    let groups = merged_groups(graph);
    let children = rows(graph, &groups);
    let Some(order) = parents_first(&children) else {
        // A cycle has an import of a smaller number, so that there is always such a pair.
        let (parent, child) = backward_import(graph, &groups, &children).unwrap_or_default();
        return Err(TREE_24.rejected(Kind::Cycle, cycle_message(&parent, &child)));
    };
    let mut groups = groups;
    let ordered = order
        .into_iter()
        .filter_map(|place| groups.get_mut(place).map(std::mem::take))
        .collect::<Vec<_>>();
    // TREE-23: rows contain group numbers, which have changed.
    let rows = rows(graph, &ordered);
    Ok(Order::of(ordered, rows))
}

/// Repeatedly takes the first group whose parents are all taken; returns `None` if there is a cycle.
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
    // TREE-27: the smallest number comes first, so that the order equals that of 0.8 if that one is valid.
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        for child in rows.get(place).into_iter().flatten() {
            let Some(parents) = waiting_for.get_mut(*child) else {
                continue;
            };
            // Each row has a child once (TREE-23), so every edge is counted once.
            *parents = parents.saturating_sub(1);
            if *parents == 0 {
                ready.push(Reverse(*child));
            }
        }
    }
    (order.len() == rows.len()).then_some(order)
}
