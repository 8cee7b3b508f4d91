//! Tensor arguments of `call`: their content and their memory layout (FUN-26 to FUN-30).
//!
//! | text | tensor |
//! |---|---|
//! | `@FILE.npy` | with the array of the file |
//! | `out:float32[2,3]` | of zeros, shown after the call |
//!
//! Options follow, each after a colon:
//!
//! | option | meaning |
//! |---|---|
//! | `bfloat16` | elements of a file are bits of this type |
//! | `strides=1,2` | steps from one element to the next on each axis, in elements |
//! | `offset=64` | bytes from the address of the data to the first element |
//! | `align=4` | the address of the data is so many bytes after a multiple of 64; without it, it is a multiple of 64 |

use super::CliError;
use super::array::{self, Bound, Elements};
use super::host_array::HostArray;
use std::path::Path;
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::tensor::Dtype;
use tvmspec::value::{DLTensor, dtype_from_text};

/// The alignment of a tensor whose argument states none.
const ALIGNMENT: u64 = 64;

/// A tensor argument.
pub(super) struct TensorArgument {
    /// The tensor that the function gets.
    pub(super) passed: Tensor,
    /// `true` for an output tensor, which is printed after the call.
    pub(super) is_out: bool,
    /// The memory layout, if an option states it.
    placed: Option<PlacedMemory>,
}

/// The memory of a tensor with a layout from options.
struct PlacedMemory {
    /// The whole memory, as bytes.
    memory: Tensor,
    /// The offset of the first element in it.
    first: usize,
    /// Strides in elements.
    strides: Vec<usize>,
}

/// The options of an argument.
#[derive(Default)]
struct Options {
    dtype: Option<Dtype>,
    strides: Option<Vec<usize>>,
    offset: u64,
    align: Option<u64>,
}

impl TensorArgument {
    /// Parses `FILE.npy[:OPTION...]` and reads the file.
    pub(super) fn of_file(text: &str) -> Result<TensorArgument, CliError> {
        let (path, options) = split(text);
        let options = Options::parse(&options)?;
        let elements = options.dtype.map_or(Elements::Stored, Elements::Stated);
        let tensor = array::read(Path::new(path), Bound::File, elements)?;
        TensorArgument::new(tensor, false, &options)
    }

    /// Parses `float32[2,3][:OPTION...]` and creates a tensor of zeros. `float32[]` is a scalar.
    pub(super) fn of_form(form: &str) -> Result<TensorArgument, CliError> {
        let wrong = || {
            CliError::Message(format!(
                "`out:{form}` is not an output: write out:float32[300] or out:int64[2,3]"
            ))
        };
        let (head, options) = form.split_once(']').ok_or_else(wrong)?;
        let (text, shape) = head.split_once('[').ok_or_else(wrong)?;
        let options = match options.strip_prefix(':') {
            Some(options) => options.split(':').collect(),
            None if options.is_empty() => Vec::new(),
            None => return Err(wrong()),
        };
        let options = Options::parse(&options)?;
        if options.dtype.is_some() {
            return Err(wrong());
        }
        let dtype = dtype_from_text(text).map_err(CliError::new)?;
        // TEN-28: a type of zero bits has a name but no elements.
        if let Err(broken) = dtype.check_element() {
            let message = format!("no tensor has elements of `{text}`: {broken}");
            return Err(CliError::Message(message));
        }
        let extents = shape
            .split(',')
            .map(str::trim)
            .filter(|extent| !extent.is_empty());
        let shape = extents
            .map(|extent| extent.parse::<i64>().map_err(|_| wrong()))
            .collect::<Result<Vec<i64>, CliError>>()?;
        let tensor = Tensor::empty(&shape, dtype).map_err(CliError::new)?;
        TensorArgument::new(tensor, true, &options)
    }

