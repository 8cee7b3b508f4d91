//! Runs whole sessions with a hostile peer in both directions. Either our server meets a generated client, or our client meets a generated
//! server. Both ends run in one thread over a stream in memory.
//!
//! Checks, under AddressSanitizer:
//! * Nothing panics.
//! * Some release reads every packet that we write.
//! * A session that fails ends with an error that has a rule and an offset.
//! * Each request has one answer.
//! * Tokens are not addresses, and the tokens of one session are not valid in the next.
//! * A client releases only handles it was given, and no handle too often.
//! * Files stay in the session's directory.
//! * Memory use returns to its earlier level.
#![no_main]

#[path = "bounded/mod.rs"]
mod bounded;
#[path = "peers/mod.rs"]
mod peers;

use libfuzzer_sys::fuzz_target;
use peers::client::Client;
use peers::server::Server;
use peers::{Choices, Line, lock};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tvmspec::device::{Attribute, CopyRequest, Device, Manager, Space, Stream};
use tvmspec::function::{Error, ErrorKind, Function};
use tvmspec::module::Module;
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{RemoteTiming, Session, SessionOptions};
use tvmspec::rpc::server::{ServerOptions, SessionEnd, SessionReport, serve, serve_paired};
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, AnyView, Bytes, Str};

const RELEASES: [u8; 7] = [27, 8, 22, 21, 20, 16, 7];

/// An allocator that counts the live bytes.
struct Counted;

static LIVE: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

// SAFETY: every method forwards to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the requirements of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the requirements of this method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the requirements of this method.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as isize - layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the requirements of this method.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fuzz_target!(|data: &[u8]| {
    bounded::install();
    let mut before = LIVE.load(Ordering::Relaxed);
    // A single registration or reservation may stay. Repeated growth is a leak.
    for _ in 0..6 {
        session(data);
        let after = LIVE.load(Ordering::Relaxed);
        if after <= before {
            return;
        }
        before = after;
    }
    panic!("each of these sessions leaks memory");
});

fn session(data: &[u8]) {
    let [side, minor, how, step, rest @ ..] = data else { return };
    let release = Release::of(RELEASES[usize::from(*minor) % RELEASES.len()]);
    let step = if step % 4 == 3 { usize::from(*step) } else { usize::MAX };
    match side % 4 {
        0 => server(Client::made(rest, release, how & 2 != 0), release, *how, step),
        1 => server(Client::raw(rest, release, how & 2 != 0), release, how & !2, step),
        side => {
            let stated = match how % 4 {
                0 => None,
                1 | 2 => Some(release),
                _ => Some(Release::of(RELEASES[usize::from(*how / 4) % RELEASES.len()])),
            };
            // The first byte counts the bytes for the client's actions. The rest drives the server's answers.
            let Some((count, rest)) = rest.split_first() else { return };
            let (acts, answers) = rest.split_at(usize::from(*count).min(rest.len()));
            let server = match side {
                2 => Server::made(answers, release, stated),
                _ => Server::raw(answers, release, stated, how & 64 != 0),
            };
            client(server, stated, acts, step);
        }
    }
}

/// Runs our server twice. The second client knows the tokens of the first session.
fn server(client: Client, release: Release, how: u8, step: usize) {
    let folder = Folder::new();
    let mut options = ServerOptions::new(&folder.own);
    options.memory = 1 << 20;
    options.uploads = 1 << 18;
    options.largest = 1 << 20;
    options.release = (how & 1 == 0).then_some(release);
    let client = Arc::new(Mutex::new(client));
    let report = match how & 2 {
        0 => serve(Line::to(&client, step), &options),
        _ => serve_paired(Line::to(&client, step), "client:", &options),
    };
    let (answers, mut tokens) = {
        let client = lock(&client);
        (client.answers.clone(), client.tokens.clone())
    };
    check_end(&report, &answers);
    tokens.sort_unstable();
    tokens.dedup();
    tokens.truncate(8);
    if !tokens.is_empty() {
        options.release = Some(release);
        let thief = Arc::new(Mutex::new(Client::thief(&tokens, release)));
        let report = serve(Line::to(&thief, step), &options);
        let thief = lock(&thief);
        check_end(&report, &thief.answers);
        let [false, stolen @ ..] = &*thief.answers else { panic!("the session does not begin") };
        assert!(stolen.iter().all(|is_exception| *is_exception), "a token of another session: {:?} {tokens:x?}", thief.answers);
    }
}

