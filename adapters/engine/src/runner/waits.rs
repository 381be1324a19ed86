//! Waiting: each wait has a reason that is recorded and a clock that ends it.

use super::steps::is_look;
use super::work::{Stop, Work};
use crate::unit::Session;
use cairn_domain::lcm_op_occ::event::Wait;
use cairn_domain::lcm_op_occ::plan::Action;
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use cairn_domain::ports::{Scope, Unit};
use cairn_domain::problem::Problem;
use cairn_domain::time::Timestamp;
use cairn_domain::waits::{Classified, Obstacle, Phase, WaitClass, classify};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Pause between two looks at what is waited for, the safety net below the watches. It doubles while these tell nothing of
/// the objects that are looked at.
const LOOK_AGAIN_MS: u64 = 5000;
/// How often it doubles at most.
const DOUBLINGS: u32 = 2;
/// Shortest pause, so that a watch that fires at once does not spin.
const BREATH: Duration = Duration::from_millis(10);

/// How long a call may take before it is told as something that is waited for.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// What a runner remembers of the waits of its operation beyond the journal.
#[derive(Default)]
pub(super) struct Patience {
    /// Most progress seen by object.
    progress: BTreeMap<String, u32>,
    /// Lost answers already told.
    told: BTreeMap<usize, String>,
    /// Unclassified reasons already counted.
    counted: std::collections::BTreeSet<(String, String)>,
    /// Since when (source, reason) has been in the way without a break or any progress, whichever object has it:
    /// pods that are made again and again under new names do not begin their clock anew.
    steady: BTreeMap<(String, String), Timestamp>,
    /// Since when something progressing has been in the way without any progress, by the length of its clock,
    /// whichever object has it and whatever its reason. It stands still while nothing of the kind is in the way.
    stalled: BTreeMap<u64, Timestamp>,
    /// When the last look was.
    looked: Option<Timestamp>,
    /// Fewest obstacles seen.
    fewest: Option<usize>,
    /// Looks in a row, for the pauses between them.
    looks: u32,
    /// Pauses in a row in which the watches told nothing.
    quiet: u32,
}

impl Patience {
    /// Whether a lost answer was not told in these words before.
    pub(super) fn is_news(&mut self, step: usize, why: &str) -> bool {
        if self.told.get(&step).is_some_and(|known| known == why) {
            return false;
        }
        self.told.insert(step, why.to_owned());
        true
    }

    /// Nothing is in the way any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes in what is in the way now. At the first look after a takeover the clocks of the journal go on: a
    /// process that is started again and again must not begin them anew each time.
    fn look(&mut self, obstacles: &[(Obstacle, Classified)], recorded: &[Wait], now: Timestamp) {
        let first = self.fewest.is_none();
        let forward = obstacles.iter().any(|(obstacle, _)| {
            self.progress
                .get(&obstacle.object)
                .is_some_and(|known| obstacle.progress > *known)
        });
        if forward || self.fewest.is_none_or(|fewest| obstacles.len() < fewest) {
            self.fewest = Some(obstacles.len());
            self.steady.clear();
            self.stalled.clear();
        }
        let known = |obstacle: &Obstacle| {
            let same =
                |wait: &&Wait| wait.object == obstacle.object && wait.reason == obstacle.reason;
            let wait = recorded.iter().find(same).filter(|_| first);
            wait.map_or(now, |wait| wait.since.min(now))
        };
        self.keep_steady(obstacles, now, known);
        self.keep_stalled(obstacles, now, known);
        self.looked = Some(now);
    }

    /// A cause that is gone at one look is another when it comes again. A clock set back makes no wait longer.
    fn keep_steady(
        &mut self,
        obstacles: &[(Obstacle, Classified)],
        now: Timestamp,
        known: impl Fn(&Obstacle) -> Timestamp,
    ) {
        self.steady.retain(|key, since| {
            *since = (*since).min(now);
            obstacles
                .iter()
                .any(|(o, _)| o.source == key.0 && o.reason == key.1)
        });
        for (obstacle, _) in obstacles {
            self.steady
                .entry((obstacle.source.clone(), obstacle.reason.clone()))
                .or_insert_with(|| known(obstacle));
        }
    }

