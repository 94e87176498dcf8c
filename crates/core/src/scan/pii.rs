//! Personal data: addresses and numbers that belong to a person.

use super::Severity::{High, Medium};
use super::pattern::ScanPattern;
use std::ops::Range;

pub(super) fn patterns() -> Vec<ScanPattern> {
    vec![
        ScanPattern::built_in(
            "card_number",
            High,
            95,
            r"\b(?:[0-9]{13,19}|[0-9]{4}(?:[ -][0-9]{4}){2}[ -][0-9]{1,7}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{4,5})\b",
        )
        .judged(card),
        ScanPattern::built_in("us_ssn", High, 90, r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b").judged(ssn),
        ScanPattern::built_in(
            "email",
            High,
            90,
            r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\b",
        )
        .judged(email),
        ScanPattern::built_in(
            "phone",
            Medium,
            75,
            r"(?:\+?1[ .-]?)?(?:\([2-9][0-9]{2}\) ?|\b[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}\b|\+[1-9][0-9 ().-]{6,18}[0-9]\b",
        )
        .judged(phone),
    ]
}

/// A number with a brand's prefix and length, and a valid check digit.
fn card(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let digits: Vec<u8> = digits(&text[found.clone()]).collect();
    (stands_alone(text, &found) && of_a_brand(&digits) && luhn(&digits)).then_some(found)
}

fn of_a_brand(digits: &[u8]) -> bool {
    let first =
        |count: usize| digits.iter().take(count).fold(0u32, |all, digit| all * 10 + u32::from(*digit));
    match digits.len() {
        13 => first(1) == 4,
        14 => matches!(first(2), 36 | 38 | 39) || matches!(first(3), 300..=305),
        15 => matches!(first(2), 34 | 37),
        16 if first(1) == 4 || matches!(first(2), 51..=55) || matches!(first(4), 2221..=2720) => true,
        19 if first(1) == 4 => true,
        16..=19 => {
            matches!(first(2), 62 | 65)
                || matches!(first(3), 644..=649)
                || matches!(first(4), 3528..=3589 | 6011)
        }
        _ => false,
    }
}

fn luhn(digits: &[u8]) -> bool {
    let weigh = |(place, digit): (usize, &u8)| match (place % 2, u32::from(*digit) * 2) {
        (0, _) => u32::from(*digit),
        (_, doubled @ 10..) => doubled - 9,
        (_, doubled) => doubled,
    };
    digits.iter().rev().enumerate().map(weigh).sum::<u32>().is_multiple_of(10)
}

/// Areas 000, 666 and 9xx were never issued, nor groups and serials of zeros.
fn ssn(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let number = &text[found.clone()];
    let (area, group, serial) = (&number[..3], &number[4..6], &number[7..]);
    let given = area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000";
    (given && stands_alone(text, &found)).then_some(found)
}

/// High-resolution images (`logo@2x.png`) and `git@` remotes look like addresses.
fn email(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let address = text[found.clone()].to_ascii_lowercase();
    let is_file = [".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"].iter().any(|end| address.ends_with(end));
    let is_remote = address.starts_with("git@");
    (!is_file && !is_remote).then_some(found)
}

fn phone(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let number = &text[found.clone()];
    // National numbers have ten digits, international ones up to fifteen.
    let count = digits(number).count();
    let plausible = if number.starts_with('+') { (8..=15).contains(&count) } else { count >= 10 };
    (plausible && stands_alone(text, &found)).then_some(found)
}

fn digits(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0')
}

/// Whether a number is not part of something longer: an id, a decimal fraction, a list with dashes.
fn stands_alone(text: &str, found: &Range<usize>) -> bool {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut before = text[..found.start].chars().rev();
    let mut after = text[found.end..].chars();
    let (last, first) = (before.next(), after.next());
    let joined_in_front = in_word(last) || (matches!(last, Some('-' | '.')) && in_word(before.next()));
    let joined_behind = in_word(first) || (first == Some('-') && in_word(after.next()));
    !joined_in_front && !joined_behind
}
