//! A timer that reads the device's own clock.

use super::{checked, cuda, queue};
use crate::device::timer::Timer;
use crate::device::{Device, Result, stream};
use cudarc::driver::{result, sys};

/// Two events on this thread's stream.
pub(crate) struct CudaTimer {
    device: Device,
    start: sys::CUevent,
    stop: sys::CUevent,
}

impl CudaTimer {
    /// A timer of `device` that was not started.
    pub(crate) fn new(device: Device) -> Result<CudaTimer> {
        cuda().inner.enter(device.id)?;
        let event = || {
            checked(
                "cuEventCreate",
                result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT),
            )
        };
        Ok(CudaTimer {
            device,
            start: event()?,
            stop: event()?,
        })
    }

    fn record(&self, event: sys::CUevent) -> Result<()> {
        cuda().inner.enter(self.device.id)?;
        let stream = queue(stream::current(self.device));
        // SAFETY: the event is ours; `stream::set` let only a stream of CUDA become this thread's, which is not freed while
        // it is (`DeviceApi::free_stream`).
        let recorded = unsafe { result::event::record(event, stream) };
        checked("cuEventRecord", recorded)
    }
}

impl Timer for CudaTimer {
    fn start(&mut self) -> Result<()> {
        self.record(self.start)
    }

    fn stop(&mut self) -> Result<()> {
        self.record(self.stop)
    }

    fn elapsed(&mut self) -> Result<u64> {
        cuda().inner.enter(self.device.id)?;
        // SAFETY: the event is ours, and destroyed when this is dropped.
        let waited = unsafe { result::event::synchronize(self.stop) };
        checked("cuEventSynchronize", waited)?;
        // SAFETY: both events are ours, and destroyed when this is dropped.
        let milliseconds = unsafe { result::event::elapsed(self.start, self.stop) };
        let milliseconds = checked("cuEventElapsedTime", milliseconds)?;
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }
}

impl Drop for CudaTimer {
    fn drop(&mut self) {
        for event in [self.start, self.stop] {
            // SAFETY: the event is ours, and destroyed here alone. A failure at the end of the process changes nothing.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}