    /// Progress alone begins these clocks anew: pods that come and go change the reason at each look.
    fn keep_stalled(
        &mut self,
        obstacles: &[(Obstacle, Classified)],
        now: Timestamp,
        known: impl Fn(&Obstacle) -> Timestamp,
    ) {
        let progressing = || {
            obstacles
                .iter()
                .filter(|(_, class)| class.class == WaitClass::Progressing)
        };
        let absent_ms = self.looked.map_or(0, |looked| now.millis_since(looked));
        for (clock_ms, since) in &mut self.stalled {
            if !progressing().any(|(_, class)| class.clock_ms == *clock_ms) {
                *since = since.plus_millis(absent_ms);
            }
            *since = (*since).min(now);
        }
        for (obstacle, class) in progressing() {
            let since = known(obstacle);
            self.stalled.entry(class.clock_ms).or_insert(since);
        }
    }

    /// Since when this cause has been in the way, whichever object has it; of a progressing one, since when nothing
    /// has come forward.
    fn steady_since(&self, obstacle: &Obstacle, class: Classified, now: Timestamp) -> Timestamp {
        let since = if class.class == WaitClass::Progressing {
            self.stalled.get(&class.clock_ms)
        } else {
            let key = (obstacle.source.clone(), obstacle.reason.clone());
            self.steady.get(&key)
        };
        since.copied().unwrap_or(now)
    }

    /// Whether a progressing wait came forward since it was looked at last.
    fn moved(&mut self, obstacle: &Obstacle) -> bool {
        let known = self
            .progress
            .entry(obstacle.object.clone())
            .or_insert(obstacle.progress);
        let forward = obstacle.progress > *known;
        *known = obstacle.progress.max(*known);
        forward
    }
}

/// A wait that is over.
struct Over {
    step: Option<usize>,
    class: WaitClass,
    problem: Problem,
}

/// A cluster that did not answer.
pub(super) fn unreachable(why: String) -> Obstacle {
    Obstacle {
        object: "cluster".into(),
        source: "call".into(),
        reason: "Unreachable".into(),
        message: why,
        progress: 0,
    }
}

impl Work {
    /// Records what is in the way of no step in particular, and either ends the try or waits a while.
    pub(super) async fn wait_for(
        &mut self,
        op: &VnfLcmOpOcc,
        obstacles: Vec<Obstacle>,
        phase: Phase,
    ) -> Result<(), Stop> {
        let obstacles = obstacles.into_iter().map(|one| (None, one)).collect();
        Box::pin(self.wait_in(op, obstacles, phase, None)).await
    }

