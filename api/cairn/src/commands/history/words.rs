//! Words for steps, waits, levels and durations.

use cairn_domain::ids::VimId;
use cairn_domain::lcm_op_occ::event::{AffectedVnfc, ChangeType, Wait};
use cairn_domain::lcm_op_occ::plan::{Outcome, Step, Undo, Vnfc};
use cairn_domain::operation::{Levels, Params};
use cairn_domain::vnf_instance::VnfProduct;
use serde_json::{Map, Value};

/// Most names that are listed; the rest is counted.
const LISTED: usize = 12;

/// Names with commas; beyond a dozen the rest is counted.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    let rest = names.len() - shown.len();
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    shown.join(", ") + &more
}

/// `3 VNFCs`, `1 VNFC`.
pub fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// `10 min`, `30 s`, `0.300 s`.
pub fn duration(ms: u64) -> String {
    match (ms / 1000, ms % 1000) {
        (seconds, 0) if seconds > 0 && seconds.is_multiple_of(60) => {
            format!("{} min", seconds / 60)
        }
        (seconds, 0) => format!("{seconds} s"),
        (seconds, rest) => format!("{seconds}.{rest:03} s"),
    }
}

/// The levels of all aspects.
pub fn levels(levels: &Levels) -> String {
    let aspects: Vec<String> = levels
        .scale_status
        .iter()
        .map(|(aspect, level)| format!("{aspect} at level {level}"))
        .collect();
    list(&aspects)
}

/// Pods by name.
pub fn vnfcs(vnfcs: &[Vnfc]) -> String {
    let names: Vec<&str> = vnfcs.iter().map(|vnfc| vnfc.id.as_str()).collect();
    if names.is_empty() {
        "no VNFC".to_owned()
    } else {
        format!("{}: {}", count(names.len(), "VNFC"), list(&names))
    }
}

/// Pods that came and went.
pub fn changes(changes: &[AffectedVnfc]) -> String {
    let of = |wanted: ChangeType, word: &str| {
        let names: Vec<&str> = changes
            .iter()
            .filter(|c| c.change_type == wanted)
            .map(|c| c.vnfc.id.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{word} {}", list(&names)))
    };
    let all = [
        of(ChangeType::Added, "added"),
        of(ChangeType::Removed, "removed"),
        of(ChangeType::Modified, "changed"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The package that a VNF was changed to.
pub fn package(product: &VnfProduct, now: &[Vnfc]) -> String {
    format!(
        "is {} {} now, vnfdId {}, {}",
        product.vnf_product_name,
        product.vnf_software_version,
        product.vnfd_id,
        vnfcs(now)
    )
}

/// What was asked for.
pub fn asked(params: &Params, request: &Map<String, Value>) -> String {
    match params {
        Params::Instantiate {
            flavour_id,
            levels: to,
            info: _,
        } => {
            let at = levels(to);
            if at.is_empty() {
                format!("flavour {flavour_id}")
            } else {
                format!("flavour {flavour_id}, {at}")
            }
        }
        Params::Scale {
            levels: to,
            aspect_id,
            out,
        } => {
            let level = to.scale_status.get(aspect_id).copied().unwrap_or_default();
            format!(
                "{aspect_id} {} to level {level}",
                if *out { "out" } else { "in" }
            )
        }
        Params::ScaleToLevel { levels: to } => levels(to),
        Params::Heal { vnfcs, cause } => {
            let what = if vnfcs.is_empty() {
                "the whole instance".to_owned()
            } else {
                list(vnfcs)
            };
            cause
                .as_ref()
                .map_or(what.clone(), |cause| format!("{what}, because: {cause}"))
        }
        Params::ChangeVnfpkg {
            product,
            levels: _,
            info: _,
            vdus,
        } => {
            let to = format!(
                "to {}, version {}",
                product.vnfd_id, product.vnf_software_version
            );
            match vdus {
                Some(vdus) => format!("{to}, of the VDUs {}", list(vdus)),
                None => to,
            }
        }
        Params::ModifyInfo { changes } => {
            let patch = if changes.is_empty() { request } else { changes };
            let names: Vec<&String> = patch.keys().collect();
            format!("change {}", list(&names))
        }
        Params::Terminate {
            forceful: true,
            graceful_timeout_s: _,
        } => "forcefully".to_owned(),
        Params::Terminate {
            forceful: false,
            graceful_timeout_s: None,
        } => "gracefully".to_owned(),
        Params::Terminate {
            forceful: false,
            graceful_timeout_s: Some(s),
        } => {
            format!("gracefully, within {s} s")
        }
    }
}

/// Steps in their order, those of one kind in a row together.
pub fn steps<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for step in steps {
        let kind = step.action.kind();
        let subject = match &step.because {
            Some(why) => format!("{} ({why})", step.action.subject()),
            None => step.action.subject(),
        };
        match kinds.last_mut() {
            Some((last, subjects)) if *last == kind => subjects.push(subject),
            Some(_) | None => kinds.push((kind, vec![subject])),
        }
    }
    let told = kinds
        .into_iter()
        .map(|(kind, subjects)| format!("{kind} {}", list(&subjects)));
    told.collect::<Vec<_>>().join("; ")
}

/// How the steps of a plan would be undone.
pub fn undo(steps: &[Step]) -> String {
    let mut ways: Vec<(&str, usize)> = Vec::new();
    for step in steps {
        let way = match &step.undo {
            Undo::Delete => "delete",
            Undo::Restore { .. } => "restore",
            Undo::Recreate { .. } => "make again",
            Undo::Replicas { .. } => "set replicas back",
            Undo::Impossible { .. } => "cannot be undone",
            Undo::Unregister => "take off the register",
            Undo::Nothing => continue,
        };
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, times)) => *times += 1,
            None => ways.push((way, 1)),
        }
    }
    let told: Vec<String> = ways
        .iter()
        .map(|(way, times)| format!("{times} × {way}"))
        .collect();
    if told.is_empty() {
        "nothing to undo".to_owned()
    } else {
        format!("undo: {}", told.join(", "))
    }
}

