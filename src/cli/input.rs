//! Input files of the subcommands: mapped, read, or taken from stdin; never executed.
//!
//! [`Input`] is for the file of a command, which may be a pipe or stdin. [`open_regular_file`] and [`read`] are for files that other files or
//! options name, which must have an end. Messages about unknown names suggest the most similar known name.

use super::CliError;
use super::embedding::{self, SharedBytes};
use super::mapped_file::MappedFile;
use super::output::{self, escape_line};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tvmspec::blob::ForeignKinds;
use tvmspec::examine::Subject;
use tvmspec::file_name::is_file_name;
use tvmspec::payload::{self, file};
use tvmspec::release::Layout;
use tvmspec::rule::Violation;

/// The size below which a file is read, because mapping it would cost more than it saves.
const SMALL: u64 = 64 * 1024;

/// The maximal number of bytes to read from a pipe, a device or stdin. A larger library must be a file.
// All bytes of a stream are in memory, whereas those of a map are loaded page by page.
const LONGEST_STREAM: u64 = 1 << 28;

/// An open input: its name for messages, and its bytes.
pub struct Input {
    /// The path as on the command line, for JSON; `<stdin>` for `-`.
    pub(crate) name: String,
    /// The path as on the command line; `-` for bytes of another origin.
    path: PathBuf,
    bytes: Bytes,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("bytes", &self.bytes().len())
            .finish()
    }
}

/// The place of the content.
enum Bytes {
    /// The page cache of the system.
    Mapped(MappedFile),
    /// Memory of this process.
    Read(Vec<u8>),
    /// Memory of the caller.
    Lent(SharedBytes),
}

impl Input {
    /// Opens `path`. `-` is stdin, or the input of an embedded command.
    ///
    /// For a folder with the index of a tensor cache, opens that index.
    ///
    /// # Errors
    ///
    /// The file cannot be read; the message names a file with a similar name.
    pub fn open(path: &Path) -> Result<Input, CliError> {
        let shared = embedding::with_exchange(|exchange| exchange.input.clone()).flatten();
        if let Some((name, bytes)) = shared.filter(|_| is_stdin(path)) {
            return Ok(Input::shared(name, bytes));
        }
        let given = path.to_owned();
        let index = index_in(path);
        let path = index.as_deref().unwrap_or(path);
        let bytes = if is_stdin(path) {
            Bytes::Read(read_stream(io::stdin().lock()).map_err(CliError::new)?)
        } else {
            open(path).map_err(|error| cannot_read(path, error))?
        };
        let name = name_of(path);
        Ok(Input {
            name,
            path: given,
            bytes,
        })
    }

    /// Creates an input of bytes that are in memory, without a copy. `name` stands for the file in reports.
    pub fn lent(name: String, bytes: Box<dyn AsRef<[u8]> + Send + Sync>) -> Input {
        Input::shared(name, bytes.into())
    }

    fn shared(name: String, bytes: SharedBytes) -> Input {
        Input {
            name,
            // Like stdin, it has neither a side file nor shards.
            path: "-".into(),
            bytes: Bytes::Lent(bytes),
        }
    }

    /// Returns the name and the bytes.
    pub(super) fn into_shared(self) -> (String, SharedBytes) {
        match self.bytes {
            Bytes::Lent(bytes) => (self.name, bytes),
            bytes => (self.name, Arc::new(bytes)),
        }
    }

    /// Fails if the file became shorter while it was read. The reads after that returned zeros.
    pub(super) fn check_length(&self) -> Result<(), CliError> {
        match &self.bytes {
            Bytes::Mapped(map) if map.is_shortened() => Err(became_shorter(&self.name)),
            _ => Ok(()),
        }
    }

    /// Returns its name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path as on the command line.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its name on one line, for texts and messages. The name is escaped, because it may contain control sequences.
    pub(crate) fn line(&self) -> String {
        escape_line(&self.name)
    }

