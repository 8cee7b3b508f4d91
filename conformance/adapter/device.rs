//! `device:NAME[:ID]`: a device API of this process, driven through the contract; `device:rpc://HOST:PORT/KEY#NAME:ID` is one of a server,
//! driven through a session.
//!
//! It answers `device.program`, and of `device.behaviour` the random walk: names, sizes and packing are not part of the device API.

use super::{Identity, Reply, Testee};
use crate::conformance::device::{self, ops};
use crate::device::simulated::Simulated;
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Error, Manager, device_type};
#[cfg(feature = "rpc")]
use crate::rpc::client::RemoteAddress;
use serde_json::Value;

/// A device that is held to the contract.
pub(crate) struct DeviceUnderTest {
    /// Type, index and model, for reports.
    name: String,
    /// That of its driver, or of this crate.
    version: String,
    /// What the programs call.
    api: &'static dyn DeviceApi,
    /// Which of its devices.
    device: Device,
}

impl DeviceUnderTest {
    /// The device `name`, such as `opencl`, `cuda:1`, `simulated`, or whatever is registered as `device_api.<name>`.
    pub(crate) fn open(name: &str) -> Result<DeviceUnderTest, String> {
        #[cfg(feature = "rpc")]
        if RemoteAddress::is_remote(name) {
            return DeviceUnderTest::of_server(name);
        }
        let (family, device) = parse(name)?;
        if family == "simulated" {
            // Leaked: a device API lives as long as the process (DEV-02).
            let api: &'static Simulated = Box::leak(Box::new(Simulated::new(1)));
            return Ok(DeviceUnderTest {
                name: "simulated".into(),
                version: version(),
                api,
                device,
            });
        }
        let api = Manager::global()
            .api(device.kind)
            .map_err(|error| explain(&family, &error))?;
        match api.attribute(device, Attribute::Exist) {
            Ok(AttributeValue::Int(1)) => {}
            _ => {
                // DEV-07: existence is answered with 0 and no reason; any other question fails with it.
                let why = api
                    .attribute(device, Attribute::DeviceName)
                    .err()
                    .map(|error| error.to_string());
                return Err(format!(
                    "device {name} is not here: {}",
                    why.unwrap_or_else(|| "no such device".into())
                ));
            }
        }
        let name = format!("{family}:{}", device.id);
        Ok(DeviceUnderTest::with(name, api, device))
    }

    /// The device that the address of a server names. The session ends with the process.
    #[cfg(feature = "rpc")]
    fn of_server(name: &str) -> Result<DeviceUnderTest, String> {
        let address = RemoteAddress::parse(name).map_err(|error| error.to_string())?;
        let session = address.connect().map_err(|error| error.to_string())?;
        let device = session.device(address.device);
        let device = device.map_err(|error| error.to_string())?;
        let api = Manager::global().api(device.kind);
        let api = api.map_err(|error| error.to_string())?;
        // DEV-57: devices of a session are of it as long as it is there.
        std::mem::forget(session);
        match api.attribute(device, Attribute::Exist) {
            Ok(AttributeValue::Int(1)) => Ok(DeviceUnderTest::with(name.to_owned(), api, device)),
            _ => Err(format!("the device of {name} is not here")),
        }
    }

    /// A device that is there.
    fn with(name: String, api: &'static dyn DeviceApi, device: Device) -> DeviceUnderTest {
        let stated = |attribute| match api.attribute(device, attribute) {
            Ok(AttributeValue::Text(text)) => Some(text),
            _ => None,
        };
        let model = stated(Attribute::DeviceName)
            .map(|model| format!(" ({model})"))
            .unwrap_or_default();
        DeviceUnderTest {
            name: name + &model,
            version: stated(Attribute::DriverVersion).unwrap_or_else(version),
            api,
            device,
        }
    }
}

/// Checks the spelling of a name without touching a driver.
pub(crate) fn parse(name: &str) -> Result<(String, Device), String> {
    #[cfg(feature = "rpc")]
    if RemoteAddress::is_remote(name) {
        let address = RemoteAddress::parse(name).map_err(|error| error.to_string())?;
        return Ok((name.to_owned(), address.device));
    }
    let (family, id) = name.split_once(':').unwrap_or((name, "0"));
    let id: i32 = id
        .parse()
        .map_err(|_| format!("`{id}` is not a number of a device"))?;
    if family == "simulated" {
        return Ok((family.to_owned(), Device::ext_dev(id)));
    }
    let kind = device_type::number_of(family);
    let kind = kind.ok_or_else(|| {
        format!("there is no device `{family}`: cpu, simulated, opencl, vulkan, cuda, rocm, ext_dev, ...")
    })?;
    Ok((family.to_owned(), Device::new(kind, id)))
}

/// Why there is no API: for ROCm that this build has none, since it is behind a feature.
fn explain(family: &str, error: &Error) -> String {
    match family {
        "rocm" | "hip" => format!("{error} This crate has no HIP backend: not built"),
        _ => error.to_string(),
    }
}

/// The version of this crate, for a device without a driver.
fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

impl Testee for DeviceUnderTest {
    /// It states no releases: what holds for a device of any release holds for this one.
    fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            version: self.version.clone(),
            releases: Vec::new(),
            ops: OPS.map(str::to_owned).into(),
        }
    }

    /// See [`answer`].
    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        answer(op, args, self.api, self.device)
    }
}

/// The operations that drive a device.
pub(super) const OPS: [&str; 2] = [device::BEHAVIOUR, device::PROGRAM];

/// Runs the program of a case on a device and returns its reply.
pub(super) fn answer(op: &str, args: &Value, api: &dyn DeviceApi, device: Device) -> Reply {
    if !OPS.contains(&op) {
        return Reply::Unsupported(format!("a device answers {} only", OPS.join(" and ")));
    }
    if args.get("defect").is_some() {
        return Reply::Unsupported(
            "a device is driven as it is: it has no defect to ask for".into(),
        );
    }
    ops::answer(device::drive(op, args.get("value"), api, device)).into()
}
