//! What a scalar means: YAML 1.1 as `kubectl` reads it. The table in the tests was compared with
//! what `kubectl create --dry-run=client -o json` says.

use serde_json::{Number, Value};

/// The value of a plain scalar. Timestamps stay text.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            Value::Bool(false)
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain))
}

fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    if !negative {
        return Some(size.into());
    }
    0_i64.checked_sub_unsigned(size).map(Number::from)
}

/// Whole floats below this are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A float; a whole one becomes an integer, as `1.0` does on its way through Kubernetes' own
/// reader, whose integer fields take no other form.
fn float(text: &str) -> Option<Number> {
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if !text.chars().all(allowed) || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return format!("{value:.0}").parse::<i64>().ok().map(Number::from);
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_mean_what_kubernetes_takes_them_for() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("true", json!(true)),
            ("off", json!(false)),
            ("yes", json!(true)),
            ("y", json!(true)),
            ("N", json!(false)),
            ("_1", json!("_1")),
            ("1_0.5", json!(10.5)),
            ("0X1F", json!(31)),
            ("0O17", json!(15)),
            ("190:20:30", json!("190:20:30")),
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("0x1F", json!(31)),
            ("0b11", json!(3)),
            ("1_000", json!(1000)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("0", json!(0)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1.0", json!(1)),
            ("1e3", json!(1000)),
            ("089", json!(89)),
            (
                "18446744073709551615",
                json!(18_446_744_073_709_551_615_u64),
            ),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1.2.3", json!("1.2.3")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("100m", json!("100m")),
            ("2026-01-02", json!("2026-01-02")),
            ("12:30:45", json!("12:30:45")),
            ("-", json!("-")),
            (".", json!(".")),
            ("-.inf", json!("-.inf")),
            ("1e999", json!("1e999")),
            ("é", json!("é")),
            ("0é", json!("0é")),
            ("e5", json!("e5")),
        ] {
            assert_eq!(plain(text), value, "{text}");
        }
    }
}
