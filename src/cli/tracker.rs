//! `tvmspec tracker`: servers offer themselves to it, and clients ask it for one.

use super::{CliError, Exit, output};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;
use tvmspec::rpc::tracker::{TrackerEvent, TrackerHandle, TrackerLimits, TrackerServer};
use tvmspec::rpc::{TrackerRequest, TrackerSummary};

/// On a terminal a table of what it has, otherwise one line for each thing that happens. Ctrl-C answers what has been asked, and ends.
#[derive(clap::Args)]
pub(crate) struct TrackerArgs {
    /// The address to listen at: that of this host alone, unless stated
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The first port to try; 0 for any
    #[arg(long, default_value_t = 9190)]
    port: u16,
    /// The port behind the last one to try
    #[arg(long, default_value_t = 9199)]
    port_end: u16,
    /// Print nothing but where it listens
    #[arg(long)]
    silent: bool,
}

/// Serves until Ctrl-C or Stop.
///
/// # Errors
///
/// No port is free.
pub(crate) fn run(args: TrackerArgs) -> Result<Exit, CliError> {
    let server = bind(&args)?;
    let handle = server.handle()?;
    // First: who reads the address may send the signal at once.
    let stop = handle.clone();
    super::interrupt::on_interrupt(move || stop.stop());
    output::stream(|out| writeln!(out, "tracker at {}", handle.address()))?;
    let is_live = !args.silent && std::io::stderr().is_terminal();
    if is_live {
        thread::spawn(move || show(&handle));
    }
    let says = !args.silent && !is_live;
    server.run(move |event| {
        if says && let Some(line) = line(event) {
            output::note(format_args!("{line}"));
        }
    })?;
    Ok(Exit::Good)
}

/// The tracker at the first port that is free.
///
/// # Errors
///
/// There is none.
fn bind(args: &TrackerArgs) -> Result<TrackerServer, CliError> {
    let end = args.port_end.max(args.port.saturating_add(1));
    let mut last = None;
    for port in args.port..end {
        let address = SocketAddr::new(args.host, port);
        match TrackerServer::bind(address, TrackerLimits::default()) {
            Ok(server) => return Ok(server),
            Err(why) => last = Some(format!("{address}: {why}")),
        }
    }
    Err(CliError::new(last.unwrap_or_default()))
}

/// What happened, on one line; nothing for what peers ask again and again.
fn line(event: &TrackerEvent) -> Option<String> {
    Some(match event {
        TrackerEvent::Opened(_) => return None,
        TrackerEvent::Asked(peer, request) => match request {
            TrackerRequest::Put(offer) => {
                format!("{peer} offers {:?} at port {}", offer.key, offer.port)
            }
            TrackerRequest::Request { key, priority, .. } => {
                format!("{peer} asks for {key:?} with priority {priority}")
            }
            TrackerRequest::UpdateInfo(info) => format!("{peer} is {:?}", info.key),
            TrackerRequest::Stop(_) => format!("{peer} asks for the end"),
            TrackerRequest::Ping | TrackerRequest::Summary | TrackerRequest::PendingMatchKeys => {
                return None;
            }
        },
        TrackerEvent::Paired(client, key) => format!("{client} gets {key:?}"),
        TrackerEvent::Closed(peer, None) => format!("{peer} is gone"),
        TrackerEvent::Closed(peer, Some(why)) => format!("{peer} is closed out: {why}"),
    })
}

/// Draws the table over the last one whenever it differs.
fn show(handle: &TrackerHandle) {
    let (mut shown, mut height) = (None, 0);
    loop {
        let now = (handle.summary(), handle.connections());
        if shown.as_ref() != Some(&now) {
            let text = table(&now.0, now.1);
            // Up by the lines of the last one, and everything below is cleared.
            let up = match height {
                0 => String::new(),
                height => format!("\x1b[{height}A\x1b[J"),
            };
            height = text.lines().count();
            // What moves the cursor is ours; the keys are of peers, so that nothing of them does.
            eprint!("{up}");
            output::note(text.trim_end());
            shown = Some(now);
        }
        thread::sleep(Duration::from_millis(250));
    }
}

/// A line for each key, with how many servers are free and how many requests wait.
fn table(summary: &TrackerSummary, connections: usize) -> String {
    let mut text = format!(
        "{connections} connections, {} servers\n{:<32} {:>8} {:>8}\n",
        summary.servers.len(),
        "key",
        "free",
        "pending"
    );
    // As many as a small terminal has lines for.
    for count in summary.queues.iter().take(16) {
        let (key, free, pending) = (format!("{:?}", count.key), count.free, count.pending);
        text.push_str(&format!("{key:<32} {free:>8} {pending:>8}\n"));
    }
    text
}
