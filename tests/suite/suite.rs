//! The suite is itself tested: it fails every liar, survives every loss, and says what its schema promises.
#![cfg(feature = "cli")]

#[path = "../support/schema.rs"]
mod schema;

use schema::{conforms, schema};
use serde_json::Value;
use std::process::{Command, Output};
use std::{env, fs};
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{
    Adapter, Identity, InProcess, Rejection, Reply, Testee, liar::Liar,
};
use tvmspec::conformance::case::{Breach, Case, CaseInput, Expect, Suite};
use tvmspec::conformance::known::{self, KnownFailures, glob};
use tvmspec::conformance::parts::Parts;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{Run, Selection, run};
use tvmspec::conformance::truncated::Cut;
use tvmspec::conformance::verdict::{Judgement, Verdict, judge};
use tvmspec::rule::{Kind, Level};
use tvmspec::spec;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tvmspec");

fn check(args: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("check")
        .args(args)
        .output()
        .unwrap()
}

fn json(args: &[&str]) -> Value {
    let out = check(&[args, &["--report", "json"]].concat());
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"))
}

fn verdicts(report: &Value) -> impl Iterator<Item = (&Case, &str)> {
    report["results"].as_array().unwrap().iter().map(|result| {
        let case = Suite::embedded()
            .case(result["case"].as_str().unwrap())
            .unwrap();
        (case, result["verdict"].as_str().unwrap())
    })
}

#[test]
fn our_own_implementation_passes_in_process_and_over_the_protocol() {
    let inside = check(&["--complete"]);
    assert_eq!(
        inside.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&inside.stdout)
    );
    let spec = format!("exec:'{PROGRAM}' testee");
    let outside = json(&["--complete", "--impl", &spec, "--timeout", "60"]);
    assert_eq!(outside["good"], true, "{}", outside["totals"]);
    assert_eq!(outside["totals"], json(&[])["totals"]);
}

/// An offset is where a reader of the report looks: what was never bytes has none.
#[test]
fn only_what_was_bytes_has_an_offset() {
    let mut placed = Vec::new();
    let rejected = |case: &&Case| matches!(case.expect, Expect::Reject(..));
    for case in Suite::embedded().cases.iter().filter(rejected) {
        // A text is bytes; what a program is called with is none, and no instruction is at byte 0.
        let value = matches!(&case.input, CaseInput::Value(value) if !value.is_string());
        let called = case.op == "vm.run";
        if let Reply::Reject(rejection) = InProcess(BuiltinTestee).call(&case.op, &case.request())
            && let Some(offset) = rejection.offset
            && (value || called && offset == 0)
        {
            placed.push(format!("{} {offset:#x} {}", case.id, rejection.message));
        }
    }
    assert!(placed.is_empty(), "{}", placed.join("\n"));
}

#[test]
fn every_liar_fails_as_built_in_and_as_command() {
    for liar in Liar::ALL {
        // A hang costs its timeout each time; the chapter wire is enough to see it.
        let rest = ["--chapter", "wire", "--timeout", "2", "--max-hangs", "1"];
        let spec = format!("liar:{}", liar.name());
        let command = format!("exec:'{PROGRAM}' testee --liar {}", liar.name());
        for spec in [spec, command] {
            let out = check(&[&["--impl", &spec], &rest[..]].concat());
            assert_eq!(
                out.status.code(),
                Some(1),
                "{spec}: {}",
                String::from_utf8_lossy(&out.stdout)
            );
        }
    }
}

