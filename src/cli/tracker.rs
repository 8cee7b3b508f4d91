//! `tvmspec tracker`: runs a tracker, at which servers register and from which clients request one, or prints the content of another
//! tracker.

use super::{CliError, Exit, output};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tvmspec::rpc::TrackerRequest;
use tvmspec::rpc::tracker::{TrackerEvent, TrackerLimits, TrackerServer};

#[derive(clap::Args)]
pub(crate) struct TrackerArgs {
    /// The address to listen on; the default is reachable only from this machine
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The first port to try; 0 for any free port
    #[arg(long, default_value_t = 9190)]
    port: u16,
    /// The end of the range of ports to try. This port itself is not tried, as in TVM's tracker
    #[arg(long, default_value_t = 9199)]
    port_end: u16,
    /// Print only the address on which the tracker listens
    #[arg(long)]
    silent: bool,
    /// Print the servers and keys of a running tracker of any release, as TVM's query_rpc_tracker does, and start none
    #[arg(long, value_name = "HOST:PORT", value_parser = super::address::host_port, conflicts_with_all = ["host", "port", "port_end", "silent"])]
    query: Option<String>,
    /// With --query, print JSON in the form of the tracker's answer
    #[arg(long, requires = "query")]
    json: bool,
}

/// Runs the tracker until Ctrl-C or Stop, or queries another tracker.
pub(crate) fn run(args: TrackerArgs) -> Result<Exit, CliError> {
    if let Some(address) = &args.query {
        return super::tracker_query::run(address, args.json);
    }
    let server = bind(&args)?;
    let handle = server.handle()?;
    // Installed before the address is printed, because its reader may send the signal at once.
    let stop = handle.clone();
    super::interrupt::on_interrupt(move || stop.stop());
    output::stream(|out| writeln!(out, "tracker at {}", handle.address()))?;
    server.run(move |event| {
        if !args.silent
            && let Some(line) = line(event)
        {
            output::note(line);
        }
    })?;
    Ok(Exit::Good)
}

/// Binds the tracker to the first free port.
fn bind(args: &TrackerArgs) -> Result<TrackerServer, CliError> {
    // If --port alone is at or above the default end, only that port is tried.
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

/// Formats an event as one line. Returns `None` for events that peers repeat often.
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
