//! The verdict of each release on a tensor cache.

use super::account::{Account, loads};
use crate::examine::loading::Load;
use crate::examine::{Reading, Subject, base_name};
use crate::release::Release;
use crate::rule::{Detail, Violation};

/// Reports the index of a tensor cache, and the shards that were read.
pub(super) fn cache(subject: &Subject<'_>, only: Option<Release>) -> Account {
    let name = base_name(subject.name);
    let index = subject.json().unwrap_or_default();
    let read = std::iter::once(&index).chain(subject.shards.iter().map(|shard| &shard.reading));
    let readings: Vec<&Reading> = read.collect();
    let broken: Vec<&Violation> = readings
        .iter()
        .filter_map(|read| read.broken.as_ref())
        .collect();
    // TEN-57, TEN-59: loaders use data in another encoding as raw bytes, and lose one of two tensors with the same name.
    let odd = readings
        .iter()
        .flat_map(|read| &read.findings)
        .find(|finding| matches!(finding.rule.id(), "TEN-57" | "TEN-59"));
    let load = |release: Release| {
        let Some(wanted) = index_name(release) else {
            return Load::fails("it has no tensor caches");
        };
        // TEN-50: the C++ loader takes a folder and looks for a fixed file name. The Python loader accepts any name.
        if name != wanted {
            return Load::fails(format!(
                "its C++ loader looks for `{wanted}`: copy the index to that name, or give its path to the loader of Python, `tvm.contrib.tvmjs`"
            ));
        }
        match broken.iter().map(|broken| outcome(broken, release)).next() {
            Some(load) => load,
            None if let Some(odd) = odd => Load::silent(format!(
                "it loads it, and its weights may be others: {}{}",
                odd.message,
                if odd.rule.id() == "TEN-59" {
                    "; the last one counts"
                } else {
                    ""
                }
            )),
            None => Load::loads(format!(
                "by `vm.builtin.{}_cache.load` and `tvm.contrib.tvmjs`",
                if release < Release::of(22) {
                    "ndarray"
                } else {
                    "tensor"
                }
            )),
        }
    };
    let title = format!("{}: index of a tensor cache", subject.name);
    let mut account = Account::new(title, loads(only, load));
    let cache = subject.tensor_cache().unwrap_or_default();
    let unread = cache.shards.len().saturating_sub(subject.shards.len());
    if unread > 0 {
        account.remarks.push(format!(
            "{unread} of {} shards were not checked: only the index was read, or they are not in its folder.",
            cache.shards.len()
        ));
    }
    let findings = readings.iter().flat_map(|read| &read.findings);
    account.remarks.extend(
        findings
            .filter(|finding| matches!(finding.rule.id(), "TEN-58" | "TEN-60"))
            .map(|finding| match finding.rule.id() {
                "TEN-58" => format!(
                    "No release compares MD5 sums, so that damaged weights load without an error: {}.",
                    finding.message
                ),
                _ => format!("The C++ loader does not look for it, but {}.", finding.message),
            }),
    );
    account
}

/// Returns the name that the C++ loader of `release` expects for the index; `None` if it has no such loader.
fn index_name(release: Release) -> Option<&'static str> {
    match release.minor() {
        ..=15 => None,
        16..=21 => Some("ndarray-cache.json"),
        22.. => Some("tensor-cache.json"),
    }
}

/// Returns the verdict of the C++ loader of `release` on a tensor cache that breaks a rule.
fn outcome(broken: &Violation, release: Release) -> Load {
    match broken.rule().id() {
        // Tested with 0.19 and 0.27: memory after the shard becomes the weights, or the process ends.
        "TEN-55" => Load::silent(format!(
            "it does not compare, and takes memory outside of the shard for weights, or ends the process: {broken}"
        )),
        // TEN-52: with a negative offset the loader reads before the start of the shard.
        "TEN-52"
            if broken.field().ends_with("byteOffset")
                && broken.detail() == Some(Detail::Negative) =>
        {
            Load::silent(format!("it reads memory before the shard: {broken}"))
        }
        "TEN-56" if broken.detail() == Some(Detail::NoSize) => Load::unknown(format!(
            "in {release} the shape is not compared with its sign: {broken}"
        )),
        _ => Load::fails(broken.to_string()),
    }
}
