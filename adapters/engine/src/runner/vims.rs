//! Registering the VIMs that the results of hooks name, and taking them off the register again.
//!
//! A VIM carries the operation that registered it: so a step whose answer was lost knows its own work again, and an
//! undo takes off nothing that was there before.

use super::Runner;
use cairn_domain::hook::Registration;
use cairn_domain::ids::{VimId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, StepResult};
use cairn_domain::ports::{PortError, Scope};
use cairn_domain::secret::{SealedSecret, SecretRef};
use cairn_domain::vim::{
    Credential, FoundAccess, REGISTERED_BY, VimConnectionInfo, VimTarget, seal_access,
};
use cairn_domain::waits::Obstacle;
use serde_json::{Map, Value, json};

/// What became of one registration.
enum Registered {
    Now,
    Before,
}

impl Runner {
    /// Performs a step that is about the register of VIMs; `None` for every other.
    pub(super) async fn register(
        &self,
        scope: &Scope,
        op: &VnfLcmOpOcc,
        action: &Action,
    ) -> Option<StepResult> {
        let result = match action {
            Action::RegisterVim { hook, jobs, .. } => {
                self.register_all(scope, op, hook, jobs).await
            }
            Action::UnregisterVim { vims } => self.unregister_all(&op.id, vims).await,
            _ => return None,
        };
        Some(result.map_or_else(StepResult::NotDone, StepResult::Done))
    }

    async fn register_all(
        &self,
        scope: &Scope,
        op: &VnfLcmOpOcc,
        hook: &str,
        jobs: &[String],
    ) -> Result<Outcome, Vec<Obstacle>> {
        let mut wanted = Vec::new();
        for (_, result) in op.hook_results(jobs) {
            let stated = Registration::of(result).map_err(|why| refused(hook, why))?;
            wanted.extend(stated);
        }
        if wanted.is_empty() {
            let why = "register_vim is declared, and no result holds registerVim".to_owned();
            return Err(refused(hook, why));
        }
        let (mut registered, mut used) = (Vec::new(), Vec::new());
        for registration in wanted {
            let vim = registration.vim_id.clone();
            match self.register_one(scope, &op.id, registration).await? {
                Registered::Now => registered.push(vim),
                Registered::Before => used.push(vim),
            }
        }
        Ok(Outcome::VimsRegistered { registered, used })
    }

    async fn register_one(
        &self,
        scope: &Scope,
        op: &VnfLcmOpOccId,
        registration: Registration,
    ) -> Result<Registered, Vec<Obstacle>> {
        let vim = registration.vim_id.clone();
        let found = self
            .ports
            .platform
            .access_in(scope, &registration.secret)
            .await?;
        let (info, secrets) = self
            .connection(op, registration, found)
            .map_err(|why| refused(vim.as_str(), why))?;
        let known = self.ports.vims.get(&vim).await;
        if let Some(known) = known.map_err(|e| unavailable(&vim, &e))? {
            return same(op, &vim, &known, &info);
        }
        let at = self.ports.clock.now();
        let registered = self.ports.vims.register(vim.clone(), info, secrets, at);
        match registered.await {
            Ok(()) => Ok(Registered::Now),
            // Somebody was faster; the next look compares.
            Err(PortError::Refused(problem)) if problem.status == 409 => {
                Err(vec![obstacle(&vim, "Unavailable", problem.detail)])
            }
            Err(failed) => Err(unavailable(&vim, &failed)),
        }
    }

