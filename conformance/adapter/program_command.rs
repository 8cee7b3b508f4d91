//! The command that starts this program again, for work in a separate process.

use std::ffi::OsString;
use std::io;
#[cfg(feature = "cli")]
use std::process::Command;
use std::sync::OnceLock;

/// The words of [`set`].
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// States that `words` start this program, if the file of this process alone does not, such as `python -m tvmspec`. Only the first
/// statement counts.
pub(crate) fn set(words: Vec<OsString>) {
    let _ = WORDS.set(words);
}

/// Returns the words before the subcommand.
pub(crate) fn words() -> io::Result<Vec<OsString>> {
    match WORDS.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Returns the command that starts this program, without a subcommand.
#[cfg(feature = "cli")]
pub(crate) fn command() -> io::Result<Command> {
    words().map(|words| command_of(&words))
}

/// Returns the command of these [`words`].
#[cfg(feature = "cli")]
pub(crate) fn command_of(words: &[OsString]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or("tvmspec".as_ref(), OsString::as_os_str));
    command.args(words);
    command
}
