//! How an account is printed: the columns of `explain`. `color` paints the lines by the words that they begin with.

use crate::cli::output::line_of;
use crate::cli::table::wrap;
use std::fmt::Write as _;
use tvmspec::examine::explain::{Account, MachineFindings};
use tvmspec::release::Releases;

/// How wide the left column is, with the blanks on both sides of it; lines below the first leave it empty.
const BESIDE: usize = 19;

/// The account for people: why it is not loadable as it is, each range of releases with what happens there, what the
/// machine lacks, and what each module needs.
pub(super) fn text(account: &Account) -> String {
    let mut out = format!("{}\n", line_of(&account.title));
    // First, because nothing below holds until the file is linked or unpacked.
    if let Some(raw) = account.raw {
        out.push('\n');
        for line in wrap(&format!("NOT LOADABLE AS IT IS: {raw}"), 0) {
            let _ = writeln!(out, "{line}");
        }
    }
    if !account.loads.is_empty() {
        out.push('\n');
    }
    for (releases, load) in &account.loads {
        let range = range(*releases);
        let lines = wrap(&load.to_string(), BESIDE);
        for (index, line) in lines.iter().enumerate() {
            let range = if index == 0 { range.as_str() } else { "" };
            let _ = writeln!(out, "  {range:<16} {line}");
        }
    }
    if let Some(looked_at) = account.looked_at {
        let lines = wrap(looked_at, BESIDE);
        for (index, line) in lines.iter().enumerate() {
            let what = if index == 0 { "looked at" } else { "" };
            let _ = writeln!(out, "  {what:<16} {line}");
        }
    }
    out.push_str(&here(&account.here));
    for need in &account.needs {
        let _ = writeln!(
            out,
            "\nmodule {} {}: {}",
            need.module,
            line_of(&need.kind),
            line_of(&need.about)
        );
        if need.loaders.is_empty() {
            let _ = writeln!(out, "  loader           none is registered in any release");
        }
        for (releases, name) in &need.loaders {
            let _ = writeln!(out, "  {:<16} {}", range(*releases), line_of(name));
        }
        let lines = wrap(&need.registered_by, BESIDE);
        for (index, line) in lines.iter().enumerate() {
            let what = if index == 0 { "registered by" } else { "" };
            let _ = writeln!(out, "  {what:<16} {line}");
        }
        if let Some(renamed) = &need.renamed {
            let _ = writeln!(out, "  {:<16} {}", "renamed", line_of(renamed));
        }
    }
    for remark in &account.remarks {
        out.push('\n');
        for line in wrap(remark, 0) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// What keeps this machine from loading the file, in lines; empty if nothing does.
fn here(here: &MachineFindings) -> String {
    let mut out = String::new();
    // Those that are here are in the JSON alone: a reader wants to know what is in the way.
    let missing = here.libraries.iter().filter(|(_, found)| !found);
    let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
    let mut paragraph = |text: &str| {
        out.push('\n');
        for line in wrap(text, 0) {
            let _ = writeln!(out, "{line}");
        }
    };
    if let Some(foreign) = &here.foreign {
        paragraph(&format!("NOT ON THIS MACHINE: {foreign}."));
    }
    if !missing.is_empty() {
        paragraph(&format!(
            "NOT ON THIS MACHINE: it needs {}, which cannot be found here. Install it, or name its folder in LD_LIBRARY_PATH.",
            missing.join(", ")
        ));
    // A library that is missing may define the functions that are: only where none is missing is anything known of
    // them.
    } else if !here.absent.is_empty() {
        let names: Vec<String> = here
            .absent
            .iter()
            // They are mostly of one library, which a few of them show.
            .take(8)
            // Names of the file, which end up in a sentence of ours.
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        paragraph(&format!(
            "NOT ON THIS MACHINE: it calls {}, which neither the libraries that it needs define here nor those of C and C++. Unless the program that opens it has them, opening it fails, or the first such call ends the process.",
            names.join(", ")
        ));
    }
    out
}

/// A range of releases for the left column: `tvm 0.7 to 0.20`, or `tvm 0.21` for one alone.
fn range(releases: Releases) -> String {
    let Releases { since, until } = releases;
    if since == until {
        format!("tvm {since}")
    } else {
        format!("tvm {since} to {until}")
    }
}
