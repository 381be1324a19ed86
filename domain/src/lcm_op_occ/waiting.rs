//! Waits of a running operation: only changes are told, so that flapping adds no events.
//!
//! Each (object, class) has one clock in a try. It stands still while the object is not in the way, or is so
//! for causes of another class, and goes on from where it stood: flapping between reasons restarts nothing,
//! and an object that was ready for an hour does not fail at its first hiccup.

use super::VnfLcmOpOcc;
use super::event::{VnfLcmOpOccEvent as Event, Wait};
use crate::problem::shorten;
use crate::time::Timestamp;
use crate::waits::{Classified, Obstacle, WaitClass};
use std::collections::BTreeMap;

/// Waits that each object may tell in one try, whatever the others did.
const TOLD_PER_OBJECT: u32 = 8;

/// Waits beyond those that may be told in one try, by all objects together. After that a flapping object's
/// wait stands as it was told last; its clock runs on.
const TOLD_BEYOND: u32 = 50;

/// Of a class whose clock begins anew with progress, the new clock is told once half of it has run.
const RENEW_PART: u64 = 2;

fn clock_key(object: &str, class: WaitClass) -> String {
    format!("{class} {object}")
}

impl VnfLcmOpOcc {
    /// What is new about the waits.
    pub(super) fn obstruct(
        &self,
        at: Timestamp,
        obstacles: Vec<(Obstacle, Classified)>,
    ) -> Vec<Event> {
        let mut told = self.waits_told.clone();
        let mut events: Vec<Event> = self
            .waits
            .iter()
            .filter(|wait| !obstacles.iter().any(|(o, _)| o.object == wait.object))
            .filter(|wait| may_tell(&told, &wait.object))
            .map(|wait| Event::WaitEnded {
                at,
                object: wait.object.clone(),
            })
            .collect();
        for (obstacle, classified) in merged(obstacles) {
            let known = self
                .waits
                .iter()
                .find(|known| known.object == obstacle.object);
            // What is not known to wait is always told, and so is the first wait of a class: without that
            // nobody would know when it is over.
            let must_tell = known.is_none()
                || self
                    .waiting_since(&obstacle.object, classified.class)
                    .is_none();
            if !must_tell && !may_tell(&told, &obstacle.object) {
                continue;
            }
            if let Some(event) = self.told(at, known, obstacle, classified) {
                if let Event::WaitStarted { wait, .. } | Event::WaitChanged { wait, .. } = &event {
                    *told.entry(wait.object.clone()).or_default() += 1;
                }
                events.push(event);
            }
        }
        events
    }

    fn told(
        &self,
        at: Timestamp,
        known: Option<&Wait>,
        obstacle: Obstacle,
        classified: Classified,
    ) -> Option<Event> {
        let since = self.since_if_told(at, &obstacle.object, classified.class);
        let wait = Wait {
            object: obstacle.object,
            class: classified.class,
            reason: obstacle.reason,
            message: shorten(obstacle.message),
            since,
            until: since.plus_millis(classified.clock_ms),
        };
        let Some(known) = known else {
            return Some(Event::WaitStarted { at, wait });
        };
        let same = known.reason == wait.reason && known.class == wait.class;
        (!same).then_some(Event::WaitChanged { at, wait })
    }

    /// Where a clock's beginning lies if it goes on now: a pause is not counted.
    fn since_if_told(&self, at: Timestamp, object: &str, class: WaitClass) -> Timestamp {
        let Some(since) = self.waiting_since(object, class) else {
            return at;
        };
        let goes_on = match self.wait_pauses.get(&clock_key(object, class)) {
            Some(paused) => since.plus_millis(at.millis_since(*paused)),
            None => since,
        };
        // It may have begun before the clock was set back.
        goes_on.min(at)
    }

    /// Since when an object has been waited on for causes of a class in this try, less its pauses.
    #[must_use]
    pub fn waiting_since(&self, object: &str, class: WaitClass) -> Option<Timestamp> {
        self.wait_clocks.get(&clock_key(object, class)).copied()
    }

    /// The event that begins the clock of a progressing wait anew, when enough of the old one has run.
    #[must_use]
    pub fn progressed(&self, at: Timestamp, object: &str, clock_ms: u64) -> Option<Event> {
        let wait = self.waits.iter().find(|wait| wait.object == object)?;
        if wait.class != WaitClass::Progressing {
            return None;
        }
        (at.millis_since(wait.since) >= clock_ms / RENEW_PART).then(|| Event::WaitChanged {
            at,
            wait: Wait {
                since: at,
                until: at.plus_millis(clock_ms),
                ..wait.clone()
            },
        })
    }

    pub(super) fn wait_told(&mut self, at: Timestamp, wait: &Wait) {
        let known = self.waits.iter().find(|known| known.object == wait.object);
        // A clock that progress began anew is no flapping.
        if known.is_none_or(|k| (&k.reason, k.class) != (&wait.reason, wait.class)) {
            *self.waits_told.entry(wait.object.clone()).or_default() += 1;
        }
        self.pause_clock(at, &wait.object);
        let key = clock_key(&wait.object, wait.class);
        self.wait_pauses.remove(&key);
        self.wait_clocks.insert(key, wait.since);
        match self
            .waits
            .iter_mut()
            .find(|known| known.object == wait.object)
        {
            Some(known) => *known = wait.clone(),
            None => self.waits.push(wait.clone()),
        }
    }

    pub(super) fn wait_ended(&mut self, at: Timestamp, object: &str) {
        self.pause_clock(at, object);
        self.waits.retain(|wait| wait.object != object);
    }

    fn pause_clock(&mut self, at: Timestamp, object: &str) {
        let running = self.waits.iter().find(|wait| wait.object == object);
        if let Some(wait) = running {
            self.wait_pauses.insert(clock_key(object, wait.class), at);
        }
    }
}

/// One obstacle for each object: a permanent cause before all others, else the one with the shortest clock.
fn merged(obstacles: Vec<(Obstacle, Classified)>) -> Vec<(Obstacle, Classified)> {
    let mut all: Vec<(Obstacle, Classified)> = Vec::new();
    for (obstacle, classified) in obstacles {
        match all
            .iter_mut()
            .find(|(known, _)| known.object == obstacle.object)
        {
            Some(known) if classified.clock_ms < known.1.clock_ms => {
                *known = (obstacle, classified);
            }
            Some(_) => {}
            None => all.push((obstacle, classified)),
        }
    }
    all
}

fn may_tell(told: &BTreeMap<String, u32>, object: &str) -> bool {
    let by_object = told.get(object).copied().unwrap_or(0);
    let beyond: u32 = told
        .values()
        .map(|n| n.saturating_sub(TOLD_PER_OBJECT))
        .sum();
    by_object < TOLD_PER_OBJECT || beyond < TOLD_BEYOND
}
