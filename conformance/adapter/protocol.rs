//! The exec protocol: one JSON object per line in each direction.
//!
//! ```text
//! <- {"id":0,"op":"hello","suite":"<hash>"}
//! -> {"id":0,"ok":{"name":"..","version":"..","releases":["0.8"],"ops":["blob.decode"]}}
//! <- {"id":1,"op":"blob.decode","args":{"data":"<base64>"}}
//! -> {"id":1,"ok":<value>,"findings":[{"rule":"WIRE-08","kind":"trailing","offset":24}]}
//! -> {"id":1,"reject":{"kind":"truncated","message":"..","offset":24,"rule":"WIRE-01","field":"modules[0].kind"}}
//! -> {"id":1,"unsupported":"why"}
//! ```

use super::spelling::suggest_spelling;
use super::{Identity, Reply, Testee};
use crate::conformance::CHAPTERS;
use crate::release::Release;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Write};

/// The approximate maximum number of values in one answer, because a value of three letters takes a hundred bytes of memory. The
/// correct answers of the suite have a few thousand.
const MOST_VALUES: usize = 1 << 18;

/// The maximum number of releases or operations that an implementation may name, because each is looked up for every case.
const MOST_NAMES: usize = 1000;

/// A description of the protocol that fits on one screen: `tvmspec check --help-exec`.
pub const TEACH: &str = r#"HOW TO BE JUDGED: --impl "exec:COMMAND"

Write a program that reads one JSON object per line on stdin and answers each with one line on stdout, flushed.
It stays alive for the whole run, and ends when stdin does. What it writes to stderr is shown when it crashes.

  <- {"id":0,"op":"hello","suite":"<hash of the suite>"}
  -> {"id":0,"ok":{"name":"my-runtime","version":"1.2","releases":["0.8","0.9"],"ops":["blob.decode"]}}
  <- {"id":1,"op":"blob.decode","args":{"data":"<base64>"}}
  -> {"id":1,"ok":{"layout":"0.22","modules":[{"kind":"_lib"}],"import_tree":{"indptr":[0,0],"indices":[]}}}

Each answer carries the id of its request and one of
  "ok": VALUE                the value in the JSON form that spec/<chapter>.md fixes; for encode, base64 of the bytes.
                             Beside it, if you know: "findings":[{"rule":"WIRE-08","kind":"trailing","offset":24}], all
                             oddities that you tolerated; each may be the id of its rule alone
  "reject": {"message":".."} the input breaks a rule. Optional: "kind" (truncated, trailing, malformed, unsupported,
                             limit, unknown-kind, missing, duplicate, cycle, type), "rule" (its id), "offset" (byte of
                             the field at fault) and "field" (its path, such as modules[1].kind)
  "unsupported": "why"       you do not do this operation, layout or kind; neither good nor bad
What you state in one answer (kinds, rules, offsets, fields, findings) you are held to in all; the rest is counted.
What breaks nothing but a LIMIT, a bound of our own, you may accept: that counts as unsupported.

Leave "releases" or "ops" out to get every case; an unknown name in them is an error. An unknown op is "unsupported".
A line has at most 16 MiB, an answer at most 262144 values.

Verdicts: pass, fail, unsupported, skipped; crash (you ended), hang (no answer in --timeout seconds), out-of-memory,
protocol-error (not JSON, a wrong id, none of the three, a second line). You are started again after each of the last
four, with all that you started killed, and only that one case pays. A crash is not a rejection.

Try it by hand:   echo '{"id":1,"op":"wire.decode","args":{"type":"u32","data":"AQAAAA=="}}' | tvmspec testee
Two samples:      conformance/testee/python/testee.py (no dependency), conformance/testee/c/testee.c
One case:         tvmspec check --impl "exec:COMMAND" --case wire/u32
Every operation:  tvmspec check --ops
"#;

