//! The text form of an account, in the columns of `explain`.

use crate::cli::color::{BAD, GOOD, HEAD, ODD, StyledWrite};
use crate::cli::output::escape_line;
use crate::cli::table::wrap;
use std::fmt;
use tvmspec::examine::explain::{Account, MachineFindings};
use tvmspec::examine::loading::LoadOutcome;
use tvmspec::release::Releases;

/// The width of the left column, including the blanks on both sides. On continuation lines it is empty.
const BESIDE: usize = 19;

/// Writes the account for people: why it is not loadable as it is, the verdict for each range of releases, the obstacles on this
/// machine, and the needs of each module.
pub(super) fn text(out: &mut dyn StyledWrite, account: &Account) -> fmt::Result {
    writeln!(out, "{}", escape_line(&account.title))?;
    // Written first, because everything below applies only after the file is linked or unpacked.
    if let Some(raw) = &account.raw {
        alarm(out, "NOT LOADABLE AS IT IS", raw)?;
    }
    if !account.loads.is_empty() {
        out.write_char('\n')?;
    }
    for (releases, load) in &account.loads {
        // The first words of the verdict's text.
        let is_foreign = account.here.foreign.is_some();
        let (word, style) = match load.outcome {
            LoadOutcome::Loads if is_foreign => ("loads it", ODD),
            LoadOutcome::Loads => ("loads it", GOOD),
            LoadOutcome::Silent => ("SILENT TRAP", BAD),
            LoadOutcome::Unknown => ("unknown", ODD),
            LoadOutcome::Fails => ("fails", BAD),
        };
        let range = range(*releases);
        let text = match load.outcome {
            LoadOutcome::Loads if is_foreign => {
                format!("loads it on the machine that it is for, {}", load.why)
            }
            _ => load.to_string(),
        };
        for (index, line) in wrap(&text, BESIDE).iter().enumerate() {
            if index == 0 {
                write!(out, "  {range:<16} ")?;
                out.styled_beginning(style, word, line)?;
                out.write_char('\n')?;
            } else {
                writeln!(out, "{:BESIDE$}{line}", "")?;
            }
        }
    }
    if let Some(looked_at) = account.looked_at {
        write_labelled(out, "looked at", looked_at)?;
    }
    write_obstacles(out, &account.here)?;
    for need in &account.needs {
        out.write_char('\n')?;
        out.styled(
            HEAD,
            &format!("module {} {}", need.module, escape_line(&need.kind)),
        )?;
        writeln!(out, ": {}", escape_line(&need.about))?;
        if need.loaders.is_empty() {
            writeln!(out, "  loader           none is registered in any release")?;
        }
        for (releases, name) in &need.loaders {
            writeln!(out, "  {:<16} {}", range(*releases), escape_line(name))?;
        }
        write_labelled(out, "registered by", &need.registered_by)?;
        for code in &need.code {
            writeln!(
                out,
                "  {:<16} {}",
                "needs",
                escape_line(&format!("{} {}", code.name(), code.value()))
            )?;
        }
        for here in &need.here {
            write_labelled(out, "here", &escape_line(here))?;
        }
        if let Some(renamed) = &need.renamed {
            writeln!(out, "  {:<16} {}", "renamed", escape_line(renamed))?;
        }
    }
    for remark in &account.remarks {
        out.write_char('\n')?;
        for line in wrap(remark, 0) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Writes `text` in lines, with the word `what` in the left column of the first line.
pub(super) fn write_labelled(out: &mut dyn StyledWrite, what: &str, text: &str) -> fmt::Result {
    for (index, line) in wrap(text, BESIDE).iter().enumerate() {
        let what = if index == 0 { what } else { "" };
        writeln!(out, "  {what:<16} {line}")?;
    }
    Ok(())
}

/// Writes a paragraph that begins with `words`, which a reader must not miss.
pub(super) fn alarm(out: &mut dyn StyledWrite, words: &str, text: &str) -> fmt::Result {
    out.write_char('\n')?;
    for line in wrap(&escape_line(&format!("{words}: {text}")), 0) {
        // Only the first line begins with the words.
        out.styled_beginning(BAD, words, &line)?;
        out.write_char('\n')?;
    }
    Ok(())
}

/// Writes the reasons why this machine cannot load the file, if any.
fn write_obstacles(out: &mut dyn StyledWrite, here: &MachineFindings) -> fmt::Result {
    const NOT_HERE: &str = "NOT ON THIS MACHINE";
    // Only missing libraries are printed. The JSON also lists those that were found.
    let missing = here.libraries.iter().filter(|(_, found)| !found);
    let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
    if let Some(foreign) = &here.foreign {
        alarm(out, NOT_HERE, &format!("{foreign}."))?;
    }
    // A missing library may define missing functions, so that these are reported only if no library is missing.
    if !missing.is_empty() {
        let text = format!(
            "it needs {}, which cannot be found here. Install it, or name its folder in LD_LIBRARY_PATH.",
            missing.join(", ")
        );
        alarm(out, NOT_HERE, &text)?;
    }
    if !here.indirect.is_empty() {
        let names = here.indirect.iter();
        let names: Vec<String> = names
            .map(|(library, needs)| format!("{needs} (which {library} needs)"))
            .collect();
        let text = format!(
            "it needs {} through other libraries, which cannot be found here. Install it, or name its folder in LD_LIBRARY_PATH.",
            names.join(", ")
        );
        alarm(out, NOT_HERE, &text)?;
    }
    if !here.versions.is_empty() {
        let names = here.versions.iter();
        let names: Vec<String> = names
            .map(|(library, version)| format!("{version} of {library}"))
            .collect();
        let text = format!(
            "it needs {}, which the library that is here does not have: it was built on a newer system. Build it on one as old as this, or update the library.",
            names.join(", ")
        );
        alarm(out, NOT_HERE, &text)?;
    }
    // A missing library may define the functions.
    if missing.is_empty() && here.indirect.is_empty() && !here.absent.is_empty() {
        let names: Vec<String> = here
            .absent
            .iter()
            // Most of them belong to one library, which a few names identify.
            .take(8)
            // The names come from the file, and are escaped within the sentence.
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        let more = match here.absent.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more (--json has all)"),
        };
        let text = format!(
            "it calls {}{more}, which neither the libraries that it needs define here nor those of C and C++. Unless the program that opens it has them, opening it fails, or the first such call ends the process.",
            names.join(", ")
        );
        alarm(out, NOT_HERE, &text)?;
    }
    Ok(())
}

/// Formats a range of releases for the left column: `tvm 0.7 to 0.20`, or `tvm 0.21` for one alone.
pub(super) fn range(releases: Releases) -> String {
    let Releases { since, until } = releases;
    if since == until {
        format!("tvm {since}")
    } else {
        format!("tvm {since} to {until}")
    }
}
