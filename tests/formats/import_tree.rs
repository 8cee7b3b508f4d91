//! The import tree: comparison of the order with a simple model, trees of real writers, hostile trees.

use proptest::prelude::*;
use serde_json::Value;
use tvmspec::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, Order, order};
use tvmspec::rule::{Findings, Kind, Strictness};
use tvmspec::wire::{Cursor, Words, Writer};

/// A model written from the rules alone: slow and obvious.
mod naive {
    use super::{Algorithm, ModuleGraph, Order};

    pub(super) enum Rejected {
        Cycle,
        NoCycle,
    }

    pub(super) fn order(graph: &ModuleGraph, algorithm: Algorithm) -> Result<Order, Rejected> {
        let entries = match algorithm {
            Algorithm::V0_7 => walk(graph, &mut vec![0], vec![0], &|_| false).0,
            Algorithm::V0_8 | Algorithm::Topological => merged(graph),
        };
        let entries = match algorithm {
            Algorithm::Topological => topological(graph, entries)?,
            _ => entries,
        };
        let rows: Vec<Vec<usize>> = (0..entries.len())
            .map(|entry| row(graph, &entries, entry, algorithm))
            .collect();
        if algorithm == Algorithm::V0_8
            && (0..rows.len()).any(|entry| rows[entry].iter().any(|child| *child < entry))
        {
            return Err(match topological(graph, entries) {
                Ok(_) => Rejected::NoCycle,
                Err(rejected) => rejected,
            });
        }
        let mut indptr = vec![0];
        for row in &rows {
            indptr.push(indptr.last().unwrap() + row.len() as u64);
        }
        let indices = rows
            .concat()
            .into_iter()
            .map(|child| child as u64)
            .collect();
        Ok(Order {
            groups: entries,
            indptr,
            indices,
        })
    }

    /// Returns the entries in the order of the walk, and the modules that were put aside (TREE-21).
    fn walk(
        graph: &ModuleGraph,
        seen: &mut Vec<usize>,
        mut stack: Vec<usize>,
        aside: &dyn Fn(usize) -> bool,
    ) -> (Vec<Vec<usize>>, Vec<usize>) {
        let (mut entries, mut put_aside) = (Vec::new(), Vec::new());
        while let Some(module) = stack.pop() {
            if aside(module) {
                put_aside.push(module);
                continue;
            }
            entries.push(vec![module]);
            for child in &graph.modules[module].imports {
                if !seen.contains(child) {
                    seen.push(*child);
                    stack.push(*child);
                }
            }
        }
        (entries, put_aside)
    }

    /// Returns the entries, with the host modules merged into one (TREE-20, TREE-22).
    fn merged(graph: &ModuleGraph) -> Vec<Vec<usize>> {
        let dso = |module: usize| graph.modules[module].dso;
        let mut seen = vec![0];
        let (mut entries, aside) = walk(graph, &mut seen, vec![0], &dso);
        if aside.is_empty() {
            return entries;
        }
        let (second, _) = walk(graph, &mut seen, aside, &|_| false);
        let (host, device): (Vec<_>, Vec<_>) = second.concat().into_iter().partition(|m| dso(*m));
        entries.push(host);
        entries.extend(device.into_iter().map(|module| vec![module]));
        entries
    }

    /// Returns the row of an entry (TREE-23, TREE-26).
    fn row(
        graph: &ModuleGraph,
        entries: &[Vec<usize>],
        entry: usize,
        algorithm: Algorithm,
    ) -> Vec<usize> {
        let number = |module: &usize| {
            entries
                .iter()
                .position(|entry| entry.contains(module))
                .unwrap()
        };
        let imports = entries[entry]
            .iter()
            .flat_map(|module| &graph.modules[*module].imports);
        let children = imports.map(number);
        if algorithm == Algorithm::V0_7 {
            return children.collect();
        }
        let children: Vec<usize> = children.collect();
        (0..entries.len())
            .filter(|child| *child != entry && children.contains(child))
            .collect()
    }

