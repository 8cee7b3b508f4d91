//! `tvmspec proxy`: connects servers and clients that both connect to it, or forwards to one server, and records the traffic.

use super::{CliError, Exit, output};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use tvmspec::rpc::proxy::{ProxyEvent, ProxyOptions, ProxyServer};

#[derive(clap::Args)]
pub(crate) struct ProxyArgs {
    /// The address to listen on; the default is reachable only from this machine
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The port; 0 for any free port
    #[arg(long, default_value_t = 9091)]
    port: u16,
    /// Forward every connection to this server or tracker
    #[arg(long, value_name = "HOST:PORT", value_parser = super::address::host_port)]
    to: Option<String>,
    /// Offer waiting servers to the clients of this tracker; a client then connects with the key that the tracker hands out
    #[arg(long, value_name = "HOST:PORT", value_parser = super::address::host_port, conflicts_with = "to")]
    tracker: Option<String>,
    /// Also accept peers by WebSocket at this port, with the path /ws, for programs in browsers; 0 for any free port
    #[arg(long, value_name = "PORT", conflicts_with = "to")]
    web_port: Option<u16>,
    /// Record each session in DIR/session-N.client.bin and DIR/session-N.server.bin, which `rpc-decode` reads; N continues after existing
    /// files
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
}

/// Serves until Ctrl-C.
pub(crate) fn run(args: ProxyArgs) -> Result<Exit, CliError> {
    // Resolved here, so that an unknown name fails the command and not each connection.
    let to = match &args.to {
        None => None,
        Some(to) => {
            let mut found = to.to_socket_addrs().map_err(|why| format!("{to}: {why}"))?;
            Some(found.next().ok_or_else(|| format!("{to} is unknown"))?)
        }
    };
    if let Some(folder) = &args.capture {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|why| format!("{}: {why}", output::file_name(folder)))?;
    }
    let options = ProxyOptions {
        to,
        capture: args.capture,
        tracker: args.tracker,
        web: args.web_port.map(|port| SocketAddr::new(args.host, port)),
        ..ProxyOptions::default()
    };
    let address = SocketAddr::new(args.host, args.port);
    let server = ProxyServer::bind(address, options);
    let server = server.map_err(|why| format!("{address}: {why}"))?;
    let handle = server.handle()?;
    // Installed before the address is printed, because its reader may send the signal at once.
    let stop = handle.clone();
    super::interrupt::on_interrupt(move || stop.stop());
    output::stream(|out| match handle.web_address() {
        Some(web) => writeln!(out, "proxy at {}, WebSockets at {web}", handle.address()),
        None => writeln!(out, "proxy at {}", handle.address()),
    })?;
    server.run(|event| output::note(format_args!("{}", line(event))))?;
    Ok(Exit::Good)
}

/// Formats an event as one line.
fn line(event: &ProxyEvent) -> String {
    match event {
        ProxyEvent::Waits(peer, key) => format!("{peer} waits as {key:?}"),
        ProxyEvent::Begins(number, client, server) => {
            format!("session {number}: {client} and {server}")
        }
        ProxyEvent::Ends(number, client, server) => {
            format!(
                "session {number} is over: {client} bytes of the client, {server} of the server"
            )
        }
        ProxyEvent::Unrecorded(number, why) => {
            format!("session {number} is not recorded any more: {why}")
        }
        ProxyEvent::Tracker(why) => format!("tracker: {why}"),
        ProxyEvent::Closed(peer, why) => format!("{peer} is closed out: {why}"),
    }
}
