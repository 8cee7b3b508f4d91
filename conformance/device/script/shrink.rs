//! The smallest script that still differs.

use super::{Minimal, Step};

/// The smallest script that still differs: steps away, then numbers down, until nothing helps.
pub(super) fn shrink(
    differs: &dyn Fn(&[Step]) -> Option<String>,
    script: Vec<Step>,
    difference: String,
) -> Minimal {
    let before = script.len();
    let mut best = (script, difference);
    // A device with a clock of its own may need more than one try to fail again.
    let fails = |script: &[Step]| (0..3).find_map(|_| differs(script));
    loop {
        let size_before = weight(&best.0);
        // Halves first: most steps of a random script have nothing to do with what differs.
        let mut chunk = best.0.len().div_ceil(2);
        while chunk > 0 {
            let mut at = 0;
            while at < best.0.len() {
                let mut candidate = best.0.clone();
                candidate.drain(at..(at + chunk).min(candidate.len()));
                match fails(&candidate) {
                    Some(difference) => best = (candidate, difference),
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        for at in 0..best.0.len() {
            for smaller in best.0.get(at).map(smaller).unwrap_or_default() {
                let mut candidate = best.0.clone();
                candidate[at] = smaller;
                // The list was made of the step as it was: one that was taken meanwhile may be smaller than the next of it.
                if weight(&candidate) < weight(&best.0)
                    && let Some(difference) = fails(&candidate)
                {
                    best = (candidate, difference);
                }
            }
        }
        // A number that became smaller may let a step go that was needed before, so all of it is tried again.
        if weight(&best.0) >= size_before {
            return Minimal {
                script: best.0,
                difference: best.1,
                before,
            };
        }
    }
}

/// What shrinking makes smaller: steps first, then the numbers in them.
fn weight(script: &[Step]) -> (usize, usize) {
    let numbers = |step: &Step| match *step {
        Step::Alloc {
            slot,
            nbytes,
            workspace,
        } => usize::from(slot) + nbytes + usize::from(workspace),
        Step::Free { slot } => usize::from(slot),
        Step::Write {
            slot,
            offset,
            nbytes,
            seed,
            stream,
        } => usize::from(slot) + offset + nbytes + usize::from(seed) + usize::from(stream),
        Step::Read {
            slot,
            offset,
            nbytes,
            stream,
        } => usize::from(slot) + offset + nbytes + usize::from(stream),
        Step::Copy {
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            stream,
        } => {
            usize::from(from)
                + from_offset
                + usize::from(to)
                + to_offset
                + nbytes
                + usize::from(stream)
        }
        Step::Sync { stream } => usize::from(stream),
        Step::Order { before, after } => usize::from(before) + usize::from(after),
    };
    (script.len(), script.iter().map(numbers).sum())
}

/// The same step with smaller numbers, boldest first.
fn smaller(step: &Step) -> Vec<Step> {
    let towards = |n: usize, least: usize| {
        [least, n / 2, n.saturating_sub(1)]
            .into_iter()
            .filter(move |m| *m >= least && *m < n)
    };
    let mut list = Vec::new();
    match step.clone() {
        Step::Alloc {
            slot,
            nbytes,
            workspace,
        } => {
            list.extend(towards(nbytes, 1).map(|nbytes| Step::Alloc {
                slot,
                nbytes,
                workspace,
            }));
            // Plain memory in the place of workspace shows that the pool has no part in what differs.
            if workspace {
                list.push(Step::Alloc {
                    slot,
                    nbytes,
                    workspace: false,
                });
            }
        }
        Step::Write {
            slot,
            offset,
            nbytes,
            seed,
            stream,
        } => {
            let (seed, stream) = (usize::from(seed), usize::from(stream));
            let with = |offset, nbytes, seed, stream| Step::Write {
                slot,
                offset,
                nbytes,
                seed: seed as u8,
                stream: stream as u8,
            };
            list.extend(towards(offset, 0).map(|n| with(n, nbytes, seed, stream)));
            list.extend(towards(nbytes, 1).map(|n| with(offset, n, seed, stream)));
            list.extend(towards(stream, 0).map(|n| with(offset, nbytes, seed, n)));
            list.extend(towards(seed, 1).map(|n| with(offset, nbytes, n, stream)));
        }
        Step::Read {
            slot,
            offset,
            nbytes,
            stream,
        } => {
            let stream = usize::from(stream);
            let with = |offset, nbytes, stream| Step::Read {
                slot,
                offset,
                nbytes,
                stream: stream as u8,
            };
            list.extend(towards(offset, 0).map(|n| with(n, nbytes, stream)));
            list.extend(towards(nbytes, 1).map(|n| with(offset, n, stream)));
            list.extend(towards(stream, 0).map(|n| with(offset, nbytes, n)));
        }
        Step::Copy {
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            stream,
        } => {
            let stream = usize::from(stream);
            let with = |from_offset, to_offset, nbytes, stream| Step::Copy {
                from,
                from_offset,
                to,
                to_offset,
                nbytes,
                stream: stream as u8,
            };
            list.extend(towards(from_offset, 0).map(|n| with(n, to_offset, nbytes, stream)));
            list.extend(towards(to_offset, 0).map(|n| with(from_offset, n, nbytes, stream)));
            list.extend(towards(nbytes, 1).map(|n| with(from_offset, to_offset, n, stream)));
            list.extend(towards(stream, 0).map(|n| with(from_offset, to_offset, nbytes, n)));
        }
        Step::Sync { stream } => {
            list.extend(towards(usize::from(stream), 0).map(|n| Step::Sync { stream: n as u8 }))
        }
        Step::Order { .. } | Step::Free { .. } => {}
    }
    list
}