#[test]
fn each_liar_fails_where_it_lies() {
    for (case, verdict) in verdicts(&json(&["--impl", "liar:accept-all"])) {
        if matches!(case.expect, Expect::Reject(..)) {
            let is_bound = |id: &String| spec::rule(id).unwrap().level == Level::Limit;
            let expected = match case.rules.iter().all(is_bound) {
                true => "unsupported",
                false => "fail",
            };
            assert_eq!(verdict, expected, "accept-all, {}", case.id);
        }
    }
    for (case, verdict) in verdicts(&json(&["--impl", "liar:reject-all"])) {
        if matches!(case.expect, Expect::Accept(_)) {
            assert_eq!(verdict, "fail", "reject-all, {}", case.id);
        }
    }
    for (case, verdict) in verdicts(&json(&["--impl", "liar:misplace"])) {
        let placed = match &case.expect {
            Expect::Reject(breach) => breach.offset.is_some(),
            _ => !case.findings.is_empty(),
        };
        let expected = if placed { "fail" } else { "pass" };
        assert_eq!(verdict, expected, "misplace, {}", case.id);
    }
    for (case, verdict) in verdicts(&json(&["--impl", "liar:vague"])) {
        let expected = match &case.expect {
            Expect::Reject(breach) if breach.kind != Kind::Truncated => "fail",
            _ => "pass",
        };
        assert_eq!(verdict, expected, "vague, {}", case.id);
    }
    let wire = |liar: &str| json(&["--impl", liar, "--chapter", "wire", "--timeout", "1"]);
    for (liar, expected) in [
        ("liar:crash", "crash"),
        ("liar:hang", "hang"),
        ("liar:garbage", "protocol-error"),
    ] {
        for (case, verdict) in verdicts(&wire(liar)) {
            assert_eq!(verdict, expected, "{liar}, {}", case.id);
        }
    }
}

