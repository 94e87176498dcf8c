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

/// A number of a brand, of the brand's length, whose check digit is right.
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

/// Areas 000, 666 and 9xx were never given out, nor groups and serials of zeros.
fn ssn(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let number = &text[found.clone()];
    let (area, group, serial) = (&number[..3], &number[4..6], &number[7..]);
    let given = area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000";
    (given && stands_alone(text, &found)).then_some(found)
}

/// Pictures for sharp screens (`logo@2x.png`) and `git@` remotes look like addresses.
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

#[cfg(test)]
mod tests {
    use crate::scan::tests::{check_found, check_quiet};

    #[test]
    fn personal_data_is_found() {
        let check = |text: &str, name: &str, found: &str| check_found("pii", text, name, found);
        check("mail bob.o'x+tag@mail.example.co.uk.", "email", "x+tag@mail.example.co.uk");
        check("<alice@example.com>", "email", "alice@example.com");
        check(r#"{"alice@example.com": 1}"#, "email", "alice@example.com");
        check("ssn 123-45-6789,", "us_ssn", "123-45-6789");
        check("call (212) 555-0123 now", "phone", "(212) 555-0123");
        check("call 212-555-0123.", "phone", "212-555-0123");
        check("+1 212.555.0123", "phone", "+1 212.555.0123");
        check("+49 30 901820", "phone", "+49 30 901820");
        check("tel:+442079460958", "phone", "+442079460958");
        for card in [
            "4111111111111111",
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "5500005555555559",
            "2223003122003222",
            "378282246310005",
            "3782 822463 10005",
            "30569309025904",
            "6011111111111117",
            "3530111333300000",
            "4222222222222",
            "6212345678901232",
        ] {
            check(&format!("card {card}."), "card_number", card);
            if !card.contains([' ', '-']) {
                check(&format!("{{\"card\": {card}}}"), "card_number", card);
                check(&format!("[{card}.0]"), "card_number", card);
            }
        }
    }

    #[test]
    fn what_only_resembles_personal_data_is_left_alone() {
        for text in [
            "123e4567-e89b-12d3-a456-426614174000 41111111-1111-1111-1111-111111111111",
            "commit 8dff1c2e5b1f0c3d4a5968778695a4b3c2d1e0f9",
            "2026-11-15T11:22:33+02:00, 2026-11-15 11:22, 1763205753, 1763205753000, 1763205753000000000",
            // Cards: a wrong check digit, no brand, a wrong length, a part of something.
            "4111111111111112 4111 1111 1111 1112 378282246310006",
            "1111111111111117 9999999999999995 0000000000000000",
            "41111111111111113 411111111111",
            "x4111111111111111 4111111111111111x 7-4111111111111111 4111-1111-1111-1111-9",
            "0.4111111111111111 [0.4111111111111111, 4.111111111111111e15]",
            r#"{"id": 4111111111111112, "at": 1763205753000}"#,
            // Social security numbers.
            "000-12-3456 666-12-3456 912-12-3456 123-00-4567 123-45-0000",
            "1123-45-6789 123-45-67890 123-45-6789-1 12-345-6789",
            // Addresses.
            "@mention user@localhost a@b foo@1.2.3 icon@2x.png @types/node@18.0.0",
            "git@github.com:org/repo.git",
            "x @ y.com",
            // Phones.
            "555-0123 12-555-0123 192.168.100.200 1.2.3.4 123-456-7890 112-555-0123",
            "5+12345678 +1234 v212.555.01234 2125550123",
            "part 1212-555-0123-44 rev 212-555-0123-a",
        ] {
            check_quiet("pii", text);
        }
    }
}
