//! The machine that this runs on, as targets see it.

use crate::device::{Attribute, Device, Manager, device_type, existing_devices};
use crate::release::Release;
use crate::rule::Violation;
use crate::target::{HostMachine, Target, TargetConfig, Targets};
use serde_json::Value;

/// This machine: the architectures of its first devices (TGT-50, TGT-52), and what all its devices answer to the options of the kinds of
/// `release` (TGT-58). Drivers are loaded, as at the first question to a device. The triple and the processor are LLVM's to name, and stay
/// empty.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::{Targets, local_machine};
///
/// let release = Release::of(27);
/// let targets = Targets::on(release, local_machine(release));
/// println!("{}", targets.read(r#"{"kind": "vulkan", "from_device": 0}"#).map_or_else(|why| why.to_string(), |target| target.kind));
/// ```
pub fn local_machine(release: Release) -> HostMachine {
    let mut machine = HostMachine::default();
    for kind in Targets::new(release).kinds() {
        // Host code asks nothing of a device: the API of the CPU answers to no name, and for every number.
        let Some(number) = i32::try_from(kind.device_type)
            .ok()
            .filter(|kind| *kind != Device::CPU.kind)
        else {
            continue;
        };
        let Ok(Some(api)) = Manager::global().find(number) else {
            continue;
        };
        // TGT-58: upstream is built with a driver or without, and this crate with all of them: one that is not here is one it is built without.
        if !api.has_driver() {
            continue;
        }
        let devices = machine.devices.entry(kind.device_type).or_default();
        for (at, device) in existing_devices(api, number).enumerate() {
            if devices.len() <= at {
                devices.push(TargetConfig::new());
            }
            // Several kinds have one type of device: each adds the answers to its own options.
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
    // What is behind a colon is switches of the device, and no part of the name of its architecture.
    machine.rocm_arch = text("rocm", Attribute::GcnArch)
        .map(|arch| arch.split(':').next().unwrap_or_default().to_owned());
    machine
}

/// The target of a device of this machine (TGT-59), with the kinds of `targets`.
///
/// # Errors
///
/// As [`Targets::detect`]. A type without a driver has no device, and what a driver fails to answer is no answer.
pub fn device_target(targets: &Targets, device: Device) -> Result<Target, Violation> {
    let manager = Manager::global();
    // DEV-58: the name is in front of the index.
    let text = device.text_in(Release::LAST).unwrap_or_default();
    let name = text.split([':', '(']).next().unwrap_or_default();
    let answer = |question: &str| {
        let attribute = Attribute::ALL
            .into_iter()
            .find(|attribute| attribute.name() == question);
        let answer = match attribute {
            // DEV-07: whether there is a device is answered without a driver, too.
            Some(attribute) => manager.attribute(device, attribute),
            None => manager
                .api(device.kind)
                .and_then(|api| api.target_property(device, question)),
        };
        answer.unwrap_or_default().into()
    };
    targets.detect(name, device.id.into(), &answer)
}
