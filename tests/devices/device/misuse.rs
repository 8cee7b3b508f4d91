//! Reports of the simulated device about misuse.

use tvmspec::device::simulated::{Hazard, Simulated};
use tvmspec::device::{CopyRequest, Device, DeviceApi, Dtype, Space, Stream};

const DEVICE: Device = Device::ext_dev(0);

fn space(api: &Simulated, nbytes: usize) -> Space {
    api.alloc(DEVICE, nbytes, 64, Dtype::UINT8).unwrap()
}

fn copy(
    api: &Simulated,
    from: (Device, Space),
    to: (Device, Space),
    nbytes: usize,
    stream: Stream,
) -> tvmspec::Result<()> {
    let copy = CopyRequest {
        from: from.1,
        from_offset: 0,
        to: to.1,
        to_offset: 0,
        nbytes,
        from_device: from.0,
        to_device: to.0,
        hint: Dtype::UINT8,
    };
    // SAFETY: every buffer of these tests lives until its device is dropped; the device checks its own.
    unsafe { api.copy(&copy, stream) }
}

#[test]
fn a_missing_sync_shows_in_what_was_changed_too_early() {
    let mut host = [1u8; 64];
    let first: *mut u8 = host.as_mut_ptr();
    let api = Simulated::new(2);
    let device = space(&api, 64);
    copy(
        &api,
        (Device::CPU, Space(first.cast())),
        (DEVICE, device),
        64,
        Stream::DEFAULT,
    )
    .unwrap();
    // SAFETY: the array is that long, and the device does not run during that time.
    unsafe { first.write_bytes(2, 64) };
    api.sync(DEVICE, Stream::DEFAULT).unwrap();
    assert!(
        matches!(api.hazards().as_slice(), [Hazard::SourceChanged(_)]),
        "{:?}",
        api.hazards()
    );
}

#[test]
fn a_missing_sync_at_the_end_is_reported() {
    let host = Box::new([0u8; 8]);
    // With seed 2 and so few calls, the device runs no call on its own.
    let api = Simulated::new(2);
    let device = space(&api, 8);
    copy(
        &api,
        (Device::CPU, Space::host(host.as_ptr())),
        (DEVICE, device),
        8,
        Stream::DEFAULT,
    )
    .unwrap();
    assert_eq!(
        api.finish(),
        [
            Hazard::NeverSynced(Stream::DEFAULT),
            Hazard::NeverFreed(device)
        ]
    );
}

#[test]
fn use_after_free_and_double_free_are_rejected() {
    let host = Box::new([0u8; 8]);
    let api = Simulated::new(1);
    let device = space(&api, 8);
    // SAFETY: memory of this device, which is no longer used.
    unsafe { api.free(DEVICE, device) }.unwrap();
    // SAFETY: the test frees the space a second time on purpose; the device checks before it does anything.
    assert!(unsafe { api.free(DEVICE, device) }.is_err());
    assert!(
        copy(
            &api,
            (Device::CPU, Space::host(host.as_ptr())),
            (DEVICE, device),
            8,
            Stream::DEFAULT
        )
        .is_err()
    );
    assert_eq!(
        api.hazards(),
        [Hazard::FreedTwice(device), Hazard::UseAfterFree(device)]
    );
}

#[test]
fn running_over_the_end_is_rejected() {
    let api = Simulated::new(1);
    let (small, large) = (space(&api, 8), space(&api, 64));
    assert!(copy(&api, (DEVICE, large), (DEVICE, small), 9, Stream::DEFAULT).is_err());
    assert_eq!(api.hazards(), [Hazard::OutOfBounds(small)]);
}

#[test]
fn overlap_is_reported_though_it_works() {
    let api = Simulated::new(1);
    let device = space(&api, 64);
    copy(
        &api,
        (DEVICE, device),
        (DEVICE, device),
        64,
        Stream::DEFAULT,
    )
    .unwrap();
    assert_eq!(api.hazards(), [Hazard::Overlap(device)]);
}

#[test]
fn streams_that_nothing_orders_are_reported_and_ordered_ones_are_not() {
    for ordered in [false, true] {
        let api = Simulated::new(2);
        let [one, two, three] = [space(&api, 64), space(&api, 64), space(&api, 64)];
        let (first, second) = (
            api.create_stream(DEVICE).unwrap(),
            api.create_stream(DEVICE).unwrap(),
        );
        copy(&api, (DEVICE, one), (DEVICE, two), 64, first).unwrap();
        if ordered {
            api.sync_streams(DEVICE, first, second).unwrap();
        }
        copy(&api, (DEVICE, two), (DEVICE, three), 64, second).unwrap();
        let expected: &[Hazard] = if ordered {
            &[]
        } else {
            &[Hazard::Unordered(two)]
        };
        assert_eq!(api.hazards(), expected);
    }
}

#[test]
fn workspace_that_is_freed_twice_is_reported() {
    let api = Simulated::new(1);
    let taken = api.alloc_workspace(DEVICE, 64, Dtype::UINT8).unwrap();
    // SAFETY: workspace of this device, which is no longer used.
    unsafe { api.free_workspace(DEVICE, taken) }.unwrap();
    // SAFETY: the test frees the workspace a second time on purpose; a pool checks before it does anything.
    assert!(unsafe { api.free_workspace(DEVICE, taken) }.is_err());
    assert_eq!(api.hazards(), [Hazard::WorkspaceNotTaken(taken)]);
}

#[test]
fn failures_come_when_they_are_planned() {
    let api = Simulated::new(1);
    api.fail_alloc(1);
    let device = space(&api, 8);
    assert!(
        api.alloc(DEVICE, 8, 64, Dtype::UINT8)
            .unwrap_err()
            .to_string()
            .contains("injected")
    );
    space(&api, 8);
    api.fail_copy(0);
    assert!(copy(&api, (DEVICE, device), (DEVICE, device), 8, Stream::DEFAULT).is_err());
    // If the device fails, the pool keeps its blocks.
    let held = api.alloc_workspace(DEVICE, 64, Dtype::UINT8).unwrap();
    api.fail_alloc(0);
    assert!(api.alloc_workspace(DEVICE, 64, Dtype::UINT8).is_err());
    // SAFETY: taken above.
    unsafe { api.free_workspace(DEVICE, held).unwrap() };
    assert_eq!(api.alloc_workspace(DEVICE, 64, Dtype::UINT8), Ok(held));
}

#[test]
fn a_kernel_runs_late_and_where_it_was_launched() {
    let api = Simulated::new(2);
    let device = space(&api, 4);
    api.set_device(Device::ext_dev(1)).unwrap();
    api.launch(Stream::DEFAULT, move |memory, id| {
        memory.bytes(device).unwrap()[..4].fill(id as u8 + 40)
    })
    .unwrap();
    let there = Device::ext_dev(1);
    let mut host = Box::new([0u8; 4]);
    copy(
        &api,
        (there, device),
        (Device::CPU, Space(host.as_mut_ptr().cast())),
        4,
        Stream::DEFAULT,
    )
    .unwrap();
    assert_ne!(*host, [41; 4]);
    api.sync(there, Stream::DEFAULT).unwrap();
    assert_eq!(*host, [41; 4]);
    api.set_device(DEVICE).unwrap();
}
