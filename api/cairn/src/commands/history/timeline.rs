//! The events of a history as lines to be read.
//!
//! Several events that say one thing become one line: a claim follows from the operation that makes it, a step's
//! intent is told by its result, results of one append stand together, a wait that ends a try stands with that
//! end. Nothing else is left out; the JSON has every event.

use super::event::{Event, What};
use super::operation::{Known, Told};
use super::words;
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent as Op;
use cairn_domain::operation::OperationState;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstanceEvent as Instance;
use std::collections::BTreeMap;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// The operation by kind and short id, or the instance.
    pub subject: String,
    /// The operation's try.
    pub attempt: Option<u32>,
    /// What happened.
    pub text: String,
    /// The state that was entered.
    pub state: Option<&'static str>,
}

/// Tells a history.
pub fn lines(events: &[Event]) -> Vec<Line> {
    let mut telling = Telling::default();
    for event in events {
        telling.hear(event);
    }
    telling.lines_of_unfinished();
    telling.lines
}

#[derive(Default)]
struct Telling {
    operations: BTreeMap<String, Known>,
    lines: Vec<Line>,
    /// Operation, verb and time of the last line, if it tells a result: others of the same append may join.
    open: Option<(String, String, Timestamp)>,
}

impl Telling {
    fn hear(&mut self, event: &Event) {
        match &event.what {
            What::Operation(id, what) => self.operation(event.at, id, what),
            What::Instance(what) => self.instance(event.at, what),
            What::Other(name) => self.say(event.at, "instance".to_owned(), None, name, None),
        }
    }

    fn say(
        &mut self,
        at: Timestamp,
        subject: String,
        attempt: Option<u32>,
        text: &str,
        state: Option<&'static str>,
    ) {
        self.open = None;
        self.lines.push(Line {
            at,
            subject,
            attempt,
            text: words::one_line(text),
            state,
        });
    }

    fn instance(&mut self, at: Timestamp, event: &Instance) {
        let (text, state) = match event {
            Instance::VnfIdentifierCreated {
                by, product, info, ..
            } => {
                let name = info
                    .vnf_instance_name
                    .as_ref()
                    .map(|name| format!(" \"{name}\""));
                let text = format!(
                    "created{} by {by}: {} {} of {}, vnfdId {}",
                    name.unwrap_or_default(),
                    product.vnf_product_name,
                    product.vnf_software_version,
                    product.vnf_provider,
                    product.vnfd_id
                );
                (text, Some("NOT_INSTANTIATED"))
            }
            Instance::Instantiated { info, .. } => {
                let levels = words::levels(&info.levels);
                let levels = if levels.is_empty() {
                    levels
                } else {
                    format!(", {levels}")
                };
                let vnfcs = words::vnfcs(&info.vnfcs);
                (
                    format!("flavour {}{levels}, {vnfcs}", info.flavour_id),
                    Some("INSTANTIATED"),
                )
            }
            Instance::Scaled { levels, vnfcs, .. } => (
                format!("{}, {}", words::levels(levels), words::vnfcs(vnfcs)),
                None,
            ),
            Instance::Healed { vnfcs, .. } => (format!("healed, {}", words::vnfcs(vnfcs)), None),
            Instance::VnfPackageChanged { product, vnfcs, .. } => {
                (words::package(product, vnfcs), None)
            }
            Instance::Terminated { .. } => (String::new(), Some("NOT_INSTANTIATED")),
            Instance::LeftoversRecorded { objects, .. } if objects.is_empty() => (
                "nothing is left behind in the cluster any more".to_owned(),
                None,
            ),
            Instance::LeftoversRecorded { objects, .. } => {
                let names: Vec<String> = objects.iter().map(|o| o.object.to_string()).collect();
                (
                    format!("left behind in the cluster: {}", words::list(&names)),
                    None,
                )
            }
            Instance::VnfcsObserved { vnfcs, .. } => (
                format!("found in the cluster: {}", words::vnfcs(vnfcs)),
                None,
            ),
            Instance::VnfIdentifierDeleted { by, .. } => (format!("deleted by {by}"), None),
            // Told by the operation's own lines.
            Instance::VnfInfoModified { .. }
            | Instance::OperationClaimed { .. }
            | Instance::OperationHalted { .. }
            | Instance::OperationResumed { .. }
            | Instance::OperationReleased { .. }
            | Instance::ObjectsObserved { .. } => return,
        };
        self.say(at, "instance".to_owned(), None, &text, state);
    }

    fn operation(&mut self, at: Timestamp, id: &str, event: &Op) {
        let known = self.operations.entry(id.to_owned()).or_default();
        let told = known.hear(at, event);
        let (subject, attempt) = (known.subject(id), Some(known.attempt()));
        match told {
            Told::Nothing => {}
            Told::Result { verb, what } => self.result(at, id, (verb, what)),
            Told::Line { text, state } => {
                self.say(
                    at,
                    subject,
                    attempt,
                    &text,
                    state.map(OperationState::as_str),
                );
            }
        }
    }

    /// Results of one append that say the same share a line.
    fn result(&mut self, at: Timestamp, id: &str, (verb, what): (String, String)) {
        let now = (id.to_owned(), verb, at);
        if self.open.as_ref() == Some(&now)
            && let Some(line) = self.lines.last_mut()
        {
            line.text = format!("{}, {}", line.text, words::one_line(&what));
            return;
        }
        let known = self.operations.entry(id.to_owned()).or_default();
        let (subject, attempt) = (known.subject(id), Some(known.attempt()));
        self.say(at, subject, attempt, &format!("{} {what}", now.1), None);
        self.open = Some(now);
    }

    /// What was begun and has no result at the end of the history is told after all.
    fn lines_of_unfinished(&mut self) {
        let mut begun: Vec<Line> = Vec::new();
        for (id, known) in &self.operations {
            for (at, step) in known.unfinished() {
                begun.push(Line {
                    at,
                    subject: known.subject(id),
                    attempt: Some(known.attempt()),
                    text: format!("begun, without a result so far: {step}"),
                    state: None,
                });
            }
        }
        self.lines.extend(begun);
    }
}
