//! Helpers for tests on devices: floats in device memory, and whether there is a device.

// Every test file that includes this module uses only a part of it.
#![allow(dead_code)]

use crate::support::skip::skipped;
use std::path::{Path, PathBuf};
use tvmspec::device::launch::Arg;
use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Manager, Space, Stream,
};
use tvmspec::value::DLTensor;

/// Returns a path relative to the root of the repository, in which tests run even if the binary was copied elsewhere.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new("golden/device").join(name)
}

/// Returns the API of `device`. Without one, prints why the test is skipped.
pub(crate) fn device_or_skip(device: Device) -> Option<&'static dyn DeviceApi> {
    let api = match Manager::global().api(device.kind) {
        Ok(api) => api,
        Err(why) => {
            skipped(why);
            return None;
        }
    };
    if api.attribute(device, Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        return Some(api);
    }
    match api.attribute(device, Attribute::DeviceName) {
        Err(why) => skipped(why),
        Ok(_) => skipped("there is no such device"),
    }
    None
}

/// Floats in the memory of a device.
pub(crate) struct Floats<'a> {
    api: &'a dyn DeviceApi,
    device: Device,
    space: Space,
    count: usize,
    shape: Box<[i64]>,
}

impl<'a> Floats<'a> {
    pub(crate) fn new(api: &'a dyn DeviceApi, device: Device, values: &[f32]) -> Floats<'a> {
        let space = api
            .alloc(device, values.len() * 4, 64, Dtype::FLOAT32)
            .unwrap();
        let floats = Floats {
            api,
            device,
            space,
            count: values.len(),
            shape: Box::new([values.len() as i64]),
        };
        // SAFETY: both sides hold the floats, and the sync comes before the end of `values`.
        unsafe {
            api.copy(
                &floats.copy(Space::host(values.as_ptr()), true),
                Stream::DEFAULT,
            )
            .unwrap()
        };
        api.sync(device, Stream::DEFAULT).unwrap();
        floats
    }

    /// Returns their memory.
    pub(crate) fn space(&self) -> Space {
        self.space
    }

    fn copy(&self, host: Space, to_device: bool) -> CopyRequest {
        let copy = CopyRequest {
            from: host,
            from_offset: 0,
            to: self.space,
            to_offset: 0,
            nbytes: self.count * 4,
            from_device: Device::CPU,
            to_device: self.device,
            hint: Dtype::FLOAT32,
        };
        if to_device {
            return copy;
        }
        CopyRequest {
            from: copy.to,
            to: copy.from,
            from_device: copy.to_device,
            to_device: copy.from_device,
            ..copy
        }
    }

    pub(crate) fn read(&self) -> Vec<f32> {
        let mut values = vec![f32::NAN; self.count];
        let host = Space(values.as_mut_ptr().cast());
        // SAFETY: both sides hold the floats, and the sync comes before `values` is read.
        unsafe {
            self.api
                .copy(&self.copy(host, false), Stream::DEFAULT)
                .unwrap()
        };
        self.api.sync(self.device, Stream::DEFAULT).unwrap();
        values
    }

    pub(crate) fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.space.0,
            device: Device {
                kind: self.device.kind,
                id: self.device.id,
            },
            ndim: 1,
            dtype: Dtype::FLOAT32,
            shape: self.shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }

    pub(crate) fn arg(&self) -> Arg {
        Arg::Handle(self.space.0)
    }
}

impl Drop for Floats<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        let _ = unsafe { self.api.free(self.device, self.space) };
    }
}

pub(crate) fn counting(count: usize) -> Vec<f32> {
    (0..count).map(|at| at as f32 * 0.5 - 3.0).collect()
}

pub(crate) fn plus_one(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| value + 1.0).collect()
}
