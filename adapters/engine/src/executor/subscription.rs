//! Subscribing and unsubscribing.

use super::{Executor, invalid};
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::SubscriptionId;
use cairn_domain::ports::{
    Accepted, Append, Caller, CommandError, Page, PortError, Request, StateAfter, Unit,
};
use cairn_domain::secret::SecretRef;
use cairn_domain::subscription::request::{ParsedSubscription, is_same, parse_subscription};
use cairn_domain::subscription::{
    self, CallbackAuth, LccnSubscription, LccnSubscriptionCommand, Rejection,
};
use serde_json::{Map, Value};

impl Executor {
    pub(super) async fn subscribe(
        &self,
        caller: &Caller,
        request: &Request,
        body: &Map<String, Value>,
    ) -> Result<Accepted, CommandError> {
        let parsed = parse_subscription(body).map_err(CommandError::Invalid)?;
        if let Some(known) = self.same_subscription(caller, &parsed).await? {
            return Ok(Accepted::SameSubscription(known));
        }
        let (auth, secrets) = self.sealed_auth(&parsed);
        let password = secrets.first().map(|(_, secret)| secret);
        self.ports
            .callbacks
            .test(&parsed.callback_uri, &auth, password)
            .await
            .map_err(invalid)?;
        let id = SubscriptionId::parse(self.ports.ids.fresh())
            .map_err(|e| CommandError::Port(PortError::Corrupt(e.to_string())))?;
        let create = LccnSubscriptionCommand::Create {
            at: self.ports.clock.now(),
            id: id.clone(),
            by: caller.by.clone(),
            tenant: caller.tenant.clone(),
            callback_uri: parsed.callback_uri,
            filter: parsed.filter,
            verbosity: parsed.verbosity,
            auth,
        };
        let accepted = Accepted::Subscription(id.clone());
        let unit = Unit {
            secrets,
            ..self.keyed(caller, request, &accepted)
        };
        self.write(decided(&id, None, 0, create, unit)?, accepted)
            .await
    }

    fn sealed_auth(
        &self,
        parsed: &ParsedSubscription,
    ) -> (CallbackAuth, Vec<cairn_domain::secret::SealedSecret>) {
        match &parsed.auth {
            None => (CallbackAuth::None, Vec::new()),
            Some((user_name, password)) => {
                let reference = SecretRef(self.ports.ids.fresh());
                let auth = CallbackAuth::Basic {
                    user_name: user_name.clone(),
                    password: reference.clone(),
                };
                (auth, vec![(reference, password.clone())])
            }
        }
    }

    /// Same callback, filter and verbosity: no second one is made (SOL003 5.4.18.3.1).
    async fn same_subscription(
        &self,
        caller: &Caller,
        parsed: &ParsedSubscription,
    ) -> Result<Option<SubscriptionId>, CommandError> {
        let known = self.ports.reads.subscriptions(&caller.tenant, Page::ALL);
        let same = known
            .await?
            .into_iter()
            .map(|listed| listed.row.state)
            .find(|known| is_same(parsed, known));
        Ok(same.map(|known| known.id.clone()))
    }

    pub(super) async fn unsubscribe(
        &self,
        caller: &Caller,
        request: &Request,
        id: &SubscriptionId,
    ) -> Result<Accepted, CommandError> {
        let (known, version) = self
            .ports
            .log
            .subscription(id)
            .await?
            .filter(|(known, _)| known.tenant == caller.tenant)
            .ok_or_else(|| CommandError::NotFound(Rejection::NotFound.to_string()))?;
        let delete = LccnSubscriptionCommand::Delete {
            at: self.ports.clock.now(),
            by: caller.by.clone(),
            tenant: caller.tenant.clone(),
        };
        let unit = self.keyed(caller, request, &Accepted::Done);
        self.write(
            decided(id, Some(known), version, delete, unit)?,
            Accepted::Done,
        )
        .await
    }
}

fn decided(
    id: &SubscriptionId,
    known: Option<LccnSubscription>,
    version: u64,
    command: LccnSubscriptionCommand,
    mut unit: Unit,
) -> Result<Unit, CommandError> {
    let events =
        subscription::decide(known.as_ref(), command).map_err(|rejection| match rejection {
            Rejection::NotFound => CommandError::NotFound(rejection.to_string()),
            Rejection::Exists => CommandError::Port(PortError::Conflict(rejection.to_string())),
        })?;
    if let Some(after) = events.iter().fold(known, subscription::evolve) {
        unit.appends.push(Append {
            stream: StreamId::LccnSubscription(id.clone()),
            expected_version: version,
            vnf_instance_id: None,
            events: events
                .into_iter()
                .map(EventBody::LccnSubscription)
                .collect(),
            state: StateAfter::LccnSubscription(Box::new(after)),
        });
    }
    Ok(unit)
}
