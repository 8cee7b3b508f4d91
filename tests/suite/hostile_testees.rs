//! Testees that harm the suite: they leave processes running, answer with more than fits into memory, write without a request, and
//! send text that a report could interpret. The suite survives, and counts the failure against the right case.
#![cfg(all(feature = "cli", unix))]

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::conformance::adapter::{Identity, InProcess, Oddity, Rejection, Reply, Testee};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{Run, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tvmspec");

/// Writes a testee as a shell script, since every Unix has a shell. `$tvmspec` is our program, `$line` the request and `$id` its
/// id.
fn script(folder: &Path, body: &str) -> String {
    let file = folder.join("testee.sh");
    fs::write(&file, format!("tvmspec='{PROGRAM}'\n{body}")).unwrap();
    format!("exec:sh '{}'", file.display())
}

/// Reads requests and answers hello. For other requests, `$answer` is the answer of our own implementation.
const LOOP: &str = r#"
mkfifo "$0.to" "$0.from"
"$tvmspec" testee <"$0.to" >"$0.from" &
exec 3>"$0.to" 4<"$0.from"
while read -r line; do
    printf '%s\n' "$line" >&3
    read -r answer <&4
    id=${line#*:}; id=${id%%,*}
"#;

fn check(args: &[&str]) -> Value {
    let out = Command::new(PROGRAM)
        .args(["check", "--report", "json"])
        .args(args)
        .output()
        .unwrap();
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"))
}

/// Returns the id, verdict and reason of every case that did not pass.
fn failed_cases(report: &Value) -> Vec<(String, String, String)> {
    let results = report["results"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    results
        .filter(|result| result["verdict"] != "pass")
        .map(|result| {
            (
                text(&result["case"]),
                text(&result["verdict"]),
                text(&result["reason"]),
            )
        })
        .collect()
}

mod orphans {
    use super::*;

    /// Creates a testee with two children, one of which keeps our pipes. On Linux it also starts a daemon, and one from a child
    /// that has ended. All four would outlive the testee. Their process ids are in the file.
    fn family(folder: &Path, then: &str) -> (String, PathBuf) {
        let daemons = if cfg!(target_os = "linux") {
            "start setsid; (start setsid)"
        } else {
            "start env; (start env)"
        };
        let body = format!(
            r#"
            start() {{ "$@" sh -c 'echo $$ >>"$1"; exec sleep 86400' sh "$0.all" </dev/null >/dev/null 2>&1 & }}
            sh -c 'echo $$ >>"$1"; exec sleep 86400' sh "$0.all" &
            start env; {daemons}
            while [ "$(wc -l <"$0.all")" -lt 4 ]; do sleep 0.02; done
            {then}"#
        );
        (script(folder, &body), folder.join("testee.sh.all"))
    }

    /// Runs a line in a shell and returns whether it succeeds. Only some systems have `kill` as a separate program.
    fn sh(line: &str) -> bool {
        let status = Command::new("sh")
            .args(["-c", line])
            .stderr(Stdio::null())
            .status();
        status.unwrap().success()
    }

    /// Returns the number of process ids in the file, and the number of those that are still running.
    fn alive(file: &Path) -> (usize, usize) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let alive = text
            .lines()
            .filter(|number| sh(&format!("kill -0 {number}")));
        (text.lines().count(), alive.count())
    }

    fn left(exit: Option<i32>, then: &str, more: &[&str]) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let (testee, all) = family(folder.path(), then);
        let out = Command::new(PROGRAM)
            .args(["check", "--case", "wire/u8", "--impl", &testee])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), exit, "{out:?}");
        let (started, alive) = alive(&all);
        assert!(
            started >= 4,
            "{then}: the testee did not come to it: {out:?}"
        );
        alive
    }

    #[test]
    fn none_is_left_at_the_end() {
        assert_eq!(
            left(Some(0), "exec \"$tvmspec\" testee", &["--timeout", "60"]),
            0
        );
    }

    #[test]
    fn none_is_left_after_a_loss() {
        // A child keeps the pipes, so that each loss takes the whole time. On a busy machine the family takes long to start, and hello has
        // the same time as any other request.
        let limits = ["--timeout", "15", "--max-hangs", "1"];
        for liar in ["crash", "garbage", "hang"] {
            let then = format!("exec \"$tvmspec\" testee --liar {liar}");
            assert_eq!(left(Some(1), &then, &limits), 0, "{liar}");
        }
        // The testee exits without an answer.
        assert_eq!(left(Some(2), "exit 3", &limits), 0);
    }

    #[test]
    fn none_is_left_when_the_suite_is_signalled() {
        for name in ["TERM", "INT", "HUP"] {
            let folder = tempfile::tempdir().unwrap();
            let (testee, all) = family(folder.path(), "exec \"$tvmspec\" testee --liar hang");
            let mut suite = Command::new(PROGRAM)
                .args([
                    "check",
                    "--chapter",
                    "wire",
                    "--timeout",
                    "300",
                    "--impl",
                    &testee,
                ])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while alive(&all) != (4, 4) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(alive(&all), (4, 4), "{name}: there is nothing to end");
            assert!(sh(&format!("kill -s {name} {}", suite.id())));
            // There is a report, unless the testee has not answered hello.
            let status = suite.wait().unwrap();
            assert!(matches!(status.code(), Some(1 | 2)), "{name}: {status}");
            assert_eq!(alive(&all), (4, 0), "{name}");
        }
    }
}