/// Checks that the reported end of a session matches the answers its client saw.
fn check_end(report: &SessionReport, answers: &[bool]) {
    let requests = usize::try_from(report.requests).unwrap_or(usize::MAX);
    match &report.end {
        SessionEnd::Failed(error) => {
            check_error(error);
            let Some(broken) = error.violation() else {
                assert!(error.kind() == ErrorKind::Connection || error.kind() == ErrorKind::Timeout, "{error}");
                return;
            };
            // RPC-05 applies only to a text that was read completely.
            let at = broken.offset().or((broken.rule().id() == "RPC-05").then_some(0));
            let at = at.unwrap_or_else(|| panic!("no offset: {error}"));
            assert!(at <= report.received + (1 << 20), "{at} is in nothing that the client wrote: {error}");
            assert!(answers.is_empty() || answers.last() == Some(&true), "the last answer is not an exception: {error}");
        }
        SessionEnd::Expired => assert!(answers.last() == Some(&true)),
        SessionEnd::Mismatch => assert!(answers.is_empty()),
        _ => assert_eq!(answers.len(), requests, "{report:?}"),
    }
}

fn check_error(error: &Error) {
    assert!(!error.to_string().is_empty() && !error.kind().as_str().is_empty());
    if let Some(broken) = error.violation() {
        assert!(!broken.rule().id().is_empty() && !broken.message().is_empty(), "{error}");
    }
}

/// Runs our client.
fn client(server: Server, stated: Option<Release>, acts: &[u8], step: usize) {
    let server = Arc::new(Mutex::new(server));
    let mut options = SessionOptions::default();
    options.release = stated;
    options.timeout = Some(Duration::from_secs(60));
    let session = match Session::over(Line::to(&server, step), "key", &options) {
        Ok(session) => session,
        Err(error) => return check_error(&error),
    };
    // The slots of earlier sessions are free again.
    assert_eq!(session.number(), 0);
    let mut actor = Actor { session, kept: Vec::new(), choices: Choices::new(acts) };
    let mut ended = None;
    for _ in 0..64 {
        if actor.choices.is_done() {
            break;
        }
        let result = actor.act();
        let heard = lock(&server).heard;
        if let Some(ended) = ended {
            assert_eq!(heard, ended, "something is written to a session that has ended");
        }
        match result {
            Ok(value) => actor.keep(value),
            Err(error) => {
                check_error(&error);
                if error.kind() == ErrorKind::Connection {
                    ended = Some(heard);
                }
            }
        }
    }
}

/// A user of a session.
struct Actor {
    session: Session,
    kept: Vec<Any>,
    choices: Choices,
}

impl Actor {
    fn keep(&mut self, value: Any) {
        if self.kept.len() >= 8 {
            self.kept.remove(self.choices.below(8));
        }
        self.kept.push(value);
    }

    /// Returns an earlier result of the wanted type, if one exists.
    fn earlier<T: TryFrom<Any>>(&mut self) -> Option<T> {
        let from = self.choices.below(8);
        let count = self.kept.len();
        (0..count).find_map(|at| T::try_from(self.kept[(at + from) % count].clone()).ok())
    }