    /// Returns the content.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Read(bytes) => bytes,
            Bytes::Lent(bytes) => (**bytes).as_ref(),
        }
    }
}

/// Returns the index of a tensor cache in the folder at `path`. The newer name is preferred (TEN-50).
fn index_in(path: &Path) -> Option<PathBuf> {
    let indices = ["tensor-cache.json", "ndarray-cache.json"];
    let mut paths = indices.iter().map(|name| path.join(name));
    paths.find(|path| path.is_file())
}

/// Reads the file `name` in the folder of `index`. Returns `None` if it cannot be read.
pub(crate) fn read_sibling(index: &Path, name: &str) -> Option<impl AsRef<[u8]> + use<>> {
    // TEN-61: a path from the content of a file may lead to any file.
    if !is_file_name(name) {
        return None;
    }
    let path = index.with_file_name(name);
    // Reading a pipe would wait for its writer.
    open_regular_file(&path).ok()?;
    open(&path).ok()
}

/// Parses the statements of `pairs`, each `KIND=KNOWN`, about kinds that no release has.
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

/// Returns whether `path` stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of the file at `path` for JSON: the path as on the command line; `<stdin>` for `-`.
pub(crate) fn name_of(path: &Path) -> String {
    if is_stdin(path) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Opens the file at `path`, or stdin, from which `input` was read. If the extension is that of a device module, the side file is
/// opened too (PAY-23). Bytes of another form need a side file to count as a module.
pub(crate) fn subject<'i>(
    input: &'i Input,
    path: &Path,
    layout: Option<Layout>,
) -> Result<Subject<'i>, Violation> {
    // PAY-23: stdin has no side file.
    let side = if is_stdin(path) {
        None
    } else {
        file::side_file_of(&input.name)
    };
    let side = side.and_then(|side| read(Path::new(&side)).ok());
    let mut subject = Subject::of_files(&input.name, input.bytes(), side.as_deref(), layout)?;
    if !is_stdin(path) {
        subject.read_shards(|shard| read_sibling(Path::new(&input.name), shard));
    }
    Ok(subject)
}

/// Opens the input as `inspect`, `verify` and `explain` do: as a file, or with `kind` as the payload of a module of this kind. A file whose
/// container is broken is a subject too ([`Subject::broken`]); nothing in it was read, so that `grammar` has no effect.
pub(crate) fn examined<'i>(
    input: &'i Input,
    kind: Option<&str>,
    layout: Option<Layout>,
    grammar: &[String],
) -> Result<Subject<'i>, CliError> {
    let opened = match kind {
        Some(kind) => Ok(payload(input, kind, layout)?),
        None => subject(input, input.path(), layout),
    };
    match opened {
        Ok(mut subject) => {
            subject.foreign = foreign_kinds(grammar)?;
            Ok(subject)
        }
        Err(broken) => Ok(Subject::damaged(&input.name, input.bytes(), broken)),
    }
}

/// Treats the whole input as the payload of a module of `kind`, in layout 0.22 if none is stated.
pub(crate) fn payload<'i>(
    input: &'i Input,
    kind: &str,
    layout: Option<Layout>,
) -> Result<Subject<'i>, CliError> {
    let layout = layout.unwrap_or(Layout::V0_22);
    Subject::of_payload(&input.name, input.bytes(), kind, layout).ok_or_else(|| {
        let hint = nearest_kind(kind);
        let kind = escape_line(kind);
        CliError::new(format!("no module kind `{kind}` has a known payload{hint}"))
    })
}

/// Returns the end of a message about an unknown `kind`: the most similar known kind. Even a distant one is named, because the list is
/// long.
fn nearest_kind(kind: &str) -> String {
    let near = payload::kinds()
        .iter()
        .map(|info| (edit_distance(kind, info.kind), info.kind))
        .min();
    near.map_or(String::new(), |(_, near)| {
        format!("; did you mean `{near}`?")
    })
}