/// The suite gets 1 GiB of address space, which includes code and thread stacks.
#[test]
fn an_answer_costs_what_it_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"
    n=0
    while read -r line; do
        id=${line#*:}; id=${id%%,*}
        case $n in
        0) printf '{"id":0,"ok":{"name":"flood","version":"1"}}\n' ;;
        1) head -c 64000000 /dev/zero | tr '\0' '['; echo ;;
        2) printf '{"id":%s,"ok":[0' $id; yes ,0 | head -n 7000000 | tr -d '\n'; printf ']}\n' ;;
        3) printf '{"id":%s,"ok":' $id; head -c 100000 /dev/zero | tr '\0' '['; echo ;;
        4) printf '{"id":%s,"reject":{"message":"' $id; head -c 15000000 /dev/zero | tr '\0' '<'; printf '"}}\n' ;;
        *) head -c 64000000 /dev/zero | tr '\0' '\n' ;;
        esac
        n=$((n + 1))
    done"#;
    // The suite restarts the testee after each loss, so each start sends the next flood.
    let body = body.replacen("n=0", "n=$(cat \"$0.n\" 2>/dev/null || echo 0); printf '{\"id\":0,\"ok\":{\"name\":\"flood\",\"version\":\"1\"}}\\n'; read -r line; n=$((n + 1)); echo $n >\"$0.n\"", 1);
    let testee = script(folder.path(), &body);
    let file = folder.path().join("report.json");
    let command = "ulimit -v 1048576; exec \"$0\" \"$@\"";
    let out = Command::new("sh")
        .args([
            "-c",
            command,
            PROGRAM,
            "check",
            // A rejection of any length would pass if the case expects one.
            "--case",
            "wire/*#encode",
            "--max-crashes",
            "5",
        ])
        .args(["--report", "json", "--impl", &testee, "-o"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.len() < 1 << 20, "a report of {} bytes", text.len());
    let report: Value = serde_json::from_str(&text).unwrap();
    let reasons: Vec<String> = failed_cases(&report)
        .into_iter()
        .map(|(_, _, reason)| reason)
        .collect();
    for part in [
        "more than 16 MiB",
        "more than 262144 values",
        "recursion limit",
        "<<<",
        "more than one line",
    ] {
        assert!(
            reasons.iter().any(|reason| reason.contains(part)),
            "{part}: {reasons:#?}"
        );
    }
    assert!(reasons.iter().all(|reason| reason.len() < 5000));
}

