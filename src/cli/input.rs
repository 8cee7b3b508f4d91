//! Files as the subcommands see them: mapped, read, or taken from stdin; never executed.
//!
//! [`Input`] is for the file of a command, which may be a pipe or stdin; [`regular`] and [`read`] are for files that
//! other files or options name, which must have an end. Messages about names that are not there have the nearest one
//! that is.

use super::CliError;
use super::mapped::MappedFile;
use super::output::{self, line_of};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tvmspec::blob::ForeignKinds;
use tvmspec::examine::Subject;
use tvmspec::file_name::is_file_name;
use tvmspec::payload::{self, file};
use tvmspec::release::Layout;
use tvmspec::rule::Violation;

/// Below this size a file is read: a map would cost more than it saves.
const SMALL: u64 = 64 * 1024;

/// How much is read of what is no file. A library of this size is a file.
// Its bytes are all in memory, where those of a map are read page by page.
const LONGEST_STREAM: u64 = 1 << 28;

/// An opened input: its name for messages, and its bytes.
pub(crate) struct Input {
    /// The path as on the command line, for JSON; `<stdin>` for `-`.
    pub(crate) name: String,
    bytes: Bytes,
}

/// Where the content lies.
enum Bytes {
    /// In the page cache of the system.
    Mapped(MappedFile),
    /// In memory of this process.
    Read(Vec<u8>),
}

impl Input {
    /// Opens `path`, or stdin for `-`.
    ///
    /// Of a folder with the index of a tensor cache that index is opened.
    pub(crate) fn open(path: &Path) -> Result<Input, CliError> {
        let index = index_in(path);
        let path = index.as_deref().unwrap_or(path);
        let bytes = if is_stdin(path) {
            Bytes::Read(drain(io::stdin().lock()).map_err(CliError::new)?)
        } else {
            open(path).map_err(|error| cannot_read(path, &error))?
        };
        let name = name_of(path);
        Ok(Input { name, bytes })
    }

    /// Its name on one line, for texts and messages: the name of a file may hold what a terminal obeys.
    pub(crate) fn line(&self) -> String {
        line_of(&self.name)
    }

    /// The content.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// The index of a tensor cache in the folder at `path`, the newer name first (TEN-50).
fn index_in(path: &Path) -> Option<PathBuf> {
    let indices = ["tensor-cache.json", "ndarray-cache.json"];
    let mut paths = indices.iter().map(|name| path.join(name));
    paths.find(|path| path.is_file())
}

/// The content of the file `name` beside `index`; `None` where it cannot be read.
pub(crate) fn beside(index: &Path, name: &str) -> Option<impl AsRef<[u8]> + use<>> {
    // TEN-61: a path out of the file's content leads to any file.
    if !is_file_name(name) {
        return None;
    }
    let path = index.with_file_name(name);
    // A pipe would be waited for.
    regular(&path).ok()?;
    open(&path).ok()
}

/// What `pairs`, each `KIND=KNOWN`, state of kinds that no release has.
pub(crate) fn foreign_kinds(pairs: &[String]) -> Result<ForeignKinds, CliError> {
    let split = pairs.iter().map(|pair| {
        pair.split_once('=')
            .ok_or_else(|| CliError::line(format!("`{pair}` is not KIND=KNOWN")))
    });
    let split = split.collect::<Result<Vec<_>, _>>()?;
    ForeignKinds::new(split).map_err(|like| {
        CliError::line(format!(
            "no module kind `{like}` has a known payload{}",
            nearest_kind(like)
        ))
    })
}

/// Whether `path` stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What JSON calls the file at `path`: the path as on the command line; `<stdin>` for `-`.
pub(crate) fn name_of(path: &Path) -> String {
    if is_stdin(path) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// What is in the file at `path`, or on stdin, which `input` was opened of: a device module with its side file where the extension is
/// of one (PAY-23), and there is a side file or the bytes are of no other form.
pub(crate) fn subject<'i>(
    input: &'i Input,
    path: &Path,
    layout: Option<Layout>,
) -> Result<Subject<'i>, Violation> {
    // PAY-23: stdin has no file beside it.
    let side = if is_stdin(path) {
        None
    } else {
        file::side_file_of(&input.name)
    };
    let side = side.and_then(|side| read(Path::new(&side)).ok());
    let mut subject = Subject::of_files(&input.name, input.bytes(), side.as_deref(), layout)?;
    if !is_stdin(path) {
        subject.read_shards(|shard| beside(Path::new(&input.name), shard));
    }
    Ok(subject)
}