/// Maps a large file, and reads everything else. A folder is rejected here, because on Unix it can be opened, and the first read fails
/// with an unhelpful message.
fn open(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory; give a file in it",
        ));
    }
    // Pipes and devices have no length and cannot be mapped.
    if !metadata.is_file() || metadata.len() < SMALL {
        return read_stream(file).map(Bytes::Read);
    }
    match MappedFile::new(&file, &output::file_name(path))? {
        Some(map) => Ok(Bytes::Mapped(map)),
        None => read_stream(file).map(Bytes::Read),
    }
}

/// Reads from a pipe, a device or stdin, which may have no end.
fn read_stream(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more, to distinguish a stream of exactly that length from a longer one.
    from.take(LONGEST_STREAM + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_STREAM {
        let most = LONGEST_STREAM >> 20;
        return Err(io::Error::other(format!(
            "it is not a file, and has no end within {most} MiB; put it into a file"
        )));
    }
    Ok(bytes)
}

/// Opens the file at `path`, and also returns its length in bytes. Rejects devices, pipes and folders, because a hostile manifest could
/// name one that has no end or blocks.
pub(crate) fn open_regular_file(path: &Path) -> Result<(File, u64), CliError> {
    // Checked before opening: opening a pipe without a writer blocks.
    let metadata = std::fs::metadata(path).map_err(|error| cannot_read(path, error))?;
    if !metadata.is_file() {
        let error = io::Error::other("it is not a regular file");
        return Err(cannot_read(path, error));
    }
    let file = File::open(path).map_err(|error| cannot_read(path, error))?;
    Ok((file, metadata.len()))
}

/// Reads the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let (file, length) = open_regular_file(path)?;
    let mut bytes = Vec::new();
    // At most the length that was read above: a file that grows during reading might never end.
    file.take(length)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_read(path, error))?;
    Ok(bytes)
}

/// Creates the message for a file that cannot be read. If the name is wrong, it suggests the most similar name in the same folder.
fn cannot_read(path: &Path, error: io::Error) -> CliError {
    let mut message = format!("cannot read {}: {error}", output::file_name(path));
    if error.kind() == io::ErrorKind::NotFound {
        message = format!("there is no file {}", output::file_name(path));
        if let Some(near) = nearest(path) {
            message.push_str(&format!("; did you mean {}?", output::file_name(&near)));
        }
    }
    CliError::File {
        path: path.to_owned(),
        error,
        message,
    }
}

/// Creates the error for a mapped file that became shorter while it was read.
pub(super) fn became_shorter(name: &str) -> CliError {
    cannot_read(
        Path::new(name),
        io::Error::other("it became shorter while it was read"),
    )
}

/// Returns the file in the same folder with the most similar name, if no more than a third of its letters differ.
fn nearest(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let names = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (edit_distance(wanted, &name), name))
        // A name that differs more is probably not a typing error.
        .filter(|(distance, _)| *distance <= wanted.len() / 3)
        .min()
        .map(|(_, name)| folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name)))
}

/// The number of names up to which all are listed, and not only the most similar ones.
const FEW: usize = 12;

/// Lists the known names, for a message that `wanted` is unknown. If there are many, lists the most similar few and the count.
pub(crate) fn list_known_names<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.collect();
    if names.len() <= FEW {
        return names.join(", ");
    }
    // A much longer name is not meant, and would take time to compare.
    names.sort_by_cached_key(|name| match name.len() {
        0..=256 => edit_distance(wanted, name),
        length => length,
    });
    let count = names.len();
    names.truncate(FEW / 2);
    format!(
        "{count} names, of which the nearest are {}",
        names.join(", ")
    )
}

/// Returns the Levenshtein distance of two names: the number of single-character insertions, deletions and replacements.
///
/// Time is the product of both lengths; memory is one row of the table.
pub(crate) fn edit_distance(from: &str, to: &str) -> usize {
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
