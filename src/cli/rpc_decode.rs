//! `tvmspec rpc-decode`: prints the messages that client and server of a connection wrote.
//!
//! The input is one file for each direction, as a capture of the connection has them. The bytes do not state their direction, and both
//! directions are needed to find the release.

use super::input::Input;
use super::{CliError, Exit, output};
use serde_core::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tvmspec::release::{Release, Releases};
use tvmspec::rpc::{Connection, ConnectionMessage, HelloAnswer, Packet, RpcCode, relay_json};

#[derive(clap::Args)]
pub(crate) struct RpcDecodeArgs {
    /// The bytes from the client; or NAME (or one of the files) for the pair NAME.c2s.bin and NAME.s2c.bin, or NAME.client.bin and
    /// NAME.server.bin
    client: PathBuf,
    /// The bytes from the server
    server: Option<PathBuf>,
    /// Decode by the rules of this release
    #[arg(long)]
    release: Option<Release>,
    /// Print one line for each message, without its fields
    #[arg(long)]
    brief: bool,
    /// Print JSON: {"releases", "others", "client", "server"}; each side is {"messages": [{"start", "end", "message"}], "fields": [[start,
    /// end, field, rule, value]], "broken"}
    #[arg(long)]
    json: bool,
}

/// Reads both sides and prints the messages. Returns [`Exit::Bad`] if a side breaks a rule, RPC-16 included.
pub(crate) fn run(args: RpcDecodeArgs) -> Result<Exit, CliError> {
    let (client, server) = match args.server {
        Some(server) => (args.client, server),
        None => pair(&args.client)?,
    };
    let (client, server) = (Input::open(&client)?, Input::open(&server)?);
    let connection = Connection::read(client.bytes(), server.bytes(), args.release);
    if args.json {
        output::json(&connection)?;
    } else {
        output::stream(|out| write_out(out, &connection, args.brief))?;
    }
    // Findings are tolerated oddities, and do not count.
    let whole = connection.client.broken.is_none() && connection.server.broken.is_none();
    Ok(if whole { Exit::Good } else { Exit::Bad })
}

/// The endings of the two files of a capture: as in `golden/rpc`, and as `tvmspec proxy --capture` writes them.
const ENDS: [[&str; 2]; 2] = [[".c2s.bin", ".s2c.bin"], [".client.bin", ".server.bin"]];

/// Finds both files of a capture by their common name, or by one of them.
fn pair(name: &Path) -> Result<(PathBuf, PathBuf), CliError> {
    // By the text and not by an extension, because the name may contain dots.
    let text = name.as_os_str().to_string_lossy();
    let stem = ENDS
        .as_flattened()
        .iter()
        .find_map(|end| text.strip_suffix(end));
    let shared = stem.map_or_else(|| name.to_owned(), PathBuf::from);
    let with = |end: &str| {
        let mut file = shared.as_os_str().to_owned();
        file.push(end);
        PathBuf::from(file)
    };
    for [client, server] in ENDS {
        let (client, server) = (with(client), with(server));
        match (client.exists(), server.exists()) {
            (true, true) => return Ok((client, server)),
            (true, false) => return Err(missing_direction_error(&client, "client", &server)),
            (false, true) => return Err(missing_direction_error(&server, "server", &client)),
            (false, false) => {}
        }
    }
    if name.is_dir() {
        return Err(CliError::new(format!(
            "{text} is a folder: give the files of the client and of the server, or the common part of their names"
        )));
    }
    if name.exists() {
        return Err(CliError::new(format!(
            "{text} is one direction of a connection: give the files of the client and of the server"
        )));
    }
    let name = output::file_name(&shared);
    Err(CliError::new(format!(
        "there are neither {name}.c2s.bin and {name}.s2c.bin nor {name}.client.bin and {name}.server.bin"
    )))
}

/// Creates the error for one file without the other: one direction alone does not show the release.
fn missing_direction_error(found: &Path, side: &str, missing: &Path) -> CliError {
    let (found, missing) = (output::file_name(found), output::file_name(missing));
    CliError::new(format!(
        "{found} has what the {side} wrote, but {missing} of the other side is missing: give both files, the client's first"
    ))
}

