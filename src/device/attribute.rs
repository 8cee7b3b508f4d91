//! The attributes of a device, and their numbers in the releases (DEV-09).

use crate::device::Result;
use crate::release::{Release, Releases};
use serde_json::Value;
use std::fmt;

/// A question to a device, in the order of the numbers of the newest release (DEV-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// 1 if the device is there, else 0. The only one that a missing backend answers.
    Exist,
    /// Threads of a block (items of a work group) at most.
    MaxThreadsPerBlock,
    /// Threads that run in lockstep.
    WarpSize,
    /// Bytes of shared (local) memory per block.
    MaxSharedMemoryPerBlock,
    /// Text `major.minor` (`major.minor.patch` on Vulkan).
    ComputeVersion,
    /// Text.
    DeviceName,
    /// Highest clock rate in kHz, whatever unit the driver counts in.
    MaxClockRate,
    /// Multiprocessors or compute units.
    MultiProcessorCount,
    /// Text: a JSON list of three integers.
    MaxThreadDimensions,
    /// 32-bit registers of a block.
    MaxRegistersPerBlock,
    /// AMD's architecture: a number up to 0.17, since then a text such as `gfx90a:sramecc+:xnack-` (DEV-08).
    GcnArch,
    /// Version of the API that the runtime was built for.
    ApiVersion,
    /// Text.
    DriverVersion,
    /// Bytes.
    L2CacheSizeBytes,
    /// Bytes.
    TotalGlobalMemory,
    /// Bytes that are free at the time of the question.
    AvailableGlobalMemory,
    /// Alignment of the rows of an image, in pixels.
    ImagePitchAlignment,
}

impl Attribute {
    /// Every attribute, by the numbers of 0.20 and later.
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

    /// The number in the newest release (DEV-09).
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The number in `release`; `None` where that release does not know the attribute (DEV-09).
    pub fn number_in(self, release: Release) -> Option<i32> {
        // The first release that has it; then, for the two that were renumbered (DEV-09), the last one of the other number, and that.
        // 0.3 put max_shared_memory_per_block where compute_version was, and 0.7 max_registers_per_block where gcn_arch was.
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

    /// The attribute that the newest release calls `number`; `None` for a number of none, which is answered with null (DEV-08).
    pub(crate) fn from_number(number: i32) -> Option<Attribute> {
        // DEV-08: below 0 as behind the last number: a question that no device knows is answered with null, and is no error.
        let at = usize::try_from(number).ok()?;
        Attribute::ALL.get(at).copied()
    }

    /// Its name in Python: `max_threads_per_block`, ...
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

/// What a device answers: nothing, a number or a text. These are all: the C interfaces and every frontend have no other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributeValue {
    /// The device does not know the question (DEV-08).
    #[default]
    None,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl AttributeValue {
    /// An answer from a number that fits.
    ///
    /// # Errors
    ///
    /// None: a number that does not fit is answered with [`AttributeValue::None`]. The type is the one of
    /// [`DeviceApi::attribute`](super::DeviceApi::attribute), which returns it.
    pub fn int(number: impl TryInto<i64>) -> Result<AttributeValue> {
        // DEV-08: what no i64 holds is no answer: wrapped around, it would be a size below 0.
        Ok(number
            .try_into()
            .map_or(AttributeValue::None, AttributeValue::Int))
    }

    /// A number, or no answer.
    #[cfg(any(feature = "cuda", feature = "hip", feature = "opencl"))]
    pub(crate) fn number_or_none(number: Option<i64>) -> AttributeValue {
        number.map_or(AttributeValue::None, AttributeValue::Int)
    }

    /// `major.minor` (DEV-11). A minor version of 0 is one, though drivers also answer 0 for what they do not know.
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn version(major: Option<i64>, minor: Option<i64>) -> AttributeValue {
        let Some(major) = major else {
            return AttributeValue::None;
        };
        AttributeValue::Text(format!("{major}.{}", minor.unwrap_or(0)))
    }

    /// Three extents as a JSON list (DEV-10).
    #[cfg(any(feature = "cuda", feature = "hip", feature = "opencl"))]
    pub(crate) fn dimensions(axes: [Option<i64>; 3]) -> AttributeValue {
        match axes {
            [Some(x), Some(y), Some(z)] => AttributeValue::Text(format!("[{x}, {y}, {z}]")),
            // DEV-10: three extents or no answer: a list with a hole is no list of integers.
            _ => AttributeValue::None,
        }
    }

    /// An answer from a text.
    ///
    /// # Errors
    ///
    /// None. The type is the one of [`DeviceApi::attribute`](super::DeviceApi::attribute), which returns it.
    pub fn text(text: impl Into<String>) -> Result<AttributeValue> {
        Ok(AttributeValue::Text(text.into()))
    }
}

impl From<AttributeValue> for Value {
    /// Null where the device does not know the attribute (DEV-08).
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
