//! Tests the table of parts that the specification does not cover: it must name the right places in upstream.

use super::{Probe, Tags, clones, root};
use crate::support::skip::skipped;
use std::fs;
use tvmspec::release::Release;

#[test]
fn what_is_not_covered_is_where_the_readme_says() {
    let mut clones = match clones() {
        Ok(clones) => clones,
        Err(why) => return skipped(why),
    };
    let clone = clones
        .get_mut("apache/tvm")
        .expect("a clone of each repository");
    let tags = Tags::read();
    let readme = fs::read_to_string(root().join("spec/README.md")).expect("the README is there");
    let table = readme
        .split_once("<!-- not covered")
        .and_then(|(_, behind)| behind.split_once("<!-- end of not covered"));
    let (table, _) = table.expect("the table is between its marks");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .collect();
    // Guards against an empty table, which would pass every check below.
    assert!(rows.len() > 10, "{} rows", rows.len());
    let mut problems = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [area, since, until, upstream, _] = cells[..] else {
            problems.push(format!("not five cells: {row}"));
            continue;
        };
        let since: Release = since.parse().expect(row);
        let until = match until {
            "" => Release::LAST,
            until => until.parse().expect(row),
        };
        let (since, until) = (since.minor(), until.minor());
        let paths: Vec<&str> = upstream.split('`').skip(1).step_by(2).collect();
        for minor in Release::FIRST.minor()..=Release::LAST.minor() {
            let is_inside = (since..=until).contains(&minor);
            // Another area may use the path later: the path of the Relay VM belongs to the Relax VM from 0.21 on.
            if !is_inside && minor + 1 != since && minor != until + 1 {
                continue;
            }
            let release = Probe {
                repository: "apache/tvm".to_owned(),
                tag: format!("0.{minor}..0.{minor}"),
                path: String::new(),
                text: String::new(),
            };
            for (_, tag) in tags.states(&release).expect("each release has a state") {
                let is_there = paths.iter().any(|path| clone.has(tag, path, ""));
                if is_there != is_inside {
                    let is = if is_there { "is" } else { "is not" };
                    problems.push(format!("{area}: {upstream} {is} in {tag}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
