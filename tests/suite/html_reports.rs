//! The HTML report: its size, and the lines that each failure has in it.
#![cfg(feature = "suite")]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use std::collections::BTreeSet;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::liar::Liar;
use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::known_failures::KnownFailures;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{Report, Run, run};

/// A page of 11,000 cases stays below this size.
const MOST_BYTES: usize = 2_000_000;

/// Returns the report of a testee that is judged by the cases of these chapters, or of all if there are none.
fn report(testee: impl Testee, chapters: &[&str], change: impl Fn(&mut Run)) -> Report<'static> {
    let mut order = Run::default();
    order.selection.chapters = chapters.iter().map(|name| (*name).to_owned()).collect();
    (order.hangs, order.crashes) = (0, 0);
    change(&mut order);
    run(Suite::expect_ours(), &mut InProcess(testee), &order).unwrap()
}

/// Returns the data of the script.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("const DATA = \"").expect("the data");
    let (packed, _) = rest.split_once('"').unwrap();
    let packed = BASE64_STANDARD.decode(packed).unwrap();
    serde_json::from_reader(ZlibDecoder::new(packed.as_slice())).unwrap()
}

/// Returns the ids of the failures that are described, and of those that are listed by reason.
fn failures(page: &str) -> (Vec<&str>, Vec<&str>) {
    let parts = |begin: &'static str, end: &'static [char]| {
        let parts = page.split(begin).skip(1);
        parts.map(move |part| part.split(end).next().unwrap())
    };
    let described = parts("class=\"failure\" id=\"", &['"']);
    (described.collect(), parts("<li>", &['<', '\n']).collect())
}

/// Testee that crashes on each case with another long text, which is longer when escaped.
struct Verbose {
    answered: usize,
}

impl Testee for Verbose {
    fn identity(&self) -> Identity {
        Identity {
            name: "verbose ".repeat(1_000),
            version: "1".to_owned(),
            ..Identity::default()
        }
    }

    fn answer(&mut self, _: &str, _: &Value) -> Reply {
        self.answered += 1;
        Reply::Crash(format!("{}{}", self.answered, "<&>".repeat(3_000)))
    }
}

/// Testee that supports nothing, and states another long reason for each case.
struct Useless {
    answered: usize,
}

impl Testee for Useless {
    fn identity(&self) -> Identity {
        Identity {
            name: "useless".to_owned(),
            version: "1".to_owned(),
            ..Identity::default()
        }
    }

    fn answer(&mut self, op: &str, _: &Value) -> Reply {
        self.answered += 1;
        let numbers = (0..200).map(|at| self.answered * at % 7919);
        let noise: String = numbers.map(|number| number.to_string()).collect();
        Reply::Unsupported(format!("{op}: {noise}"))
    }
}

#[test]
fn every_failure_of_a_whole_run_has_a_line() {
    let is_complete = |run: &mut Run| run.complete = true;
    for (name, report) in [
        ("constant", report(Liar::Constant, &[], |_| {})),
        ("echo", report(Liar::Echo, &[], |_| {})),
        ("garbage", report(Liar::Garbage, &[], |_| {})),
        ("verbose", report(Verbose { answered: 0 }, &[], |_| {})),
        ("useless", report(Useless { answered: 0 }, &[], is_complete)),
    ] {
        let page = render(ReportFormat::Html, &report);
        assert!(page.len() < MOST_BYTES, "{name}: {} bytes", page.len());
        let (described, listed) = failures(&page);
        let shown: BTreeSet<&str> = described.iter().chain(&listed).copied().collect();
        assert_eq!(shown.len(), described.len() + listed.len(), "{name}");
        let failing = report.results.iter().filter(|outcome| outcome.fails);
        let failing: BTreeSet<&str> = failing.map(|outcome| outcome.case.id.as_str()).collect();
        assert!(failing.len() > 10_000, "{name}: {}", failing.len());
        assert_eq!(shown, failing, "{name}");
        // The descriptions are spread over the chapters.
        assert!(described.len() >= 20, "{name}: {}", described.len());
        let chapters = |list: &[&str]| -> BTreeSet<String> {
            let chapters = list.iter().map(|id| id.split('/').next().unwrap());
            chapters.map(str::to_owned).collect()
        };
        assert_eq!(
            chapters(&described).len(),
            report.chapters().len(),
            "{name}"
        );
        // Each reason precedes its cases.
        assert!(
            page.split("<ul>")
                .skip(1)
                .all(|list| list.starts_with("<li>"))
                && page.matches("<p><b class=\"bad\">").count() == page.matches("<ul>").count(),
            "{name}"
        );
        assert_eq!(
            data(&page)["cases"].as_array().unwrap().len(),
            report.results.len()
        );
    }
}

#[test]
fn a_case_without_a_failure_is_one_row_of_data() {
    let report = report(BuiltinTestee, &["payload"], |_| {});
    assert!(report.is_good());
    let page = render(ReportFormat::Html, &report);
    assert!(page.contains(": no failures</title>"));
    assert_eq!(failures(&page), (vec![], vec![]));
    let data = data(&page);
    let rows = data["cases"].as_array().unwrap();
    assert!(rows.len() > 1_000, "{} rows", rows.len());
    for row in rows {
        let row = row.as_array().unwrap();
        assert!(
            row.len() == 3 && row[0].as_str().unwrap().starts_with("payload/"),
            "{row:?}"
        );
    }
    assert!(page.len() < rows.len() * 150, "{} bytes", page.len());
}

/// Known failures are a section of their own, and the table links a chapter to the section that has its failures.
#[test]
fn the_table_links_to_the_failures_of_a_chapter() {
    let known = "[[known]]\ncase = \"wire/*\"\nverdict = \"fail\"\nreason = \"a <known> reason\"\nurl = \"https://example.org\"\n";
    let report = report(Liar::RejectAll, &["wire", "import_tree"], |run| {
        run.known = KnownFailures::parse(known).unwrap();
    });
    let page = render(ReportFormat::Html, &report);
    for part in [
        "href=\"#known-wire\"",
        "<h3 id=\"known-wire\">",
        "href=\"#failures-import_tree\"",
        "<h3 id=\"failures-import_tree\">",
        "<h2 id=\"known\">",
        "a &lt;known&gt; reason",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("href=\"#failures-wire\""));
}