/// Answers requests from `input` on `output` until `input` ends.
///
/// # Errors
///
/// Only errors of the two streams. A malformed request is answered with its error.
pub fn serve(
    testee: &mut dyn Testee,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        // A blank line is ignored, because users try the protocol by hand.
        if !line.trim().is_empty() {
            output.write_all(answer(testee, &line).as_bytes())?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
}

/// Returns the answer to a line.
fn answer(testee: &mut dyn Testee, line: &str) -> String {
    let request: Value = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return json!({"id": null, "error": error.to_string()}).to_string(),
    };
    let id = request.get("id").cloned().unwrap_or_default();
    let op = request
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if op == "hello" {
        return json!({"id": id, "ok": testee.identity()}).to_string();
    }
    let none = Value::Object(Map::new());
    let reply = testee.answer(op, request.get("args").unwrap_or(&none));
    reply_to_line(id, reply)
}

/// Returns the request line, without its line break.
pub fn request(id: u64, op: &str, args: &Value) -> String {
    json!({"id": id, "op": op, "args": args}).to_string()
}

/// Returns the first request.
pub fn hello(suite: &str) -> String {
    json!({"id": 0, "op": "hello", "suite": suite}).to_string()
}

/// Returns an answer as it is in a line, without the id, or `None` for a reply that is not an answer.
pub(crate) fn answer_of(reply: Reply) -> Option<Value> {
    match reply {
        Reply::Ok { .. } | Reply::Shown { .. } | Reply::Reject(_) => {
            let mut line = serde_json::from_str(&reply_to_line(Value::Null, reply)).ok()?;
            if let Value::Object(members) = &mut line {
                members.remove("id");
            }
            Some(line)
        }
        _ => None,
    }
}

/// Returns a reply as a line of the protocol.
fn reply_to_line(id: Value, reply: Reply) -> String {
    let mut line = Map::new();
    line.insert("id".to_owned(), id);
    match reply {
        Reply::Ok { value, findings } => {
            line.insert("ok".to_owned(), value);
            if let Some(findings) = findings {
                line.insert("findings".to_owned(), json!(findings));
            }
        }
        Reply::Shown { view, value } => {
            line.insert("seen".to_owned(), json!({"view": view, "value": value}));
        }
        Reply::Reject(rejection) => {
            line.insert("reject".to_owned(), json!(rejection));
        }
        // The protocol has no `skipped`. A testee that lacks something on its machine does not support the operation.
        Reply::Unsupported(why) | Reply::Skipped(why) => {
            line.insert("unsupported".to_owned(), why.into());
        }
        // Only a liar sends these itself, and the text is sent unchanged.
        Reply::Crash(text)
        | Reply::Hang(text)
        | Reply::OutOfMemory(text)
        | Reply::ProtocolError(text) => return text,
    }
    Value::Object(line).to_string()
}

/// Parses the answer to request `id`.
pub(crate) fn parse_reply(id: u64, line: &[u8]) -> Reply {
    match parsed(id, line) {
        Ok(reply) => reply,
        Err(wrong) => Reply::ProtocolError(format!(
            "{wrong}; the line was `{}`",
            crate::wire::show(line)
        )),
    }
}

/// Parses the answer to `hello`.
pub(crate) fn parse_hello(line: &[u8]) -> Result<Identity, String> {
    match parse_reply(0, line) {
        Reply::Ok { value, .. } => identity_of_json(&value),
        Reply::ProtocolError(wrong) => Err(wrong),
        other => Err(format!("hello was answered with {other:?}")),
    }
}

