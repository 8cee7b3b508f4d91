//! `tvmspec target`: prints the normalised form of a target, and how each release reads it.

use super::input::Input;
use super::target_remedy::remedy;
use super::{CliError, Exit, output};
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::json;
use std::fmt;
use std::path::Path;
use tvmspec::device::Device;
use tvmspec::release::Release;
use tvmspec::rule::Violation;
use tvmspec::target::{
    HostMachine, Target, TargetAccount, Targets, device_target, local_machine, rejection,
};

/// The length of the longest text, in bytes.
const LONGEST: usize = 1 << 20;

/// The maximal number of words, items and members of a text. Each takes up to 400 bytes while it is read. LLVM has fewer than a
/// thousand features.
const MOST_PARTS: usize = 100_000;

#[derive(clap::Args)]
pub(crate) struct TargetArgs {
    /// A tag, JSON, or a command line: 'cuda -arch=sm_80', '{"kind": "llvm"}'; - for stdin
    #[arg(required_unless_present = "from_device")]
    text: Option<String>,
    /// Print the target of a device of this machine: cpu:0, cuda:0, opencl:0, vulkan:0, rocm:0
    #[arg(long, value_name = "DEVICE", conflicts_with = "text")]
    from_device: Option<String>,
    /// Read the target by the rules of this release [default: the newest release that accepts it]
    #[arg(long)]
    release: Option<Release>,
    /// LLVM's default triple, for a target without a triple and a processor
    #[arg(long, default_value = "")]
    triple: String,
    /// LLVM's name of this machine's processor, for --from-device cpu
    #[arg(long)]
    cpu: Option<String>,
    /// Query the devices of this machine for `from_device` in the target and for a missing architecture
    #[arg(long)]
    ask_devices: bool,
    /// Print JSON: {"release", "target", "device_type", "text", "releases": [{"releases", "target" | "rejected"}]}
    #[arg(long)]
    json: bool,
}

/// The result of reading the text as one release does.
type Read = Result<Target, Violation>;

/// Prints the target, and how releases read the text.
pub(crate) fn run(args: TargetArgs) -> Result<Exit, CliError> {
    let device = match &args.from_device {
        None => None,
        Some(text) => Some(Device::parse(text).ok_or_else(|| {
            CliError::new(format!(
                "{text} is not a device; `tvmspec devices` lists what is here"
            ))
        })?),
    };
    let text = match args.text.as_deref() {
        Some("-") => {
            let input = Input::open(Path::new("-"))?;
            let text = std::str::from_utf8(input.bytes()).map_err(CliError::new)?;
            // Removes the line end of the command that wrote to stdin. No target contains one.
            text.trim_end_matches(['\n', '\r']).to_owned()
        }
        text => text.unwrap_or_default().to_owned(),
    };
    let separates = |byte: &u8| matches!(byte, b' ' | b',' | b':' | b'[' | b'{');
    let parts = text.bytes().filter(|byte| separates(byte)).count();
    if text.len() > LONGEST || parts > MOST_PARTS {
        return Err(CliError::new(format!(
            "the text of the target has {} bytes and {parts} parts; at most {LONGEST} bytes and {MOST_PARTS} parts are read",
            text.len()
        )));
    }
    // TGT-58: without a machine there is no driver that could answer.
    if !args.ask_devices && text.contains("from_device") {
        output::note("note: no device is asked for `from_device` without --ask-devices");
    }
    let read = |release: Release| {
        let asked = if args.ask_devices {
            local_machine(release)
        } else {
            HostMachine::default()
        };
        let mut machine = asked;
        // TGT-54: LLVM names both and no device states them, so that the user does.
        machine.triple = args.triple.clone();
        machine.cpu = args.cpu.clone();
        let targets = Targets::for_machine(release, machine);
        match device {
            Some(device) => device_target(&targets, device),
            None => targets.read(&text),
        }
    };
    let account = TargetAccount::of(read);
    let shown = match (args.release, account.newest()) {
        (Some(release), _) => read(release),
        (None, Some(target)) => Ok(target),
        // If all releases reject it, the message of the newest release is the most useful.
        (None, None) => read(Release::LAST),
    };
    if args.json {
        output::json(&TargetForm {
            shown: &shown,
            account: &account,
        })?;
    } else {
        output::stream(|out| write_out(out, &text, &shown, args.release, &account))?;
    }
    Ok(if shown.is_ok() { Exit::Good } else { Exit::Bad })
}

/// Writes the target as the requested release reads it, or the newest release that accepts it. How the other releases read the text
/// follows.
fn write_out(
    out: &mut dyn fmt::Write,
    text: &str,
    shown: &Read,
    asked: Option<Release>,
    account: &TargetAccount<impl Fn(Release) -> Read>,
) -> fmt::Result {
    // The requested release comes first, even if it rejects the text.
    if let (Err(broken), Some(release)) = (shown, asked) {
        writeln!(out, "{release} rejects it: {broken}")?;
    }
    if let Ok(target) = shown {
        let (kind, device_type) = (&target.kind, target.device_type);
        writeln!(out, "kind     {kind}, device type {device_type}")?;
        writeln!(out, "keys     {}", target.keys.join(", "))?;
        // TGT-63: a target may have no text form and still be valid.
        let text = target
            .render()
            .unwrap_or_else(|broken| format!("none: {broken}"));
        writeln!(out, "text     {} ({})", text.trim_end(), target.release)?;
        writeln!(out, "JSON     {}", target.export_text())?;
    }
    for (releases, read) in account.rows() {
        let releases = releases.short();
        match read {
            Ok(target) => writeln!(out, "{releases:<10} {}", target.export_text())?,
            Err(broken) => writeln!(out, "{releases:<10} rejected: {broken}")?,
        }
    }
    let (asked, newest) = (asked.map(|asked| (asked, shown)), account.rows().last());
    // Without a requested release, that of the newest one, because most users have it.
    let rejected = match (&asked, &newest) {
        (Some((release, Err(broken))), _) => Some((*release, broken)),
        (None, Some((releases, Err(broken)))) => Some((releases.until, broken)),
        _ => None,
    };
    if let Some(remedy) = rejected.and_then(|(release, broken)| remedy(text, release, broken)) {
        writeln!(out, "{:<10} {remedy}", "instead")?;
    }
    Ok(())
}

/// The JSON form of the output, written piece by piece.
struct TargetForm<'t, R> {
    shown: &'t Read,
    account: &'t TargetAccount<R>,
}

impl<R: Fn(Release) -> Read> Serialize for TargetForm<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = match self.shown {
            Ok(target) => target.to_json(),
            Err(broken) => json!({"rejected": rejection(broken)}),
        };
        let mut form = serializer.serialize_map(None)?;
        for (name, member) in shown.as_object().into_iter().flatten() {
            form.serialize_entry(name, member)?;
        }
        // Its memory is freed before the releases are read.
        drop(shown);
        form.serialize_entry("releases", self.account)?;
        form.end()
    }
}
