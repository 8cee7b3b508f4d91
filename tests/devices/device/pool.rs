//! The pool compared with a list model that is written from the rules alone.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tvmspec::Result;
use tvmspec::device::pool::{PAGE, SpaceSource, WorkspacePool};
use tvmspec::device::{Device, Dtype, Space};

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

/// Slow and obvious model: every free block is in a list, and every rule is a search.
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