/// Implements [`parse_reply`], with a description of the fault of the line.
fn parsed(id: u64, line: &[u8]) -> Result<Reply, String> {
    // Counted before the line is parsed. Each of these bytes begins a value, and values take more memory than the line.
    let opens = |byte: &&u8| matches!(byte, b'[' | b'{' | b',');
    if line.iter().filter(opens).count() > MOST_VALUES {
        return Err(format!("more than {MOST_VALUES} values"));
    }
    let line: Value =
        serde_json::from_slice(line).map_err(|error| format!("not JSON ({error})"))?;
    let Value::Object(mut line) = line else {
        return Err("not a JSON object".to_owned());
    };
    // A late answer to an earlier request must not count for this one.
    if line.get("id").and_then(Value::as_u64) != Some(id) {
        return Err(format!("the id is not {id}"));
    }
    // Only this program and its workers use `seen`.
    let answers = ["ok", "seen", "reject", "unsupported"];
    if answers
        .iter()
        .filter(|key| line.contains_key(**key))
        .count()
        != 1
    {
        return Err("there is not exactly one of ok, reject, unsupported".to_owned());
    }
    if let Some(value) = line.remove("ok") {
        let findings = line.get("findings").map(Vec::deserialize).transpose();
        let findings = findings.map_err(
            |_| "findings is not a list of rule ids or {\"rule\", \"kind\", \"offset\"}",
        )?;
        return Ok(Reply::Ok { value, findings });
    }
    if let Some(seen) = line.get("seen") {
        let view = seen.get("view").and_then(Value::as_str);
        return Ok(Reply::Shown {
            view: view.unwrap_or_default().to_owned(),
            value: seen.get("value").cloned().unwrap_or_default(),
        });
    }
    if let Some(reject) = line.get("reject") {
        if !reject.is_object() {
            return Err("reject is not an object".to_owned());
        }
        let rejection = serde_path_to_error::deserialize(reject);
        return rejection
            .map(Reply::Reject)
            .map_err(|error| format!("reject.{error}"));
    }
    let why = line.get("unsupported").and_then(Value::as_str);
    Ok(Reply::Unsupported(
        why.unwrap_or("no reason stated").to_owned(),
    ))
}

/// Parses the answer to hello. A misspelled word would silently exclude cases, so it is an error.
fn identity_of_json(value: &Value) -> Result<Identity, String> {
    const KEYS: [&str; 4] = ["name", "version", "releases", "ops"];
    let members = value
        .as_object()
        .ok_or("the answer to hello is not a JSON object")?;
    if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let near = suggest_spelling(key, KEYS);
        return Err(format!(
            "the answer to hello has an unknown member `{key}`{near}"
        ));
    }
    let text = |key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty())
            .map(str::to_owned)
            .ok_or_else(|| format!("hello was answered without a text `{key}`"))
    };
    let list = |key: &str| -> Result<Vec<String>, String> {
        let wrong = || {
            format!(
                "hello was answered with `{key}` that is not a list of up to {MOST_NAMES} names"
            )
        };
        let list = match value.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(list) => list.as_array().ok_or_else(wrong)?,
        };
        // An empty list would run no case, and is more likely a mistake.
        if list.is_empty() {
            return Err(format!(
                "hello was answered with nothing in `{key}`: leave it out to get every case"
            ));
        }
        let names = list.iter().map(|name| name.as_str().map(str::to_owned));
        let names = names.collect::<Option<Vec<String>>>();
        names
            .filter(|names| names.len() <= MOST_NAMES)
            .ok_or_else(wrong)
    };
    let (releases, ops) = (list("releases")?, list("ops")?);
    for release in &releases {
        if release.parse::<Release>().is_err() {
            let known: Vec<String> = Release::all().map(|known| known.to_string()).collect();
            let near = suggest_spelling(release, known.iter().map(String::as_str));
            return Err(format!(
                "hello names the release `{release}`, which there is not{near}"
            ));
        }
    }
    for op in &ops {
        let known = || CHAPTERS.iter().flat_map(|chapter| chapter.ops());
        if !known().any(|known| known.name == op) {
            let near = suggest_spelling(op, known().map(|known| known.name));
            return Err(format!(
                "hello names the operation `{op}`, which no chapter documents{near}"
            ));
        }
    }
    Ok(Identity {
        name: text("name")?,
        version: text("version")?,
        releases,
        ops,
    })
}
