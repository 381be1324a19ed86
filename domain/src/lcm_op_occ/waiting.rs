//! Waits of a running operation: only changes are told, so that flapping adds no events.

use super::VnfLcmOpOcc;
use super::event::{VnfLcmOpOccEvent as Event, Wait};
use crate::problem::shorten;
use crate::time::Timestamp;
use crate::waits::{Classified, Obstacle, WaitClass};

/// After so many told waits in one try further changes are not told any more; the clocks go on.
const TOLD_LIMIT: u32 = 100;

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
        let mut events: Vec<Event> = self
            .waits
            .iter()
            .filter(|wait| !obstacles.iter().any(|(o, _)| o.object == wait.object))
            .map(|wait| Event::WaitEnded {
                at,
                object: wait.object.clone(),
            })
            .collect();
        let mut room = TOLD_LIMIT.saturating_sub(self.waits_told);
        for (obstacle, classified) in obstacles {
            if let Some(event) = self.told(at, obstacle, classified).filter(|_| room > 0) {
                room -= 1;
                events.push(event);
            }
        }
        if room == 0 {
            // Ends without a beginning would only tell half of the flapping.
            events.retain(|event| !matches!(event, Event::WaitEnded { .. }));
        }
        events
    }

    fn told(&self, at: Timestamp, obstacle: Obstacle, classified: Classified) -> Option<Event> {
        let since = self
            .waiting_since(&obstacle.object, classified.class)
            .unwrap_or(at);
        let wait = Wait {
            object: obstacle.object,
            class: classified.class,
            reason: obstacle.reason,
            message: shorten(obstacle.message),
            since,
            until: since.plus_millis(classified.clock_ms),
        };
        let Some(known) = self.waits.iter().find(|known| known.object == wait.object) else {
            return Some(Event::WaitStarted { at, wait });
        };
        let same = known.reason == wait.reason && known.class == wait.class;
        (!same).then_some(Event::WaitChanged { at, wait })
    }

    /// Since when an object has been waited on for causes of a class, in this try.
    #[must_use]
    pub fn waiting_since(&self, object: &str, class: WaitClass) -> Option<Timestamp> {
        self.wait_clocks.get(&clock_key(object, class)).copied()
    }

    /// The event that begins the clock of a progressing wait anew, when enough of the old one has run.
    #[must_use]
    pub fn progressed(&self, at: Timestamp, object: &str, clock_ms: u64) -> Option<Event> {
        let wait = self.waits.iter().find(|wait| wait.object == object)?;
        if wait.class != WaitClass::Progressing || self.waits_told >= TOLD_LIMIT {
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

    pub(super) fn wait_told(&mut self, wait: &Wait) {
        self.waits_told += 1;
        self.wait_clocks
            .insert(clock_key(&wait.object, wait.class), wait.since);
        match self
            .waits
            .iter_mut()
            .find(|known| known.object == wait.object)
        {
            Some(known) => *known = wait.clone(),
            None => self.waits.push(wait.clone()),
        }
    }
}
