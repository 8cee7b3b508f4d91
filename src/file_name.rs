//! Names of files that are made of a file's content: of names of kernels, formats, kinds of modules.
//!
//! Such a text may hold anything: separators of paths, control characters, a name that Windows reserves. Every command that writes
//! a file called after one makes its name by [`FileNames`].

use std::collections::HashMap;

/// The longest stem, in bytes. With an extension and a number it stays below the 255 bytes that file systems take.
const LONGEST_STEM: usize = 180;

/// The longest extension, in bytes.
const LONGEST_EXTENSION: usize = 40;

/// Names that Windows takes for devices, in any case and with any extension.
const RESERVED: [&str; 24] = [
    "aux", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "con",
    "lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9", "nul", "prn",
];

/// The names of the files of one folder, each given once.
///
/// Names that differ only in case are one name to some file systems, so that they count as a repetition. A repetition gets a number:
/// `add.ptx`, `ADD-2.ptx`. The same texts in the same order have the same names.
///
/// ```
/// use tvmspec::file_name::FileNames;
///
/// let mut names = FileNames::default();
/// assert_eq!(names.add("main_kernel", "metal"), "main_kernel.metal");
/// assert_eq!(names.add("..", "/victim.txt"), "__._victim.txt");
/// assert_eq!(names.add("a/b", "spv"), "a_b.spv");
/// assert_eq!(names.add("A_b", "spv"), "A_b-2.spv");
/// assert_eq!(names.add("nul", "spv"), "_nul.spv");
/// ```
#[derive(Clone, Debug, Default)]
pub struct FileNames {
    /// Every name in lowercase, with the number that its last repetition got.
    taken: HashMap<String, u64>,
}

impl FileNames {
    /// Returns the name of a file that is called after `stem` and `extension`: letters and digits of ASCII, `.`, `_` and `-`, with
    /// `_` in the place of everything else. It begins and ends with none of `.` and `-`, is no name that Windows reserves, has 255
    /// bytes at most, and differs from all names before it, letters of another case included.
    pub fn add(&mut self, stem: &str, extension: &str) -> String {
        let mut stem = cleaned(stem, LONGEST_STEM);
        let extension = cleaned(extension, LONGEST_EXTENSION);
        if is_reserved(&stem) {
            stem.insert(0, '_');
        }
        let mut name = format!("{stem}.{extension}");
        let key = name.to_ascii_lowercase();
        let mut number = self.taken.get(&key).copied().unwrap_or(1);
        while self.taken.contains_key(&name.to_ascii_lowercase()) {
            number = number.saturating_add(1);
            name = format!("{stem}-{number}.{extension}");
        }
        self.taken.insert(name.to_ascii_lowercase(), 1);
        self.taken.insert(key, number);
        name
    }
}

/// Returns `text` without what has a meaning to a file system or a shell, cut to `longest` bytes.
fn cleaned(text: &str, longest: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let plain = text.chars().take(longest);
    let mut name: String = plain
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    // A leading `.` hides a file, a leading `-` makes it an option, and Windows drops a `.` at the end.
    if name.is_empty() {
        return "_".to_owned();
    }
    if name.starts_with(['.', '-']) {
        name.replace_range(..1, "_");
    }
    if name.ends_with(['.', '-']) {
        name.pop();
        name.push('_');
    }
    name
}

/// Whether Windows takes a file of this name for a device: whatever follows the first dot, and blanks before it, count for nothing.
fn is_reserved(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or_default();
    RESERVED
        .iter()
        .any(|reserved| base.trim_end().eq_ignore_ascii_case(reserved))
}

/// Whether a file may be called `name` on every system: a single part of a path, without control characters, at most 255 bytes long,
/// and with nothing that Windows reserves.
pub fn is_file_name(name: &str) -> bool {
    let is_letter = |letter: char| !letter.is_control() && !"/\\<>:\"|?*".contains(letter);
    !name.is_empty()
        && name.len() <= 255
        && name.chars().all(is_letter)
        && !name.starts_with(' ')
        && !name.ends_with([' ', '.'])
        && !is_reserved(name)
}
