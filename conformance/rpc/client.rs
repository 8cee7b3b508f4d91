//! `rpc.client`: actions of a client with a server that answers by a script, and the requests of the client.
//!
//! The server answers FreeHandle, DevFreeData and DevStreamSync with none, and every other request with the next answer of the script.
//! After the last answer it closes the connection. There may be further connections, each with its own script, and a tracker through which
//! the client finds the server.

use super::acting_client::ActingClient;
use super::scripted_peers::{ScriptedPeer, SessionOfScript, TrackerOfScript};
use super::session::{patience, texts};
use crate::conformance::op::{Answer, OpError};
use crate::function::{Error, ErrorKind};
use crate::release::Release;
use crate::rpc::client::{RemoteAddress, RemoteHop, Session, SessionOptions};
use crate::rule::Findings;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs our own client against a server of this process.
pub(super) fn client(args: &Value) -> Result<Answer, OpError> {
    let wrong = |what: &str| OpError::Unsupported(format!("`{what}` has another form"));
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let release = |name: &str| text(name).map(|text| text.parse().map_err(OpError::from));
    let actions = args.get("value").and_then(Value::as_array);
    let actions = actions.ok_or_else(|| wrong("value"))?;
    let own: Release = release("release").ok_or_else(|| wrong("release"))??;
    let stated = release("stated").transpose()?;

    let is_far = Arc::new(AtomicBool::new(false));
    let list = |name: &str| {
        args.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let scripts = std::iter::once(args).chain(list("more"));
    let scripts = scripts.map(|form| SessionOfScript::read(form, own, &is_far));
    let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
    let server = ScriptedPeer::start(|_| scripts)?;
    let port = server.port();
    let scripts = list("tracker").map(|form| TrackerOfScript::read(form, port));
    let scripts = scripts.collect::<Result<Vec<_>, _>>()?;
    let tracker = match args.get("tracker") {
        None => None,
        Some(_) => Some(ScriptedPeer::start(|_| scripts)?),
    };

    let via = args.get("via").and_then(Value::as_array);
    let hops: Vec<RemoteHop> = via
        .into_iter()
        .flatten()
        .map(|hop| RemoteHop {
            host: hop["host"].as_str().unwrap_or_default().to_owned(),
            port: hop["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or_default(),
            key: hop["key"].as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    let no_socket = |error: std::io::Error| Error::new(ErrorKind::Connection, error.to_string());
    let connect = || -> Result<Session, Error> {
        let Some(address) = text("address") else {
            let options = SessionOptions {
                release: stated,
                connect_timeout: patience(),
                timeout: Some(patience()),
                session_timeout: args.get("seconds").and_then(Value::as_f64),
                hops: hops.clone(),
                ..SessionOptions::default()
            };
            let key = text("key").unwrap_or_default();
            if args.get("over") == Some(&Value::Bool(true)) {
                let stream = TcpStream::connect(("127.0.0.1", port)).map_err(no_socket)?;
                return Session::over(stream, key, &options);
            }
            return Session::connect("127.0.0.1", port, key, &options);
        };
        let of_tracker = tracker.as_ref().map_or(0, ScriptedPeer::port);
        let address = address
            .replace("{server}", &format!("127.0.0.1:{port}"))
            .replace("{tracker}", &format!("127.0.0.1:{of_tracker}"));
        let mut address = RemoteAddress::parse(&address)?;
        let options = &mut address.options;
        // An address may state a longer time than a case may take.
        options.connect_timeout = options.connect_timeout.min(patience());
        // Without a timeout in the address, a silent server would block the client and the case.
        options.timeout.get_or_insert(patience());
        address.connect()
    };
    let mut client = ActingClient::new(is_far, texts(args)?, &connect);
    let shown = client.run(connect(), actions);
    // Dropped first, because the server waits until every connection is closed, and the client may hold some.
    drop(client);
    let mut played = server.end().into_iter();
    let requested = tracker.map(ScriptedPeer::end);
    let first = played.next().unwrap_or_default();
    let hello = first["hello"].as_str().unwrap_or_default();
    let requests = first.get("requests").cloned().unwrap_or_else(|| json!([]));
    let mut value = json!({"hello": hello, "results": shown?, "requests": requests});
    let more: Vec<Value> = played.collect();
    if !more.is_empty() || args.get("more").is_some() {
        value["more"] = json!(more);
    }
    if let Some(requested) = requested {
        value["tracker"] = json!(requested);
    }
    Ok(Answer::new(value, Findings::default()))
}