#[test]
fn no_matching_case_and_bad_usage_are_exit_code_2() {
    for args in [
        &["--case", "wire/no-such-case"][..],
        &["--chapter", "no-such-chapter"],
        &["--impl", "no-such-adapter"],
        &["--impl", "liar:no-such-liar"],
        &["--impl", "exec:/no/such/command"],
        &["--impl", "exec:"],
        &["--release", "0.99"],
        &["--known", "/no/such/file"],
        &["--report", "pdf"],
        // What would change nothing is rejected.
        &["--timeout", "1"],
        &["--memory", "1000"],
        &["--max-hangs", "1"],
        &["--max-crashes", "1"],
        &["--impl", "liar:crash", "--memory", "0"],
        &[
            "--list",
            "--known",
            "conformance/known/apache-tvm-0.7-0.20.toml",
        ],
        &["--list", "--impl", "liar:crash"],
        &["--list", "--complete"],
        &["--list", "--report", "md"],
        &["--list", "--case", "wire/no-such-case"],
        &["--ops", "--report", "json"],
        &["--help-exec", "--list"],
        &["--report", "json", "--report", "md"],
        &["--release", "0.8", "--release", "0.9"],
    ] {
        let out = check(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {out:?}");
        assert!(!out.stderr.is_empty(), "{args:?} says nothing");
    }
}

#[test]
fn an_empty_selection_says_what_is_wrong_with_it() {
    let reply = |args: &[&str]| String::from_utf8(check(args).stderr).unwrap();
    let both = reply(&["--case", "wire/u32", "--chapter", "blob"]);
    assert_eq!(
        both,
        "error: no case matches `wire/u32` and is in chapter blob\n"
    );
    let release = reply(&["--case", "blob/find-elf-0.27", "--release", "0.8"]);
    assert_eq!(
        release,
        "error: no case matches `blob/find-elf-0.27` and holds in 0.8\n"
    );
    let near = reply(&["--case", "wire/u33", "--chapter", "wire"]);
    assert!(
        near.starts_with("error: no case matches `wire/u33`"),
        "{near}"
    );
}

#[test]
fn rules_are_shown_for_people_and_for_programs() {
    let rule = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .arg("rule")
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let all: Value = serde_json::from_str(&rule(&["--json", "*"])).unwrap();
    let schema = schema(include_str!("../../spec/schema/rule.json"));
    conforms(&schema, &all, "$");
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), tvmspec::spec::rules().len());
    // The code, a case and a known failure of one rule, as a reader looks for them.
    let rows = all.iter().find(|rule| rule["rule"] == "TREE-03").unwrap();
    assert!(
        rows["code"]
            .as_array()
            .unwrap()
            .iter()
            .any(|place| place.as_str().unwrap().starts_with("src/import_tree/"))
    );
    assert!(
        rows["cases"]
            .as_array()
            .unwrap()
            .contains(&Value::from("import_tree/row-runs-backwards"))
    );
    assert!(!rows["known_failures"].as_array().unwrap().is_empty());
    let page = rule(&["TREE-03"]);
    for word in [
        "TREE-03",
        "MUST for reader, writer, since 0.7; rejected as malformed",
        "spec/import_tree.md",
        "evidence",
        "code",
        "cases",
        "known to fail",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn cases_are_listed_for_people_and_for_programs() {
    let selection = ["--list", "--chapter", "wire", "--case", "wire/u*"];
    let lines = String::from_utf8(check(&selection).stdout).unwrap();
    let list = json(&selection);
    let schema = schema(include_str!("../../spec/schema/list.json"));
    conforms(&schema, &list, "$");
    let ids: Vec<&str> = list["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["case"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"wire/u32"));
    assert_eq!(lines.lines().count(), ids.len());
    assert!(
        lines
            .lines()
            .zip(&ids)
            .all(|(line, id)| line.starts_with(id))
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.txt");
    let to_file = check(&[&selection[..], &["-o", file.to_str().unwrap()]].concat());
    assert!(to_file.stdout.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
}

/// Answers nothing, and says so.
struct Modest;

impl Testee for Modest {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match args["type"] == "u32" {
            true => Reply::Unsupported("no words of 32 bits".into()),
            false => BuiltinTestee.answer(op, args),
        }
    }
}

#[test]
fn a_complete_run_has_an_answer_to_every_case() {
    let judged = |complete: bool, known: &str| {
        let order = Run {
            selection: Selection {
                chapters: vec!["wire".into()],
                ..Selection::default()
            },
            known: KnownFailures::parse(known).unwrap(),
            complete,
            ..Run::default()
        };
        run(Suite::embedded(), &mut InProcess(Modest), &order).unwrap()
    };
    let entry = |case: &str| {
        format!("[[known]]\ncase = \"{case}\"\nverdict = \"unsupported\"\nreason = \"16 bits\"\n")
    };
    assert!(judged(false, "").is_good());
    let report = judged(true, "");
    assert!(!report.is_good());
    let failures: Vec<&str> = report.failures().map(|one| one.case.id.as_str()).collect();
    assert!(failures.contains(&"wire/u32#encode"));
    assert!(
        failures
            .iter()
            .all(|id| id.starts_with("wire/u32") || id.starts_with("wire/trailing"))
    );
    for (_, form) in ReportFormat::ALL {
        assert!(render(form, &report).contains("no words of 32 bits"));
    }
    let all: String = failures.iter().map(|id| entry(id)).collect();
    assert!(judged(true, &all).is_good());
    assert!(!judged(true, &entry("wire/u32")).is_good());
    // An excuse that is not needed is untrue, as any other.
    let useless = judged(true, &(all + &entry("wire/u16")));
    assert!(!useless.is_good() && useless.problems.len() == 1);
}

#[test]
fn cases_are_selected_by_chapter_glob_and_release() {
    let ids = |args: &[&str]| -> Vec<String> {
        verdicts(&json(args))
            .map(|(case, _)| case.id.clone())
            .collect()
    };
    assert_eq!(ids(&["--case", "wire/u3?"]), ["wire/u32"]);
    assert!(
        ids(&["--chapter", "wire"])
            .iter()
            .all(|id| id.starts_with("wire/"))
    );
    let old = json(&["--release", "0.8"]);
    let release = "0.8".parse().unwrap();
    assert!(verdicts(&old).all(|(case, _)| case.releases.contains(release)));
}

#[test]
fn known_failures_excuse_and_must_be_true() {
    let folder = tempfile::tempdir().unwrap();
    let known = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let entry = |case: &str, verdict: &str, more: &str| {
        format!(
            "[[known]]\ncase = \"{case}\"\nverdict = \"{verdict}\"\nreason = \"it lies\"\n{more}\n"
        )
    };
    let code = |file: &str, implementation: &str| {
        check(&[
            "--impl",
            implementation,
            "--chapter",
            "wire",
            "--known",
            file,
        ])
        .status
        .code()
    };
    let all = known(
        "all.toml",
        &entry("wire/*", "crash", "expires = 2999-12-31"),
    );
    assert_eq!(code(&all, "liar:crash"), Some(0));
    assert_eq!(
        code(&all, "liar:garbage"),
        Some(1),
        "another verdict is not excused"
    );
    assert_eq!(code(&all, "builtin"), Some(1), "a pass was not expected");
    let none = known("none.toml", &entry("wire/nothing-*", "crash", ""));
    assert_eq!(code(&none, "builtin"), Some(1), "an entry matches nothing");
    let old = known(
        "old.toml",
        &entry("wire/*", "crash", "expires = \"2001-01-01\""),
    );
    assert_eq!(code(&old, "liar:crash"), Some(1), "the excuse has expired");
    let broken = known("broken.toml", "[[known]]\ncase = 1\n");
    assert_eq!(code(&broken, "builtin"), Some(2));
}

/// Of 0.8, and wrong in everything.
struct Old;

impl Testee for Old {
    fn identity(&self) -> Identity {
        Identity {
            name: "old".to_owned(),
            releases: vec!["0.8".to_owned()],
            ..Identity::default()
        }
    }

    fn answer(&mut self, _op: &str, _args: &Value) -> Reply {
        Reply::Crash("as always".to_owned())
    }
}

#[test]
fn a_known_failure_of_another_release_excuses_nothing() {
    let good = |releases: &str| {
        let entry = format!(
            "[[known]]\ncase = \"wire/u8\"\nverdict = \"crash\"\nreason = \"r\"\n{releases}"
        );
        let order = Run {
            selection: Selection {
                cases: vec!["wire/u8".to_owned()],
                ..Selection::default()
            },
            known: KnownFailures::parse(&entry).unwrap(),
            ..Run::default()
        };
        run(Suite::embedded(), &mut InProcess(Old), &order)
            .unwrap()
            .is_good()
    };
    assert!(good(""));
    assert!(good("releases = \"..0.8\""));
    assert!(!good("releases = \"0.9..\""));
}

/// What is about releases that were not run is checked here alone.
#[test]
fn every_known_failure_names_a_case_of_its_releases() {
    for (file, known) in known::embedded() {
        assert!(!known.entries.is_empty(), "{file}");
        for entry in &known.entries {
            let mut cases = Suite::embedded().cases.iter();
            let holds = |case: &Case| {
                entry.releases.is_none_or(|range| {
                    case.releases.since <= range.until && range.since <= case.releases.until
                })
            };
            assert!(
                cases.any(|case| glob(&entry.case, &case.id) && holds(case)),
                "{file}: {} matches no case of its releases",
                entry.case
            );
        }
    }
}

/// Crashes on one case, and poisons itself so that it fails the next one too; alone every case but the first is right.
struct Poisoned {
    bad: &'static str,
    starts: u32,
    requests: Option<u64>,
    poisoned: bool,
    asked: Vec<String>,
}

impl Adapter for Poisoned {
    fn hello(&mut self, _suite: &str) -> Result<Identity, String> {
        self.start();
        Ok(Identity::default())
    }

    fn call(&mut self, op: &str, args: &Value) -> Reply {
        if self.requests.is_none() {
            self.start();
        }
        self.requests = self.requests.map(|requests| requests + 1);
        self.asked.push(args.to_string());
        if args["data"] == self.bad {
            self.requests = None;
            return Reply::Crash("SIGSEGV".into());
        }
        if self.poisoned && self.requests == Some(2) {
            return Reply::Ok {
                value: Value::Null,
                findings: None,
            };
        }
        InProcess(tvmspec::conformance::adapter::builtin::BuiltinTestee).call(op, args)
    }

    fn since_restart(&self) -> Option<u64> {
        (self.starts > 1).then(|| self.requests.unwrap_or_default())
    }

    fn restart(&mut self) {
        self.requests = None;
        self.poisoned = false;
    }
}

impl Poisoned {
    fn start(&mut self) {
        self.poisoned = self.starts == 1;
        self.starts += 1;
        self.requests = Some(0);
    }
}

#[test]
fn a_crash_costs_one_case_and_the_first_failure_after_it_is_run_again_alone() {
    let mut adapter = Poisoned {
        bad: "NBI=",
        starts: 0,
        requests: None,
        poisoned: false,
        asked: Vec::new(),
    };
    let selection = Selection {
        chapters: vec!["wire".into()],
        ..Selection::default()
    };
    let run_of = Run {
        selection,
        ..Run::default()
    };
    let report = run(Suite::embedded(), &mut adapter, &run_of).unwrap();
    let failures: Vec<_> = report
        .failures()
        .map(|outcome| outcome.case.id.as_str())
        .collect();
    assert_eq!(failures, ["wire/u16"]);
    let noted: Vec<_> = report
        .results
        .iter()
        .filter(|outcome| outcome.note.is_some())
        .collect();
    assert_eq!(noted.len(), 1, "one case was run again");
    let steps = report.results.iter().map(|one| one.case.steps().count());
    assert_eq!(adapter.asked.len(), steps.sum::<usize>() + 1);
}

/// Panics like a library that was not written for hostile input.
struct Panics;

impl Testee for Panics {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, _op: &str, _args: &Value) -> Reply {
        panic!("index out of bounds")
    }
}

#[test]
fn a_panic_is_a_crash_and_not_a_rejection() {
    let report = run(Suite::embedded(), &mut InProcess(Panics), &Run::default()).unwrap();
    assert_eq!(report.totals().count("crash"), report.results.len());
}

#[test]
fn a_case_can_be_seen_and_taken_away() {
    let text = String::from_utf8(check(&["--show", "--case", "wire/u8"]).stdout).unwrap();
    let line = |name: &str| -> Value {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        serde_json::from_str(line.unwrap_or_else(|| panic!("{name}: {text}"))).unwrap()
    };
    let case = Suite::embedded().case("wire/u8").unwrap();
    assert_eq!(line("request   ")["args"], case.request());
    assert_eq!(line("expected  "), case.expectation());
    let folder = tempfile::tempdir().unwrap();
    let out = check(&[
        "--export",
        folder.path().to_str().unwrap(),
        "--case",
        "wire/u8*",
    ]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let of = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(of("wire/u8/input.bin"), case.bytes().unwrap());
    let request: Value = serde_json::from_slice(&of("wire/u8/request.json")).unwrap();
    assert_eq!(request["args"], case.request());
    let cuts: Value = serde_json::from_slice(&of("wire/u8.truncated/expected.json")).unwrap();
    assert_eq!(cuts["cuts"][0]["reject"]["rule"], "WIRE-01");
    let answer = json(&["--impl", "liar:reject-all", "--case", "wire/u8"]);
    let failed = &answer["results"][0];
    assert_eq!(failed["answer"]["reject"]["message"], "no");
    assert_eq!(failed["request"]["args"], case.request());
}

#[test]
fn the_json_report_keeps_to_its_schema() {
    let schema = schema(include_str!("../../spec/schema/report.json"));
    for implementation in ["builtin", "liar:constant", "liar:crash", "liar:reject-all"] {
        let report = json(&["--impl", implementation, "--chapter", "wire"]);
        conforms(&schema, &report, "$");
    }
    let wrong = serde_json::json!({"report": 2});
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn the_help_fits_a_screen_and_its_example_works() {
    let help = check(&["--help-exec"]);
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.lines().count() <= 50, "{} lines", help.lines().count());
    assert!(help.lines().all(|line| line.chars().count() <= 120));
    let request = r#"{"id":1,"op":"wire.decode","args":{"type":"u32","data":"AQAAAA=="}}"#;
    assert!(help.contains(request));
    let out = talk(&["testee"], request);
    assert_eq!(out.trim(), r#"{"id":1,"ok":1,"findings":[]}"#);
}

/// Knows nothing of a rejection but its kind.
struct Brief;

impl Testee for Brief {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match BuiltinTestee.answer(op, args) {
            Reply::Reject(rejection) => Reply::Reject(Rejection {
                kind: rejection.kind,
                ..Rejection::default()
            }),
            Reply::Ok { value, .. } => Reply::Ok {
                value,
                findings: None,
            },
            reply => reply,
        }
    }
}

#[test]
fn what_was_not_compared_is_counted_and_shown() {
    let suite = Suite::embedded();
    let order = Run {
        selection: Selection {
            chapters: ["tensor", "payload", "blob"].map(str::to_owned).into(),
            ..Selection::default()
        },
        ..Run::default()
    };
    let report = run(suite, &mut InProcess(Brief), &order).unwrap();
    let failed = report
        .failures()
        .map(|one| (&one.case.id, one.verdict.reason()));
    assert_eq!(failed.collect::<Vec<_>>(), []);
    let count = |has: fn(&Case) -> bool| {
        let cases = report.results.iter().map(|one| one.case);
        cases.filter(|case| has(case)).count()
    };
    let expected = [
        (
            "rule",
            count(|case| matches!(case.expect, Expect::Reject(_))),
        ),
        (
            "offset",
            count(|case| matches!(&case.expect, Expect::Reject(breach) if breach.offset.is_some())),
        ),
        (
            "field",
            count(|case| matches!(&case.expect, Expect::Reject(breach) if breach.field.is_some())),
        ),
        (
            "findings",
            count(|case| matches!(case.expect, Expect::Accept(_)) && !case.op.ends_with(".encode")),
        ),
    ];
    assert_eq!(report.unstated(), expected);
    let shown = format!(
        "rejections judged without rule: {}, offset: ",
        expected[0].1
    );
    for (name, form) in ReportFormat::ALL {
        let text = render(form, &report);
        match form {
            ReportFormat::Json => conforms(
                &schema(include_str!("../../spec/schema/report.json")),
                &serde_json::from_str(&text).unwrap(),
                "$",
            ),
            _ => assert!(text.contains(&shown), "{name}"),
        }
    }
    let full = run(suite, &mut InProcess(BuiltinTestee), &order).unwrap();
    assert!(full.unstated().is_empty());
}

/// What the program answers to one line.
fn talk(args: &[&str], line: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn reports_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for form in ["text", "json", "junit", "md", "html"] {
        let file = folder.path().join(form);
        let out = check(&[
            "--case",
            "wire/u8",
            "--report",
            form,
            "-o",
            file.to_str().unwrap(),
        ]);
        assert_eq!(out.status.code(), Some(0));
        assert!(out.stdout.is_empty());
        assert!(fs::metadata(&file).unwrap().len() > 100, "{form}");
    }
}

/// Our own implementation, which leaves one part out of all its answers.
struct Without {
    part: Parts,
    in_full: bool,
}

impl Testee for Without {
    fn identity(&self) -> Identity {
        BuiltinTestee.identity()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let mut reply = BuiltinTestee.answer(op, args);
        match &mut reply {
            Reply::Reject(rejection) => match self.part {
                Parts::KIND => rejection.kind = None,
                Parts::RULE => rejection.rule = None,
                Parts::OFFSET => rejection.offset = None,
                Parts::FIELD => rejection.field = None,
                _ => {}
            },
            Reply::Ok { findings, .. } => match (self.part, findings) {
                (Parts::FINDINGS, findings) => *findings = None,
                (part, Some(findings)) => {
                    for finding in findings {
                        match part {
                            Parts::FINDING_KINDS => finding.kind = None,
                            Parts::FINDING_OFFSETS => finding.offset = None,
                            _ => {}
                        }
                    }
                }
                _ => {}
            },
            _ => {}
        }
        reply
    }

    fn answers_in_full(&self) -> bool {
        self.in_full
    }
}

#[test]
fn who_answers_in_full_is_held_to_every_part() {
    let chapters = ["wire", "tensor", "payload"].map(str::to_owned).to_vec();
    let selection = Selection {
        chapters,
        ..Selection::default()
    };
    let selected = Run {
        selection,
        ..Run::default()
    };
    for (name, part) in Parts::NAMES {
        for in_full in [true, false] {
            let mut testee = InProcess(Without { part, in_full });
            let report = run(Suite::embedded(), &mut testee, &selected).unwrap();
            assert_eq!(report.is_good(), !in_full, "without {name}");
            if !in_full {
                let unstated = report.unstated();
                let left_out = unstated.iter().find(|(left, _)| *left == name);
                assert!(
                    left_out.is_some_and(|(_, count)| *count > 0),
                    "{name}: {unstated:?}"
                );
            }
        }
    }
}

#[test]
fn a_cut_is_judged_by_what_it_states() {
    let suite = Suite::embedded();
    let case = suite.case("wire/u32#truncated").unwrap();
    let Cut { length, breach } = &case.cuts[0];
    let Breach {
        kind, rule, offset, ..
    } = breach;
    assert_eq!(
        (*length, *kind, rule.as_str(), *offset),
        (0, Kind::Truncated, "WIRE-01", Some(0))
    );
    let wrong = Reply::Reject(Rejection {
        kind: Some(kind.name().to_owned()),
        offset: offset.map(|offset| offset + 1),
        ..Rejection::default()
    });
    let judgement: Judgement = judge(case, &wrong);
    assert!(matches!(judgement.verdict, Verdict::Fail(_)));
    let vague = Reply::Reject(Rejection::default());
    let judgement = judge(case, &vague);
    assert_eq!(judgement.verdict, Verdict::Pass);
    assert!(judgement.unstated.has(Parts::OFFSET) && judgement.surplus.is_empty());
    assert_eq!(
        judgement.clone().held_to(case, Parts::default()).verdict,
        Verdict::Pass
    );
    for strict in [
        judgement.clone().held_to(case, Parts::RULE),
        judgement.in_full(case),
    ] {
        assert!(matches!(strict.verdict, Verdict::Fail(_)));
    }
}
