//! The present machine, as targets see it.

use crate::device::{Attribute, Device, Manager, device_type, existing_devices};
use crate::release::Release;
use crate::rule::Violation;
use crate::target::{HostMachine, Target, TargetConfig, Targets};
use serde_json::Value;

/// Returns the present machine. It has the architectures of the first devices (TGT-50, TGT-52), and the answers of all devices to the
/// options of the kinds of `release` (TGT-58). This loads drivers, as any first request to a device does. The triple and the processor
/// stay empty, because only LLVM can name them.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::{Targets, local_machine};
///
/// let release = Release::of(27);
/// let targets = Targets::for_machine(release, local_machine(release));
/// println!("{}", targets.read(r#"{"kind": "vulkan", "from_device": 0}"#).map_or_else(|why| why.to_string(), |target| target.kind));
/// ```
pub fn local_machine(release: Release) -> HostMachine {
    let mut machine = HostMachine::default();
    for kind in Targets::new(release).kinds() {
        // Host code needs no answers from a device: the API of the CPU has no target properties, and accepts every number.
        let Some(number) = i32::try_from(kind.device_type)
            .ok()
            .filter(|kind| *kind != Device::CPU.kind)
        else {
            continue;
        };
        let Ok(Some(api)) = Manager::global().find(number) else {
            continue;
        };
        // TGT-58: upstream is built with or without a driver. This crate is built with all of them, so a missing driver counts as
        // not built in.
        if !api.has_driver() {
            continue;
        }
        let devices = machine.devices.entry(kind.device_type).or_default();
        for (at, device) in existing_devices(api, number).enumerate() {
            if devices.len() <= at {
                devices.push(TargetConfig::new());
            }
            // Several kinds share one device type: each adds the answers to its own options.
            let answers = kind.options.iter().filter_map(|option| {
                let answer = Value::from(api.target_property(device, &option.name).ok()?);
                (!answer.is_null()).then(|| (option.name.clone(), answer))
            });
            devices[at].extend(answers);
        }
    }
    let text = |name: &str, attribute| {
        let device = Device::new(device_type::number_of(name)?, 0);
        let answer = Manager::global().attribute(device, attribute).ok()?;
        Value::from(answer).as_str().map(str::to_owned)
    };
    machine.cuda_arch = text("cuda", Attribute::ComputeVersion)
        .map(|version| format!("sm_{}", version.replace('.', "")));
    // The text after a colon lists features of the device, and is not part of the architecture's name.
    machine.rocm_arch = text("rocm", Attribute::GcnArch)
        .map(|arch| arch.split(':').next().unwrap_or_default().to_owned());
    machine
}

/// Returns the target of a device of this machine (TGT-59), with the kinds of `targets`.
///
/// # Errors
///
/// As [`Targets::detect`]. A type without a driver has no device. A failed question counts as no answer.
pub fn device_target(targets: &Targets, device: Device) -> Result<Target, Violation> {
    let manager = Manager::global();
    // DEV-58: the name comes before the index.
    let text = device.text_in(Release::LAST).unwrap_or_default();
    let name = text.split([':', '(']).next().unwrap_or_default();
    let answer = |question: &str| {
        let attribute = Attribute::ALL
            .into_iter()
            .find(|attribute| attribute.name() == question);
        let answer = match attribute {
            // DEV-07: the existence of a device is answered even without a driver.
            Some(attribute) => manager.attribute(device, attribute),
            None => manager
                .api(device.kind)
                .and_then(|api| api.target_property(device, question)),
        };
        answer.unwrap_or_default().into()
    };
    targets.detect(name, device.id.into(), &answer)
}
