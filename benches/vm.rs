//! Measures the Relax VM: the time of an operator beyond its kernel, and the time to load large constants.
//!
//! `TVMSPEC_PYTHON=python cargo bench --bench vm` compares with the VM of that Python's apache-tvm in the same run.

mod support;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;
use support::rounds;
use tvmspec::device::Device;
use tvmspec::module::{self, Symbols};
use tvmspec::object::Tensor;
use tvmspec::payload::relax_vm::{self, RelaxConstant};
use tvmspec::release::Layout;
use tvmspec::tensor::{Dtype, Sizing, TensorRecord};
use tvmspec::value::{Any, AnyView};
use tvmspec::vm::{LoadedExecutable, VirtualMachine};
use tvmspec::wire::Writer;

const OPERATORS: usize = 1000;
const CONSTANT_BYTES: usize = 100 << 20;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let constants = folder.path().join("constants.vmexec");
    std::fs::write(&constants, large()).unwrap();
    let theirs = theirs(&constants);

    let library = golden("chain1000.so");
    // SAFETY: the library is a golden, and is called as it was compiled.
    let model = unsafe { module::load(&library) }.unwrap();
    let machine = VirtualMachine::from_module(&model, &[Device::CPU]).unwrap();
    let input: Any = Tensor::empty(&[4], Dtype::FLOAT32).unwrap().into();
    let vm = fastest(200, || {
        drop(machine.call("main", std::slice::from_ref(&input)).unwrap())
    });
    let plain = plain_loop(&model, &input);
    let per = |seconds: f64| seconds / OPERATORS as f64 * 1e9;
    println!(
        "chain of {OPERATORS}: {:.0} ns an operator, {:.0} ns in a plain loop",
        per(vm),
        per(plain)
    );
    println!(
        "  overhead {:.0} ns, {:.2} of the kernel calls",
        per(vm - plain),
        vm / plain - 1.0
    );
    if let Some(seconds) = theirs.get("chain") {
        println!(
            "  the wheel: {:.0} ns an operator; ours takes {:.2} of that",
            per(*seconds),
            vm / seconds
        );
        println!(
            "  overhead, ours to the wheel's: {:.2}",
            (vm - plain) / (seconds - plain)
        );
    }

    let before = resident();
    let load = fastest(5, || drop(load(&constants)));
    let kept = self::load(&constants);
    let after = resident();
    let source = vec![1u8; CONSTANT_BYTES];
    let copy = fastest(5, || drop(std::hint::black_box(source.clone())));
    println!(
        "{} MB of constants: {:.1} of a copy",
        CONSTANT_BYTES >> 20,
        load / copy
    );
    println!(
        "  resident {:.2} of the constants",
        after.saturating_sub(before) as f64 / CONSTANT_BYTES as f64
    );
    drop(kept);
    if let Some(seconds) = theirs.get("load") {
        println!("  ours takes {:.2} of the wheel's time", load / seconds);
    }
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/vm")
        .join(name)
}

fn fastest(runs: usize, mut body: impl FnMut()) -> f64 {
    body();
    (0..rounds(runs))
        .map(|_| {
            let started = Instant::now();
            body();
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Times the kernels of the chain on two tensors that are reused.
fn plain_loop(model: &module::Module, input: &Any) -> f64 {
    let add = model.require("add").unwrap();
    let tanh = model.require("tir_tanh").unwrap();
    let tensors: Vec<Any> = (0..2)
        .map(|_| Tensor::empty(&[4], Dtype::FLOAT32).unwrap().into())
        .collect();
    let (one, two) = (tensors[0].view(), tensors[1].view());
    fastest(200, || {
        add.call_packed(&[input.view(), one]).unwrap();
        tanh.call_packed(&[one, two]).unwrap();
        for _ in 1..OPERATORS / 2 {
            add.call_packed(&[two, one] as &[AnyView<'_>]).unwrap();
            tanh.call_packed(&[one, two]).unwrap();
        }
    })
}

/// Makes an executable with one large constant and no function.
fn large() -> Vec<u8> {
    let extents = [(CONSTANT_BYTES / 4) as i64];
    let dtype = Dtype::scalar(Dtype::FLOAT, 32);
    let record =
        TensorRecord::new(dtype, &extents, vec![1u8; CONSTANT_BYTES], Sizing::V0_7).unwrap();
    let executable = relax_vm::RelaxExecutable {
        constants: vec![RelaxConstant::Tensor(record)],
        ..relax_vm::RelaxExecutable::default()
    };
    let mut out = Writer::new();
    executable.write(Layout::V0_22, &mut out).unwrap();
    out.into_bytes()
}

fn load(path: &Path) -> VirtualMachine {
    let file = std::fs::File::open(path).unwrap();
    // SAFETY: nothing changes the file during this run.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    let payload: *const [u8] = &raw const map[..];
    let library: Arc<dyn Symbols> = Arc::new(Mapped { _map: map });
    // SAFETY: `library` keeps the map at its address.
    let payload = unsafe { &*payload };
    // SAFETY: the map lives as long as any clone of `library`.
    let loaded =
        unsafe { LoadedExecutable::from_library(payload, Layout::V0_22, &library) }.unwrap();
    VirtualMachine::new(Arc::new(loaded), Vec::new(), &[Device::CPU]).unwrap()
}

/// A map without symbols that serves as a library.
struct Mapped {
    _map: memmap2::Mmap,
}

impl Symbols for Mapped {
    fn address(&self, _: module::SymbolName<'_>) -> Option<NonNull<c_void>> {
        None
    }

    fn data(
        &self,
        _: module::SymbolName<'_>,
    ) -> Result<Option<module::Data<'_>>, tvmspec::rule::Violation> {
        Ok(None)
    }

    fn is_code(&self, _: NonNull<c_void>) -> bool {
        false
    }

    fn is_writable(&self, _: NonNull<c_void>, _: usize) -> bool {
        false
    }

    fn list(&self) -> Vec<(String, bool)> {
        Vec::new()
    }

    fn describe(&self) -> String {
        "constants".into()
    }
}

/// Returns the resident bytes of this process that do not belong to a file.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| {
        line.trim()
            .trim_end_matches(" kB")
            .trim()
            .parse::<usize>()
            .ok()
    });
    kilobytes.unwrap_or(0) * 1024
}

/// Returns the times of the wheel in seconds, by name. The map is empty without `TVMSPEC_PYTHON`.
fn theirs(constants: &Path) -> BTreeMap<String, f64> {
    let Ok(python) = std::env::var("TVMSPEC_PYTHON") else {
        println!("skipped: the wheel, because TVMSPEC_PYTHON names no Python");
        return BTreeMap::new();
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/vm.py");
    let output = Command::new(python)
        .arg(script)
        .arg(golden("chain1000.so"))
        .arg(constants)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| {
            let (name, seconds) = line.split_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        })
        .collect()
}