    /// Sorts the entries topologically (TREE-27).
    fn topological(
        graph: &ModuleGraph,
        entries: Vec<Vec<usize>>,
    ) -> Result<Vec<Vec<usize>>, Rejected> {
        let rows: Vec<_> = (0..entries.len())
            .map(|entry| row(graph, &entries, entry, Algorithm::V0_8))
            .collect();
        let mut taken: Vec<usize> = Vec::new();
        while taken.len() < entries.len() {
            let next = (0..entries.len()).find(|entry| {
                let importers = (0..entries.len()).filter(|parent| rows[*parent].contains(entry));
                !taken.contains(entry)
                    && importers.into_iter().all(|parent| taken.contains(&parent))
            });
            taken.push(next.ok_or(Rejected::Cycle)?);
        }
        Ok(taken
            .into_iter()
            .map(|entry| entries[entry].clone())
            .collect())
    }
}

/// Creates graphs of up to `largest` modules. Most edges lead to larger numbers, so that many graphs have no cycle, but some have one.
fn module_graphs(largest: usize) -> impl Strategy<Value = ModuleGraph> {
    let host = prop_oneof![Just(0.0), Just(0.3), Just(0.7), Just(1.0)];
    (1..largest, host, 0.0..0.4_f64, any::<bool>()).prop_flat_map(
        |(count, host, density, cyclic)| {
            let node = move |index: usize| {
                let first = if cyclic { 0 } else { index + 1 };
                let each = (first..count).map(|child| {
                    (prop::bool::weighted(density), any::<u32>())
                        .prop_map(move |(edge, rank)| (edge, rank, child))
                });
                (
                    prop::bool::weighted(host),
                    each.collect::<Vec<_>>(),
                    prop::bool::weighted(0.2),
                )
                    .prop_map(|(dso, mut edges, again)| {
                        edges.retain(|(edge, ..)| *edge);
                        edges.sort_by_key(|(_, rank, _)| *rank);
                        let mut imports: Vec<usize> =
                            edges.into_iter().map(|(_, _, child)| child).collect();
                        if again {
                            imports.extend(imports.first().copied());
                        }
                        ModuleNode {
                            kind: String::new(),
                            dso,
                            imports,
                        }
                    })
            };
            (0..count)
                .map(node)
                .collect::<Vec<_>>()
                .prop_map(|modules| ModuleGraph { modules })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn order_equals_the_naive_model(graph in module_graphs(14)) {
        for algorithm in [Algorithm::V0_7, Algorithm::V0_8, Algorithm::Topological] {
            match (order(&graph, algorithm), naive::order(&graph, algorithm)) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(ours), Err(naive::Rejected::Cycle)) => prop_assert_eq!(ours.rule().id(), "TREE-24"),
                (Err(ours), Err(naive::Rejected::NoCycle)) => prop_assert_eq!(ours.rule().id(), "TREE-25"),
                (ours, theirs) => prop_assert!(false, "{:?} but the model {}", ours, theirs.is_ok()),
            }
        }
    }

    #[test]
    fn ordered_tree_has_no_findings(graph in module_graphs(14)) {
        let mut strict = Findings::new(Strictness::Strict);
        for algorithm in [Algorithm::V0_8, Algorithm::Topological] {
            if let Ok(order) = order(&graph, algorithm) {
                let tree = ImportTree::new(&order.indptr, &order.indices, &mut strict);
                prop_assert_eq!(tree.map(|tree| tree.modules()).ok(), Some(order.groups.len()));
            }
        }
    }

    #[test]
    fn topological_is_the_release_where_the_release_does_not_reject(graph in module_graphs(14)) {
        if let Ok(release) = order(&graph, Algorithm::V0_8) {
            prop_assert_eq!(order(&graph, Algorithm::Topological).unwrap(), release);
        }
    }

    #[test]
    fn bytes_come_back(indptr in prop::collection::vec(0..6_u64, 0..6), indices in prop::collection::vec(0..6_u64, 0..6)) {
        let mut out = Writer::new();
        out.words(&Words::from(&indptr[..]));
        out.words(&Words::from(&indices[..]));
        let bytes = out.into_bytes();
        let mut findings = Findings::default();
        if let Ok(tree) = ImportTree::read(&mut Cursor::new(&bytes), &mut findings) {
            let mut out = Writer::new();
            tree.write(&mut out);
            prop_assert_eq!(out.into_bytes(), bytes.clone());
            for cut in 0..bytes.len() {
                let cut = ImportTree::read(&mut Cursor::new(&bytes[..cut]), &mut findings);
                prop_assert_eq!(cut.unwrap_err().kind(), Kind::Truncated);
            }
        }
    }
}