    /// Records what is in the way, each of its step, and either ends the try (permanent, or the clock has run out)
    /// or waits a while. The step whose obstacle ends the try is the one that failed: what a refused step left
    /// behind is judged by that.
    pub(super) async fn wait_in(
        &mut self,
        op: &VnfLcmOpOcc,
        obstacles: Vec<(Option<usize>, Obstacle)>,
        phase: Phase,
        watched: Option<(&Scope, &Action)>,
    ) -> Result<(), Stop> {
        let clocks = self.clocks(op);
        let (steps, obstacles): (Vec<Option<usize>>, Vec<Obstacle>) = obstacles.into_iter().unzip();
        let classified: Vec<(Obstacle, Classified)> = obstacles
            .into_iter()
            .zip(&steps)
            .map(|(obstacle, step)| {
                let class = classify(&obstacle, phase, &clocks);
                (obstacle, with_own_clock(op, *step, class))
            })
            .collect();
        for (obstacle, class) in &classified {
            self.count_unclassified(obstacle, class);
        }
        let now = self.now();
        let mut session = self.session().await?;
        let recorded = session.op().map_or(&[][..], |op| &op.waits);
        self.patience.look(&classified, recorded, now);
        if let Err(refused) = session.decide(Command::Obstruct {
            at: now,
            obstacles: classified.clone(),
        }) {
            return self.late(refused);
        }
        let mut earliest: Option<Timestamp> = None;
        let mut over: Option<Over> = None;
        for (step, (obstacle, class)) in steps.into_iter().zip(classified) {
            let until = self.until(&mut session, &obstacle, class, now)?;
            if class.class == WaitClass::Permanent || until <= now {
                let waited = session
                    .op()
                    .and_then(|op| op.waiting_since(&obstacle.object, class.class))
                    .map_or(0, |since| now.millis_since(since));
                // A permanent cause says more than a clock that ran out.
                let stronger = over.as_ref().is_none_or(|known| {
                    class.class == WaitClass::Permanent && known.class != WaitClass::Permanent
                });
                if stronger {
                    over = Some(Over {
                        step,
                        class: class.class,
                        problem: problem_of(&obstacle, class, waited),
                    });
                }
            } else {
                earliest = Some(earliest.map_or(until, |known| known.min(until)));
            }
        }
        if let Some(over) = over {
            return self.give_up(session, now, over).await;
        }
        self.write(session, Unit::default()).await?;
        self.pause(now, earliest.unwrap_or(now), watched).await
    }

    /// Awaits what calls come to, and tells them as what is waited for when they take long. `None`: a cancel (any, or
    /// a forceful one alone) dropped them.
    pub(super) async fn answered<T>(
        &mut self,
        subjects: Vec<String>,
        phase: Phase,
        any_cancel: bool,
        calls: impl Future<Output = T>,
    ) -> Result<Option<T>, Stop> {
        tokio::pin!(calls);
        tokio::select! {
            () = self.lost.cancelled() => return Err(Stop::Lost),
            () = self.cancelled(any_cancel) => return Ok(None),
            came = &mut calls => return Ok(Some(came)),
            () = tokio::time::sleep(SLOW) => {}
        }
        self.answer_outstanding(subjects, phase).await?;
        tokio::select! {
            () = self.lost.cancelled() => Err(Stop::Lost),
            () = self.cancelled(any_cancel) => Ok(None),
            came = calls => Ok(Some(came)),
        }
    }

    /// Tells that a call is under way and its answer is what is waited for, unless something else is told already. The
    /// call has a time-out of its own; what it comes to takes the place of this wait.
    async fn answer_outstanding(
        &mut self,
        subjects: Vec<String>,
        phase: Phase,
    ) -> Result<(), Stop> {
        let mut session = self.session().await?;
        let is_told = session
            .op()
            .is_none_or(|op| !op.waits.is_empty() || op.cancel.is_some());
        if is_told {
            return Ok(());
        }
        let clocks = session.op().map(|op| self.clocks(op)).unwrap_or_default();
        let obstacles = subjects
            .into_iter()
            .map(|object| Obstacle {
                object,
                source: "call".into(),
                reason: "AnswerOutstanding".into(),
                message:
                    "the cluster was called; it has not answered yet, or wants to be called later"
                        .into(),
                progress: 0,
            })
            .map(|obstacle| {
                let class = classify(&obstacle, phase, &clocks);
                (obstacle, class)
            })
            .collect();
        let at = self.now();
        if let Err(refused) = session.decide(Command::Obstruct { at, obstacles }) {
            return self.late(refused);
        }
        self.write(session, Unit::default()).await
    }

    async fn give_up(
        &mut self,
        mut session: Session,
        at: Timestamp,
        over: Over,
    ) -> Result<(), Stop> {
        if let Err(refused) = session.decide(Command::EndTry {
            at,
            step: over.step.map(|step| (step, over.class)),
            problem: over.problem,
        }) {
            return self.late(refused);
        }
        self.patience.forget();
        self.write(session, Unit::default()).await
    }

