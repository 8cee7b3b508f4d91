//! An independent reader for BLOB-01 to BLOB-16.

use super::{In, Odd, payload, tree};
use tvmspec::release::Layout;

/// The kind and the payload length of each module.
pub type Modules = Vec<(String, Option<usize>)>;

pub fn read(bytes: &[u8], layout: Layout, odd: &mut Odd) -> Option<(Modules, Option<Vec<Vec<u64>>>)> {
    let mut file = In(bytes);
    let counted = file.u64()?;
    let mut body = In(file.take(counted)?);
    let found = match layout {
        Layout::V0_22 => framed(&mut body, odd)?,
        _ => streamed(&mut body, layout, odd)?,
    };
    let (modules, tree) = &found;
    let libraries = modules.iter().filter(|(kind, _)| kind == "_lib").count();
    if libraries > 1 {
        return None;
    }
    if libraries == 0 && tree.is_some() {
        odd.insert("BLOB-13".into());
    }
    if !body.0.is_empty() {
        odd.insert("WIRE-08".into());
    }
    if !file.0.is_empty() {
        odd.insert("BLOB-02".into());
    }
    Some(found)
}

/// Returns the broken rule if the only error is that modules are missing.
pub fn is_short(bytes: &[u8], layout: Layout) -> Option<&'static str> {
    let mut file = In(bytes);
    let counted = file.u64()?;
    let mut body = In(file.take(counted)?);
    match layout {
        Layout::V0_22 => lacks_module(&mut body).then_some("BLOB-10"),
        _ => lacks_entry(&mut body, layout)?.then_some("BLOB-03"),
    }
}

/// Checks BLOB-03: the count is too large for entries of 8 bytes, or the bytes end where an entry begins.
fn lacks_entry(body: &mut In<'_>, layout: Layout) -> Option<bool> {
    let count = body.u64()?;
    if count > body.0.len() as u64 / 8 {
        return Some(true);
    }
    let (mut trees, mut libraries) = (0, 0);
    for _ in 0..count {
        if body.0.is_empty() {
            return Some(true);
        }
        // An entry after the tree, a reserved name in 0.2 and a second library break other rules.
        let key = kind(body).filter(|key| trees == 0 && (layout != Layout::V0_2 || !key.starts_with('_')))?;
        match key {
            "_lib" if libraries > 0 => return None,
            "_lib" => libraries += 1,
            "_import_tree" => trees += tree::read(body, &mut Odd::new()).map(|_| 1)?,
            key => body.0 = payload::any(body.0, key, layout, &mut Odd::new())?,
        }
    }
    Some(false)
}

/// Checks BLOB-10: the bytes end where a module begins.
fn lacks_module(body: &mut In<'_>) -> bool {
    let rows = tree::read(body, &mut Odd::new()).unwrap_or_default();
    let mut libraries = 0;
    for _ in rows {
        if body.0.is_empty() {
            return true;
        }
        // Any error inside a module breaks its own rule.
        let kept = match kind(body) {
            Some("_lib") => {
                libraries += 1;
                libraries < 2
            }
            Some(key) => body.bytes().is_some_and(|inside| {
                let opaque = inside.is_empty() || payload::forms(key, Layout::V0_22).is_empty();
                opaque || payload::any(inside, key, Layout::V0_22, &mut Odd::new()).is_some()
            }),
            None => false,
        };
        if !kept {
            return false;
        }
    }
    false
}

fn kind<'a>(body: &mut In<'a>) -> Option<&'a str> {
    body.text().filter(|kind| !kind.is_empty() && !kind.contains('\0'))
}

fn framed(body: &mut In<'_>, odd: &mut Odd) -> Option<(Modules, Option<Vec<Vec<u64>>>)> {
    let layout = Layout::V0_22;
    let rows = tree::read(body, odd)?;
    let mut modules = Vec::new();
    for _ in &rows {
        let kind = kind(body)?;
        let payload = match kind {
            "_lib" => None,
            _ => {
                let inside = body.bytes()?;
                if !inside.is_empty() && !payload::forms(kind, layout).is_empty() {
                    payload::any(inside, kind, layout, &mut Odd::new())?;
                }
                Some(inside.len())
            }
        };
        if payload == Some(0) {
            odd.insert("BLOB-15".into());
        }
        modules.push((kind.to_owned(), payload));
    }
    Some((modules, Some(rows)))
}

fn streamed(body: &mut In<'_>, layout: Layout, odd: &mut Odd) -> Option<(Modules, Option<Vec<Vec<u64>>>)> {
    let count = body.u64()?;
    if count > body.0.len() as u64 {
        return None;
    }
    let (mut modules, mut rows) = (Vec::new(), None);
    for _ in 0..count {
        // BLOB-07 and BLOB-08: the tree occurs once, after all modules.
        if rows.is_some() {
            return None;
        }
        match kind(body)? {
            "_lib" | "_import_tree" if layout == Layout::V0_2 => return None,
            "_import_tree" => rows = Some(tree::read(body, odd)?),
            "_lib" => modules.push(("_lib".to_owned(), None)),
            // BLOB-05, and BLOB-06: the end of an unknown kind cannot be found. Findings inside a payload belong to another chapter.
            kind => {
                let rest = payload::any(body.0, kind, layout, &mut Odd::new())?;
                modules.push((kind.to_owned(), Some(body.0.len() - rest.len())));
                body.0 = rest;
            }
        }
    }
    if layout != Layout::V0_2 && count > 0 && rows.as_ref()?.len() != modules.len() {
        return None;
    }
    if count == 0 && !body.0.is_empty() {
        odd.insert("BLOB-16".into());
        body.0 = &[];
    }
    Some((modules, rows))
}