#[test]
fn the_real_writer_agrees() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/import_tree/orders.json"
    ));
    let lines: Vec<Value> = serde_json::from_str(&text.unwrap()).unwrap();
    let numbers = |value: &Value| -> Vec<u64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_u64().unwrap())
            .collect()
    };
    let (mut stored, mut rejected) = (0, 0);
    for line in &lines {
        let dso = line["dso"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dso| dso.as_bool().unwrap());
        let imports = line["imports"].as_array().unwrap().iter();
        let modules = dso.zip(imports).map(|(dso, imports)| ModuleNode {
            kind: if dso { "c" } else { "const_loader" }.into(),
            dso,
            imports: numbers(imports)
                .into_iter()
                .map(|child| child as usize)
                .collect(),
        });
        let graph = ModuleGraph {
            modules: modules.collect(),
        };
        let ours = order(&graph, Algorithm::V0_8);
        if let Some(kinds) = line["refused"].as_array() {
            let violation = ours.expect_err("the real writer rejects this").to_string();
            assert!(
                kinds
                    .iter()
                    .all(|kind| violation.contains(kind.as_str().unwrap())),
                "{violation}"
            );
            rejected += 1;
            continue;
        }
        let ours = ours.unwrap_or_else(|violation| panic!("{violation}: {line}"));
        let entries: Vec<Option<u64>> = ours
            .groups
            .iter()
            .map(|group| (!graph.modules[group[0]].dso).then_some(group[0] as u64))
            .collect();
        assert_eq!(serde_json::json!(entries), line["entries"], "{line}");
        assert_eq!(ours.indptr, numbers(&line["indptr"]), "{line}");
        assert_eq!(ours.indices, numbers(&line["indices"]), "{line}");
        stored += 1;
    }
    assert!(
        stored > 200 && rejected > 50,
        "{stored} stored, {rejected} rejected"
    );
}

#[test]
fn a_chain_of_200_000_modules_reads_and_orders() {
    let count = 200_000;
    let chain = |index| ModuleNode {
        imports: (index + 1 < count)
            .then_some(index + 1)
            .into_iter()
            .collect(),
        ..ModuleNode::default()
    };
    let graph = ModuleGraph {
        modules: (0..count).map(chain).collect(),
    };
    let order = order(&graph, Algorithm::V0_8).unwrap();
    let mut findings = Findings::default();
    let tree = ImportTree::new(&order.indptr, &order.indices, &mut findings).unwrap();
    assert_eq!(tree.modules(), count);
    let found: Vec<&str> = findings
        .as_slice()
        .iter()
        .map(|finding| finding.rule.id())
        .collect();
    assert_eq!(found, ["TREE-12"]);
}

#[test]
fn a_chain_is_remarked_upon_from_its_limit_on() {
    let findings_of = |modules: usize| {
        let next = 1..modules as u64;
        let indptr: Vec<u64> = std::iter::once(0)
            .chain(next.clone())
            .chain([modules as u64 - 1])
            .collect();
        let indices: Vec<u64> = next.collect();
        let mut findings = Findings::default();
        ImportTree::new(&indptr, &indices, &mut findings).unwrap();
        findings.as_slice().len()
    };
    let most = (1..).find(|beyond| findings_of(ImportTree::DEPTH + beyond) > 0);
    assert!(most.is_some_and(|beyond| beyond <= 2), "{most:?}");
    assert_eq!(findings_of(ImportTree::DEPTH), 0);
}

#[test]
fn a_cycle_names_the_modules_and_the_byte() {
    let mut out = Writer::new();
    out.words(&Words::from(&[0, 1, 2, 3][..]));
    out.words(&Words::from(&[1, 2, 1][..]));
    let bytes = out.into_bytes();
    let broken = ImportTree::read(&mut Cursor::new(&bytes), &mut Findings::default()).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "modules import each other: 1 -> 2 -> 1 (at byte 0x40, indices[2]) [TREE-09]"
    );
}

