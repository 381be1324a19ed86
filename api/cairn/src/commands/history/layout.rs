//! Lines in columns.

use super::account::Account;
use super::event::Event;
use super::snapshot;
use super::timeline::{Line, lines};

/// The whole table: the timeline, and the instance as it was where a time was asked for.
#[must_use]
pub fn table(account: &Account) -> String {
    let events: Vec<Event> = account.events.iter().map(Event::read).collect();
    let told = lines(&events);
    let mut parts = vec![format!("VNF instance {}\n", account.id)];
    let width = told
        .iter()
        .map(|line| line.subject.chars().count())
        .max()
        .unwrap_or(0);
    let mut day = String::new();
    for line in &told {
        let written = line.at.to_string();
        let (date, time) = written.split_once('T').unwrap_or(("", written.as_str()));
        if date != day {
            date.clone_into(&mut day);
            parts.push(format!("{date}, times in UTC\n"));
        }
        parts.push(row(line, time.trim_end_matches('Z'), width));
    }
    if let Some((at, instance)) = &account.then {
        let position = &instance["position"];
        let deleted = account
            .events
            .iter()
            .any(|event| event["type"] == "VnfIdentifierDeleted");
        let deleted = if deleted { ", deleted by then" } else { "" };
        parts.push(format!(
            "\nThe instance at {at} (position {position}{deleted})\n"
        ));
        parts.push(snapshot::tell(instance));
    }
    parts.concat()
}

fn row(line: &Line, time: &str, width: usize) -> String {
    let attempt = line.attempt.map(|n| format!("try {n}")).unwrap_or_default();
    let state = line
        .state
        .map(|state| format!("→ {state}"))
        .unwrap_or_default();
    let head = format!("{time}  {:<width$}  {attempt:<5}", line.subject);
    let parts = [head.as_str(), line.text.as_str(), state.as_str()];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    said.join("  ") + "\n"
}