#[test]
fn a_stray_line_is_charged_to_the_case_in_flight() {
    let cases = [
        "--case", "wire/u8", "--case", "wire/u16", "--case", "wire/u32", "--case", "wire/u64",
    ];
    for (what, then) in [
        // The text arrives together with the answer, after it, or before it.
        ("together", r#"printf '%s\nall done\n' "$answer""#),
        ("behind", r#"printf '%s\n' "$answer"; printf 'all done\n'"#),
        (
            "late",
            r#"printf '%s\n' "$answer"; sleep 0.3; printf 'all done\n'"#,
        ),
        (
            "again",
            r#"printf '%s\n' "$answer"; printf '%s\n' "$answer""#,
        ),
        ("before", r#"printf 'debug\n%s\n' "$answer""#),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rest = r#"else printf '%s\n' "$answer"; fi; done"#;
        // Only requests about a u32 get the extra text.
        let body = format!("{LOOP} if [ \"${{line#*u32}}\" != \"$line\" ]; then {then}; {rest}");
        let testee = script(folder.path(), &body);
        let report = check(&[&["--impl", &testee], &cases[..]].concat());
        let wrong = failed_cases(&report);
        let ids: Vec<(&str, &str)> = wrong
            .iter()
            .map(|(id, verdict, _)| (&**id, &**verdict))
            .collect();
        assert_eq!(
            report["totals"]["pass"].as_u64(),
            Some(3),
            "{what}: {wrong:?}"
        );
        assert_eq!(ids, [("wire/u32", "protocol-error")], "{what}: {wrong:?}");
    }
}

#[test]
fn crashes_end_the_run_early_as_hangs_do() {
    let reasons = |args: &[&str]| -> Vec<String> {
        let report = check(&[&["--chapter", "wire"], args].concat());
        failed_cases(&report)
            .into_iter()
            .map(|(_, _, reason)| reason)
            .collect()
    };
    for liar in ["liar:crash", "liar:garbage"] {
        let all = reasons(&["--impl", liar, "--max-crashes", "4"]);
        let tried = all
            .iter()
            .position(|reason| reason.starts_with("not tried: 4 cases"));
        assert_eq!(tried, Some(4), "{liar}: {all:?}");
        let all = reasons(&["--impl", liar, "--max-crashes", "0"]);
        assert!(!all.iter().any(|reason| reason.starts_with("not tried")));
    }
}

/// Testee whose every text contains characters that a report must escape.
struct Scribbler {
    asked: usize,
}

const SCRIBBLE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}<script>alert(1)</script> | `x` **b** [a](b) &lt; \"q\" 'q' ]]> --> ```\n# PASS\n```\r\0\u{9b}31m\u{202e}\u{2028}\u{feff}end";

impl Testee for Scribbler {
    fn identity(&self) -> Identity {
        Identity {
            name: format!("name {SCRIBBLE}"),
            version: format!("version {SCRIBBLE}"),
            releases: vec![SCRIBBLE.into()],
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, _: &str, _: &Value) -> Reply {
        self.asked += 1;
        let text = SCRIBBLE.to_owned();
        match self.asked % 9 {
            0 => Reply::Unsupported(text),
            1 => Reply::Crash(text),
            2 => Reply::Hang(text),
            3 => Reply::OutOfMemory(text),
            4 => Reply::ProtocolError(text),
            5 => Reply::Ok {
                value: json!({SCRIBBLE: SCRIBBLE}),
                findings: None,
            },
            6 => Reply::Ok {
                value: json!(SCRIBBLE),
                findings: Some(vec![Oddity {
                    rule: text,
                    ..Oddity::default()
                }]),
            },
            7 => Reply::Skipped(text),
            _ => Reply::Reject(Rejection {
                kind: Some(text.clone()),
                message: text.clone(),
                offset: Some(u64::MAX),
                rule: Some(text.clone()),
                field: Some(text),
            }),
        }
    }
}

#[test]
fn no_report_obeys_a_testee() {
    let mut order = Run::default();
    order.selection.chapters = vec!["wire".into(), "value".into()];
    order.hangs = 0;
    order.crashes = 0;
    let report = run(
        Suite::expect_ours(),
        &mut InProcess(Scribbler { asked: 0 }),
        &order,
    )
    .unwrap();
    assert_eq!(report.totals().count("pass"), 0);
    for (name, form) in ReportFormat::ALL {
        let text = render(form, &report);
        let obeyed = |letter: char| {
            letter.is_control() && letter != '\n'
                || matches!(letter, '\u{202e}' | '\u{2028}' | '\u{feff}')
        };
        let at = text.find(obeyed);
        assert_eq!(
            at,
            None,
            "{name}: {:?}",
            at.map(|at| &text[at..text.len().min(at + 40)])
        );
        assert!(
            text.contains("\\u{1b}") || text.contains("\\\\u{1b}"),
            "{name} shows nothing of it"
        );
        // The text is escaped only by a preceding escape, Markdown backslash or entity.
        let bare = |part: &str| {
            text.match_indices(part)
                .any(|(at, _)| !text[..at].ends_with('\\'))
        };
        match form {
            ReportFormat::Html | ReportFormat::Junit => {
                // A page has two scripts: one sets its colors, the other shows the data.
                let scripts = text.matches("<script").count();
                assert_eq!(
                    scripts,
                    2 * usize::from(form == ReportFormat::Html),
                    "{name}"
                );
                assert!(
                    !text.contains("--> ```") && !text.contains("]]> --"),
                    "{name}"
                );
            }
            ReportFormat::Markdown => {
                assert!(!bare("<script") && !bare("`x`") && !bare("**b**") && !bare("[a]"));
                assert!(!text.lines().any(|line| line.starts_with("# PASS")));
            }
            ReportFormat::Text => assert!(!text.lines().any(|line| line.starts_with("# PASS"))),
            ReportFormat::Json => {
                let value: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(value["report"], 1);
            }
            other => panic!("{name}: no check of {other:?}"),
        }
    }
}

/// Output that is not valid JSON text: bytes that are not UTF-8, NUL, and the same on stderr.
#[test]
fn bytes_that_are_no_text_are_shown_as_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"
    read -r line
    printf '{"id":0,"ok":{"name":"\\u001b[31mred","version":"\\u0000"}}\n'
    while read -r line; do
        id=${line#*:}; id=${id%%,*}
        case $line in
        *u16*) printf '\377\376\000\033[2J\n' ;;
        *u32*) printf '{"id":%s,"ok":"\200"}\n' $id ;;
        *) printf '\033[2J\000\377<script>\n' >&2; exit 7 ;;
        esac
    done"#;
    let testee = script(folder.path(), body);
    for (form, _) in ReportFormat::ALL {
        let out = Command::new(PROGRAM)
            .args(["check", "--report", form, "--impl", &testee])
            .args([
                "--case", "wire/u16", "--case", "wire/u32", "--case", "wire/u8",
            ])
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(
            !text.contains(|letter: char| letter.is_control() && letter != '\n'),
            "{form}"
        );
        assert!(
            match form {
                "html" => text.matches("<script").count() == 2,
                "junit" => !text.contains("<script"),
                _ => true,
            },
            "{form}"
        );
        assert!(
            text.contains("not JSON") && text.contains("[2J"),
            "{form}: {text}"
        );
    }
}

