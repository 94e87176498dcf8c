//! Secrets, and what only resembles one.

use super::{check_found, check_quiet, scanners};

/// Assembled here, so that no scanner of sources takes this file for a leak.
fn example(parts: &[&str]) -> String {
    parts.concat()
}

#[test]
fn secrets_are_found() {
    let check = |text: &str, name: &str, found: &str| check_found("secret", text, name, found);
    let aws_id = example(&["AKIA", "IOSFODNN7EXAMPLE"]);
    check(&format!("id {aws_id}."), "aws_access_key_id", &aws_id);
    check(&format!("key={}", aws_id.replace("AKIA", "ASIA")), "aws_access_key_id", "ASIAIOSFODNN7EXAMPLE");
    let aws = example(&["wJalrXUtnFEMI/K7MDENG", "/bPxRfiCYEXAMPLEKEY"]);
    check(&format!("aws_secret_access_key = {aws}\n"), "aws_secret_access_key", &aws);
    check(&format!("\"SecretAccessKey\": \"{aws}\""), "aws_secret_access_key", &aws);
    check(&format!("{{\"secretAccessKey\": \"{aws}\"}}"), "aws_secret_access_key", &aws);
    check(&format!("secret_access_key = {aws}A"), "generic_credential", &format!("{aws}A"));
    let pem =
        example(&["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEow\nIBAAK=\n-----END RSA PRIVATE KEY-----"]);
    check(&format!("a\n{pem}\nb"), "private_key", &pem);
    let cut = example(&["-----BEGIN ", "PRIVATE KEY-----\nMIIEow\nIBAAK="]);
    check(&format!("{cut} and prose"), "private_key", &cut);
    let openssh = example(&["-----BEGIN OPENSSH ", "PRIVATE KEY-----"]);
    check(&openssh, "private_key", &openssh);
    for prefix in ["ghp_", "gho_", "ghs_", "ghr_", "ghu_"] {
        let token = example(&[prefix, &"a1B2".repeat(9)]);
        check(&format!("token {token}"), "github_token", &token);
    }
    let fine = example(&["github_pat_", &"11ABCDEFG0".repeat(2), "aB_", &"x9Y".repeat(20)]);
    check(&fine, "github_fine_grained_token", &fine);
    let slack = example(&["xoxb-", "123456789012-abcDEFghiJKL"]);
    check(&format!("use {slack}"), "slack_token", &slack);
    let hook = example(&["hooks.slack.com/services/", "T00000000/B00000000/", &"X1".repeat(12)]);
    check(&format!("https://{hook}"), "slack_webhook", &hook);
    for prefix in ["sk-", "sk-proj-", "sk-ant-api03-"] {
        let key = example(&[prefix, &"Ab3_".repeat(6), "x"]);
        check(&format!("({key})"), "openai_key", &key);
    }
    let jwt = example(&["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".dBjftJeZ4CVPmB92K27u"]);
    check(&format!("Bearer {jwt}"), "jwt", &jwt);
    check("postgres://app:s3cr@t!x@db:5432/x", "database_url_password", "s3cr@t!x");
    check("mongodb+srv://u:p4ss@cluster0.example.net", "database_url_password", "p4ss");
    check("redis://:hunter2@cache", "database_url_password", "hunter2");
    let own = example(&["vk_", &"0123456789abcdef".repeat(3)]);
    check(&format!("bearer {own}"), "reveille_key", &own);
    check("api_key = \"abcdefghijkl\"", "generic_credential", "abcdefghijkl");
    check("password: 'hunter2hunter2'", "generic_credential", "hunter2hunter2");
    check("DB_PASSWORD=hunter2abc&x=1", "generic_credential", "hunter2abc");
    check("a?token=short&password=hunter2abc", "generic_credential", "hunter2abc");
    check("auth_token := \"Zm9vYmFyYmF6\"", "generic_credential", "Zm9vYmFyYmF6");
    check("client-secret => 'x!y#z$wvu'", "generic_credential", "x!y#z$wvu");
    check(r#"{\"password\": \"hunter2hunter2\"} "#, "generic_credential", "hunter2hunter2");
    check(r#"{"db": {"password": "Tr0ub4dor&3"}}"#, "generic_credential", "Tr0ub4dor&3");
    check(r#"{"apiKey": "abcdefghijkl"}"#, "generic_credential", "abcdefghijkl");
}

#[test]
fn what_only_resembles_a_secret_is_left_alone() {
    let aws = example(&["wJalrXUtnFEMI/K7MDENG", "/bPxRfiCYEXAMPLEKEY"]);
    for text in [
        // Ids, hashes, times and names of the same letters.
        "123e4567-e89b-12d3-a456-426614174000",
        "commit 8dff1c2e5b1f0c3d4a5968778695a4b3c2d1e0f9",
        "at 2026-11-15T11:22:33.000000Z, 1763205753000000000",
        "AKIAIOSFODNN7EXAMPL AKIAIOSFODNN7EXAMPLEX xAKIAIOSFODNN7EXAMPLE akiaiosfodnn7example",
        "AKIA_IOSFODNN7EXAMPLE",
        &format!("sha {aws}"),
        "aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}",
        "aws_secret_access_key_path = /home/user/.aws/a/long/path/of/forty",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "a line of ----- BEGIN PRIVATE KEY -----",
        "ghp_short ghx_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa high_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "github_pat_ is how they start, github_path_to_some_file",
        "xoxb-short xoxb-not-a-real-token-name foxoxb-123456789012",
        "hooks.slack.com/services/help/article/about",
        "sk-learn-has-many-long-estimator-names sk-1234 task-0123456789abcdefghij0123",
        "risk-assessment-2026-first-quarter-report",
        "eyJhbGciOiJIUzI1NiJ9 alone, eyJhbGciOiJIUzI1NiJ9.abc.def",
        "postgres://localhost:5432/app postgres://user@db/app https://user:pass@example.com",
        "postgres://app:${DB_PASSWORD}@db/app postgres://app:****@db/app mysql://u:<password>@h/d",
        "vk_short vk_a_long_name_of_a_function_without_digits invk_0123456789abcdef0123456789abcdef",
        // The word alone, prose and code.
        "Please choose a password: it must have eight characters.",
        "The password is required. Password: required",
        "token: string, secret: boolean; api_key: Option<String>",
        "password = os.environ['PASSWORD']",
        "password = get_password_2(config)",
        "password=${DB_PASSWORD} token=$API_TOKEN_2 secret={{secret1234}} key=<your-key-1>",
        "password: \"********\" token = \"xxxxxxxxxxxx\"",
        "max_tokens: 40960000, tokens=12345678, passwordless=abcdefgh12",
        "next_page_token: \"CAESBnJlc3VsdA12\"",
        // The same as JSON.
        r#"{"password": "required", "token_type": "bearer12345", "max_tokens": "4096000000"}"#,
        r#"{"password": "must have eight characters"}"#,
        r#"{"nextPageToken": "CAESBnJlc3VsdA12", "secret": null, "token": 1234567890123}"#,
        r#"{"secretAccessKey": "8dff1c2", "key": "abcdefghijkl12"}"#,
    ] {
        check_quiet("secret", text);
    }
}

#[test]
fn a_secret_is_told_once_by_its_most_telling_pattern() {
    let token = example(&["ghp_", &"a1B2".repeat(9)]);
    for text in [format!("token = \"{token}\""), format!("{{\"token\": \"{token}\"}}")] {
        let report = scanners(&["secret"]).scan(text.as_bytes());
        let names: Vec<_> = report.findings.iter().map(|finding| finding.name.as_str()).collect();
        assert_eq!(names, ["github_token"], "{text}");
    }
}