#[test]
fn a_rejected_diamond_says_what_to_do() {
    let node = |imports: &[usize]| ModuleNode {
        imports: imports.to_vec(),
        kind: "opencl".into(),
        dso: false,
    };
    let graph = ModuleGraph {
        modules: vec![node(&[1, 2, 3]), node(&[3]), node(&[]), node(&[])],
    };
    let rejected = order(&graph, Algorithm::V0_8).unwrap_err();
    assert_eq!(rejected.rule().id(), "TREE-25");
    assert!(rejected.message().contains("topological"), "{rejected}");
}

#[test]
fn a_module_that_is_not_there_has_no_children() {
    // The rows begin at the second index, which only a lenient reader accepts.
    let tree = ImportTree::new(&[1, 2, 2], &[1, 1], &mut Findings::default()).unwrap();
    assert_eq!(tree.children(0).collect::<Vec<u64>>(), [1]);
    for missing in [1, 2, 3, usize::MAX] {
        assert_eq!(tree.children(missing).count(), 0, "{missing}");
    }
    // A tree without modules has no children either.
    assert_eq!(ImportTree::default().children(0).count(), 0);
}

#[test]
fn numbers_that_were_never_in_a_file_are_blamed_as_if_they_began_at_byte_0() {
    let offset = |indptr: &[u64], indices: &[u64]| {
        let broken = ImportTree::new(indptr, indices, &mut Findings::default()).unwrap_err();
        (broken.rule().id(), broken.offset())
    };
    assert_eq!(offset(&[0, 2, 1, 2], &[1, 2]), ("TREE-03", Some(16)));
    assert_eq!(offset(&[0, 1, 1], &[7]), ("TREE-07", Some(0)));
    assert_eq!(offset(&[0, 1, 2, 2], &[2, 1]), ("TREE-08", Some(8)));
}

#[test]
fn modules_that_cannot_be_merged_are_named_by_kind_and_place() {
    let node = |kind: &str, dso, imports: &[usize]| ModuleNode {
        imports: imports.to_vec(),
        kind: kind.into(),
        dso,
    };
    let message = |device: &str| {
        let modules = vec![
            node("llvm", true, &[1]),
            node(device, false, &[2]),
            node("c", true, &[]),
        ];
        let graph = ModuleGraph { modules };
        let rejected = order(&graph, Algorithm::V0_8).unwrap_err();
        assert_eq!(rejected.rule().id(), "TREE-24");
        rejected.message().to_owned()
    };
    let named = message("cuda");
    assert!(named.contains("llvm (module 0)"), "{named}");
    assert!(named.contains("cuda (module 1)"), "{named}");
    let unnamed = message("");
    assert!(unnamed.contains("llvm (module 0)"), "{unnamed}");
    assert!(unnamed.contains(" module 1"), "{unnamed}");
}

#[test]
fn a_long_cycle_is_named_by_its_first_eight_modules() {
    let message = |modules: u64| {
        let indptr: Vec<u64> = (0..=modules).collect();
        let indices: Vec<u64> = (1..modules).chain([0]).collect();
        let broken = ImportTree::new(&indptr, &indices, &mut Findings::default()).unwrap_err();
        assert_eq!(broken.rule().id(), "TREE-09");
        broken.message().to_owned()
    };
    let eight = "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7";
    assert!(
        message(8).ends_with(&format!(": {eight} -> 0")),
        "{}",
        message(8)
    );
    let ten = message(10);
    assert!(
        ten.ends_with(&format!(": {eight} -> (2 more) -> 0")),
        "{ten}"
    );
}

/// TREE-24: the user learns which import to remove, in both orders.
#[test]
fn a_cycle_is_reported_with_the_kinds_of_parent_and_child() {
    let node = |kind: &str, dso, imports: &[usize]| ModuleNode {
        kind: kind.to_owned(),
        dso,
        imports: imports.to_vec(),
    };
    let modules = vec![
        node("llvm", true, &[1]),
        node("cuda", false, &[2]),
        node("c", true, &[]),
    ];
    let graph = ModuleGraph { modules };
    for algorithm in [Algorithm::V0_8, Algorithm::Topological] {
        let message = order(&graph, algorithm).unwrap_err().to_string();
        assert!(message.contains("parent cuda (module 1)"), "{message}");
        assert!(message.contains("child llvm (module 0)"), "{message}");
    }
}
