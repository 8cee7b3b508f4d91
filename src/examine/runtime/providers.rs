//! The libraries that add a global function or a C function to a runtime.

use crate::examine::loading::exported;
use crate::examine::loading::global_functions::{FUNCTIONS, FunctionRow};
use crate::release::{Release, Releases};

/// Returns whether C++ code of any release registers the global function `name`.
pub(super) fn is_native(name: &str) -> bool {
    let rows = FUNCTIONS.get(name);
    rows.is_some_and(|rows| rows.iter().any(|row| row.is_native()))
}

/// Describes the libraries or build options that add the global function `name` to a runtime of the releases `asked`.
pub(super) fn describe_providers(name: &str, asked: Releases) -> String {
    let Some(rows) = FUNCTIONS.get(name) else {
        return format!(
            "no runtime of {} to {}: the library or program that has it must register it first",
            Release::FIRST,
            Release::LAST
        );
    };
    let fitting = rows.iter().find(|row| row.is_in(asked.until));
    if let Some(row) = fitting {
        return row_in_words(*row);
    }
    let newest = rows
        .iter()
        .max_by_key(|row| row.ranges().map(|range| range.until).max());
    let brought_by = newest.map_or_else(String::new, |row| row_in_words(*row));
    let ranges = rows.iter().flat_map(|row| row.ranges());
    format!("{brought_by}; in {} only", in_words(ranges))
}

fn row_in_words(row: FunctionRow) -> String {
    let options = row.options_in_words();
    match (row.options, row.place) {
        ("python", module) => format!("Python's `{module}`, which has to be imported first"),
        ("-", "-") => "every runtime of that release, built as it comes".to_owned(),
        ("-", library) => format!("the library lib{library}.so beside the runtime"),
        (_, "-") => format!("a runtime built with {options}"),
        (_, library) => {
            format!("the library lib{library}.so beside a runtime built with {options}")
        }
    }
}

/// Formats ranges of releases as text. A range that ends at the last known release reads "and later".
pub(super) fn in_words(ranges: impl Iterator<Item = Releases>) -> String {
    let ranges = Releases::joined(ranges)
        .into_iter()
        .map(|range| match range {
            Releases { since, until } if since == until => since.to_string(),
            Releases { since, until } if until == Release::LAST => format!("{since} and later"),
            Releases { since, until } => format!("{since} to {until}"),
        });
    ranges.collect::<Vec<_>>().join(", ")
}

/// Describes which releases export the C function `name`.
pub(super) fn exported_by(name: &str) -> String {
    format!("runtimes of {}", in_words(exported(name).iter().copied()))
}
