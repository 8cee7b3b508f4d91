//! Device attributes, and the numbers that the releases give them (DEV-09).

use crate::device::Result;
use crate::release::{Release, Releases};
use serde_json::Value;
use std::fmt;

/// An attribute that a device can be asked for, in the order of the newest release's numbers (DEV-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// 1 if the device exists, otherwise 0. This is the only attribute that a missing backend answers.
    Exist,
    /// The maximum number of threads in a block (work items in a work group).
    MaxThreadsPerBlock,
    /// The number of threads that run in lockstep.
    WarpSize,
    /// The bytes of shared (local) memory per block.
    MaxSharedMemoryPerBlock,
    /// The compute version as a text `major.minor` (`major.minor.patch` on Vulkan).
    ComputeVersion,
    /// The name of the device, a text.
    DeviceName,
    /// The highest clock rate in kHz. Values of drivers that count in another unit are converted.
    MaxClockRate,
    /// The number of multiprocessors or compute units.
    MultiProcessorCount,
    /// The maximum extents of a block, a text: a JSON list of three integers.
    MaxThreadDimensions,
    /// The number of 32-bit registers of a block.
    MaxRegistersPerBlock,
    /// The AMD architecture: a number up to 0.17, later a text such as `gfx90a:sramecc+:xnack-` (DEV-08).
    GcnArch,
    /// The version of the API that the runtime was built for.
    ApiVersion,
    /// The version of the driver, a text.
    DriverVersion,
    /// The size of the L2 cache in bytes.
    L2CacheSizeBytes,
    /// The total memory of the device in bytes.
    TotalGlobalMemory,
    /// The free memory in bytes at the time of the call.
    AvailableGlobalMemory,
    /// The alignment of the rows of an image, in pixels.
    ImagePitchAlignment,
}

impl Attribute {
    /// Every attribute, in the order of the numbers of 0.20 and later.
    pub const ALL: [Attribute; 17] = [
        Attribute::Exist,
        Attribute::MaxThreadsPerBlock,
        Attribute::WarpSize,
        Attribute::MaxSharedMemoryPerBlock,
        Attribute::ComputeVersion,
        Attribute::DeviceName,
        Attribute::MaxClockRate,
        Attribute::MultiProcessorCount,
        Attribute::MaxThreadDimensions,
        Attribute::MaxRegistersPerBlock,
        Attribute::GcnArch,
        Attribute::ApiVersion,
        Attribute::DriverVersion,
        Attribute::L2CacheSizeBytes,
        Attribute::TotalGlobalMemory,
        Attribute::AvailableGlobalMemory,
        Attribute::ImagePitchAlignment,
    ];

    /// Returns the number in the newest release (DEV-09).
    pub fn number(self) -> i32 {
        self as i32
    }

    /// Returns the number in `release`, or `None` if that release does not know the attribute (DEV-09).
    pub fn number_in(self, release: Release) -> Option<i32> {
        // `since` is the first release that has the attribute. `renumbered` is set for the two attributes whose number changed
        // (DEV-09): the last release with the old number, and that number. 0.3 gave max_shared_memory_per_block the number of
        // compute_version, and 0.7 gave max_registers_per_block the number of gcn_arch.
        let (since, renumbered) = match self {
            Attribute::ComputeVersion => (2, Some((2, 3))),
            Attribute::GcnArch => (6, Some((6, 9))),
            Attribute::Exist | Attribute::MaxThreadsPerBlock | Attribute::WarpSize => (2, None),
            Attribute::MaxSharedMemoryPerBlock
            | Attribute::DeviceName
            | Attribute::MaxClockRate
            | Attribute::MultiProcessorCount => (3, None),
            Attribute::MaxThreadDimensions => (4, None),
            Attribute::MaxRegistersPerBlock | Attribute::ApiVersion => (7, None),
            Attribute::DriverVersion => (8, None),
            Attribute::L2CacheSizeBytes => (14, None),
            Attribute::TotalGlobalMemory => (16, None),
            Attribute::AvailableGlobalMemory => (17, None),
            Attribute::ImagePitchAlignment => (20, None),
        };
        if !Releases::from(since).contains(release) {
            return None;
        }
        match renumbered {
            Some((until, number)) if release.minor() <= until => Some(number),
            _ => Some(self.number()),
        }
    }

