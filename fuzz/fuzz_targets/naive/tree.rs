//! An independent reader for TREE-01 to TREE-12.

use super::{In, Odd};

/// Reads both vectors as rows. Row i holds the imports of module i.
pub fn read(from: &mut In<'_>, odd: &mut Odd) -> Option<Vec<Vec<u64>>> {
    let (starts, children) = (from.words()?, from.words()?);
    rows(&starts, &children, odd)
}

pub fn rows(starts: &[u64], children: &[u64], odd: &mut Odd) -> Option<Vec<Vec<u64>>> {
    if starts.len() < 2 {
        return None;
    }
    let modules = starts.len() - 1;
    let mut rows = Vec::new();
    for module in 0..modules {
        let (start, end) = (usize::try_from(starts[module]).ok()?, usize::try_from(starts[module + 1]).ok()?);
        let row = children.get(start..end)?.to_vec();
        if row.contains(&(module as u64)) || row.iter().any(|child| *child >= modules as u64) {
            return None;
        }
        if (0..row.len()).any(|at| row[..at].contains(&row[at])) {
            odd.insert("TREE-10".into());
        }
        rows.push(row);
    }
    // TREE-07 covers every word of the second vector, in a row or not.
    if children.iter().any(|child| *child >= modules as u64) {
        return None;
    }
    if starts[0] != 0 {
        odd.insert("TREE-05".into());
    }
    if starts[modules] != children.len() as u64 {
        odd.insert("TREE-06".into());
    }
    // TREE-09: each round removes the modules without remaining imports, until none is removed. The round is the length of the longest
    // chain below.
    let mut below = vec![None; modules];
    for round in 0.. {
        let free: Vec<usize> = (0..modules)
            .filter(|module| below[*module].is_none())
            .filter(|module| rows[*module].iter().all(|child| below[*child as usize].is_some()))
            .collect();
        for module in &free {
            below[*module] = Some(round);
        }
        if free.is_empty() {
            break;
        }
    }
    if below.contains(&None) {
        return None;
    }
    if below[0] > Some(16_384) {
        odd.insert("TREE-12".into());
    }
    let mut reached = vec![false; modules];
    let mut open = vec![0];
    while let Some(module) = open.pop() {
        if !std::mem::replace(&mut reached[module], true) {
            open.extend(rows[module].iter().map(|child| *child as usize));
        }
    }
    if reached.contains(&false) {
        odd.insert("TREE-11".into());
    }
    Some(rows)
}
