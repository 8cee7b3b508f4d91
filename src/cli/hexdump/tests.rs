//! Dumps of a few fields, at several widths.

use super::*;
use tvmspec::wire::WIRE_02;

/// A field of rule WIRE-02.
fn span(start: u64, end: u64, field: &str, value: &str) -> Span {
    Span {
        start,
        end,
        field: field.into(),
        rule: WIRE_02,
        value: value.into(),
    }
}

/// The whole dump.
fn text(dump: &Hexdump<'_>) -> String {
    let mut text = String::new();
    dump.render(&mut text).expect("a String takes everything");
    text
}

#[test]
fn a_row_shows_offset_bytes_field_value_and_rule() {
    let bytes = 52u64.to_le_bytes();
    let dump = Hexdump {
        bytes: &bytes,
        spans: &[span(0, 8, "nbytes", "52")],
        marks: &[],
        whole: false,
        from: 0,
        to: None,
        columns: None,
    };
    assert_eq!(
        text(&dump),
        "0000  34 00 00 00 00 00 00 00   nbytes = 52  WIRE-02\n"
    );
}

#[test]
fn a_longer_name_moves_its_own_value_alone() {
    let spans = [
        span(0, 1, "code", "3"),
        span(1, 2, &"dtype.".repeat(9), "64"),
        span(2, 3, "lanes", "1"),
    ];
    let mark = |offset: u64| Mark {
        offset,
        style: Style::new(),
        head: "PAY-01 broken:".into(),
        text: "here".into(),
    };
    let mut dump = Hexdump {
        bytes: &[3, 64, 1],
        spans: &spans,
        marks: &[mark(2)],
        whole: false,
        from: 0,
        to: None,
        columns: None,
    };
    let long = "dtype.".repeat(9);
    let blanks = " ".repeat(21);
    assert_eq!(
        text(&dump),
        format!(
            "0000  03{blanks}   code  = 3   WIRE-02\n0001  40{blanks}   {long} = 64\n\
             0002  01{blanks}   lanes = 1           <- PAY-01 broken: here\n"
        )
    );
    // What does not fit into a line goes on below.
    dump.columns = Some(52);
    let shown = text(&dump);
    let indent = " ".repeat(32);
    assert!(
        shown.ends_with(&format!(
            "lanes = 1\n{indent}<- PAY-01 broken:\n{indent}here\n"
        )),
        "{shown}"
    );
}

#[test]
fn a_value_is_cut_to_the_line() {
    let bytes = [7; 30];
    let mut dump = Hexdump {
        bytes: &bytes,
        spans: &[span(0, 30, "name", "abcdefghijklmnopqrstuvwxyzabcd")],
        marks: &[],
        whole: false,
        from: 0,
        to: None,
        columns: None,
    };
    assert!(text(&dump).contains("= abcdefghijklmnopqrstuvwxyzabcd  WIRE-02\n"));
    dump.columns = Some(72);
    let shown = text(&dump);
    assert!(
        shown.contains("= abcdefghijklmnopqrstu...  WIRE-02\n"),
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.len() <= 72), "{shown}");
    dump.whole = true;
    assert!(text(&dump).contains("abcd  WIRE-02\n"));
}

#[test]
fn the_middle_of_long_fields_and_runs_is_left_out_unless_asked_for() {
    let bytes = vec![7; 800];
    let mut spans = vec![span(0, 400, "code", "")];
    spans.extend((0..50).map(|i| span(400 + i * 8, 408 + i * 8, &format!("words[{i}]"), "")));
    let mark = Mark {
        offset: 400 + 8 * 20,
        style: Style::new(),
        head: "PAY-01 broken:".into(),
        text: "here".into(),
    };
    let mut dump = Hexdump {
        bytes: &bytes,
        spans: &spans,
        marks: &[mark],
        whole: false,
        from: 0,
        to: None,
        columns: None,
    };
    let shown = text(&dump);
    assert!(shown.contains("376 more bytes"), "{shown}");
    assert!(shown.contains("42 more"), "{shown}");
    assert!(
        shown.contains("<- PAY-01 broken: here"),
        "a marked row is never left out"
    );
    dump.whole = true;
    assert_eq!(text(&dump).lines().count(), 100);
}
