//! Styles of the words that a reader looks for first: verdicts, heads, labels. A text states the style where it writes the word, and
//! its destination decides whether the style shows.

use super::CliError;
use super::output::{self, plain};
use anstyle::{AnsiColor, Style};
use clap::{ColorChoice, ValueEnum as _};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether stdout is painted. Set once, before a command runs; read for each text.
static PAINTS: AtomicBool = AtomicBool::new(false);

/// Whether stderr is.
static PAINTS_NOTES: AtomicBool = AtomicBool::new(false);

/// What `--color` asks for among `args`, which need not be a command line that can be parsed; auto where it is not there.
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

/// Settles whether stdout and stderr are painted. By itself each is where it is a terminal that obeys colours, and `NO_COLOR` is
/// empty or not set.
pub(crate) fn choose(choice: ColorChoice) {
    let paints = |is_terminal: bool| match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            // https://no-color.org: a value of any text but the empty one.
            let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
            // A dumb terminal prints escapes as text.
            let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_set("NO_COLOR") && !dumb
        }
    };
    // Relaxed: they guard no other memory, and no thread has started.
    PAINTS.store(paints(io::stdout().is_terminal()), Ordering::Relaxed);
    PAINTS_NOTES.store(paints(io::stderr().is_terminal()), Ordering::Relaxed);
}

/// Whether stderr is painted; false until [`choose`] has run.
pub(crate) fn paints_notes() -> bool {
    PAINTS_NOTES.load(Ordering::Relaxed)
}

/// Whether stdout is painted; false until [`choose`] has run.
pub(crate) fn paints() -> bool {
    PAINTS.load(Ordering::Relaxed)
}

/// A broken rule or a failure, which a reader must not miss.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Tolerated, or not known.
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
/// Everything is in order.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The head of a section, or the name of a file.
pub(crate) const HEAD: Style = Style::new().bold();
/// A label of the text beside or below it.
pub(crate) const LABEL: Style = Style::new().dimmed();

/// A destination of text whose words may have styles.
pub(crate) trait StyledWrite: fmt::Write {
    /// Writes `text` in `style`, or as it is where the destination shows no styles.
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result;

    /// Writes `line`. If it begins with `word`, that word is in `style`.
    fn styled_beginning(&mut self, style: Style, word: &str, line: &str) -> fmt::Result {
        match line.strip_prefix(word) {
            Some(rest) => {
                self.styled(style, word)?;
                self.write_str(rest)
            }
            // A narrow terminal breaks the line inside the word.
            None => self.write_str(line),
        }
    }
}

/// Without styles.
impl StyledWrite for String {
    fn styled(&mut self, _: Style, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

/// A text for people in its final form: what a terminal obeys is escaped, and words have their styles where they show.
pub(crate) struct TerminalText {
    /// The text, with the escape sequences of its styles.
    text: String,
    /// Whether styles show.
    paints: bool,
}

impl TerminalText {
    /// An empty text for stdout.
    pub(crate) fn new() -> TerminalText {
        TerminalText {
            text: String::new(),
            paints: paints(),
        }
    }

    /// An empty text for stderr.
    pub(crate) fn for_stderr() -> TerminalText {
        TerminalText {
            text: String::new(),
            paints: paints_notes(),
        }
    }

    /// The text, with the escape sequences of its styles.
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
        self.text.push_str(&plain(text));
        Ok(())
    }
}

impl StyledWrite for TerminalText {
    fn styled(&mut self, style: Style, text: &str) -> fmt::Result {
        self.text.push_str(&in_style(style, text, self.paints));
        Ok(())
    }
}

/// Escapes `text`, and puts it between the escape sequences of `style` where `paints`.
pub(crate) fn in_style(style: Style, text: &str, paints: bool) -> String {
    let text = plain(text);
    match paints {
        true => format!("{style}{text}{style:#}"),
        false => text.into_owned(),
    }
}
