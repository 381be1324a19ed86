//! The read models by name, and the tables that they need.

use crate::error::port;
use crate::{fold, subscriptions, timeline, vnf_instances, vnf_lcm_op_occs};
use cairn_db::{Dialect, Tx, args};
use cairn_domain::history::Envelope;
use cairn_domain::ports::PortResult;

/// A read model. Its name is that of its table and of its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    VnfInstances,
    VnfLcmOpOccs,
    Subscriptions,
    Timeline,
}

/// All read models, in the order in which their checkpoints are locked.
pub(crate) fn all() -> Vec<Model> {
    vec![
        Model::Subscriptions,
        Model::Timeline,
        Model::VnfInstances,
        Model::VnfLcmOpOccs,
    ]
}

impl Model {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::VnfInstances => vnf_instances::NAME,
            Self::VnfLcmOpOccs => vnf_lcm_op_occs::NAME,
            Self::Subscriptions => subscriptions::NAME,
            Self::Timeline => timeline::NAME,
        }
    }

    /// Number of the table's form and of what its rows hold. Raised with each change of either, also of the
    /// domain's state that the rows hold; tables of another shape are made anew.
    pub(crate) fn shape(self) -> i64 {
        match self {
            Self::VnfInstances => vnf_instances::SHAPE,
            Self::VnfLcmOpOccs => vnf_lcm_op_occs::SHAPE,
            Self::Subscriptions => subscriptions::SHAPE,
            Self::Timeline => timeline::SHAPE,
        }
    }

    fn columns(self, integer: &str) -> String {
        match self {
            Self::VnfInstances | Self::VnfLcmOpOccs | Self::Subscriptions => fold::columns(integer),
            Self::Timeline => timeline::columns(integer),
        }
    }

    fn indexes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::VnfInstances => &fold::INDEXES,
            Self::VnfLcmOpOccs | Self::Subscriptions => &fold::INDEXES[..1],
            Self::Timeline => &[],
        }
    }

    /// Applies events, in order, to the table of this name.
    pub(crate) async fn apply(
        self,
        tx: &mut Tx,
        table: &str,
        events: &[&Envelope],
    ) -> PortResult<()> {
        match self {
            Self::VnfInstances => vnf_instances::apply(tx, table, events).await,
            Self::VnfLcmOpOccs => vnf_lcm_op_occs::apply(tx, table, events).await,
            Self::Subscriptions => subscriptions::apply(tx, table, events).await,
            Self::Timeline => timeline::apply(tx, table, events).await,
        }
    }
}

/// A read model in the table of a name: its own, or the new one of a rebuild.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) model: Model,
    pub(crate) table: String,
}

/// The read models in their own tables.
pub(crate) fn live() -> Vec<Target> {
    all()
        .into_iter()
        .map(|model| Target {
            model,
            table: model.name().to_owned(),
        })
        .collect()
}

/// Makes an empty table with a checkpoint before the first event. One that is to replace the present table gets its
/// indexes when it does: their names are not renamed with their table.
pub(crate) async fn make(tx: &mut Tx, model: Model, table: &str) -> PortResult<()> {
    let (integer, strict) = match tx.dialect() {
        Dialect::Postgres => ("BIGINT", ""),
        Dialect::Sqlite => ("INTEGER", " STRICT"),
    };
    let columns = model.columns(integer);
    tx.execute_script(&format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns}){strict}"
    ))
    .await
    .map_err(port)?;
    if table == model.name() {
        make_indexes(tx, model).await?;
    }
    tx.execute(
        "INSERT INTO checkpoints (name, position, shape) VALUES ($1, 0, $2) \
         ON CONFLICT (name) DO UPDATE SET position = 0, shape = excluded.shape",
        args![table, model.shape()],
    )
    .await
    .map_err(port)?;
    Ok(())
}

/// Makes the indexes of a model's own table.
pub(crate) async fn make_indexes(tx: &mut Tx, model: Model) -> PortResult<()> {
    let table = model.name();
    for (name, on) in model.indexes() {
        tx.execute_script(&format!("CREATE INDEX {table}_{name} ON {table} {on}"))
            .await
            .map_err(port)?;
    }
    Ok(())
}
