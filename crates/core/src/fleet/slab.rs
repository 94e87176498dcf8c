//! Where the members are: numbered slots in blocks of a fixed size.
//!
//! A fleet that grows never moves anybody. One large vector would be copied whenever it doubles, which
//! holds up everything for a million workers, and leaves half of itself empty.

use super::{Slot, Worker};

const BLOCK: usize = 4_096;

#[derive(Default)]
pub struct Slab {
    blocks: Vec<Vec<Option<Worker>>>,
    free: Vec<Slot>,
}

impl Slab {
    pub fn get(&self, slot: Slot) -> Option<&Worker> {
        let (block, place) = at(slot);
        self.blocks.get(block)?.get(place)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Worker> {
        let (block, place) = at(slot);
        self.blocks.get_mut(block)?.get_mut(place)?.as_mut()
    }

    /// The slot that the next newcomer gets.
    pub fn vacant(&mut self) -> Slot {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let full = (self.blocks.len() - 1) * BLOCK;
        let block = &mut self.blocks[full / BLOCK];
        block.push(None);
        (full + block.len() - 1) as Slot
    }

    pub fn put(&mut self, slot: Slot, worker: Worker) {
        let (block, place) = at(slot);
        self.blocks[block][place] = Some(worker);
    }

    pub fn take(&mut self, slot: Slot) -> Option<Worker> {
        let (block, place) = at(slot);
        let worker = self.blocks.get_mut(block)?.get_mut(place)?.take()?;
        self.free.push(slot);
        Some(worker)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Worker)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(number, block)| {
            let slots = block.iter().enumerate();
            slots
                .filter_map(move |(place, worker)| Some(((number * BLOCK + place) as Slot, worker.as_ref()?)))
        })
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.blocks.iter_mut().flatten().flatten()
    }

    /// The members of one block; nothing when there are no more blocks.
    pub fn block(&self, number: usize) -> Option<impl Iterator<Item = &Worker>> {
        self.blocks.get(number).map(|block| block.iter().flatten())
    }

    /// The same with their slots.
    pub fn numbered_block(&self, number: usize) -> Option<impl Iterator<Item = (Slot, &Worker)>> {
        let slots = self.blocks.get(number)?.iter().enumerate();
        Some(
            slots.filter_map(move |(place, worker)| {
                Some(((number * BLOCK + place) as Slot, worker.as_ref()?))
            }),
        )
    }
}

fn at(slot: Slot) -> (usize, usize) {
    (slot as usize / BLOCK, slot as usize % BLOCK)
}
