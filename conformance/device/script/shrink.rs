//! Reduction to the smallest script that still differs.

use super::order::without_races;
use super::{Minimal, Step};
use serde_json::{Value, json};

/// Returns the smallest script that still differs. Removes steps, then lowers numbers and removes streams, until nothing helps.
pub(super) fn shrink(
    differs: &dyn Fn(&[Step]) -> Option<String>,
    script: Vec<Step>,
    difference: String,
) -> Minimal {
    let before = script.len();
    let mut best = (script, difference);
    // A device with its own clock may need several tries to fail again.
    let fails = |script: &[Step]| (0..3).find_map(|_| differs(script));
    loop {
        let size_before = weight(&best.0);
        // Halves come first, because most steps of a random script do not matter.
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
                // The list was made from the original step. A candidate taken in the meantime may be smaller than the next one.
                if weight(&candidate) < weight(&best.0)
                    && let Some(difference) = fails(&candidate)
                {
                    best = (candidate, difference);
                }
            }
        }
        // A smaller number may make another step unnecessary, so everything is tried again.
        if weight(&best.0) >= size_before {
            return Minimal {
                script: without_races(&best.0),
                difference: best.1,
                before,
            };
        }
    }
}

/// Returns the size that shrinking reduces: steps first, then the numbers in them, then their names.
fn weight(script: &[Step]) -> (usize, u64, usize) {
    let members = || script.iter().flat_map(|step| &step.0);
    let numbers = members().filter_map(Value::as_u64);
    let names = members().filter(|member| member.is_string());
    (script.len(), numbers.sum(), names.count())
}

/// Returns the step with the default stream instead of another, or with a smaller number, boldest first.
fn smaller(step: &Step) -> Vec<Step> {
    let mut list = Vec::new();
    for (at, member) in step.0.iter().enumerate().skip(1) {
        let smaller = match member.as_u64() {
            Some(number) => vec![json!(0), json!(number / 2), json!(number.saturating_sub(1))],
            None if member.is_string() => vec![Value::Null],
            None => Vec::new(),
        };
        for member in smaller {
            let mut step = step.clone();
            step.0[at] = member;
            list.push(step);
        }
    }
    list
}