    fn name(&mut self) -> &'static str {
        self.choices.one(&["a.so", "f", "", "runtime.RPCTimeEvaluator", "a\0b"])
    }

    fn device(&mut self) -> Result<Device, Error> {
        let device = Device::new(self.choices.one(&[1, 1, 1, 2, 127, 0, -1, 128]), self.choices.one(&[0, 1, -1]));
        self.session.device(device)
    }

    fn here(&mut self) -> Result<Tensor, Error> {
        let count = self.choices.one(&[0, 1, 10, 5000]);
        Tensor::from_slice(&vec![1.5_f32; count], &[count as i64])
    }

    fn argument(&mut self) -> Result<Any, Error> {
        Ok(match self.choices.below(8) {
            0 => Any::none(),
            1 => self.choices.int().into(),
            2 => true.into(),
            3 => Str::new(self.choices.text()).into(),
            4 => Bytes::new(self.choices.text()).into(),
            5 => self.here()?.into(),
            _ => self.earlier().unwrap_or_default(),
        })
    }

    fn act(&mut self) -> Result<Any, Error> {
        let nothing = Ok(Any::none());
        Ok(match self.choices.below(20) {
            0..2 => {
                let name = self.name();
                self.session.function(name)?.map_or_else(Any::none, |found| found.into_object().into())
            }
            2..6 => {
                let Some(function) = self.earlier::<Function>() else { return self.call_first() };
                let args = (0..self.choices.below(4)).map(|_| self.argument()).collect::<Result<Vec<_>, _>>()?;
                let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
                return function.call_packed(&views);
            }
            6 => {
                let name = self.name();
                self.session.upload(name, self.choices.text())?;
                return nothing;
            }
            7 => Bytes::new(self.session.download("a.so")?).into(),
            8 => {
                let name = self.name();
                self.session.load_module(name)?.into()
            }
            9 => {
                let Some(module) = self.earlier::<Module>() else { return nothing };
                let name = self.name();
                module.function(name, true)?.map_or_else(Any::none, |found| found.into_object().into())
            }
            10 => {
                let (Some(parent), Some(child)) = (self.earlier::<Module>(), self.earlier::<Module>()) else { return nothing };
                self.session.import(&parent, &child)?;
                return nothing;
            }
            11 => {
                let device = self.device()?;
                let shape: Vec<i64> = (0..self.choices.below(3)).map(|_| self.choices.int()).collect();
                self.session.empty(&shape, Dtype::FLOAT32, device)?.into()
            }
            12 => {
                let (here, device) = (self.here()?, self.device()?);
                self.session.send(&here, device)?.into()
            }
            13 | 14 => {
                // Checked first, because fetching allocates as much memory on this side.
                let tensor = self.earlier::<Tensor>().filter(|tensor| tensor.nbytes() <= 1 << 20);
                let Some(tensor) = tensor else { return nothing };
                self.session.fetch(&tensor)?.into()
            }
            15 => {
                let (Some(from), Some(to)) = (self.earlier::<Tensor>(), self.earlier::<Tensor>()) else { return nothing };
                let remote = [&from, &to].map(|tensor| tensor.dl().device).into_iter().find(|device| device.kind > 128);
                let Some(remote) = remote.filter(|_| from.nbytes() == to.nbytes()) else { return nothing };
                let api = Manager::global().api(remote.kind)?;
                // SAFETY: both tensors hold their memory for the call, and the memory has this many bytes on this side.
                unsafe { api.copy(&between(&from, &to), Stream::DEFAULT) }?;
                return nothing;
            }
            16 => {
                let (device, attribute) = (self.device()?, self.choices.one(&Attribute::ALL));
                Manager::global().attribute(device, attribute)?;
                (self.session.devices(1)?.len() as i64).into()
            }
            17 => {
                let device = self.device()?;
                let api = Manager::global().api(device.kind)?;
                let stream = api.create_stream(device)?;
                let set = api.set_stream(device, stream).and_then(|()| api.sync(device, stream));
                let unset = api.set_stream(device, Stream::DEFAULT);
                // SAFETY: this device has just made the stream, and no thread has it as its current stream.
                let freed = unsafe { api.free_stream(device, stream) };
                set.and(unset).and(freed)?;
                return nothing;
            }
            18 => {
                let mut timing = RemoteTiming::default();
                timing.evaluator.number = 1;
                timing.evaluator.repeat = 1;
                let seconds = self.session.time(None, "f", Device::CPU, &timing, &[])?;
                (seconds.len() as i64).into()
            }
            _ => {
                match self.choices.rarely(4) {
                    true => self.session.close(),
                    false => self.kept.clear(),
                }
                return nothing;
            }
        })
    }

    fn call_first(&mut self) -> Result<Any, Error> {
        let argument = self.argument()?;
        self.session.call("testing.echo", [argument])
    }
}

/// Makes a request to copy all bytes.
fn between(from: &Tensor, to: &Tensor) -> CopyRequest {
    let space = |tensor: &Tensor| Space(tensor.dl().data);
    // The server decides the offset of its tensor.
    let offset = |tensor: &Tensor| usize::try_from(tensor.dl().byte_offset).unwrap_or(usize::MAX);
    CopyRequest {
        from: space(from),
        from_offset: offset(from),
        to: space(to),
        to_offset: offset(to),
        nbytes: from.nbytes(),
        from_device: from.dl().device,
        to_device: to.dl().device,
        hint: from.dl().dtype,
    }
}

/// The directory of a session, inside a directory that belongs to this process.
struct Folder {
    outer: PathBuf,
    own: PathBuf,
}

impl Folder {
    fn new() -> Folder {
        let outer = std::env::temp_dir().join(format!("tvmspec-fuzz-rpc-{}", std::process::id()));
        let own = outer.join("session");
        std::fs::create_dir_all(&own).expect("a folder");
        Folder { outer, own }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let beside = std::fs::read_dir(&self.outer).expect("the folder is there").count();
        std::fs::remove_dir_all(&self.outer).expect("the folder goes");
        assert_eq!(beside, 1, "a file outside of the session's directory");
    }
}
