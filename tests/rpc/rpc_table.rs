//! What `tvmspec serve` and `tvmspec tracker` show on a terminal: a table in one place, with lines above it, which is gone in the end.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

use crate::support::skip::skipped;
use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    Hello, PackedValue, Packet, Protocol, RpcCode, Speaker, TrackerOffer, TrackerPeer,
    TrackerRequest,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    /// All that was printed.
    output: Arc<Mutex<Vec<u8>>>,
    columns: usize,
}

impl Terminal {
    /// Starts `tvmspec` with these arguments; `None` where there is no program that makes terminals.
    fn start(columns: usize, rows: usize, kind: &str, arguments: &str) -> Option<Terminal> {
        let program = env!("CARGO_BIN_EXE_tvmspec");
        let command =
            format!("stty cols {columns} rows {rows}; TERM={kind} exec '{program}' {arguments}");
        let started = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            skipped("`script` is not installed");
            return None;
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (child.stdout.take().expect("piped"), output.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal whose program has ended is gone.
            while let Ok(length @ 1..) = from.read(&mut piece) {
                to.lock().expect("whole").extend(&piece[..length]);
            }
        });
        let keyboard = child.stdin.take().expect("piped");
        Some(Terminal {
            child,
            keyboard,
            output,
            columns,
        })
    }

    /// What was printed, with the escapes.
    fn printed(&self) -> String {
        let output = self.output.lock().expect("whole");
        String::from_utf8_lossy(&output).into_owned()
    }

    /// What the terminal shows, and above it what has left it.
    fn screen(&self) -> Vec<String> {
        screen(&self.printed(), self.columns)
    }

    /// Waits until the terminal shows what is looked for.
    fn until(&self, what: &str, is_there: impl Fn(&[String]) -> bool) -> Vec<String> {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            let late = began.elapsed() > Duration::from_secs(60);
            assert!(!late, "no {what}: {screen:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a line with all these parts.
    fn line(&self, parts: &[&str]) -> String {
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        let screen = self.until(&format!("{parts:?}"), |screen| {
            screen.iter().any(|line| has(&line))
        });
        screen.iter().rfind(has).cloned().unwrap_or_default()
    }

    /// The port behind these words, which end a line.
    fn port(&self, behind: &str) -> u16 {
        let found = |screen: &[String]| {
            let (_, lines) = screen.split_last()?;
            lines
                .iter()
                .find_map(|line| line.strip_prefix(behind)?.parse().ok())
        };
        let screen = self.until(behind, |screen| found(screen).is_some());
        found(&screen).expect("it is there")
    }

    fn press_ctrl_c(&mut self) {
        self.keyboard.write_all(&[3]).expect("a keyboard");
        self.keyboard.flush().expect("a keyboard");
    }

    /// Waits for the end of the program, and what is then on the terminal.
    fn end(&mut self) -> Vec<String> {
        assert!(self.child.wait().expect("an end").success());
        self.screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a terminal that is endlessly high shows of a text. Of the escapes it obeys those that move up and that clear what follows.
fn screen(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let escape: String = letters
                    .by_ref()
                    .take_while(|c| !c.is_alphabetic())
                    .collect();
                // What ended it was taken: a number in front of it says which of the two it is.
                match escape.trim_start_matches('[').parse::<usize>() {
                    Ok(up) => row = row.checked_sub(up).expect("a line above"),
                    Err(_) => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                }
            }
            letter => {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.iter().map(|line| line.iter().collect()).collect()
}

/// A session that has begun.
fn connect(port: u16) -> Transport {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let mut transport = Transport::tcp(stream).expect("a transport");
    transport.set_deadline(Some(Instant::now() + Duration::from_secs(60)));
    let key = Cow::Borrowed("client:");
    transport.write_hello(&Hello { key }).expect("written");
    transport.read_answer(Release::LAST).expect("an answer");
    let init = Packet::InitServer(b"0.8.0".into(), Vec::new());
    request(&mut transport, &init);
    transport
}

fn request(transport: &mut Transport, packet: &Packet<'_>) {
    let own = Protocol::new(Release::LAST, Speaker::Client);
    let other = Protocol::new(Release::LAST, Speaker::Server);
    transport.write_packet(packet, &own).expect("written");
    let answer = transport.read_packet(&other, &mut Findings::default());
    let is_answer = matches!(answer.expect("an answer"), Some(Packet::Return(_)));
    assert!(is_answer, "{packet:?}");
}

#[test]
fn sessions_are_in_a_table_that_changes_and_goes() {
    let server = Terminal::start(100, 24, "xterm", "serve --port 0 --sessions 4");
    let Some(mut server) = server else { return };
    let port = server.port("serving on 127.0.0.1:");
    server.line(&[": 0 of 4 sessions, 0 before"]);
    let mut client = connect(port);
    server.line(&[": 1 of 4 sessions"]);
    server.line(&["1  127.0.0.1:", "client:  ?", " 1 "]);
    let args = vec![
        PackedValue::Device(Device::CPU),
        PackedValue::Int(1 << 20),
        PackedValue::Int(64),
        PackedValue::Dtype(Dtype::UINT8, 0),
    ];
    request(
        &mut client,
        &Packet::SystemCall(RpcCode::DevAllocData, args),
    );
    server.line(&["1  127.0.0.1:", "client:  0.27", " 2 ", "1.0 MiB"]);
    let second = connect(port);
    let screen = server.until("second session", |screen| {
        screen.iter().any(|line| line.contains("2  127.0.0.1:"))
    });
    // In its place: it is there once.
    let headings = screen.iter().filter(|line| line.contains("of 4 sessions"));
    assert_eq!(headings.count(), 1, "{screen:#?}");
    assert!(screen.iter().all(|line| line.len() <= 100), "{screen:#?}");
    drop(second);
    server.line(&["session 2 from 127.0.0.1:", "closed by the client"]);
    server.line(&[": 1 of 4 sessions, 1 before"]);

    server.press_ctrl_c();
    server.line(&["waiting for 1 sessions; Ctrl-C again ends them"]);
    server.line(&[": 1 of 4 sessions, 1 before; ending"]);
    let args = vec![PackedValue::Str(b"rpc.test.addone".into())];
    request(
        &mut client,
        &Packet::SystemCall(RpcCode::GetGlobalFunc, args),
    );
    server.press_ctrl_c();
    let screen = server.end();
    for gone in ["of 4 sessions", "memory", "^C"] {
        let left = screen.iter().find(|line| line.contains(gone));
        assert_eq!(left, None, "{screen:#?}");
    }
    for there in [
        "serving on",
        "session 2 from",
        "waiting for 1",
        "session 1 from",
    ] {
        let lines = screen.iter().filter(|line| line.starts_with(there));
        assert_eq!(lines.count(), 1, "{there}: {screen:#?}");
    }
    assert_eq!(screen.last().map(String::as_str), Some(""), "{screen:#?}");
}

#[test]
fn a_table_fits_its_terminal_and_has_no_colour() {
    let Some(mut server) = Terminal::start(40, 4, "xterm", "serve --port 0") else {
        return;
    };
    let port = server.port("serving on 127.0.0.1:");
    let clients: Vec<Transport> = (0..4).map(|_| connect(port)).collect();
    let screen = server.until("last line", |screen| {
        screen.iter().any(|line| line == "and 4 more")
    });
    assert!(screen.iter().all(|line| line.len() <= 40), "{screen:#?}");
    // The heading of the columns, and the sentence about all.
    assert!(screen.iter().any(|line| line.starts_with("session  peer")));
    drop(clients);
    server.line(&[": 0 of 16 s"]);
    server.press_ctrl_c();
    server.end();
    let printed = server.printed();
    let escapes = printed.split('\x1b').skip(1);
    let letters: String = escapes
        .filter_map(|rest| rest.chars().find(|letter| letter.is_alphabetic()))
        .collect();
    assert!(letters.contains('J'), "{printed:?}");
    assert!(
        letters.chars().all(|letter| "AJ".contains(letter)),
        "{letters}"
    );
}

#[test]
fn a_terminal_that_obeys_no_escapes_has_lines() {
    let Some(mut server) = Terminal::start(100, 24, "dumb", "serve --port 0") else {
        return;
    };
    let port = server.port("serving on 127.0.0.1:");
    drop(connect(port));
    server.line(&["session 1 from 127.0.0.1:", "closed by the client"]);
    server.press_ctrl_c();
    server.end();
    assert!(!server.printed().contains('\x1b'), "{}", server.printed());
}

#[test]
fn servers_of_a_tracker_are_in_a_table_by_their_keys() {
    let Some(mut tracker) = Terminal::start(80, 24, "xterm", "tracker --port 0") else {
        return;
    };
    let port = tracker.port("tracker at 127.0.0.1:");
    tracker.line(&[": 0 connections, 0 servers"]);
    let mut peer = TrackerClient::connect(("127.0.0.1", port)).expect("a tracker");
    let peer_of = TrackerPeer {
        key: "server:board".to_owned(),
        address: Some((None, 9)),
    };
    let order = peer.order(&TrackerRequest::UpdateInfo(peer_of));
    order.expect("a success");
    let offer = |number: u8| {
        TrackerRequest::Put(TrackerOffer {
            key: "board".to_owned(),
            port: 9,
            match_key: format!("board:0.{number}"),
            host: None,
        })
    };
    for number in 0..2 {
        peer.order(&offer(number)).expect("a success");
    }
    tracker.line(&[": 1 connections, 1 servers"]);
    tracker.line(&["board        1     2        0"]);
    let mut client = TrackerClient::connect(("127.0.0.1", port)).expect("a tracker");
    let found = client.request("board", 1, Duration::from_secs(30));
    found.expect("a server");
    tracker.line(&["board        1     1        0"]);
    drop(peer);
    tracker.line(&["board        0     0        0"]);
    tracker.press_ctrl_c();
    let screen = tracker.end();
    assert!(
        !screen.iter().any(|line| line.contains("pending")),
        "{screen:#?}"
    );
}
