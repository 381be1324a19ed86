//! Given, when, then.

use crate::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use crate::root::{Pure, replay};
use crate::subscription::{LccnSubscription, LccnSubscriptionEvent};
use crate::vnf_instance::{VnfInstance, VnfInstanceEvent};

/// An event that knows whose it is.
pub trait Recorded: Sized {
    /// The aggregate that it belongs to.
    type State: Pure<Event = Self>;
}

impl Recorded for VnfInstanceEvent {
    type State = VnfInstance;
}

impl Recorded for VnfLcmOpOccEvent {
    type State = VnfLcmOpOcc;
}

impl Recorded for LccnSubscriptionEvent {
    type State = LccnSubscription;
}

/// A history.
#[derive(Debug)]
pub struct Given<S: Pure>(Option<S>);

/// What was decided on it.
#[derive(Debug)]
pub struct When<S: Pure> {
    before: Option<S>,
    decided: Result<Vec<S::Event>, S::Rejection>,
}

/// Begins a test with what happened before; an empty history is legal.
#[must_use]
pub fn given<E: Recorded>(history: impl IntoIterator<Item = E>) -> Given<E::State> {
    let history: Vec<E> = history.into_iter().collect();
    Given(replay(&history))
}

impl<S: Pure> Given<S> {
    /// The command that is tested.
    #[must_use]
    pub fn when(self, command: S::Command) -> When<S> {
        let decided = S::decide(self.0.as_ref(), command);
        When {
            before: self.0,
            decided,
        }
    }

    /// The state that the history leads to.
    #[must_use]
    pub fn state(self) -> Option<S> {
        self.0
    }
}

impl<S: Pure> When<S>
where
    S::Event: PartialEq,
{
    /// Exactly these events are decided.
    ///
    /// # Panics
    ///
    /// When others are, or the command is refused.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = S::Event>) {
        let expected: Vec<S::Event> = events.into_iter().collect();
        match self.decided {
            Ok(decided) => assert_eq!(decided, expected),
            Err(refused) => panic!("refused: {refused}"),
        }
    }

    /// The command is refused in these words.
    ///
    /// # Panics
    ///
    /// When it is refused in others, or accepted.
    #[track_caller]
    pub fn then_rejected(self, text: &str) {
        match self.decided {
            Ok(decided) => panic!("accepted: {decided:?}"),
            Err(refused) => assert_eq!(refused.to_string(), text),
        }
    }

    /// The state after what was decided.
    ///
    /// # Panics
    ///
    /// When the command is refused, or nothing has begun yet.
    #[track_caller]
    pub fn then_state(self) -> S {
        match self.decided {
            Ok(decided) => decided
                .iter()
                .fold(self.before, S::evolve)
                .expect("a history that has begun leads to a state"),
            Err(refused) => panic!("refused: {refused}"),
        }
    }
}