/// The whole input as the payload of a module of `kind`, in layout 0.22 where none is stated.
pub(crate) fn payload<'i>(
    input: &'i Input,
    kind: &str,
    layout: Option<Layout>,
) -> Result<Subject<'i>, CliError> {
    let layout = layout.unwrap_or(Layout::V0_22);
    Subject::of_payload(&input.name, input.bytes(), kind, layout).ok_or_else(|| {
        let hint = nearest_kind(kind);
        let kind = line_of(kind);
        CliError::new(format!("no module kind `{kind}` has a known payload{hint}"))
    })
}

/// The end of a message about `kind`, which no release has: the nearest that one has, however far it is, for the list is long.
fn nearest_kind(kind: &str) -> String {
    let near = payload::kinds()
        .iter()
        .map(|info| (distance(kind, info.kind), info.kind))
        .min();
    near.map_or(String::new(), |(_, near)| {
        format!("; did you mean `{near}`?")
    })
}

/// Maps a large file, and reads everything else. A folder opens on Unix and fails at the first read, with a message of no help.
fn open(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory; give a file in it"));
    }
    // A pipe or a device has no length and cannot be mapped.
    if !metadata.is_file() || metadata.len() < SMALL {
        return drain(file).map(Bytes::Read);
    }
    match MappedFile::new(&file, &output::file_name(path))? {
        Some(map) => Ok(Bytes::Mapped(map)),
        None => drain(file).map(Bytes::Read),
    }
}

/// What comes through a pipe, a device or stdin, which may have no end.
fn drain(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more, which tells a stream of exactly that length from a longer one.
    from.take(LONGEST_STREAM + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_STREAM {
        let most = LONGEST_STREAM >> 20;
        return Err(io::Error::other(format!(
            "it is not a file, and has no end within {most} MiB; put it into a file"
        )));
    }
    Ok(bytes)
}

/// Opens the file at `path`, and returns its length in bytes with it. A device, a pipe or a folder is none: a list of
/// files, for example a manifest, could name one that has no end, or waits for ever.
pub(crate) fn regular(path: &Path) -> Result<(File, u64), CliError> {
    // Before it is opened: opening a pipe that no process writes to waits.
    let metadata = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
    if !metadata.is_file() {
        return Err(CliError::new(format!(
            "cannot read {}: it is not a regular file",
            output::file_name(path)
        )));
    }
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    Ok((file, metadata.len()))
}

/// The content of the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let (file, length) = regular(path)?;
    let mut bytes = Vec::new();
    // The length of before, because a file that grows while it is read would have no end.
    file.take(length)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_read(path, &error))?;
    Ok(bytes)
}

/// The message for a file that cannot be read, with the nearest name in the same folder if the name is wrong.
fn cannot_read(path: &Path, error: &io::Error) -> CliError {
    let mut message = format!("cannot read {}: {error}", output::file_name(path));
    if error.kind() == io::ErrorKind::NotFound {
        message = format!("there is no file {}", output::file_name(path));
        if let Some(near) = nearest(path) {
            message.push_str(&format!("; did you mean {}?", output::file_name(&near)));
        }
    }
    CliError::new(message)
}

/// The file of the same folder whose name is nearest, if no more than a third of its letters differ.
fn nearest(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let names = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (distance(wanted, &name), name))
        // A name that differs more is another file, not a slip of the fingers.
        .filter(|(distance, _)| *distance <= wanted.len() / 3)
        .min()
        .map(|(_, name)| folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name)))
}

/// How many names are listed before only the nearest are.
const FEW: usize = 12;

/// The names that there are, for a message that `wanted` is none of them; of many the nearest few and the count.
pub(crate) fn listed<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.collect();
    if names.len() <= FEW {
        return names.join(", ");
    }
    // A name that is much longer is none that was meant, and costs time.
    names.sort_by_cached_key(|name| match name.len() {
        0..=256 => distance(wanted, name),
        length => length,
    });
    let count = names.len();
    names.truncate(FEW / 2);
    format!(
        "{count} names, of which the nearest are {}",
        names.join(", ")
    )
}

/// How many single-character edits (insertions, deletions, replacements) lie between two names: their Levenshtein
/// distance.
///
/// Time is the product of both lengths; memory is one row of the table.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}