/// What came of a step: a verb, and what it did it to.
pub fn outcome(outcome: &Outcome, subject: &str) -> (&'static str, String) {
    let plain = |verb| (verb, subject.to_owned());
    match outcome {
        Outcome::Applied {
            uid: _,
            created,
            overridden,
        } => {
            let taken = if overridden.is_empty() {
                subject.to_owned()
            } else {
                format!("{subject} (taking over {})", list(overridden))
            };
            (if *created { "made" } else { "applied" }, taken)
        }
        Outcome::Created => plain("made"),
        Outcome::Deleted { was_absent: false } => plain("deleted"),
        Outcome::Deleted { was_absent: true } | Outcome::Evicted { was_absent: true } => {
            plain("found gone")
        }
        Outcome::ReplicasSet { from, to } if from == to => {
            ("found replicas of", format!("{subject} at {to}"))
        }
        Outcome::ReplicasSet { from, to } => {
            ("set replicas of", format!("{subject} from {from} to {to}"))
        }
        Outcome::Evicted { was_absent: false } => plain("evicted"),
        Outcome::Kept { why } => ("kept", format!("{subject}: {why}")),
        Outcome::Ready => plain("ready:"),
        Outcome::Gone { residue } if residue.is_empty() => plain("gone:"),
        Outcome::Gone { residue } => ("gone:", format!("{subject}, but {} stays", list(residue))),
        Outcome::Inventory { vnfcs: found } => ("counted", vnfcs(found)),
        Outcome::Verified => plain("verified"),
        Outcome::HookSucceeded { uid: _, result: _ } => plain("hook succeeded:"),
        Outcome::VimsRegistered { registered, used } => {
            let of = |vims: &[VimId], word: &str| {
                let names: Vec<&str> = vims.iter().map(VimId::as_str).collect();
                (!names.is_empty()).then(|| format!("{word} {}", list(&names)))
            };
            let parts = [of(registered, "registered"), of(used, "used")];
            let told: Vec<String> = parts.into_iter().flatten().collect();
            ("done:", format!("{subject}: {}", told.join(", ")))
        }
        Outcome::VimsUnregistered { residue } if residue.is_empty() => {
            plain("taken off the register:")
        }
        Outcome::VimsUnregistered { residue } => ("kept on the register:", list(residue)),
    }
}

/// What is waited for.
pub fn wait(wait: &Wait) -> String {
    format!("{} {}: {}", wait.object, wait.reason, wait.message)
}

/// Control characters in foreign text must reach no terminal, and a line is a line.
pub fn one_line(text: &str) -> String {
    let blanks = text
        .split(|c: char| c.is_control())
        .filter(|part| !part.is_empty());
    blanks.collect::<Vec<_>>().join(" ")
}

/// The text without the wait's own "(waited …)": the line says it at its beginning.
pub fn without_waited(detail: &str) -> &str {
    match detail.rsplit_once(" (waited ") {
        Some((before, after)) if after.ends_with(')') => before,
        Some(_) | None => detail,
    }
}
