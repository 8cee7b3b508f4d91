//! Styles of the words that a reader looks for first: verdicts, headings, labels. A text states the style of each word; the destination
//! decides whether styles are shown.

use super::CliError;
use super::output::{self, escape_text};
use anstyle::{AnsiColor, Style};
use clap::{ColorChoice, ValueEnum as _};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// `true` if stdout shows styles. Set once before a command runs, and read for each text.
static PAINTS: AtomicBool = AtomicBool::new(false);

/// `true` if stderr shows styles.
static PAINTS_NOTES: AtomicBool = AtomicBool::new(false);

/// Returns the value of `--color` in `args`, or auto if it is missing. `args` need not be a valid command line.
pub(crate) fn asked(args: impl Iterator<Item = OsString>) -> ColorChoice {
    let mut choice = ColorChoice::Auto;
    let mut is_next = false;
    for arg in args.skip(1).take_while(|arg| arg != "--") {
        let text = arg.to_string_lossy();
        let value = match text.strip_prefix("--color=") {
            Some(value) => Some(value),
            None => std::mem::take(&mut is_next).then_some(&*text),
        };
        if let Some(wanted) = value.and_then(|value| ColorChoice::from_str(value, false).ok()) {
            choice = wanted;
        }
        is_next = text == "--color";
    }
    choice
}

/// Decides whether stdout and stderr show styles. By default each does if it is a terminal that supports colours, and `NO_COLOR` is
/// empty or not set.
pub(crate) fn choose(choice: ColorChoice) {
    let paints = |is_terminal: bool| match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            // https://no-color.org: any value except the empty text.
            let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
            // A dumb terminal prints escapes as text.
            let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_set("NO_COLOR") && !dumb
        }
    };
    // Relaxed is enough, because they guard no other memory and no thread has started.
    PAINTS.store(paints(io::stdout().is_terminal()), Ordering::Relaxed);
    PAINTS_NOTES.store(paints(io::stderr().is_terminal()), Ordering::Relaxed);
}

/// Returns whether stderr shows styles; false until [`choose`] has run.
pub(crate) fn paints_notes() -> bool {
    PAINTS_NOTES.load(Ordering::Relaxed)
}

/// Returns whether stdout shows styles; false until [`choose`] has run.
pub(crate) fn paints() -> bool {
    PAINTS.load(Ordering::Relaxed)
}

/// The style of a broken rule or a failure, which a reader must not miss.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of tolerated and unknown items.
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
/// The style of a success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of a heading or a file name.
pub(crate) const HEAD: Style = Style::new().bold();
/// The style of a label for the text next to it.
pub(crate) const LABEL: Style = Style::new().dimmed();

/// A destination of text whose words may have styles.
pub(crate) trait StyledWrite: fmt::Write {
    /// Writes `text` in `style`, or without a style if the destination shows none.
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result;

    /// Writes `line`. If it begins with `word`, that word is in `style`.
    fn styled_beginning(&mut self, style: Style, word: &str, line: &str) -> fmt::Result {
        match line.strip_prefix(word) {
            Some(rest) => {
                self.styled(style, word)?;
                self.write_str(rest)
            }
            // A narrow terminal may break the line inside the word.
            None => self.write_str(line),
        }
    }
}

/// Ignores styles.
impl StyledWrite for String {
    fn styled(&mut self, _: Style, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// A text for people in its final form: control sequences are escaped, and words have their styles if those are shown.
pub(crate) struct TerminalText {
    /// The text, with the escape sequences of its styles.
    text: String,
    /// `true` if styles are shown.
    paints: bool,
}

impl TerminalText {
    /// Creates an empty text for stdout.
    pub(crate) fn new() -> TerminalText {
        TerminalText {
            text: String::new(),
            paints: paints(),
        }
    }

    /// Creates an empty text for stderr.
    pub(crate) fn for_stderr() -> TerminalText {
        TerminalText {
            text: String::new(),
            paints: paints_notes(),
        }
    }

    /// Returns the text, with the escape sequences of its styles.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends another text for stdout.
    pub(crate) fn append(&mut self, other: &TerminalText) {
        self.text.push_str(&other.text);
    }

    /// Writes the text to stdout. A closed pipe is [`CliError::ClosedPipe`], which has no message.
    pub(crate) fn print(&self) -> Result<(), CliError> {
        output::print(&self.text)
    }
}

impl fmt::Write for TerminalText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(&escape_text(text));
        Ok(())
    }
}

impl StyledWrite for TerminalText {
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result {
        self.text.push_str(&in_style(style, text, self.paints));
        Ok(())
    }
}

/// Escapes `text`, and encloses it in the escape sequences of `style` if `paints` is true.
pub(crate) fn in_style(style: Style, text: &str, paints: bool) -> String {
    let text = escape_text(text);
    if paints {
        format!("{style}{text}{style:#}")
    } else {
        text.into_owned()
    }
}
