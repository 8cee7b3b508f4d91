//! `tvmspec inspect FILE`: what is in it, without executing any of it.
//!
//! [`report`] collects everything into one JSON value, whose form is `spec/schema/inspect.json`; [`text`] and [`html`]
//! show that value and know nothing else, so that no view says what another cannot.

mod graph;
mod html;
mod payload;
mod report;
mod room;
mod text;
mod tree;

use super::input::Input;
use super::output::{self, Content};
use super::{Error, Exit};
use std::path::PathBuf;
use tvmspec::release::Layout;

/// Shows everything before a broken rule, then the rule. Exit code 1 if a rule is broken.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shared object, object file, archive, tar, library binary, parameter file, executable, graph or saved objects; - for stdin
    file: PathBuf,
    /// Print JSON, of the form in spec/schema/inspect.json
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Read library binaries in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let copies = if args.html.is_some() { 3 } else { 1 };
    let (report, broken) = report::report(&input, args.layout, copies)?;
    if let Some(path) = &args.html {
        output::write(path, html::page(&report, &broken).as_bytes(), Content::Text)?;
    } else if args.json {
        output::json(&report)?;
    } else {
        let mut shown = text::render(&report);
        shown.push_str(&broken);
        output::show(&shown)?;
    }
    Ok(if broken.is_empty() {
        Exit::Good
    } else {
        Exit::Bad
    })
}
