//! The adapter `device:NAME[:ID]`: a device API of this process, driven through the contract. With
//! `device:rpc://HOST:PORT/KEY#NAME:ID` it is a device of a server, driven through a session.
//!
//! It answers `device.program`, and for `device.behaviour` the random walk. Names, sizes and packing are not part of the device
//! API.

use super::{Identity, Reply, Testee};
use crate::conformance::device::{self, ops};
use crate::device::simulated::Simulated;
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Error, Manager, device_type};
#[cfg(feature = "rpc")]
use crate::rpc::client::RemoteAddress;
use serde_json::Value;

/// A device that is tested against the contract.
pub(crate) struct DeviceUnderTest {
    /// The type, index and model, for reports.
    name: String,
    /// The version of its driver, or of this crate.
    version: String,
    /// The API that the programs call.
    api: &'static dyn DeviceApi,
    /// The device of that API.
    device: Device,
}

impl DeviceUnderTest {
    /// Opens the device `name`, such as `opencl`, `cuda:1`, `simulated`, or any that is registered as `device_api.<name>`.
    pub(crate) fn open(name: &str) -> Result<DeviceUnderTest, String> {
        #[cfg(feature = "rpc")]
        if RemoteAddress::is_remote(name) {
            return DeviceUnderTest::of_server(name);
        }
        let (family, device) = parse(name)?;
        if family == "simulated" {
            // Leaked, because a device API lives as long as the process (DEV-02).
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
                // DEV-07: existence is answered with 0 and without a reason. Any other question fails with the reason.
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

    /// Opens the device that the address of a server names. The session ends with the process.
    #[cfg(feature = "rpc")]
    fn of_server(name: &str) -> Result<DeviceUnderTest, String> {
        let address = RemoteAddress::parse(name).map_err(|error| error.to_string())?;
        let session = address.connect().map_err(|error| error.to_string())?;
        let device = session.device(address.device);
        let device = device.map_err(|error| error.to_string())?;
        let api = Manager::global().api(device.kind);
        let api = api.map_err(|error| error.to_string())?;
        // DEV-57: the devices of a session exist as long as the session, so it is leaked.
        std::mem::forget(session);
        match api.attribute(device, Attribute::Exist) {
            Ok(AttributeValue::Int(1)) => Ok(DeviceUnderTest::with(name.to_owned(), api, device)),
            _ => Err(format!("the device of {name} is not here")),
        }
    }

    /// Creates the testee for a device that exists.
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

/// Checks the spelling of a name without using a driver.
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

/// Explains why there is no API. ROCm may be missing because it needs a feature of this build.
fn explain(family: &str, error: &Error) -> String {
    match family {
        "rocm" | "hip" => format!("{error} This crate has no HIP backend: not built"),
        _ => error.to_string(),
    }
}

/// Returns the version of this crate, for a device without a driver.
fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

impl Testee for DeviceUnderTest {
    /// Returns an identity without releases, because the rules for a device of any release apply to this one.
    fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            version: self.version.clone(),
            releases: Vec::new(),
            ops: OPS.map(str::to_owned).into(),
        }
    }

    /// Answers as [`answer`] does.
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