    /// When a wait ends. Progress begins the clock of a progressing one anew, and is told now and then.
    fn until(
        &mut self,
        session: &mut Session,
        obstacle: &Obstacle,
        class: Classified,
        now: Timestamp,
    ) -> Result<Timestamp, Stop> {
        let since = session
            .op()
            .and_then(|op| op.waiting_since(&obstacle.object, class.class))
            .unwrap_or(now);
        let steady = self.patience.steady_since(obstacle, class, now);
        let recorded = since.min(steady).plus_millis(class.clock_ms);
        if class.class != WaitClass::Progressing {
            return Ok(recorded);
        }
        if self.patience.moved(obstacle)
            && let Some(event) = session
                .op()
                .and_then(|op| op.progressed(now, &obstacle.object, class.clock_ms))
        {
            session
                .record(event)
                .map_err(|e| Stop::Unworkable(e.to_string()))?;
        }
        // Any progress has begun this clock anew.
        Ok(steady.plus_millis(class.clock_ms))
    }

    fn count_unclassified(&mut self, obstacle: &Obstacle, class: &Classified) {
        let key = (obstacle.source.clone(), obstacle.reason.clone());
        if class.class == WaitClass::Unclassified && self.patience.counted.insert(key) {
            self.runner
                .ports
                .metrics
                .unclassified_wait(&obstacle.source, &obstacle.reason);
        }
    }

    /// Waits until something may have changed, the clock runs out, or a cancel is pending.
    async fn pause(
        &mut self,
        now: Timestamp,
        until: Timestamp,
        watched: Option<(&Scope, &Action)>,
    ) -> Result<(), Stop> {
        self.patience.looks = self.patience.looks.saturating_add(1);
        let backoff = 100u64 << self.patience.looks.min(5);
        let left = until.millis_since(now).max(1);
        // What stands in the way of a write is somewhere else, where no watch of ours looks.
        let doublings = match watched {
            Some((_, action)) if is_look(action) => self.patience.quiet.min(DOUBLINGS),
            _ => 0,
        };
        let longest = left.min(LOOK_AGAIN_MS << doublings);
        let began = Instant::now();
        let platform = self.runner.ports.platform.clone();
        let changed = async {
            match watched {
                Some((scope, action)) => {
                    platform.changed(scope, action, longest).await;
                    tokio::time::sleep(BREATH).await;
                }
                None => tokio::time::sleep(Duration::from_millis(left.min(backoff))).await,
            }
        };
        let ended = tokio::select! {
            () = self.lost.cancelled() => Err(Stop::Lost),
            () = self.cancelled(true) => Ok(()),
            () = changed => Ok(()),
        };
        let told_nothing = began.elapsed() >= Duration::from_millis(longest);
        self.patience.quiet = if told_nothing {
            self.patience.quiet.saturating_add(1)
        } else {
            0
        };
        ended
    }
}

/// The clock that a hook declares goes before that of the table; it bounds the other waits of its Job too.
fn with_own_clock(op: &VnfLcmOpOcc, step: Option<usize>, class: Classified) -> Classified {
    let action = step.map(|step| super::steps::action_of(op, step));
    let Some(Action::RunHook {
        clock_ms: Some(clock_ms),
        ..
    }) = action
    else {
        return class;
    };
    let clock_ms = match class.class {
        WaitClass::Progressing => *clock_ms,
        WaitClass::Permanent => class.clock_ms,
        WaitClass::Blocked | WaitClass::Infrastructure | WaitClass::Unclassified => {
            class.clock_ms.min(*clock_ms)
        }
    };
    Classified { clock_ms, ..class }
}

