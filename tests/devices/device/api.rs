//! The operations of every device, and the manager that finds devices.

use std::sync::OnceLock;
use tvmspec::device::manager::ApiFactory;
use tvmspec::device::simulated::Simulated;
use tvmspec::device::{CopyRequest, Device, DeviceApi, Dtype, Manager, Space, Stream, cpu};

#[test]
fn a_device_frees_what_it_allocated_and_counts_it() {
    use tvmspec::device::{DeviceApi, Dtype, Space, Stream, TensorRef};
    let simulated = Simulated::new(1);
    let device = Device::ext_dev(0);
    let before = simulated.bytes_in_use();
    let take = || simulated.alloc(device, 64, 64, Dtype::FLOAT32).unwrap();
    let (from, to) = (take(), take());
    assert!(simulated.bytes_in_use() >= before + 128);
    let tensor = |data: Space, shape: &'static [i64]| TensorRef {
        data,
        device,
        dtype: Dtype::FLOAT32,
        shape,
        strides: None,
        byte_offset: 0,
    };
    let whole = tensor(from, &[4, 4]);
    assert!(whole.is_contiguous());
    assert_eq!(simulated.data_size(&whole, None), Ok(64));
    let transposed = TensorRef {
        strides: Some(&[1, 4]),
        ..whole
    };
    assert!(!transposed.is_contiguous());
    let copy = |from: &TensorRef<'_>, to: &TensorRef<'_>| {
        // SAFETY: both spaces are of this device, 64 bytes each, and still there.
        unsafe { simulated.copy_tensor(from, to, Stream::DEFAULT) }
    };
    copy(&whole, &tensor(to, &[16])).unwrap();
    assert!(copy(&whole, &tensor(to, &[15])).is_err(), "other sizes");
    assert!(
        copy(&transposed, &tensor(to, &[16])).is_err(),
        "not in one piece"
    );
    simulated.sync(device, Stream::DEFAULT).unwrap();
    for space in [from, to] {
        // SAFETY: it is of this device, which is done with it.
        unsafe { simulated.free(device, space) }.unwrap();
    }
    assert_eq!(simulated.bytes_in_use(), before);
}

#[test]
fn a_device_that_says_nothing_has_the_usual_answers() {
    use tvmspec::device::{AttributeValue, DeviceApi, Stream};
    let cpu = cpu::cpu();
    assert_eq!(
        cpu.current_stream(Device::CPU).handle(),
        Stream::DEFAULT.handle()
    );
    cpu.set_stream(Device::CPU, Stream::DEFAULT).unwrap();
    assert!(cpu.pools_workspace());
    assert!(cpu.supports_pointer_arithmetic());
    let simulated = Simulated::new(1);
    let property = simulated.target_property(Device::ext_dev(0), "max_num_threads");
    assert_eq!(property, Ok(AttributeValue::None));
}

#[test]
fn a_timer_counts_what_lies_between_start_and_stop() {
    use std::time::Duration;
    use tvmspec::device::timer;
    use tvmspec::device::timer::{Evaluator, Timer};
    let mut watch: Box<dyn Timer> = timer(cpu::cpu(), Device::CPU).unwrap();
    watch.start().unwrap();
    std::thread::sleep(Duration::from_millis(3));
    watch.stop().unwrap();
    assert!(watch.elapsed().unwrap() >= 3_000_000);
    let mut evaluator = Evaluator::default();
    evaluator.number = 2;
    evaluator.repeat = 3;
    let mut calls = 0;
    let seconds = evaluator.run(cpu::cpu(), Device::CPU, &mut *watch, || {
        calls += 1;
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    // The timer makes one additional call to warm up (DEV-45).
    assert_eq!(calls, 1 + 2 * 3);
    let seconds = seconds.unwrap();
    assert_eq!(seconds.len(), 3);
    assert!(seconds.iter().all(|each| *each >= 1e-3), "{seconds:?}");
}

#[test]
fn many_threads_find_one_api() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tvmspec::device::DeviceApi;
    use tvmspec::device::manager::{ApiFactory, Lookup, Manager};
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let lookup = move |_: &str| -> Option<ApiFactory> {
        let count = count.clone();
        Some(Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(cpu::cpu() as &dyn DeviceApi)
        }))
    };
    let lookup: Lookup = Box::new(lookup);
    let manager = Manager::with_lookup(lookup);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| manager.api(2).map(|_| ()).unwrap());
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

