//! `tvmspec tracker --query HOST:PORT`: prints the servers and keys of a tracker, in the format of `tvm.exec.query_rpc_tracker` of
//! 0.27.

use super::output::escape_line;
use super::{CliError, Exit, output};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::{TrackerReply, TrackerRequest, TrackerSummary};

/// Requests the summary of the tracker at `address`, of any release, and prints it.
pub(super) fn run(address: &str, as_json: bool) -> Result<Exit, CliError> {
    let mut client = TrackerClient::connect(address).map_err(CliError::from_library_error)?;
    let reply = client
        .ask(&TrackerRequest::Summary)
        .map_err(CliError::from_library_error)?;
    let TrackerReply::Summary(summary) = reply else {
        return Err(CliError::new(format!(
            "{address} answers a request for the summary with another reply: {reply:?}"
        )));
    };
    if as_json {
        output::json(&to_json(&summary))?;
    } else {
        output::stream(|out| text(out, address, &summary))?;
    }
    Ok(Exit::Good)
}

fn text(out: &mut dyn Write, address: &str, summary: &TrackerSummary) -> fmt::Result {
    const LINE: &str = "------------------------------";
    writeln!(out, "Tracker address {address}\n")?;
    writeln!(
        out,
        "Server List\n{LINE}\nserver-address           key\n{LINE}"
    )?;
    let mut servers: Vec<_> = summary.servers.iter().collect();
    // A stable sort: servers of one key keep the order in which they registered.
    servers.sort_by_key(|server| &server.key);
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for server in servers {
        let place = match &server.address {
            Some((Some(host), port)) => format!("{host}:{port}"),
            Some((None, port)) => format!("None:{port}"),
            None => "None".to_owned(),
        };
        writeln!(
            out,
            "{:<21}    {}",
            escape_line(&place),
            escape_line(&server.key)
        )?;
        // `server:rasp3b` is a server of the key `rasp3b`.
        let key = server.key.split(':').nth(1).unwrap_or(&server.key);
        *totals.entry(key).or_default() += 1;
    }
    writeln!(out, "{LINE}\n")?;
    let mut queues: Vec<_> = summary.queues.iter().collect();
    queues.sort_by_key(|count| &count.key);
    let letters = queues
        .iter()
        .map(|count| escape_line(&count.key).chars().count());
    let width = letters.max().unwrap_or(0);
    let title = format!("{:<width$}   total  free  pending", "key");
    // TVM also counts the line break after the title.
    let line = "-".repeat(title.chars().count() + 1);
    writeln!(out, "Queue Status\n{line}\n{title}\n{line}")?;
    for count in queues {
        let total = totals.get(count.key.as_str()).copied().unwrap_or(0);
        // A key without servers and without waiting clients is a remnant.
        if total > 0 || count.pending > 0 {
            let (key, free, pending) = (escape_line(&count.key), count.free, count.pending);
            writeln!(out, "{key:<width$}   {total:<5}  {free:<4}  {pending:<7}")?;
        }
    }
    writeln!(out, "{line}\n")
}

/// Returns the summary in the form of the tracker's own message.
fn to_json(summary: &TrackerSummary) -> Value {
    let queues = summary.queues.iter().map(|count| {
        let counts = json!({ "free": count.free, "pending": count.pending });
        (count.key.clone(), counts)
    });
    let servers = summary.servers.iter().map(|server| match &server.address {
        Some((host, port)) => json!({ "key": server.key, "addr": [host, port] }),
        None => json!({ "key": server.key }),
    });
    json!({ "queue_info": queues.collect::<Map<_, _>>(), "server_info": servers.collect::<Vec<_>>() })
}
