//! Random scripts.

use super::{SIZES, SLOTS, STREAMS, Step};

/// xorshift64*: small, seeded, good enough to pick calls.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        // Odd, and so never 0, from which xorshift does not get away; the factor moves neighbouring seeds far apart.
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        // From the high bits of the product: its low ones depend on the low ones of the state alone.
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end.max(1)
    }
}

/// A script that makes sense more often than not; what makes none is skipped when it is run.
pub(super) fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut sizes = [0usize; SLOTS as usize];
    let mut script = Vec::new();
    for _ in 0..steps {
        let slot = dice.below(usize::from(SLOTS));
        let (size, name) = (sizes[slot], slot as u8);
        let stream = [0, 0, 1, 2][dice.below(4)];
        if size == 0 {
            sizes[slot] = SIZES[dice.below(SIZES.len())];
            script.push(Step::Alloc {
                slot: name,
                nbytes: sizes[slot],
                workspace: dice.below(3) == 0,
            });
            continue;
        }
        let offset = dice.below(size);
        // At least one byte: a copy of none has a program of its own (DEV-39).
        let nbytes = 1 + dice.below(size - offset);
        script.push(match dice.below(12) {
            0 => {
                sizes[slot] = 0;
                Step::Free { slot: name }
            }
            1..=4 => Step::Write {
                slot: name,
                offset,
                nbytes,
                seed: dice.below(250) as u8,
                stream,
            },
            5 | 6 => Step::Read {
                slot: name,
                offset,
                nbytes,
                stream,
            },
            7 | 8 => {
                let to = dice.below(usize::from(SLOTS));
                let room = sizes[to];
                if room == 0 {
                    continue;
                }
                let to_offset = dice.below(room);
                let nbytes = nbytes.min(room - to_offset);
                Step::Copy {
                    from: name,
                    from_offset: offset,
                    to: to as u8,
                    to_offset,
                    nbytes,
                    stream,
                }
            }
            9 => Step::Sync { stream },
            _ => Step::Order {
                before: stream,
                after: dice.below(usize::from(STREAMS)) as u8,
            },
        });
    }
    script
}
