//! The commands by name, for callers that are not Rust: C, JavaScript, a shell.

use super::dump::parse_offset;
use super::explain::Account;
use super::inspect::InspectOptions;
use super::{NotExaminable, Subject};
use crate::release::{Layout, Release};
use serde_json::Value;

/// Runs `command` on the file of this name. Returns the answer as JSON, and `true` if the command found no fault.
///
/// A command is written as on the command line, without the file: `inspect [--code] [--layout L]`, `verify [--strict] [--layout L]`,
/// `explain [--release R] [--layout L]`, `dump [--from OFFSET] [--layout L]`. `--json` is accepted and has no effect; so is
/// `--elsewhere` of `explain`. `unpack` is not among the commands, because it writes files: see [`unpack`](super::unpack::unpack).
///
/// # Errors
///
/// Fails if nothing in the file has rules, or if the command is invalid.
pub fn answer(command: &str, name: &str, bytes: &[u8]) -> Result<(bool, String), NotExaminable> {
    answer_of_files(command, name, bytes, None)
}

/// Like [`answer`], for a file and its side file. The code of a device module has a side file (PAY-23), which
/// [`side_file_of`](crate::payload::file::side_file_of) names.
///
/// # Errors
///
/// Fails like [`answer`].
pub fn answer_of_files(
    command: &str,
    name: &str,
    bytes: &[u8],
    side: Option<&[u8]>,
) -> Result<(bool, String), NotExaminable> {
    let mut words = command.split_ascii_whitespace();
    let command = words.next().unwrap_or_default();
    // The options are parsed before the file is opened, because `--layout` decides how it is opened.
    let options = Options::parse(command, words).map_err(NotExaminable)?;
    let subject = match command {
        // A dump shows the bytes of one file. A module that is assembled from two files has no such bytes.
        "dump" => Subject::open(name, bytes, options.layout),
        _ => Subject::of_files(name, bytes, side, options.layout),
    };
    let subject = subject.unwrap_or_else(|broken| Subject::damaged(name, bytes, broken));
    let (good, value) = match command {
        "inspect" => {
            let wanted = InspectOptions {
                code: options.code,
                copies: 0,
            };
            let all = subject.inspect_with(wanted)?;
            (all.broken.is_empty(), all.into_json())
        }
        "verify" => {
            let all = subject.verify()?;
            // An oddity breaks a SHOULD, which readers tolerate. It counts only if the caller is strict.
            let odd = options.strict && all.found() > 0;
            // BLOB-06: a file with an unknown or guessed kind is not known to be good.
            let known = all.unread.is_empty() && !all.guessed;
            (all.violations.is_empty() && known && !odd, all.to_json())
        }
        "explain" => {
            let accounts = subject.explain_for(options.release)?;
            // Hardly any file loads in all releases, so that there is no verdict unless the caller names a release.
            let good = options.release.is_none() || accounts.iter().all(Account::is_good);
            let accounts: Vec<Value> = accounts.iter().map(Account::to_json).collect();
            (good, accounts.into())
        }
        "dump" => {
            let fields = subject.dump_from(options.from)?;
            // `fields` reads the units while it is serialized, so that `is_broken` is known only afterwards.
            let text =
                serde_json::to_string(&fields).map_err(|error| NotExaminable(error.to_string()))?;
            return Ok((!fields.is_broken(), text));
        }
        _ => {
            return Err(NotExaminable(format!(
                "there is no command `{command}`; there are inspect, verify, explain, dump"
            )));
        }
    };
    Ok((good, value.to_string()))
}

/// Options of a command. Options that a command does not have keep their defaults.
#[derive(Default)]
struct Options {
    /// `verify --strict`: an oddity counts as a violation.
    strict: bool,
    /// `inspect --code`: the report has the code of executables.
    code: bool,
    /// `--layout`, of every command: the layout of library binaries and payloads. It overrides symbols and bytes.
    layout: Option<Layout>,
    /// `explain --release`: the only release to examine.
    release: Option<Release>,
    /// `dump --from`: fields that end at or before this offset, in bytes, are left out.
    from: u64,
}

impl Options {
    /// Parses the options of `command`, `--name value` or `--name=value`, in any order.
    fn parse<'w>(
        command: &str,
        mut words: impl Iterator<Item = &'w str>,
    ) -> Result<Options, String> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            let (word, own) = match word.split_once('=') {
                Some((word, value)) => (word, Some(value)),
                None => (word, None),
            };
            let flags = ["--code", "--strict", "--json", "--elsewhere"];
            if own.is_some() && flags.contains(&word) {
                return Err(format!("{word} takes no value"));
            }
            // Called only for options that have a value: the word after a flag is the next option.
            let mut value = || {
                own.or_else(|| words.next())
                    .ok_or(format!("{word} has no value"))
            };
            match (word, command) {
                // The answer is always JSON, and libraries of this machine are never searched. The options are accepted so that a
                // command line can be passed unchanged.
                ("--json", _) | ("--elsewhere", "explain") => {}
                ("--from", "dump") => {
                    let text = value()?;
                    options.from =
                        parse_offset(text).ok_or_else(|| format!("`{text}` is not an offset"))?;
                }
                ("--code", "inspect") => options.code = true,
                ("--strict", "verify") => options.strict = true,
                ("--layout", _) => options.layout = Some(value()?.parse()?),
                ("--release", "explain") => options.release = Some(value()?.parse()?),
                _ => return Err(format!("`{command}` has no option `{word}`")),
            }
        }
        Ok(options)
    }
}
