//! Events: marks in a stream. They order streams (DEV-38) and read the device's own clock (DEV-44).

use super::Driver;
use crate::device::timer::Timer;
use crate::device::{Device, Result, stream};
use std::ffi::c_void;

/// A driver with events.
pub(crate) trait EventDriver: Driver {
    /// The driver's handle of an event.
    type Event: Copy;

    /// Creates an event, with timing for a clock, or without timing only for order.
    fn create_event(on: &Self::Opened, timing: bool) -> Result<Self::Event>;

    /// Queues the event on the stream.
    ///
    /// # Safety
    ///
    /// The event came from `create_event` and is not destroyed; the stream is null or one of this driver that is not freed.
    unsafe fn record(on: &Self::Opened, event: Self::Event, stream: *mut c_void) -> Result<()>;

    /// Makes work that is queued on the stream later wait for the event.
    ///
    /// # Safety
    ///
    /// As for [`EventDriver::record`].
    unsafe fn wait(on: &Self::Opened, stream: *mut c_void, event: Self::Event) -> Result<()>;

    /// Waits for both events and returns the milliseconds between them.
    ///
    /// # Safety
    ///
    /// Both events came from `create_event` with timing and are not destroyed.
    unsafe fn elapsed(on: &Self::Opened, start: Self::Event, stop: Self::Event) -> Result<f32>;

    /// Destroys an event. Waits that are queued for it still end.
    ///
    /// # Safety
    ///
    /// The event came from `create_event`, was not destroyed, and is not used any more.
    unsafe fn destroy(on: &Self::Opened, event: Self::Event);
}

/// Implements [`Driver::order`] with an event.
///
/// # Safety
///
/// As for [`Driver::order`].
pub(crate) unsafe fn order<D: EventDriver>(
    on: &D::Opened,
    before: *mut c_void,
    after: *mut c_void,
) -> Result<()> {
    // Only the order matters here. CUDA and HIP document that waits are cheapest for an event without timing.
    let event = D::create_event(on, false)?;
    // SAFETY: the event was just made; the stream is as for this function.
    let recorded = unsafe { D::record(on, event, before) };
    let waits = recorded.and_then(|()| {
        // SAFETY: the event was just made; the stream is as for this function.
        unsafe { D::wait(on, after, event) }
    });
    // SAFETY: no other code has the event, and it is not used below.
    unsafe { D::destroy(on, event) };
    // DEV-38: this function does not wait. The driver keeps the event's data until the queued wait has ended.
    waits
}

/// A timer of two events on this thread's stream. The device's own clock measures the time between them (DEV-44).
pub(crate) struct EventTimer<D: EventDriver> {
    id: i32,
    /// The event before the work.
    start: D::Event,
    /// The event after the work.
    stop: D::Event,
}

impl<D: EventDriver> EventTimer<D> {
    /// Creates a timer of device `id` that is not started.
    pub(crate) fn new(id: i32) -> Result<EventTimer<D>> {
        let on = D::backend().enter(id)?;
        let start = D::create_event(on, true)?;
        let stop = match D::create_event(on, true) {
            Ok(stop) => stop,
            Err(error) => {
                // SAFETY: no other code has the event.
                unsafe { D::destroy(on, start) };
                return Err(error);
            }
        };
        Ok(EventTimer { id, start, stop })
    }

    /// Queues the event on this thread's current stream for the device, which the work also uses (DEV-22).
    fn record(&self, event: D::Event) -> Result<()> {
        let on = D::backend().enter(self.id)?;
        let stream = stream::current(Device::new(D::DEVICE.kind, self.id));
        // SAFETY: the event lives as long as the timer. `stream::set` accepts only a stream of this device type, which is not freed
        // while it is this thread's current stream (`DeviceApi::free_stream`).
        unsafe { D::record(on, event, stream.handle()) }
    }
}

impl<D: EventDriver> Timer for EventTimer<D> {
    fn start(&mut self) -> Result<()> {
        self.record(self.start)
    }

    fn stop(&mut self) -> Result<()> {
        self.record(self.stop)
    }

    fn elapsed(&mut self) -> Result<u64> {
        let on = D::backend().enter(self.id)?;
        // SAFETY: both events came from `new`, with timing, and live as long as the timer.
        let milliseconds = unsafe { D::elapsed(on, self.start, self.stop) }?;
        // The timer's unit is the nanosecond. Drivers return milliseconds as a float, which is exact to about half a microsecond.
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }
}

impl<D: EventDriver> Drop for EventTimer<D> {
    fn drop(&mut self) {
        // If the driver is gone, its events are gone too.
        let Ok(on) = D::backend().enter(self.id) else {
            return;
        };
        for event in [self.start, self.stop] {
            // SAFETY: the event came from `new`, and only this function destroys it.
            unsafe { D::destroy(on, event) };
        }
    }
}