fn problem_of(obstacle: &Obstacle, class: Classified, waited_ms: u64) -> Problem {
    let cause = format!(
        "{} {}: {}",
        obstacle.object, obstacle.reason, obstacle.message
    );
    let detail = if class.class == WaitClass::Permanent {
        cause
    } else {
        format!("{cause} (waited {})", seconds(waited_ms))
    };
    let status = match obstacle.reason.as_str() {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "NotOurs" | "FieldConflict" | "VersionConflict" | "OtherCluster" | "Autoscaled"
        | "Conflict" => 409,
        "Invalid" | "UnknownKind" | "Missing" | "AdmissionRefused" | "HookResult" | "NoAccess"
        | "Refused" => 422,
        "Unreachable" => 504,
        _ => 500,
    };
    Problem::new(status, detail).titled(match class.class {
        WaitClass::Permanent => "It cannot come right by waiting",
        WaitClass::Progressing
        | WaitClass::Blocked
        | WaitClass::Infrastructure
        | WaitClass::Unclassified => "Waited long enough",
    })
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{}.{:03} s", ms / 1000, ms % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn is(object: &str, reason: &str, class: WaitClass, progress: u32) -> (Obstacle, Classified) {
        let obstacle = Obstacle {
            object: object.into(),
            source: "pod".into(),
            reason: reason.into(),
            message: String::new(),
            progress,
        };
        let clock_ms = 600_000;
        (obstacle, Classified { class, clock_ms })
    }

    fn since(patience: &Patience, seen: &(Obstacle, Classified), now: Timestamp) -> Timestamp {
        patience.steady_since(&seen.0, seen.1, now)
    }

    #[test]
    fn reasons_and_objects_that_alternate_leave_the_clock_of_what_progresses_running() {
        let mut patience = Patience::default();
        for second in 0..300i64 {
            let seen = if second % 2 == 0 {
                is("Job/x", "HookRunning", WaitClass::Progressing, 0)
            } else {
                let pod = format!("Pod/{second}");
                is(&pod, "ContainerCreating", WaitClass::Progressing, 0)
            };
            patience.look(std::slice::from_ref(&seen), &[], at(second));
            assert_eq!(since(&patience, &seen, at(second)), at(0));
        }
    }

    #[test]
    fn progress_begins_the_clock_anew() {
        let mut patience = Patience::default();
        let begun = is("Deployment/web", "RollingOut", WaitClass::Progressing, 1);
        patience.look(std::slice::from_ref(&begun), &[], at(0));
        assert!(!patience.moved(&begun.0));
        let further = is("Deployment/web", "RollingOut", WaitClass::Progressing, 2);
        patience.look(std::slice::from_ref(&further), &[], at(60));
        assert_eq!(since(&patience, &further, at(60)), at(60));
    }

    #[test]
    fn the_clock_stands_still_while_something_of_another_class_is_in_the_way() {
        let mut patience = Patience::default();
        let pending = is("Pod/a", "Pending", WaitClass::Progressing, 0);
        let full = is("Pod/a", "Unschedulable", WaitClass::Infrastructure, 0);
        patience.look(std::slice::from_ref(&pending), &[], at(0));
        patience.look(std::slice::from_ref(&pending), &[], at(10));
        patience.look(std::slice::from_ref(&full), &[], at(300));
        patience.look(std::slice::from_ref(&pending), &[], at(305));
        assert_eq!(since(&patience, &pending, at(305)), at(290));
    }

    #[test]
    fn a_clock_set_back_makes_no_wait_longer() {
        let mut patience = Patience::default();
        let pending = is("Pod/a", "Pending", WaitClass::Progressing, 0);
        let full = is("Pod/b", "Unschedulable", WaitClass::Infrastructure, 0);
        let both = [pending.clone(), full.clone()];
        patience.look(&both, &[], at(500));
        patience.look(&both, &[], at(100));
        patience.look(&both, &[], at(200));
        assert_eq!(since(&patience, &pending, at(200)), at(100));
        assert_eq!(since(&patience, &full, at(200)), at(100));
    }
}
