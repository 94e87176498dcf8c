//! Where everything stands from left to right, once its order is known: as near to those that it is joined
//! with as the others of its layer let it.

use super::STEP_WIDTH;
use super::order::Slots;

const PASSES: usize = 6;
/// Between two steps, or a step and a line.
const GAP: f64 = 2.0;
/// Between two lines.
const LINE_GAP: f64 = 1.5;
/// A line that goes past is kept straight before a step is kept in the middle.
const LINE_WEIGHT: f64 = 4.0;

/// The middle of every slot, by its number.
pub fn columns(slots: &Slots) -> Vec<i64> {
    let mut x = vec![0.0; slots.above.len()];
    for row in &slots.rows {
        let mut at = 0.0;
        for (place, slot) in row.iter().enumerate() {
            if place > 0 {
                at += apart(slots, row[place - 1], *slot);
            }
            x[*slot] = at;
        }
    }
    let all = 0..slots.rows.len();
    for _ in 0..PASSES {
        for layer in all.clone() {
            spread(slots, layer, &mut x, |slot| slots.above[slot].iter());
        }
        for layer in all.clone().rev() {
            spread(slots, layer, &mut x, |slot| slots.below[slot].iter());
        }
    }
    for layer in all {
        spread(slots, layer, &mut x, |slot| slots.above[slot].iter());
    }
    x.iter().map(|x| x.round() as i64).collect()
}

fn apart(slots: &Slots, left: usize, right: usize) -> f64 {
    let half = |slot| if slots.step(slot).is_some() { STEP_WIDTH as f64 / 2.0 } else { 0.0 };
    let gap = if half(left) + half(right) > 0.0 { GAP } else { LINE_GAP };
    half(left) + gap + half(right)
}

/// Neighbours that would be too near to each other, and what they want together.
struct Block {
    first: usize,
    weight: f64,
    /// Where the first of them would stand, weighed.
    wanted: f64,
}

impl Block {
    fn at(&self) -> f64 {
        self.wanted / self.weight
    }
}

/// Moves a layer as near to what each slot wants as its order and the distances allow, in squares: neighbours
/// that are in each other's way become one block, which stands in the middle of what they want.
fn spread<'a, J>(slots: &'a Slots, layer: usize, x: &mut [f64], joined: impl Fn(usize) -> J)
where
    J: Iterator<Item = &'a usize>,
{
    let row = &slots.rows[layer];
    let mut offsets = Vec::with_capacity(row.len());
    let mut blocks: Vec<Block> = Vec::new();
    for (place, slot) in row.iter().enumerate() {
        let offset = match place.checked_sub(1) {
            Some(before) => offsets[before] + apart(slots, row[before], *slot),
            None => 0.0,
        };
        offsets.push(offset);
        let (sum, count) =
            joined(*slot).fold((0.0, 0.0), |(sum, count), other| (sum + x[*other], count + 1.0));
        let (wanted, weight) = match (count > 0.0, slots.step(*slot)) {
            (true, Some(_)) => (sum / count, 1.0),
            (true, None) => (sum / count, LINE_WEIGHT),
            // Whoever is joined with nobody stays, unless somebody needs the room.
            (false, _) => (x[*slot], 0.01),
        };
        let mut block = Block { first: place, weight, wanted: (wanted - offset) * weight };
        while let Some(before) = blocks.pop_if(|before| before.at() > block.at()) {
            block = Block {
                first: before.first,
                weight: before.weight + block.weight,
                wanted: before.wanted + block.wanted,
            };
        }
        blocks.push(block);
    }
    let ends = blocks.iter().skip(1).map(|block| block.first).chain([row.len()]);
    for (block, end) in blocks.iter().zip(ends) {
        for place in block.first..end {
            x[row[place]] = block.at() + offsets[place];
        }
    }
}
