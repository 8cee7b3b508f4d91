//! Loading a library: this crate against the real `libtvm_ffi.so`, through the same driver, in the same run.
//!
//! `TVMSPEC_WHEEL=.../tvm_ffi/lib/libtvm_ffi.so cargo bench --no-default-features --features runtime --bench module`.
//! Without the variable only this crate is measured. What is compared is the time beyond `dlopen` and `dlclose`.

use libloading::os::unix::Library;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tvmspec::capi::ffi;
use tvmspec::value::{ByteArray, Header, RawAny, index};

type GetGlobal = unsafe extern "C-unwind" fn(*const ByteArray, *mut *mut Header) -> i32;
type SetGlobal = unsafe extern "C-unwind" fn(*const ByteArray, *mut Header, i32) -> i32;
type SafeCall = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny, i32, *mut RawAny) -> i32;
type Call = unsafe extern "C-unwind" fn(*mut Header, *const RawAny, i32, *mut RawAny) -> i32;
type Create = unsafe extern "C-unwind" fn(
    *mut c_void,
    SafeCall,
    Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    *mut *mut Header,
) -> i32;
type Count = unsafe extern "C-unwind" fn(*mut Header) -> i32;

/// The functions of one implementation.
#[derive(Clone, Copy)]
struct Api {
    get_global: GetGlobal,
    set_global: SetGlobal,
    call: Call,
    create: Create,
    inc: Count,
    dec: Count,
}

fn ours() -> Api {
    Api {
        get_global: ffi::function::TVMFFIFunctionGetGlobal,
        set_global: ffi::function::TVMFFIFunctionSetGlobal,
        // SAFETY: both take the address of a function object.
        call: unsafe {
            std::mem::transmute::<*const c_void, Call>(
                ffi::function::TVMFFIFunctionCall as *const c_void,
            )
        },
        create: ffi::function::TVMFFIFunctionCreate,
        inc: ffi::object::TVMFFIObjectIncRef,
        dec: ffi::object::TVMFFIObjectDecRef,
    }
}

/// The wheel's library, bound to its own symbols although this process has some of the same names.
fn wheel(path: &Path) -> (Library, Api) {
    const NOW: i32 = 2;
    const DEEPBIND: i32 = 8;
    // SAFETY: a library that the caller named; its symbols have the types of the interface.
    unsafe {
        let library = Library::open(Some(path), NOW | DEEPBIND).expect("the wheel opens");
        let get_global = *library
            .get::<GetGlobal>(c"TVMFFIFunctionGetGlobal")
            .expect("exported");
        let set_global = *library
            .get::<SetGlobal>(c"TVMFFIFunctionSetGlobal")
            .expect("exported");
        let call = *library
            .get::<Call>(c"TVMFFIFunctionCall")
            .expect("exported");
        let create = *library
            .get::<Create>(c"TVMFFIFunctionCreate")
            .expect("exported");
        let inc = *library
            .get::<Count>(c"TVMFFIObjectIncRef")
            .expect("exported");
        let dec = *library
            .get::<Count>(c"TVMFFIObjectDecRef")
            .expect("exported");
        let api = Api {
            get_global,
            set_global,
            call,
            create,
            inc,
            dec,
        };
        (library, api)
    }
}

impl Api {
    fn global(&self, name: &str) -> *mut Header {
        let mut function = std::ptr::null_mut();
        // SAFETY: a name and a place.
        unsafe { (self.get_global)(&ByteArray::of(name.as_bytes()), &mut function) };
        assert!(!function.is_null(), "{name} is not registered");
        function
    }

    fn invoke(&self, function: *mut Header, args: &[RawAny]) -> RawAny {
        let mut result = RawAny::NONE;
        // SAFETY: a live function, arguments and a place.
        let code = unsafe { (self.call)(function, args.as_ptr(), args.len() as i32, &mut result) };
        assert_eq!(code, 0, "a call failed");
        result
    }

    /// Registers the loader of kind `rob`: it gives the same module every time.
    fn register(&'static self) {
        let system = self.global("ffi.SystemLib");
        let module = self.invoke(system, &[]);
        let context = Box::leak(Box::new((self.inc, module.ptr().cast::<Header>())));
        let mut loader = std::ptr::null_mut();
        // SAFETY: the context lives for ever, and `give` fits it.
        unsafe {
            (self.create)(std::ptr::from_mut(context).cast(), give, None, &mut loader);
            let name = ByteArray::of(b"ffi.Module.load_from_bytes.rob");
            assert_eq!((self.set_global)(&name, loader, 1), 0);
        }
    }