/// Writes the connection for people: the matching releases, why the others do not match, then the messages of both sides in turn.
/// Fields are included unless `brief`. Findings and broken rules come last.
fn write_out(out: &mut dyn fmt::Write, connection: &Connection<'_>, brief: bool) -> fmt::Result {
    let (first, last) = connection.releases;
    writeln!(out, "spoken as in {}", range(first, last))?;
    for (first, last, broken) in &connection.others {
        match broken {
            // The forms differ in few messages, so that a short session may match several releases.
            None => writeln!(
                out,
                "  {}: too, as far as these bytes show",
                range(*first, *last)
            )?,
            Some((speaker, broken)) => {
                let (releases, speaker) = (range(*first, *last), speaker.name());
                writeln!(
                    out,
                    "  {releases}: no, the {speaker} breaks a rule: {broken}"
                )?;
            }
        }
    }
    // RPC-10: a packet does not state the request that it answers, so that only the order tells. Message number n of the server answers
    // message number n of the client.
    let mut sides = [&connection.client, &connection.server].map(|side| (side, side.messages()));
    loop {
        let mut is_end = true;
        for (side, messages) in &mut sides {
            let fields = messages.clone();
            let Some((start, _, message)) = messages.next() else {
                continue;
            };
            is_end = false;
            let speaker = side.speaker.name();
            writeln!(
                out,
                "\n{speaker} {start:#06x}  {}",
                line(&message, connection.era())
            )?;
            if brief {
                continue;
            }
            let mut written = Ok(());
            fields.visit_fields(|field| {
                let (start, rule) = (field.start, field.rule);
                let (field, value) = (field.field, field.value);
                if written.is_ok() {
                    written = writeln!(out, "  {start:#08x}  {field:<24} {value:<40} {rule}");
                }
            });
            written?;
        }
        if is_end {
            break;
        }
    }
    for side in [&connection.client, &connection.server] {
        for finding in side.findings.as_slice() {
            let (rule, message, offset) = (finding.rule, &finding.message, finding.offset);
            writeln!(
                out,
                "\n{} {offset:#06x}  finding: {message} [{rule}]",
                side.speaker.name()
            )?;
        }
        if let Some(broken) = &side.broken {
            writeln!(out, "\n{}: {broken}", side.speaker.name())?;
        }
    }
    Ok(())
}

/// Describes a range of releases: `0.22 to 0.27`, or `0.21` for one alone.
fn range(first: Release, last: Release) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}

/// The maximal number of characters of a message on its line.
const LONGEST: usize = 160;

/// Formats a message on one line of at most [`LONGEST`] characters: its kind, and its content in JSON form. Of a copy, only the size is
/// shown.
fn line(message: &ConnectionMessage<'_>, era: Releases) -> String {
    let mut text = match message {
        ConnectionMessage::Hello(hello) => format!("hello `{}`", hello.key),
        ConnectionMessage::Answer(HelloAnswer::Success(key)) => format!("success `{key}`"),
        ConnectionMessage::Answer(HelloAnswer::Duplicate) => "duplicate key".to_owned(),
        // RPC-04: the code `mismatch` means that no server has the key.
        ConnectionMessage::Answer(HelloAnswer::Mismatch) => "no server of this key".to_owned(),
        ConnectionMessage::TrackerHello => "hello of a tracker".to_owned(),
        ConnectionMessage::TrackerRequest(request) => {
            shorten_json(&relay_json::from_tracker_request(request))
        }
        ConnectionMessage::TrackerReply(reply) => {
            shorten_json(&relay_json::from_tracker_reply(reply))
        }
        ConnectionMessage::Packet(packet) => {
            // RPC-11: an empty packet has no code.
            let code = packet.code().map_or("nothing", RpcCode::name);
            match packet {
                // The JSON form would contain all bytes in base64.
                Packet::CopyToRemote(_, data) | Packet::CopyAck(data) => {
                    format!("{code} of {} bytes", data.len())
                }
                _ => format!("{code} {}", shorten_json(&packet.in_era(era))),
            }
        }
    };
    // Cut at a character and not at a byte, because keys and names are UTF-8.
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push_str("...");
    }
    text
}

/// Returns the JSON form, or its start if it has more than [`LONGEST`] characters. The form of a packet may be much longer than a line.
fn shorten_json(form: &impl Serialize) -> String {
    let mut written = Beginning(Vec::new());
    // Writing fails once the text is long enough.
    let _ = serde_json::to_writer(&mut written, form);
    String::from_utf8_lossy(&written.0).into_owned()
}

/// A text that rejects further bytes after more than [`LONGEST`] characters, of up to four bytes each.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (4 * (LONGEST + 1)).saturating_sub(self.0.len());
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