    /// Returns the attribute with this number in the newest release. Returns `None` for an unknown number, which is answered with null
    /// (DEV-08).
    pub(crate) fn from_number(number: i32) -> Option<Attribute> {
        // DEV-08: a negative number is unknown, like one past the end. Devices answer unknown attributes with null, not with an
        // error.
        let at = usize::try_from(number).ok()?;
        Attribute::ALL.get(at).copied()
    }

    /// Returns its name in Python, such as `max_threads_per_block`.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::Exist => "exist",
            Attribute::MaxThreadsPerBlock => "max_threads_per_block",
            Attribute::WarpSize => "warp_size",
            Attribute::MaxSharedMemoryPerBlock => "max_shared_memory_per_block",
            Attribute::ComputeVersion => "compute_version",
            Attribute::DeviceName => "device_name",
            Attribute::MaxClockRate => "max_clock_rate",
            Attribute::MultiProcessorCount => "multi_processor_count",
            Attribute::MaxThreadDimensions => "max_thread_dimensions",
            Attribute::MaxRegistersPerBlock => "max_registers_per_block",
            Attribute::GcnArch => "gcn_arch",
            Attribute::ApiVersion => "api_version",
            Attribute::DriverVersion => "driver_version",
            Attribute::L2CacheSizeBytes => "l2_cache_size_bytes",
            Attribute::TotalGlobalMemory => "total_global_memory",
            Attribute::AvailableGlobalMemory => "available_global_memory",
            Attribute::ImagePitchAlignment => "image_pitch_alignment",
        }
    }
}

/// A device's answer: None, a number or a text. The enum is exhaustive, because the C interfaces and all frontends know no other kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributeValue {
    /// The device does not have the attribute (DEV-08).
    #[default]
    None,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl AttributeValue {
    /// Returns the number, or [`AttributeValue::None`] if it does not fit into an i64.
    ///
    /// # Errors
    ///
    /// Never fails. It returns a `Result` because [`DeviceApi::attribute`](super::DeviceApi::attribute) does.
    pub fn int(number: impl TryInto<i64>) -> Result<AttributeValue> {
        // DEV-08: a number that does not fit into an i64 is not answered. Wrapped around, it would be a negative size.
        Ok(number
            .try_into()
            .map_or(AttributeValue::None, AttributeValue::Int))
    }

    /// Returns the number, or no answer.
    #[cfg(any(feature = "cuda", feature = "hip", feature = "opencl"))]
    pub(crate) fn number_or_none(number: Option<i64>) -> AttributeValue {
        number.map_or(AttributeValue::None, AttributeValue::Int)
    }

    /// Returns `major.minor` (DEV-11). A missing minor version counts as 0: drivers answer 0 both for 0 and for an unknown number.
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn version(major: Option<i64>, minor: Option<i64>) -> AttributeValue {
        let Some(major) = major else {
            return AttributeValue::None;
        };
        AttributeValue::Text(format!("{major}.{}", minor.unwrap_or(0)))
    }

    /// Returns three extents as a JSON list (DEV-10).
    #[cfg(any(feature = "cuda", feature = "hip", feature = "opencl"))]
    pub(crate) fn dimensions(axes: [Option<i64>; 3]) -> AttributeValue {
        match axes {
            [Some(x), Some(y), Some(z)] => AttributeValue::Text(format!("[{x}, {y}, {z}]")),
            // DEV-10: the answer is only given if all three extents are known, because a list with a gap is not a list of integers.
            _ => AttributeValue::None,
        }
    }

    /// Returns a text.
    ///
    /// # Errors
    ///
    /// Never fails. It returns a `Result` because [`DeviceApi::attribute`](super::DeviceApi::attribute) does.
    pub fn text(text: impl Into<String>) -> Result<AttributeValue> {
        Ok(AttributeValue::Text(text.into()))
    }
}

impl From<AttributeValue> for Value {
    /// Returns null if the device does not have the attribute (DEV-08).
    fn from(answer: AttributeValue) -> Value {
        match answer {
            AttributeValue::None => Value::Null,
            AttributeValue::Int(number) => number.into(),
            AttributeValue::Text(text) => text.into(),
        }
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::None => f.write_str("-"),
            AttributeValue::Int(number) => number.fmt(f),
            AttributeValue::Text(text) => text.fmt(f),
        }
    }
}