    fn new(tensor: Tensor, is_out: bool, options: &Options) -> Result<TensorArgument, CliError> {
        let is_plain = options.strides.is_none() && options.offset == 0 && options.align.is_none();
        if is_plain {
            return Ok(TensorArgument {
                passed: tensor,
                is_out,
                placed: None,
            });
        }
        let content = HostArray::from_tensor(&tensor).map_err(CliError::new)?;
        let (passed, placed) = create_with_layout(&content, *tensor.dl(), options)?;
        Ok(TensorArgument {
            passed,
            is_out,
            placed: Some(placed),
        })
    }

    /// Returns whether options state its memory layout.
    pub(super) fn is_placed(&self) -> bool {
        self.placed.is_some()
    }

    /// Returns its current content.
    pub(super) fn content(&self) -> Result<HostArray, CliError> {
        let Some(placed) = &self.placed else {
            return HostArray::from_tensor(&self.passed).map_err(CliError::new);
        };
        let memory = placed.memory.to_bytes().map_err(CliError::new)?;
        let (dtype, shape) = (self.passed.dl().dtype, self.passed.shape().to_vec());
        let size = element_size(dtype);
        let mut bytes = Vec::new();
        placed.for_each_offset(&shape, size, |at| {
            bytes.extend(memory.get(at..at + size).unwrap_or_default());
        });
        Ok(HostArray {
            dtype,
            shape,
            bytes,
        })
    }
}

impl PlacedMemory {
    /// Calls `visit` with the offset of each element, in row-major order.
    fn for_each_offset(&self, shape: &[i64], size: usize, mut visit: impl FnMut(usize)) {
        let count = shape.iter().map(|extent| *extent as usize).product();
        for number in 0..count {
            let (mut rest, mut at): (usize, usize) = (number, 0);
            for (extent, stride) in shape.iter().zip(&self.strides).rev() {
                at += rest % *extent as usize * stride;
                rest /= *extent as usize;
            }
            visit(self.first + at * size);
        }
    }
}

/// Returns the bytes of an element, rounded up to whole bytes.
fn element_size(dtype: Dtype) -> usize {
    usize::from(dtype.bits).div_ceil(8) * usize::from(dtype.lanes)
}

/// Creates a tensor with `content` in the memory layout of `options`.
fn create_with_layout(
    content: &HostArray,
    description: DLTensor,
    options: &Options,
) -> Result<(Tensor, PlacedMemory), CliError> {
    let shape = &content.shape;
    let size = element_size(content.dtype);
    if content.dtype.lanes != 1 {
        let message = "strides, offset and align are for elements of one lane";
        return Err(CliError::new(message));
    }
    let strides = match &options.strides {
        Some(strides) if strides.len() != shape.len() => {
            return Err(CliError::Message(format!(
                "strides={strides:?} are {}, for {} axes of {shape:?}",
                strides.len(),
                shape.len()
            )));
        }
        Some(strides) => strides.clone(),
        None => {
            let inner = (1..=shape.len()).map(|axis| &shape[axis..]);
            inner
                .map(|inner| inner.iter().map(|extent| *extent as usize).product())
                .collect()
        }
    };
    let shift = options.align.unwrap_or_default() % ALIGNMENT;
    // One more than the offset of the last element, in elements.
    let reach = shape.iter().zip(&strides).try_fold(1_usize, |reach, axis| {
        let (extent, stride) = axis;
        let steps = usize::try_from(*extent).ok()?.checked_sub(1)?;
        steps.checked_mul(*stride)?.checked_add(reach)
    });
    let reach = if shape.contains(&0) { Some(0) } else { reach };
    let first = shift.checked_add(options.offset);
    let first = first.and_then(|first| usize::try_from(first).ok());
    let room = reach.and_then(|reach| reach.checked_mul(size));
    let room = first
        .zip(room)
        .and_then(|(first, room)| first.checked_add(room));
    let (Some(first), Some(room)) = (first, room.and_then(|room| i64::try_from(room).ok())) else {
        return Err(CliError::new("no memory reaches as far as these strides"));
    };
    let byte = Dtype::scalar(Dtype::UINT, 8);
    let memory = Tensor::empty(&[room], byte).map_err(CliError::new)?;
    let placed = PlacedMemory {
        memory: memory.clone(),
        first,
        strides,
    };
    let mut bytes = memory.to_bytes().map_err(CliError::new)?;
    let mut elements = content.bytes.chunks_exact(size);
    placed.for_each_offset(shape, size, |at| {
        let (Some(to), Some(from)) = (bytes.get_mut(at..at + size), elements.next()) else {
            return;
        };
        to.copy_from_slice(from);
    });
    memory.fill(&bytes).map_err(CliError::new)?;
    let mut extents = shape.clone();
    let mut steps: Vec<i64> = placed.strides.iter().map(|stride| *stride as i64).collect();
    let dl = DLTensor {
        data: memory.dl().data.wrapping_byte_add(shift as usize),
        byte_offset: options.offset,
        shape: extents.as_mut_ptr(),
        strides: steps.as_mut_ptr(),
        ..description
    };
    // SAFETY: extents and strides are read at once; every element that they reach lies in `memory`, which was made so large and is kept.
    let passed = unsafe { Tensor::over(dl, Box::new(move || drop(memory))) };
    Ok((passed, placed))
}

