//! The table of sessions that `tvmspec serve` shows on a terminal, and what comes from their processes: how far they are, and their lines.

use super::live::{LiveLog, cell, columns};
use super::table::size;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tvmspec::rpc::server::{SessionGauge, SessionState};

/// How often the table is drawn, and a session states how far it is.
pub(super) const PERIOD: Duration = Duration::from_millis(250);

/// The longest line that is read of a session: its code may write what it likes.
const LONGEST: u64 = 16 << 10;

/// The sessions that run, by their numbers.
#[derive(Default)]
pub(super) struct SessionTable {
    rows: Mutex<SessionRows>,
}

#[derive(Default)]
struct SessionRows {
    running: BTreeMap<u64, SessionRow>,
    /// How many are over.
    ended: u64,
}

/// One session.
struct SessionRow {
    peer: SocketAddr,
    began: Instant,
    key: String,
    /// The release by whose rules its client writes; a question mark while that is not known.
    release: String,
    /// Requests; bytes of the client, and bytes that it has allocated.
    counts: [u64; 3],
}

impl SessionTable {
    /// A session begins.
    pub(super) fn begin(&self, number: u64, peer: SocketAddr) {
        let row = SessionRow {
            peer,
            began: Instant::now(),
            key: String::new(),
            release: "?".to_owned(),
            counts: [0; 3],
        };
        self.lock().running.insert(number, row);
    }

    /// A session is over.
    pub(super) fn end(&self, number: u64) {
        let mut rows = self.lock();
        rows.running.remove(&number);
        rows.ended += 1;
    }

    /// Takes over what a session states; what is no statement is passed over: the code of a client may have written it.
    fn update(&self, number: u64, stated: &[u8]) {
        let Ok(stated) = serde_json::from_slice::<Value>(stated) else {
            return;
        };
        let mut rows = self.lock();
        // The last lines of a session may come when it is over.
        let Some(row) = rows.running.get_mut(&number) else {
            return;
        };
        let text = |name: &str| stated[name].as_str().map(str::to_owned);
        row.key = text("key").unwrap_or_default();
        row.release = text("release").unwrap_or_else(|| "?".to_owned());
        row.counts = ["requests", "received", "memory"]
            .map(|name| stated[name].as_u64().unwrap_or_default());
    }

    /// A line about all, and one for each session.
    pub(super) fn lines(&self, place: &str, most: u32, is_draining: bool) -> Vec<String> {
        let rows = self.lock();
        let (count, ended) = (rows.running.len(), rows.ended);
        let ending = if is_draining { "; ending" } else { "" };
        let mut lines = vec![format!(
            "{place}: {count} of {most} sessions, {ended} before{ending}"
        )];
        let cells = rows.running.iter().map(|(number, row)| {
            let [requests, received, memory] = row.counts;
            [
                number.to_string(),
                row.peer.to_string(),
                cell(&row.key),
                cell(&row.release),
                age(row.began.elapsed()),
                requests.to_string(),
                size(received),
                size(memory),
            ]
        });
        let cells: Vec<_> = cells.collect();
        if !cells.is_empty() {
            let header = [
                "session", "peer", "key", "release", "age", "requests", "received", "memory",
            ];
            let is_number = [true, false, false, false, true, true, true, true];
            lines.extend(columns(header, is_number, &cells));
        }
        lines
    }

    /// A panic leaves the rows whole.
    fn lock(&self) -> MutexGuard<'_, SessionRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time for people.
fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// How long a session took, for people: of most of them, milliseconds.
pub(super) fn took(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        1000..60_000 => {
            let text = format!("{:.1}", time.as_secs_f64());
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        _ => age(time),
    }
}

/// In the process of a session: states how far it is, until the reader is gone.
pub(super) fn write_states(gauge: &SessionGauge, mut out: impl Write) {
    let mut last = None;
    loop {
        let state = gauge.state();
        // An idle session writes nothing: the server has its last line.
        if last.as_ref() != Some(&state) {
            let SessionState {
                key,
                release,
                requests,
                received,
                memory,
                ..
            } = &state;
            let release = release.map(|release| release.to_string());
            let mut line = json!({"key": key, "release": release, "requests": requests, "received": received, "memory": memory})
                .to_string();
            line.push('\n');
            if out.write_all(line.as_bytes()).is_err() {
                return;
            }
            last = Some(state);
        }
        std::thread::sleep(PERIOD);
    }
}

/// Reads what [`write_states`] of a session writes, until it is over.
pub(super) fn read_states(from: impl Read, number: u64, table: &SessionTable) {
    each_line(from, |line| table.update(number, line));
}

/// Puts what a session prints into the log, until it is over.
pub(super) fn forward_lines(from: impl Read, log: &LiveLog) {
    each_line(from, |line| log.note(String::from_utf8_lossy(line)));
}

/// Each line without its end. A longer one is several.
fn each_line(from: impl Read, mut then: impl FnMut(&[u8])) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => then(line.trim_ascii_end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_for_people() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 00 s"),
            (3599, "59 min 59 s"),
            (7_260, "2 h 01 min"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn times_of_sessions_have_few_digits() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1994, "2 s"),
            (1449, "1.4 s"),
            (61_000, "1 min 01 s"),
        ] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_session_has_a_line_with_what_it_states() {
        let table = SessionTable::default();
        let place = "serving on 127.0.0.1:9090";
        assert_eq!(
            table.lines(place, 16, false),
            ["serving on 127.0.0.1:9090: 0 of 16 sessions, 0 before"]
        );
        table.begin(3, SocketAddr::from(([127, 0, 0, 1], 40_000)));
        let waits = table.lines(place, 16, false);
        assert!(waits[2].contains("127.0.0.1:40000"), "{waits:?}");
        assert!(waits[2].contains(" ? "), "{waits:?}");
        let stated = json!({"key": "client:a", "release": "0.27", "requests": 5, "received": 2048, "memory": 64});
        let lines = format!("{stated}\nno statement\n");
        read_states(lines.as_bytes(), 3, &table);
        let runs = table.lines(place, 16, true);
        assert!(
            runs[0].ends_with("1 of 16 sessions, 0 before; ending"),
            "{runs:?}"
        );
        for part in ["client:a", "0.27", " 5  ", "2.0 KiB", "64 B"] {
            assert!(runs[2].contains(part), "{part}: {runs:?}");
        }
        table.end(3);
        assert_eq!(table.lines(place, 16, false).len(), 1);
        // A statement that comes late is of no session.
        read_states(lines.as_bytes(), 3, &table);
    }

    #[test]
    fn a_line_without_an_end_is_not_gathered() {
        let mut lengths = Vec::new();
        let text = [b'a'; 40_000];
        each_line(&text[..], |line| lengths.push(line.len()));
        assert_eq!(lengths, [16_384, 16_384, 7_232]);
    }
}
