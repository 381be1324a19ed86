//! Fills databases: copies of a story under fresh ids, written as the program itself would write them.

use anyhow::Context;
use cairn::edge::RandomIds;
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOccEvent};
use cairn_domain::ports::{Append, EventLog, Ids as _, StateAfter, Unit, WorkChange};
use cairn_domain::testing::OpStory;
use cairn_domain::vnf_instance::{self, VnfInstanceEvent};

/// Copies in one unit of work.
const AT_ONCE: usize = 100;

/// A story as text, so that ids can be replaced wherever they stand.
pub struct Model {
    op: Option<(String, String)>,
    instance: (String, String),
}

impl Model {
    /// Of an operation and its instance.
    pub fn of(story: &OpStory) -> anyhow::Result<Self> {
        let op = story.op();
        Ok(Self {
            op: Some((
                op.id.as_str().to_owned(),
                serde_json::to_string(&story.history())?,
            )),
            instance: instance(story)?,
        })
    }

    /// Of an instance without an operation.
    pub fn idle(story: &cairn_domain::testing::InstanceStory) -> anyhow::Result<Self> {
        let id = story.world.instance().id.as_str().to_owned();
        let events = serde_json::to_string(&story.history())?;
        Ok(Self {
            op: None,
            instance: (id, events),
        })
    }

    /// Writes a number of copies; ids of the operations.
    pub async fn copy(&self, log: &dyn EventLog, count: usize) -> anyhow::Result<Vec<String>> {
        let mut ops = Vec::new();
        let mut left = count;
        while left > 0 {
            let some = left.min(AT_ONCE);
            let mut unit = Unit::default();
            for _ in 0..some {
                ops.extend(self.add(&mut unit)?);
            }
            log.append(unit).await?;
            left -= some;
        }
        Ok(ops)
    }

    fn add(&self, unit: &mut Unit) -> anyhow::Result<Option<String>> {
        let fresh = || RandomIds.fresh();
        let (instance_id, op_id) = (fresh(), fresh());
        let rename = |text: &str| {
            let text = text.replace(&quoted(&self.instance.0), &quoted(&instance_id));
            match &self.op {
                Some((op, _)) => text.replace(&quoted(op), &quoted(&op_id)),
                None => text,
            }
        };
        let instance = VnfInstanceId::parse(instance_id.clone())?;
        let events: Vec<VnfInstanceEvent> = serde_json::from_str(&rename(&self.instance.1))?;
        let state = events.iter().fold(None, vnf_instance::evolve);
        unit.appends.push(Append {
            stream: StreamId::VnfInstance(instance.clone()),
            expected_version: 0,
            vnf_instance_id: Some(instance.clone()),
            events: events.into_iter().map(EventBody::VnfInstance).collect(),
            state: StateAfter::VnfInstance(Box::new(state.context("no instance")?)),
        });
        let Some((_, history)) = &self.op else {
            return Ok(None);
        };
        let op = VnfLcmOpOccId::parse(op_id.clone())?;
        let events: Vec<VnfLcmOpOccEvent> = serde_json::from_str(&rename(history))?;
        let state = events.iter().fold(None, lcm_op_occ::evolve);
        let state = state.context("no operation")?;
        if state.state.is_transitional() {
            unit.work.push(WorkChange::Needed(op.clone()));
        }
        unit.appends.push(Append {
            stream: StreamId::VnfLcmOpOcc(op),
            expected_version: 0,
            vnf_instance_id: Some(instance),
            events: events.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
            state: StateAfter::VnfLcmOpOcc(Box::new(state)),
        });
        Ok(Some(op_id))
    }
}

fn quoted(id: &str) -> String {
    format!("\"{id}\"")
}

fn instance(story: &OpStory) -> anyhow::Result<(String, String)> {
    let id = story.world.instance().id.as_str().to_owned();
    let events = serde_json::to_string(story.world.instance_history())?;
    Ok((id, events))
}