/// Splits the path from the options after it. If a file has the whole text as its name, there are no options.
fn split(text: &str) -> (&str, Vec<&str>) {
    let (mut path, mut options) = (text, Vec::new());
    while let Some((before, last)) = path.rsplit_once(':') {
        // Everything after the name of an existing file is meant as an option, even if it is invalid.
        let is_option = Path::new(before).is_file()
            || last.split_once('=').map_or_else(
                || !last.is_empty() && element_type(last).is_some(),
                |(key, _)| matches!(key, "strides" | "offset" | "align"),
            );
        if !is_option || Path::new(path).exists() {
            break;
        }
        options.push(last);
        path = before;
    }
    (path, options)
}

/// Returns the element type for a name of the newest or any other release (TEN-02): `e4m3_float8` is `float8_e4m3fn`.
fn element_type(name: &str) -> Option<Dtype> {
    if let Ok(dtype) = dtype_from_text(name) {
        return Some(dtype);
    }
    Release::all().find_map(|release| {
        let old = Dtype::parse(name, release).ok()?;
        let new = Dtype::parse(old.meaning(release)?, Release::LAST).ok()?;
        Some(Dtype {
            lanes: old.lanes,
            ..new
        })
    })
}

impl Options {
    fn parse(options: &[&str]) -> Result<Options, CliError> {
        let mut parsed = Options::default();
        for option in options {
            let wrong = || {
                CliError::Message(format!(
                    "`{option}` is not an option of a tensor: write a type, strides=3,1, offset=64 or align=16"
                ))
            };
            match option.split_once('=') {
                Some(("strides", list)) => {
                    let strides = list.split(',').map(str::parse);
                    parsed.strides = Some(strides.collect::<Result<_, _>>().map_err(|_| wrong())?);
                }
                Some(("offset", bytes)) => parsed.offset = bytes.parse().map_err(|_| wrong())?,
                Some(("align", bytes)) => {
                    let bytes: u64 = bytes.parse().map_err(|_| wrong())?;
                    let is_alignment = bytes.is_power_of_two() && bytes <= ALIGNMENT;
                    parsed.align = Some(is_alignment.then_some(bytes).ok_or_else(wrong)?);
                }
                Some(_) => return Err(wrong()),
                None => parsed.dtype = Some(element_type(option).ok_or_else(wrong)?),
            }
        }
        Ok(parsed)
    }
}

/// Splits the path of an .npy file from the type after it, for arguments that accept no other options.
pub(super) fn path_and_type(text: &str) -> Result<(&str, Option<Dtype>), CliError> {
    let (path, options) = split(text);
    let options = match options.as_slice() {
        [] => return Ok((path, None)),
        [only] if !only.contains('=') => Options::parse(&options)?,
        _ => {
            let message = "an input of a model takes a type after its file, and no other option";
            return Err(CliError::new(message));
        }
    };
    Ok((path, options.dtype))
}
