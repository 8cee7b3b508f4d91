//! `tvmspec devices`: lists the devices of this machine with every attribute.

#[cfg(feature = "rpc")]
use super::device_argument::Places;
use super::table::table;
use super::{CliError, Exit, output};
use serde_json::{Map, Value as Json, json};
use tvmspec::device::{Attribute, AttributeValue, Device, Manager, device_type, existing_devices};

#[derive(clap::Args)]
pub(crate) struct DevicesArgs {
    /// Print JSON: {"devices": [{"device", "attributes": {..}}], "absent": [{"name", "why"}]}
    #[arg(long)]
    json: bool,
    /// List the devices of a server, rpc://HOST:PORT/KEY, or of one that a tracker hands out, rpc-tracker://HOST:PORT/KEY
    #[cfg(feature = "rpc")]
    #[arg(long, value_name = "SERVER")]
    device: Option<String>,
}

/// The device types to look for, in the order of their numbers.
const NAMES: [&str; 6] = ["cpu", "cuda", "opencl", "vulkan", "metal", "rocm"];

/// Prints the devices and, for each type without one, the reason.
pub(crate) fn run(args: DevicesArgs) -> Result<Exit, CliError> {
    let (mut devices, mut absent) = (Vec::new(), Vec::new());
    #[cfg(feature = "rpc")]
    let server = args
        .device
        .map(|text| Places::resolve(&[text]))
        .transpose()?;
    // The number of a remote device includes the session.
    #[cfg(feature = "rpc")]
    let first = server.as_ref().and_then(|server| server.devices.first());
    #[cfg(not(feature = "rpc"))]
    let first: Option<&Device> = None;
    // DEV-57: device types are below 128, and the rest is the session.
    let session = first.map_or(0, |device| device.kind - device.kind % 128);
    for name in NAMES {
        match find_devices(name, session) {
            Ok(found) => devices.extend(found),
            Err(why) => absent.push((name, why)),
        }
    }
    // A server always has a CPU. If it does not answer for it, the session has ended, and its devices are unknown.
    #[cfg(feature = "rpc")]
    if let Some(device) = first {
        let cpu = Device::new(session + Device::CPU.kind, 0);
        Manager::global()
            .api(device.kind)
            .and_then(|api| api.attribute(cpu, Attribute::Exist))
            .map_err(CliError::new)?;
    }
    if args.json {
        output::json(&as_json(&devices, &absent))?;
        return Ok(Exit::Good);
    }
    output::show(&as_text(devices, &absent))?;
    Ok(Exit::Good)
}

/// A device and its attributes.
struct DeviceRow {
    /// The type and the number: `cuda:0`.
    name: String,
    /// One value for each attribute, in the order of [`Attribute::ALL`]. The columns of the table rely on this.
    answers: Vec<(Attribute, AttributeValue)>,
}

/// Looks for the devices of a type, which are numbered from 0 without gaps. `session` is added to the type for a device of a server
/// (DEV-57).
fn find_devices(name: &str, session: i32) -> Result<Vec<DeviceRow>, String> {
    let there = device_type::number_of(name).ok_or("no release has such a device")?;
    let of = there + session;
    let api = Manager::global().api(of).map_err(|error| match name {
        "metal" => "not built: this crate has no backend for it".to_owned(),
        _ => error.reason(),
    })?;
    let mut found = Vec::new();
    for device in existing_devices(api, of) {
        let answer = |attribute: Attribute| {
            // DEV-08: an unsupported attribute has a value and is no error. An error comes from the driver, and must not hide the other
            // attributes.
            let value = api.attribute(device, attribute).unwrap_or_else(|error| {
                let what = attribute.name();
                output::warning(format_args!("{name}:{}, {what}: {error}", device.id));
                AttributeValue::None
            });
            (attribute, value)
        };
        found.push(DeviceRow {
            name: format!("{name}:{}", device.id),
            answers: Attribute::ALL.into_iter().map(answer).collect(),
        });
    }
    if found.is_empty() {
        // DEV-08: a missing device is reported as 0, without a reason. A failing driver gives its reason for any other attribute.
        let why = api.attribute(Device::new(of, 0), Attribute::DeviceName);
        return Err(why
            .err()
            .map_or_else(|| "no device".to_owned(), |error| error.reason()));
    }
    Ok(found)
}

/// Formats a table with a column for each device, and a line for each type that is missing.
fn as_text(devices: Vec<DeviceRow>, absent: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut header = vec![String::from("attribute")];
    header.extend(devices.iter().map(|found| found.name.clone()));
    let rows = Attribute::ALL.iter().enumerate().map(|(at, attribute)| {
        let mut row = vec![format!("{:>2} {}", attribute.number(), attribute.name())];
        row.extend(devices.iter().map(|found| found.answers[at].1.to_string()));
        row
    });
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    text.push_str(&table(&header, rows.collect()));
    if !absent.is_empty() {
        text.push('\n');
    }
    for (name, why) in absent {
        text.push_str(&format!(" {name}: {why}\n"));
    }
    text
}

/// Returns the JSON that the help of `--json` describes. An unsupported attribute is null.
fn as_json(devices: &[DeviceRow], absent: &[(&str, String)]) -> Json {
    let devices: Vec<Json> = devices
        .iter()
        .map(|found| {
            let attributes: Map<String, Json> = found
                .answers
                .iter()
                .map(|(attribute, value)| (attribute.name().to_owned(), Json::from(value.clone())))
                .collect();
            json!({"device": found.name, "attributes": attributes})
        })
        .collect();
    let absent: Vec<Json> = absent
        .iter()
        .map(|(name, why)| json!({"name": name, "why": why}))
        .collect();
    json!({"devices": devices, "absent": absent})
}
