//! Devices as text: `cpu`, `cuda:1` (VAL-13).

use super::VAL_13;
use super::dlpack::DLDevice;
use crate::rule::{Kind, Violation};

/// Names that text may use, and the device type of each. The first of a type is the one that is printed.
const NAMES: [(&str, i32); 30] = [
    ("cpu", 1),
    ("cuda", 2),
    ("cuda_host", 3),
    ("opencl", 4),
    ("vulkan", 7),
    ("metal", 8),
    ("vpi", 9),
    ("rocm", 10),
    ("rocm_host", 11),
    ("ext_dev", 12),
    ("cuda_managed", 13),
    ("oneapi", 14),
    ("webgpu", 15),
    ("hexagon", 16),
    ("maia", 17),
    ("trn", 18),
    // VAL-13, Here: names that Python of TVM accepts.
    ("llvm", 1),
    ("nvptx", 2),
    ("cl", 4),
    ("sdaccel", 4),
    ("c", 1),
    ("stackvm", 1),
    ("hybrid", 1),
    ("composite", 1),
    ("test", 1),
    ("ext", 12),
    ("gpu", 2),
    ("mtl", 8),
    ("mps", 8),
    ("wgpu", 15),
];

/// The device that `text` names; without a number it is number 0.
///
/// # Errors
///
/// VAL-13 (malformed) for an unknown name, and for a number that is not decimal digits up to 2^31 - 1.
pub fn device_from_text(text: &str) -> Result<DLDevice, Violation> {
    parse(text).ok_or_else(|| {
        VAL_13.rejected(
            Kind::Malformed,
            format!("unknown device `{text}`; write a name, or name:number, such as cuda:1"),
        )
    })
}

fn parse(text: &str) -> Option<DLDevice> {
    let (name, number) = match text.split_once(':') {
        // `parse` accepts a sign, which no release does.
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            // VAL-13: no digits at all and a number beyond 2^31 - 1 are left to `parse`, which accepts neither.
            (name, number.parse::<i32>().ok()?)
        }
        Some(_) => return None,
        None => (text, 0),
    };
    // VAL-13: the whole name: releases drop what comes behind a blank, and read `cuda x` as `cuda`.
    let &(_, device_type) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some(DLDevice {
        device_type,
        device_id: number,
    })
}

/// `cuda:0` for a known type, `unknown:0` otherwise.
pub fn device_to_text(device: DLDevice) -> String {
    let known = NAMES.iter().find(|(_, known)| *known == device.device_type);
    let name = known.map_or("unknown", |(name, _)| name);
    format!("{name}:{}", device.device_id)
}
