//! Changes inputs: bytes, ranges, words of the target's dictionary, pieces of other inputs.

use crate::rng::FuzzRng;

/// Changes that are made to one input, one after the other.
const CHANGES_MAX: usize = 8;
/// How often a piece is repeated at most: what nests or grows shows itself by then.
const REPEATS_MAX: usize = 300;
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "127",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e309",
];
const BYTES: [u8; 12] = [0, 1, 9, 10, 13, 32, 34, 92, 127, 128, 192, 255];

/// A new input, made of one and of pieces of another.
pub fn mutate(rng: &mut FuzzRng, from: &[u8], other: &[u8], dictionary: &[&str], len_max: usize) -> Vec<u8> {
    let mut input = from.to_vec();
    for _ in 0..=rng.skewed(CHANGES_MAX) {
        change(rng, &mut input, other, dictionary);
        input.truncate(len_max);
    }
    input
}

fn change(rng: &mut FuzzRng, input: &mut Vec<u8>, other: &[u8], dictionary: &[&str]) {
    match rng.below(11) {
        0 => {
            let (at, bit) = (rng.below(input.len()), rng.below(8));
            input.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
        }
        1 => {
            let (at, new) = (rng.below(input.len()), BYTES[rng.below(BYTES.len())]);
            input.get_mut(at).into_iter().for_each(|byte| *byte = new);
        }
        2 => {
            let range = range(rng, input.len());
            input.drain(range);
        }
        3 => {
            let piece = input[range(rng, input.len())].to_vec();
            insert(rng, input, &piece);
        }
        4 => {
            let piece = input[range(rng, input.len())].repeat(1 + rng.skewed(REPEATS_MAX));
            insert(rng, input, &piece);
        }
        5 | 6 => {
            let word = rng.pick(dictionary).copied().unwrap_or_default().as_bytes();
            insert(rng, input, word);
        }
        7 => {
            let word = rng.pick(dictionary).copied().unwrap_or_default().as_bytes();
            let range = range(rng, input.len());
            input.splice(range, word.iter().copied());
        }
        8 => {
            let word = rng.pick(dictionary).copied().unwrap_or_default();
            let piece = word.repeat(1 + rng.skewed(REPEATS_MAX));
            insert(rng, input, piece.as_bytes());
        }
        9 => {
            let piece = &other[range(rng, other.len())];
            insert(rng, input, piece);
        }
        _ => replace_number(rng, input),
    }
}

fn insert(rng: &mut FuzzRng, input: &mut Vec<u8>, piece: &[u8]) {
    let at = rng.below(input.len() + 1);
    input.splice(at..at, piece.iter().copied());
}

/// A range of so many bytes, mostly a short one.
fn range(rng: &mut FuzzRng, len: usize) -> std::ops::Range<usize> {
    let begin = rng.below(len);
    begin..begin + rng.skewed(len - begin + 1).min(len - begin)
}

/// Where digits stand, other digits.
fn replace_number(rng: &mut FuzzRng, input: &mut Vec<u8>) {
    let from = rng.below(input.len());
    let Some(begin) = input[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let len = input[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[rng.below(NUMBERS.len())];
    input.splice(begin..begin + len, number.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_none_is_too_long() {
        let made = |seed| {
            let mut rng = FuzzRng::new(seed);
            let mut input = Vec::new();
            for _ in 0..2000 {
                input = mutate(&mut rng, &input, b"PUB a 5\r\nhello\r\n", &["SUB", "\r\n"], 64);
                assert!(input.len() <= 64);
            }
            input
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }
}