/// Returns a manager whose factories of `cuda` and `opencl` look up types: `cuda` looks up the CPU, `opencl` itself.
fn manager_with_factories_that_look_up() -> &'static Manager {
    static MANAGER: OnceLock<Manager> = OnceLock::new();
    fn found(kind: i32) -> tvmspec::Result<&'static dyn DeviceApi> {
        MANAGER
            .get()
            .expect("a manager that looks up is there")
            .api(kind)
    }
    MANAGER.get_or_init(|| {
        Manager::with_lookup(Box::new(|name| {
            let factory: ApiFactory = match name {
                "device_api.cpu" => Box::new(|| Ok(cpu::cpu())),
                "device_api.cuda" => Box::new(|| found(Device::CPU.kind)),
                "device_api.opencl" => Box::new(|| found(Device::opencl(0).kind)),
                _ => return None,
            };
            Some(factory)
        }))
    })
}

#[test]
fn a_factory_may_look_other_types_up() {
    let manager = manager_with_factories_that_look_up();
    let (sender, receiver) = std::sync::mpsc::channel();
    // A separate thread, because each of these look-ups used to deadlock on itself.
    std::thread::spawn(move || {
        let other = manager.api(Device::cuda(0).kind).map(drop);
        let itself = manager.api(Device::opencl(0).kind).map(drop);
        // The failure leaves no state in the manager (DEV-05).
        let again = manager.api(Device::opencl(0).kind).map(drop);
        sender.send((other, itself, again)).unwrap();
    });
    let within = std::time::Duration::from_secs(20);
    let (other, itself, again) = receiver.recv_timeout(within).expect("the look-ups return");
    other.unwrap();
    for rejected in [itself, again] {
        let reason = rejected.unwrap_err().reason();
        assert!(reason.ends_with(" [DEV-02]"), "{reason}");
    }
}

#[test]
fn of_threads_that_add_one_number_one_succeeds() {
    for kind in 40..60 {
        let barrier = std::sync::Barrier::new(8);
        let added = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let name: &'static str = format!("race_{kind}_{thread}").leak();
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        tvmspec::device::device_type::add(kind, name).is_ok()
                    })
                })
                .collect();
            let results = threads.into_iter().map(|thread| thread.join().unwrap());
            results.filter(|added| *added).count()
        });
        assert_eq!(added, 1, "number {kind}");
    }
}

#[test]
fn every_device_rejects_a_stream_of_another_type() {
    let simulated = Simulated::new(1);
    let (own, other) = (Device::ext_dev(0), Device::cuda(0));
    let foreign = simulated.create_stream(other).unwrap();
    let mut byte = [0u8];
    let space = simulated.alloc(own, 1, 64, Dtype::UINT8).unwrap();
    let to_device = CopyRequest {
        from: Space(byte.as_mut_ptr().cast()),
        from_offset: 0,
        to: space,
        to_offset: 0,
        nbytes: 1,
        from_device: Device::CPU,
        to_device: own,
        hint: Dtype::UINT8,
    };
    let within_cpu = CopyRequest {
        to: Space(byte.as_mut_ptr().cast()),
        to_device: Device::CPU,
        ..to_device
    };
    // SAFETY: both are rejected; the spaces hold the byte.
    let copied = unsafe { simulated.copy(&to_device, foreign) };
    // SAFETY: it is rejected as well; the spaces hold the byte.
    let by_cpu = unsafe { cpu::cpu().copy(&within_cpu, foreign) };
    // SAFETY: it is rejected, and the stream is not used afterwards.
    let freed = unsafe { simulated.free_stream(own, foreign) };
    let ordered = simulated.sync_streams(own, Stream::DEFAULT, foreign);
    for rejected in [copied, simulated.sync(own, foreign), freed, ordered] {
        assert!(rejected.unwrap_err().reason().ends_with(" [DEV-38]"));
    }
    // DEV-21: the CPU has no streams.
    for rejected in [by_cpu, cpu::cpu().sync(Device::CPU, foreign)] {
        assert!(rejected.unwrap_err().reason().ends_with(" [DEV-21]"));
    }
    // The driver is not called, whether it is installed or not.
    #[cfg(feature = "cuda")]
    {
        let stream = simulated.create_stream(own).unwrap();
        let to_cuda = CopyRequest {
            to_device: other,
            ..to_device
        };
        // SAFETY: it is rejected.
        let copied = unsafe { tvmspec::device::cuda::cuda().copy(&to_cuda, stream) };
        assert!(copied.unwrap_err().reason().ends_with(" [DEV-38]"));
    }
    // SAFETY: allocated above.
    unsafe { simulated.free(own, space) }.unwrap();
}
