//! Personal data, and what only resembles it.

use super::{check_found, check_quiet};

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