    fn load(&self, loader: *mut Header, path: &Path) {
        let path = path.to_str().expect("UTF-8");
        let mut text = path.as_bytes().to_vec();
        text.push(0);
        let payload = tvmspec::value::Payload {
            ptr: text.as_mut_ptr().cast(),
        };
        let module = self.invoke(loader, &[RawAny::of(index::RAW_STR, payload)]);
        // SAFETY: the result is an owned module.
        unsafe { (self.dec)(module.ptr().cast()) };
    }
}

unsafe extern "C-unwind" fn give(
    context: *mut c_void,
    _: *const RawAny,
    _: i32,
    result: *mut RawAny,
) -> i32 {
    // SAFETY: the context of `register`.
    unsafe {
        let (inc, module) = &*context.cast::<(Count, *mut Header)>();
        inc(*module);
        let payload = tvmspec::value::Payload { ptr: module.cast() };
        result.write(RawAny::of(index::MODULE, payload));
    }
    0
}

/// A library with `modules` of kind `rob` below it; none means no blob at all.
fn library(folder: &Path, modules: u64) -> PathBuf {
    let words = |values: Vec<u64>| -> Vec<u8> {
        std::iter::once(values.len() as u64)
            .chain(values)
            .flat_map(u64::to_le_bytes)
            .collect()
    };
    let text = |content: &[u8]| [&(content.len() as u64).to_le_bytes()[..], content].concat();
    let mut body = words(
        std::iter::once(0)
            .chain((0..=modules).map(|_| modules))
            .collect(),
    );
    body.extend(words((1..=modules).collect()));
    body.extend(text(b"_lib"));
    for _ in 0..modules {
        body.extend([text(b"rob"), text(b"sixteen bytes ..")].concat());
    }
    let blob = [&(body.len() as u64).to_le_bytes()[..], &body].concat();
    let bytes: Vec<String> = blob.iter().map(u8::to_string).collect();
    let mut code = "void* __tvm_ffi__library_ctx;\nint __tvm_ffi_main(void* s, void* a, int n, void* r) { return 0; }\n".to_owned();
    if modules > 0 {
        code.push_str(&format!(
            "const unsigned char __tvm_ffi__library_bin[{}] = {{{}}};\n",
            blob.len(),
            bytes.join(",")
        ));
    }
    let (source, library) = (
        folder.join(format!("n{modules}.c")),
        folder.join(format!("n{modules}.so")),
    );
    std::fs::write(&source, code).expect("a temporary folder");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "needs a C compiler"
    );
    library
}

/// Median nanoseconds of `run`, in rounds between which the others run.
fn round(times: usize, run: &dyn Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        run();
    }
    start.elapsed().as_nanos() as f64 / times as f64
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    if !cfg!(target_os = "linux") {
        println!("skipped, because this bench needs Linux");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wheel_path = std::env::var_os("TVMSPEC_WHEEL").map(PathBuf::from);
    let mut implementations: Vec<(&str, &'static Api)> =
        vec![("ours", Box::leak(Box::new(ours())))];
    let _keep = wheel_path.as_deref().map(|path| {
        let (library, api) = wheel(path);
        implementations.push(("wheel", Box::leak(Box::new(api))));
        library
    });
    for (_, api) in &implementations {
        api.register();
    }
    for (modules, times) in [(0, 300), (1, 300), (1000, 60)] {
        let path = library(folder.path(), modules);
        let open = || {
            // SAFETY: a library made above, which has no initializers.
            drop(unsafe { Library::open(Some(&path), 1) });
        };
        let loaders: Vec<_> = implementations
            .iter()
            .map(|(_, api)| (api, api.global("ffi.ModuleLoadFromFile")))
            .collect();
        let mut base = Vec::new();
        let mut samples = vec![Vec::new(); loaders.len()];
        for _ in 0..25 {
            base.push(round(times, &open));
            for ((api, loader), samples) in loaders.iter().zip(&mut samples) {
                samples.push(round(times, &|| api.load(*loader, &path)));
            }
        }
        let base = median(base);
        let beyond: Vec<f64> = samples
            .into_iter()
            .map(|samples| median(samples) - base)
            .collect();
        print!("{modules} modules: dlopen {base:.0} ns");
        for ((name, _), beyond) in implementations.iter().zip(&beyond) {
            print!(", {name} {beyond:.0} ns beyond it");
        }
        match beyond[..] {
            [ours, wheel] => println!("; ours / wheel = {:.2}", ours / wheel),
            _ => println!(),
        }
    }
}
