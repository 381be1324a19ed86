//! Rules for names and labels, with the texts that the real server answers.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
'-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  \
or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
'MyValue',  or 'my_value',  or '12345', regex used for validation is \
'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_label_text(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// What is wrong with an RFC 1123 subdomain, or `None`.
pub(crate) fn subdomain_fault(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    (!name.split('.').all(is_label_text)).then(|| SUBDOMAIN.to_owned())
}

/// What is wrong with an RFC 1123 label, or `None`.
pub(crate) fn label_fault(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_label_text(name)).then(|| LABEL.to_owned())
}

/// What is wrong with a DNS-1035 label (Service names), or `None`.
pub(crate) fn label_1035_fault(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    let good = is_label_text(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    (!good).then(|| LABEL_1035.to_owned())
}

/// Names of roles and bindings may hold anything that fits into a path.
pub(crate) fn path_segment_fault(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ if name.contains('/') => Some("may not contain '/'".to_owned()),
        _ if name.contains('%') => Some("may not contain '%'".to_owned()),
        _ => None,
    }
}

/// What is wrong with a label's value, or `None`.
pub(crate) fn label_value_fault(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: char| c.is_ascii_alphanumeric();
    let good = value.is_empty()
        || (value.chars().all(inner) && value.starts_with(edge) && value.ends_with(edge));
    (!good).then(|| LABEL_VALUE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_rule() {
        assert_eq!(subdomain_fault("a.b-c"), None);
        assert!(subdomain_fault("A").is_some());
        assert!(subdomain_fault("").is_some());
        assert!(label_fault("a.b").is_some());
        assert!(label_1035_fault("1a").is_some());
        assert_eq!(path_segment_fault("system:admin"), None);
        assert_eq!(label_value_fault("A_b.c"), None);
        assert!(label_value_fault("-a").is_some());
    }
}
