//! Reports of runs in this process.
#![cfg(feature = "suite")]

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;
use tvmspec::conformance::adapter::liar::Liar;
use tvmspec::conformance::adapter::{Adapter, Identity, InProcess, Reply, Testee};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{Report, Run, run};

/// Returns the report of an implementation with this name, for the cases that match the pattern.
fn run_on(testee: &mut dyn Adapter, implementation: &str, case: &str) -> Report<'static> {
    let mut order = Run::default();
    order.selection.cases = vec![case.into()];
    order.implementation = implementation.into();
    order.crashes = 0;
    run(Suite::expect_ours(), testee, &order).unwrap()
}

fn report(liar: Liar, case: &str) -> Report<'static> {
    run_on(&mut InProcess(liar), &format!("liar:{}", liar.name()), case)
}

#[test]
fn every_form_names_suite_implementation_and_all_verdicts() {
    let report = report(Liar::RejectAll, "wire/*");
    for (name, form) in ReportFormat::ALL {
        let text = render(form, &report);
        assert!(text.contains(&report.suite[..12]), "{name} names the suite");
        assert!(
            text.contains("liar:reject-all"),
            "{name} names the implementation"
        );
        for (verdict, count) in report.totals().iter() {
            // The page counts the verdicts that occur.
            let is_counted = count > 0 || form != ReportFormat::Html;
            assert!(
                !is_counted || text.contains(verdict),
                "{name} counts {verdict}"
            );
        }
        assert!(text.ends_with('\n'), "{name} ends with a line break");
    }
}

#[test]
fn a_failure_says_all_that_helps() {
    let text = render(
        ReportFormat::Text,
        &report(Liar::AcceptAll, "wire/*-truncated"),
    );
    for part in [
        "rule",
        "why",
        "expected",
        "actual",
        "again",
        "tvmspec check --impl liar:accept-all --case wire/",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(text.contains("<-"), "no byte is marked in\n{text}");
}

#[test]
fn the_table_of_a_rule_keeps_its_rows_and_a_magic_is_hex() {
    let dtype = report(Liar::AcceptAll, "tensor/read-bfloat-*");
    let text = render(ReportFormat::Text, &dtype);
    assert!(text.contains("\n            | code | name |"), "{text}");
    assert!(text.contains("\n            | 1 | `uint` |"), "{text}");
    let rows = "  | code | name | releases | bits if the text has none |\n  |---|";
    assert!(render(ReportFormat::Markdown, &dtype).contains(rows));
    let rows = "<tr><td>1</td><td><code>uint</code></td>";
    assert!(render(ReportFormat::Html, &dtype).contains(rows));
    let magic = render(
        ReportFormat::Text,
        &report(Liar::AcceptAll, "tensor/magic-wrong"),
    );
    assert!(magic.contains("magic = 0xdd5e40f096b4a13e"), "{magic}");
}

#[test]
fn words_are_quoted_for_a_shell() {
    let text = |implementation: &str| {
        let report = run_on(
            &mut InProcess(Liar::RejectAll),
            implementation,
            "wire/*#encode",
        );
        render(ReportFormat::Text, &report)
    };
    assert!(text("exec:./a b").contains("--impl 'exec:./a b' --case 'wire/"));
    assert!(text("mine").contains("--impl mine --case 'wire/"));
}

/// Testee that crashes with this text.
struct Crashing(&'static str);

impl Testee for Crashing {
    fn identity(&self) -> Identity {
        Identity {
            name: "crashing".into(),
            version: "1".into(),
            ..Identity::default()
        }
    }

    fn answer(&mut self, _: &str, _: &Value) -> Reply {
        Reply::Crash(self.0.into())
    }
}

/// Text of a testee appears in attributes and in text nodes.
#[test]
fn any_text_is_carried_by_well_formed_xml() {
    let text = "\u{0}\u{1b}[2J</error>\"'<&>]]>\u{ffff}é";
    let report = run_on(&mut InProcess(Crashing(text)), "crashing", "wire/*");
    let xml = render(ReportFormat::Junit, &report);
    let mut reader = Reader::from_str(&xml);
    let mut carried = 0;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) if start.name().as_ref() == "error" => {
                let message = start.try_get_attribute("message").unwrap().unwrap();
                let value = message.normalized_value(quick_xml::XmlVersion::default());
                let value = value.unwrap();
                assert!(
                    value.contains("[2J</error>\"'<&>]]>") && value.contains('é'),
                    "{value}"
                );
                carried += 1;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(carried, report.results.len());
}

#[test]
fn nothing_unseen_is_left_of_an_answer_and_a_long_one_is_cut() {
    let reason = |text: &'static str| {
        let report = run_on(&mut InProcess(Crashing(text)), "crashing", "wire/*");
        report.results[0].verdict.reason()
    };
    assert_eq!(
        reason("a\u{1b}[2J\0\rb\n\u{9b}31m\u{202e}c\u{2028}\u{feff}"),
        "a\\u{1b}[2J\\u{0}\\rb\n\\u{9b}31m\\u{202e}c\\u{2028}\\u{feff}"
    );
    assert_eq!(reason("größer ⟨x⟩"), "größer ⟨x⟩");
    let long = reason("é".repeat(5_000).leak());
    assert_eq!(long.matches('é').count(), 4_000);
    assert!(long.ends_with("... (10000 bytes)"), "{long}");
}