    /// The VIM as it is registered, its secrets sealed.
    fn connection(
        &self,
        op: &VnfLcmOpOccId,
        registration: Registration,
        found: FoundAccess,
    ) -> Result<(VimConnectionInfo, Vec<SealedSecret>), String> {
        let mut interface = registration.interface_info;
        let mut fill = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                interface.entry(name).or_insert_with(|| Value::String(text));
            }
        };
        fill("endpoint", found.endpoint);
        fill("ssl_ca_cert", found.ca_pem);
        if !interface.contains_key("endpoint") {
            return Err(
                "neither registerVim.interfaceInfo nor its Secret says the endpoint".into(),
            );
        }
        let mut access = access_info(&found.credential);
        let secrets = seal_access(&mut access, &mut || SecretRef(self.ports.ids.fresh()));
        let entry = json!({
            "vimId": registration.vim_id,
            "vimType": registration.vim_type,
            "interfaceInfo": interface,
            "accessInfo": access,
            "extra": {REGISTERED_BY: op},
        });
        let info = VimConnectionInfo::parse(&entry).map_err(|e| e.to_string())?;
        Ok((info, secrets))
    }

    async fn unregister_all(
        &self,
        op: &VnfLcmOpOccId,
        vims: &[VimId],
    ) -> Result<Outcome, Vec<Obstacle>> {
        let mut residue = Vec::new();
        for vim in vims {
            let known = self.ports.vims.get(vim).await;
            let ours = known
                .map_err(|e| unavailable(vim, &e))?
                .is_some_and(|info| is_by(&info, op));
            if !ours {
                continue;
            }
            match self.ports.vims.remove(vim).await {
                Ok(()) => {}
                Err(PortError::Refused(problem)) if problem.status == 404 => {}
                Err(PortError::Refused(problem)) if problem.status == 409 => {
                    residue.push(format!("VIM {vim}: {}", problem.detail));
                }
                Err(failed) => return Err(unavailable(vim, &failed)),
            }
        }
        Ok(Outcome::VimsUnregistered { residue })
    }
}

fn access_info(credential: &Credential) -> Value {
    match credential {
        Credential::None => Value::Object(Map::new()),
        Credential::BearerToken(token) => json!({"bearer_token": token.reveal()}),
        Credential::ClientCertificate { certificate, key } => {
            json!({"client_certificate": certificate, "client_key": key.reveal()})
        }
    }
}

fn is_by(info: &VimConnectionInfo, op: &VnfLcmOpOccId) -> bool {
    info.extra.get(REGISTERED_BY).and_then(Value::as_str) == Some(op.as_str())
}

/// One that is registered at the same endpoint is used; at another it is another cluster.
fn same(
    op: &VnfLcmOpOccId,
    vim: &VimId,
    known: &VimConnectionInfo,
    wanted: &VimConnectionInfo,
) -> Result<Registered, Vec<Obstacle>> {
    let (is, wants) = (endpoint(known), endpoint(wanted));
    if is.trim_end_matches('/') != wants.trim_end_matches('/') {
        let why = format!("it is registered at {is}, and the hook registers it at {wants}");
        return Err(vec![obstacle(vim, "Conflict", why)]);
    }
    if is_by(known, op) {
        Ok(Registered::Now)
    } else {
        Ok(Registered::Before)
    }
}

fn endpoint(info: &VimConnectionInfo) -> String {
    match info.target() {
        Ok(VimTarget::Direct { endpoint, .. }) => endpoint,
        Ok(VimTarget::Registered(_)) | Err(_) => "the address given at the start".to_owned(),
    }
}

fn obstacle(vim: &VimId, reason: &str, message: String) -> Obstacle {
    told(format!("VIM/{vim}"), reason, message)
}

fn refused(whose: &str, why: String) -> Vec<Obstacle> {
    vec![told(format!("VIM/{whose}"), "Refused", why)]
}

fn unavailable(vim: &VimId, error: &PortError) -> Vec<Obstacle> {
    let reason = match error {
        PortError::Refused(_) => "Refused",
        PortError::Unavailable(_)
        | PortError::Corrupt(_)
        | PortError::Conflict(_)
        | PortError::Fenced => "Unavailable",
    };
    vec![obstacle(vim, reason, error.to_string())]
}

fn told(object: String, reason: &str, message: String) -> Obstacle {
    Obstacle {
        object,
        source: "VIM".into(),
        reason: reason.into(),
        message,
        progress: 0,
    }
}
