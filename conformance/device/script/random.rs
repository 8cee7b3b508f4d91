//! Random scripts.

use super::Step;
use serde_json::{Value, json};

/// The generator xorshift64*: small, seeded, good enough to pick calls.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        // Odd, and so never 0, where xorshift would stay. The factor moves neighbouring seeds far apart.
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        // The high bits of the product are used, because its low bits depend only on the low bits of the state.
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end.max(1)
    }
}

/// The names of the spaces. There are few, so that random steps use the same ones.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// The streams, including the default one.
const STREAMS: [Option<&str>; 3] = [None, Some("s"), Some("t")];
// One byte, and one byte more than a page (DEV-25), are included. Two sizes occur twice, so that a block fits another request.
const SIZES: [usize; 8] = [1, 4, 64, 64, 100, 256, 256, 4097];

/// Generates a script of mostly valid steps. The invalid ones are omitted when it is run.
pub(super) fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut slots = NAMES.map(|name| (name, 0usize, false));
    let mut script = Vec::new();
    let mut push = |step: Value| script.extend(step.as_array().cloned().map(Step));
    for stream in STREAMS.iter().flatten() {
        push(json!(["stream", stream]));
    }
    for _ in 0..steps {
        let at = dice.below(NAMES.len());
        let (name, size, is_workspace) = slots[at];
        let stream = STREAMS[[0, 0, 1, 2][dice.below(4)]];
        if size == 0 {
            let size = SIZES[dice.below(SIZES.len())];
            let is_workspace = dice.below(3) == 0;
            slots[at] = (name, size, is_workspace);
            push(json!([
                if is_workspace { "workspace" } else { "alloc" },
                name,
                size
            ]));
            continue;
        }
        let offset = dice.below(size);
        // At least one byte. Another program tests a copy of no bytes (DEV-39).
        let nbytes = 1 + dice.below(size - offset);
        match dice.below(12) {
            0 => {
                slots[at] = (name, 0, false);
                push(json!([
                    if is_workspace {
                        "free-workspace"
                    } else {
                        "free"
                    },
                    name
                ]));
            }
            1..=4 => push(json!([
                "write",
                name,
                offset,
                nbytes,
                dice.below(250),
                stream
            ])),
            5 | 6 => push(json!(["read", name, offset, nbytes, stream])),
            7 | 8 => {
                let (to, room, _) = slots[dice.below(NAMES.len())];
                if room == 0 {
                    continue;
                }
                let to_offset = dice.below(room);
                let nbytes = nbytes.min(room - to_offset);
                push(json!(["copy", name, offset, to, to_offset, nbytes, stream]));
            }
            9 => push(json!(["sync", stream])),
            _ => push(json!(["order", stream, STREAMS[dice.below(STREAMS.len())]])),
        }
    }
    script
}
