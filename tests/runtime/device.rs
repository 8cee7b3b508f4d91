//! Devices: the contract on every backend that is here, planted bugs, and the pool against a model of it.
#![cfg(feature = "suite")]

#[path = "../support/cargo.rs"]
mod cargo;
#[path = "../support/skip.rs"]
mod skip;

use skip::skipped;
use std::sync::OnceLock;
use tvmspec::conformance::behaviour::{Behaviour, Failure};
use tvmspec::conformance::device::{behaviour, contract, contract_on, own, probe::Probe, script};
use tvmspec::device::manager::ApiFactory;
use tvmspec::device::simulated::{Bug, Simulated};
use tvmspec::device::{CopyRequest, Device, DeviceApi, Dtype, Manager, Space, Stream, cpu};
use tvmspec::rule::Rule;

#[test]
fn the_cpu_keeps_the_contract() {
    let report = contract_on(cpu::cpu(), Device::CPU);
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[test]
fn the_simulated_device_keeps_the_contract() {
    for seed in [1, 2, 3] {
        let simulated = Simulated::new(seed);
        let report = contract(&simulated);
        println!("{report}");
        assert!(report.holds(), "seed {seed}: {report}");
    }
}

#[test]
fn the_chapters_own_half_holds() {
    for case in own::CASES {
        match (case.run)() {
            Ok(()) => {}
            Err(Failure::Skipped(why)) => skipped(why),
            Err(Failure::Broken(how)) => panic!("{}: {how}", case.id),
        }
    }
}

#[test]
fn every_planted_bug_is_found_by_the_behaviours() {
    for bug in Bug::ALL {
        let report = contract(&Simulated::with_bug(1, bug));
        let behaviours: Vec<&str> = report
            .broken()
            .map(|result| result.id)
            .filter(|id| *id != "device/random-walk")
            .collect();
        println!("{bug:?}: {}", behaviours.join(", "));
        assert!(!behaviours.is_empty(), "{bug:?} was not noticed:\n{report}");
    }
}

#[test]
fn a_behaviour_alone_finds_what_the_contract_finds() {
    for bug in Bug::ALL {
        let whole = contract(&Simulated::with_bug(1, bug));
        let broken: Vec<&str> = whole.broken().map(|result| result.id).collect();
        let alone = behaviour::CASES.iter().filter(|case| {
            let device = Simulated::with_bug(1, bug);
            let probe = Probe::new(&device, Device::ext_dev(0));
            matches!((case.run)(&probe), Err(Failure::Broken(_)))
        });
        let alone: Vec<&str> = alone.map(|case| case.id).collect();
        assert!(!alone.is_empty(), "{bug:?}");
        // A device that has gone through other behaviours may break more, and not less.
        assert!(
            alone.iter().all(|id| broken.contains(id)),
            "{bug:?}: {alone:?}, {broken:?}"
        );
    }
}

#[test]
fn every_planted_bug_is_found_by_the_walk_and_shrunk() {
    for bug in Bug::ALL {
        let far = script::Walk {
            scripts: 400,
            ..script::Walk::default()
        };
        let make = || Simulated::with_bug(1, bug);
        let found = script::walk_fresh(make, Device::ext_dev(0), &far).expect_err("a planted bug");
        println!("{bug:?}: {found}");
        let script::Minimal { script, before, .. } = &found;
        assert!(
            script.len() <= 7,
            "{bug:?} was not shrunk far enough: {found}"
        );
        assert!(script.len() <= *before, "{bug:?}: {found}");
    }
}

/// The OpenCL device of this machine, or why there is none to test.
#[cfg(feature = "opencl")]
fn opencl_here() -> Option<&'static dyn tvmspec::device::DeviceApi> {
    use tvmspec::device::{Attribute, AttributeValue, opencl};
    let api = opencl::opencl();
    if api.attribute(Device::opencl(0), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        return Some(api);
    }
    let why = api
        .attribute(Device::opencl(0), Attribute::DeviceName)
        .expect_err("no device");
    skipped(why);
    None
}

#[cfg(feature = "opencl")]
#[test]
fn opencl_keeps_the_contract() {
    let Some(api) = opencl_here() else {
        return;
    };
    let report = contract_on(api, Device::opencl(0));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// The Vulkan device of this machine, or why there is none to test.
#[cfg(feature = "vulkan")]
fn vulkan_here() -> Option<&'static dyn tvmspec::device::DeviceApi> {
    use tvmspec::device::{Attribute, AttributeValue, vulkan};
    let api = vulkan::vulkan();
    if api.attribute(Device::vulkan(0), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        return Some(api);
    }
    let why = api
        .attribute(Device::vulkan(0), Attribute::DeviceName)
        .expect_err("no device");
    skipped(why);
    None
}