mod signals {
    use super::*;

    /// Answers three requests, and then signals the suite twice instead of answering the fourth.
    fn signalling(folder: &Path, signal: &str) -> String {
        let body = format!(
            r#"{LOOP}
    if [ "$id" = 4 ]; then kill -{signal} $PPID; kill -{signal} $PPID; sleep 60; fi
    printf '%s\n' "$answer"
done"#
        );
        script(folder, &body)
    }

    const ARGS: [&str; 4] = ["check", "--chapter", "wire", "--impl"];

    #[test]
    fn a_signal_leaves_the_report_of_what_was_answered() {
        for signal in ["TERM", "INT", "HUP"] {
            let folder = tempfile::tempdir().unwrap();
            let testee = signalling(folder.path(), signal);
            let out = Command::new(PROGRAM)
                .args(ARGS)
                .args([&testee, "--report", "json"])
                .output()
                .unwrap();
            assert_eq!(out.status.code(), Some(1), "{out:?}");
            let report: Value = serde_json::from_slice(&out.stdout).unwrap();
            let text = format!("SIG{signal} ended the run before its last answer");
            assert_eq!(report["problems"], json!([text]), "{report}");
            let verdicts = report["results"].as_array().unwrap().iter();
            let verdicts: Vec<&str> = verdicts
                .map(|case| case["verdict"].as_str().unwrap())
                .collect();
            // A case may have several requests, and the suite decides which case the fourth belongs to.
            let answered = verdicts
                .iter()
                .take_while(|verdict| **verdict == "pass")
                .count();
            assert!((1..4).contains(&answered), "{verdicts:?}");
            let left = &verdicts[answered..];
            assert!(
                !left.is_empty() && left.iter().all(|verdict| *verdict == "skipped"),
                "{verdicts:?}"
            );
        }
    }

    /// The report file is complete in each format.
    #[test]
    fn every_form_of_a_report_outlives_a_signal() {
        for (form, begins, ends) in [
            ("text", "", "SIGTERM ended the run"),
            ("junit", "<?xml", "</testsuites>"),
            ("md", "#", "SIGTERM ended the run"),
            ("html", "<!", "</html>"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let testee = signalling(folder.path(), "TERM");
            let file = folder.path().join("report");
            let status = Command::new(PROGRAM)
                .args(ARGS)
                .args([&testee, "--report", form, "-o"])
                .arg(&file)
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(1), "{form}");
            let report = fs::read_to_string(&file).unwrap();
            assert!(
                report.starts_with(begins) && report.contains(ends),
                "{form}: {report}"
            );
        }
    }

    #[test]
    fn a_signal_before_a_hello_ends_several_testees() {
        let folder = tempfile::tempdir().unwrap();
        let testee = script(folder.path(), "sleep 0.3; kill -TERM $PPID; sleep 60");
        let out = Command::new(PROGRAM)
            .args(ARGS)
            .args([&testee, "--jobs", "3"])
            .output()
            .unwrap();
        // None of them has answered hello, so there is nothing to report.
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(text.contains("SIGTERM came before a hello"), "{text}");
    }
}