#[cfg(feature = "vulkan")]
#[test]
fn vulkan_keeps_the_contract() {
    let Some(api) = vulkan_here() else {
        return;
    };
    let report = contract_on(api, Device::vulkan(0));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// A table is all that a device of C is; ours through one keeps the contract like a foreign one.
#[test]
fn a_device_behind_a_table_keeps_the_contract() {
    use tvmspec::device::c_table::{self, DeviceTable};
    let simulated: &'static Simulated = Box::leak(Box::new(Simulated::new(5)));
    // A copy at another address is not known as ours, and is called as C would be.
    let copied: &'static mut DeviceTable = Box::leak(Box::new(*c_table::of_api(simulated)));
    // SAFETY: a whole table that lives for ever.
    let api = unsafe { c_table::to_api(copied) }.expect("a table");
    let report = contract(api);
    println!("{report}");
    assert!(report.holds(), "{report}");
    let mut nonsense = [7u64; 32];
    // SAFETY: eight bytes at least, and they are not the magic.
    assert!(unsafe { c_table::to_api(nonsense.as_mut_ptr().cast()) }.is_none());
}

/// The example in C, against the header: compiled, linked with our library, and run.
#[test]
fn a_device_in_c_keeps_the_contract() {
    use std::path::Path;
    use std::process::Command;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("external_device");
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(format!("-I{}", root.join("include").display()))
        .arg(root.join("examples/c/external_device.c"))
        .arg(&library)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the example does not compile"),
        Err(why) => {
            return skipped(format_args!("there is no C compiler: {why}"));
        }
    }
    let folder = library.parent().unwrap();
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

mod misuse {
    //! What the simulated device says of careless callers.

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
    ) -> tvmspec::device::Result<()> {
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
        // SAFETY: the array is that long, and the device does not run meanwhile.
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
        // Seed 2 runs nothing by itself for so few calls.
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
        // SAFETY: memory of this device, which is not used any more.
        unsafe { api.free(DEVICE, device) }.unwrap();
        // SAFETY: this second time is what the test is about; the device looks before it does anything.
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
        // SAFETY: workspace of this device, which is not used any more.
        unsafe { api.free_workspace(DEVICE, taken) }.unwrap();
        // SAFETY: this second time is what the test is about; a pool looks before it does anything.
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
        // A pool whose device fails keeps what it has.
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
}

mod pool {
    //! The pool against a list model written from the rules alone.

    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use tvmspec::device::pool::{PAGE, SpaceSource, WorkspacePool};
    use tvmspec::device::{Device, Dtype, Result, Space};

    #[derive(Default)]
    struct Log(Mutex<(usize, Vec<String>)>);

    impl SpaceSource for Log {
        fn alloc(&self, _: Device, nbytes: usize, _: usize, _: Dtype) -> Result<Space> {
            let mut log = self.0.lock().unwrap();
            log.0 += 1;
            let number = log.0;
            log.1.push(format!("{number} = {nbytes}"));
            Ok(Space(std::ptr::without_provenance_mut(number)))
        }

        unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
            self.0
                .lock()
                .unwrap()
                .1
                .push(format!("free {}", space.address()));
            Ok(())
        }
    }

    /// Slow and obvious: every free block in a list, every rule a search.
    #[derive(Default)]
    struct Model {
        free: Vec<(usize, usize)>,
        sizes: BTreeMap<usize, usize>,
        made: usize,
        log: Vec<String>,
    }

    impl Model {
        fn alloc(&mut self, nbytes: usize) -> usize {
            let pages = std::cmp::max(1, nbytes.div_ceil(PAGE)) * PAGE;
            let largest = self.free.iter().map(|block| block.1).max().unwrap_or(0);
            let chosen = match self.free.len() {
                0 => None,
                1 => Some(0),
                count if largest < pages => Some(count - 1),
                _ => self.free.iter().position(|block| block.1 >= pages),
            };
            if let Some(at) = chosen {
                let (number, size) = self.free.remove(at);
                if size >= pages {
                    return number;
                }
                self.log.push(format!("free {number}"));
            }
            self.made += 1;
            self.sizes.insert(self.made, pages);
            self.log.push(format!("{} = {pages}", self.made));
            self.made
        }

        fn give(&mut self, number: usize) {
            let size = self.sizes[&number];
            let behind = self.free.iter().filter(|block| block.1 <= size).count();
            let last = self.free.last().map_or(0, |block| block.1);
            let at = if size > last {
                self.free.len()
            } else if self.free.len() == 1 {
                0
            } else {
                behind
            };
            self.free.insert(at, (number, size));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        #[test]
        fn pool_equals_the_model(script in prop::collection::vec((any::<bool>(), 0usize..40_000, any::<prop::sample::Index>()), 0..80)) {
            let (log, mut pool, mut model) = (Log::default(), WorkspacePool::default(), Model::default());
            let mut taken: Vec<usize> = Vec::new();
            for (take, nbytes, which) in script {
                if take || taken.is_empty() {
                    // SAFETY: one source and one device for this pool.
                    let space = unsafe { pool.alloc(&log, Device::ext_dev(0), nbytes) };
                    let number = space.unwrap().address();
                    prop_assert_eq!(number, model.alloc(nbytes));
                    prop_assert!(!taken.contains(&number), "block {} is taken twice", number);
                    taken.push(number);
                } else {
                    let number = taken.remove(which.index(taken.len()));
                    pool.free(Space(std::ptr::without_provenance_mut(number))).unwrap();
                    model.give(number);
                }
            }
            prop_assert_eq!(&log.0.lock().unwrap().1, &model.log);
        }
    }
}

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
    let evaluator = Evaluator {
        number: 2,
        repeat: 3,
        ..Evaluator::default()
    };
    let mut calls = 0;
    let seconds = evaluator.run(cpu::cpu(), Device::CPU, &mut *watch, || {
        calls += 1;
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    // One call to warm up (DEV-45).
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

#[test]
fn every_behaviour_has_a_case_with_its_rules() {
    use tvmspec::conformance::case::Suite;
    fn named<R>(cases: &[Behaviour<R>]) -> impl Iterator<Item = (&str, &[Rule])> {
        cases.iter().map(|case| (case.id, case.rules))
    }
    for (id, rules) in named(behaviour::CASES).chain(named(own::CASES)) {
        let case = Suite::embedded()
            .case(id)
            .unwrap_or_else(|| panic!("no case {id}"));
        let rules: Vec<&str> = rules.iter().map(|rule| rule.id()).collect();
        assert_eq!(case.rules, rules, "{id}");
    }
}

/// A manager whose factories of `cuda` and `opencl` look types up: `cuda` the CPU, `opencl` itself.
fn manager_with_factories_that_look_up() -> &'static Manager {
    static MANAGER: OnceLock<Manager> = OnceLock::new();
    fn found(kind: i32) -> tvmspec::device::Result<&'static dyn DeviceApi> {
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
    // On a thread of its own: before, each of these look-ups waited for itself.
    std::thread::spawn(move || {
        let other = manager.api(Device::cuda(0).kind).map(drop);
        let itself = manager.api(Device::opencl(0).kind).map(drop);
        // The failure leaves nothing behind (DEV-05).
        let again = manager.api(Device::opencl(0).kind).map(drop);
        sender.send((other, itself, again)).unwrap();
    });
    let within = std::time::Duration::from_secs(20);
    let (other, itself, again) = receiver.recv_timeout(within).expect("the look-ups return");
    other.unwrap();
    for rejected in [itself, again] {
        let reason = rejected.unwrap_err().reason();
        assert!(reason.starts_with("DEV-02: "), "{reason}");
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
        assert!(rejected.unwrap_err().reason().starts_with("DEV-38: "));
    }
    // DEV-21: the CPU has no streams at all.
    for rejected in [by_cpu, cpu::cpu().sync(Device::CPU, foreign)] {
        assert!(rejected.unwrap_err().reason().starts_with("DEV-21: "));
    }
    // Whether a driver is here or not, it is not called.
    #[cfg(feature = "cuda")]
    {
        let stream = simulated.create_stream(own).unwrap();
        let to_cuda = CopyRequest {
            to_device: other,
            ..to_device
        };
        // SAFETY: it is rejected.
        let copied = unsafe { tvmspec::device::cuda::cuda().copy(&to_cuda, stream) };
        assert!(copied.unwrap_err().reason().starts_with("DEV-38: "));
    }
    // SAFETY: allocated above.
    unsafe { simulated.free(own, space) }.unwrap();
}
