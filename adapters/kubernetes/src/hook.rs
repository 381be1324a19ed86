//! Hooks: Jobs that are made, waited for, read, and removed.
//!
//! | found | done |
//! |---|---|
//! | nothing | the Job is made |
//! | ours, running | waited for; from now on it is this try's |
//! | ours, succeeded | its result is read; it never runs again |
//! | ours, failed in this try | told in its pod's own words |
//! | ours, failed before | deleted by UID; made again when it is gone |
//! | ours, being deleted | waited for; made again when it is gone |
//! | somebody else's | refused, not touched |

use crate::apply::{self, Run, Wanted, locate, not_ours};
use crate::await_ready::roots_of;
use crate::client::{Call, Session, media};
use crate::delete;
use crate::discovery::{Located, encode};
use crate::errors::{Halt, Try};
use crate::gone;
use crate::json::{self, member};
use crate::marks;
use crate::pods::Pods;
use crate::readiness::Waiting;
use crate::roots;
use cairn_domain::hook::{self, Registration, ResultFrom};
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use http::Method;
use serde_json::{Value, json};

/// Annotation on a hook's Job: when the try or rollback began that it was made or waited for in.
const SINCE: &str = "cairn.dev/try-began";

/// Most of a pod's last words that is told.
const WORDS: usize = 1000;

/// One item of a hook.
pub(crate) struct Wish<'a> {
    pub hook: &'a str,
    pub item: Option<&'a str>,
    pub object: &'a ObjectRef,
    pub manifest: &'a Value,
    pub result: &'a ResultFrom,
    pub registers_vim: bool,
}

impl Wish<'_> {
    fn title(&self) -> String {
        match self.item {
            Some(item) => format!("hook {}, item {item}", self.hook),
            None => format!("hook {}", self.hook),
        }
    }

    fn obstacle(&self, reason: &str, message: &str) -> Halt {
        Halt::InTheWay(vec![Obstacle {
            object: self.object.to_string(),
            source: "Job".into(),
            reason: reason.into(),
            message: format!("{}: {message}", self.title()),
            progress: 0,
        }])
    }
}

/// One look at a hook's Job, which is made where there is none.
pub(crate) async fn run(session: &Session, scope: &Scope, wish: &Wish<'_>) -> Try<Outcome> {
    let at = locate(session, scope, wish.object).await?;
    let name = at.object.to_string();
    let Some(live) = session.read(&at).await.map_err(|e| e.reading(&name))? else {
        return make(session, scope, wish).await;
    };
    if json::deleting(&live) {
        let message = format!(
            "{}: its Job is being deleted; it is made again when it is gone",
            wish.title()
        );
        return Err(Halt::InTheWay(vec![gone::being_deleted(
            name, &live, message,
        )]));
    }
    if !marks::written_by_us(scope, &live) {
        return Err(not_ours(&at, &live));
    }
    match apply::run(&live) {
        Run::Open => {
            adopt(session, scope, &at, &live).await?;
            Err(running(session, scope, wish, &at, &live).await)
        }
        Run::Succeeded => {
            let result = result(session, scope, wish, &at, &live).await?;
            Ok(Outcome::HookSucceeded {
                uid: Uid(json::uid(&live).to_owned()),
                result,
            })
        }
        Run::Failed if json::annotation(&live, SINCE) == Some(&since(scope)) => {
            Err(failed(session, scope, wish, &at, &live).await?)
        }
        Run::Failed => {
            delete::by_uid(session, &at, json::uid(&live), None).await?;
            let message = format!(
                "{}: its Job failed; it is made again when it is gone",
                wish.title()
            );
            Err(Halt::call(name, "BeingReplaced", message))
        }
    }
}

fn since(scope: &Scope) -> String {
    scope.since.to_string()
}

async fn make(session: &Session, scope: &Scope, wish: &Wish<'_>) -> Try<Outcome> {
    let mut manifest = wish.manifest.clone();
    let annotations = member(member(&mut manifest, "metadata"), "annotations");
    *member(annotations, SINCE) = json!(since(scope));
    let wanted = Wanted {
        object: wish.object,
        manifest: &manifest,
        replicas: None,
        force_owned: false,
    };
    apply::apply(session, scope, &wanted).await?;
    Err(wish.obstacle("HookRunning", "its Job was made"))
}

/// A Job that an earlier try left running is waited for in this one, and its failure is this one's.
async fn adopt(session: &Session, scope: &Scope, at: &Located, live: &Value) -> Try<()> {
    let since = since(scope);
    if json::annotation(live, SINCE) == Some(&since) {
        return Ok(());
    }
    let path = format!(
        "{}?fieldManager={}",
        at.path(),
        encode(&marks::manager(scope))
    );
    let body = json!({"metadata": {"uid": json::uid(live), "annotations": {SINCE: since}}});
    session
        .send(&Call::with(Method::PATCH, path, media::MERGE, body))
        .await
        .map_err(|e| e.writing(at.object.to_string()))?;
    Ok(())
}

/// What a Job that runs waits for: the root where a pod cannot start, else that it runs.
async fn running(
    session: &Session,
    scope: &Scope,
    wish: &Wish<'_>,
    at: &Located,
    live: &Value,
) -> Halt {
    let failures = json::count(live, "/status/failed");
    let message = match failures {
        0 => format!("{}: its Job runs", wish.title()),
        n => format!("{}: its Job runs, {n} of its pods failed", wish.title()),
    };
    let waiting = Waiting {
        reason: "HookRunning".into(),
        message,
        progress: 0,
    };
    match roots_of(session, scope, at, live, &waiting).await {
        Ok(obstacles) => {
            let mut told: Vec<Obstacle> = obstacles.into_iter().filter(|o| !is_end(o)).collect();
            if told.is_empty() {
                told.push(roots::own(live, &waiting));
            }
            Halt::InTheWay(told)
        }
        Err(error) => error.reading(at.object.to_string()),
    }
}

/// Whether a container has ended before its pod and its Job say so: what that means is for the Job to judge, and its
/// last words may be a result.
fn is_end(obstacle: &Obstacle) -> bool {
    obstacle.source == "container"
        && matches!(
            obstacle.reason.as_str(),
            "Completed" | "Error" | "OOMKilled"
        )
}

/// The pods of a Job, the oldest first.
async fn pods_of(session: &Session, scope: &Scope, at: &Located, live: &Value) -> Try<Vec<Value>> {
    let pods = Pods::around(session, scope, at)
        .await
        .map_err(|e| e.reading("Pod"))?;
    let mut pods: Vec<Value> = pods.of(json::uid(live)).cloned().collect();
    pods.sort_by_key(|pod| json::text(pod, "/metadata/creationTimestamp").to_owned());
    Ok(pods)
}

/// Why a Job failed: what its controller says, and the last words of its newest failed pod.
async fn failed(
    session: &Session,
    scope: &Scope,
    wish: &Wish<'_>,
    at: &Located,
    live: &Value,
) -> Try<Halt> {
    let condition = json::condition(live, "Failed").cloned().unwrap_or_default();
    let said = format!(
        "{}: {}",
        json::text(&condition, "/reason"),
        json::text(&condition, "/message")
    );
    let pods = pods_of(session, scope, at, live).await?;
    let words = pods.iter().rev().find_map(last_words);
    Ok(wish.obstacle(
        "Failed",
        &words.map_or(said.clone(), |w| format!("{w} ({said})")),
    ))
}

fn last_words(pod: &Value) -> Option<String> {
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let mut ended = statuses
        .iter()
        .flat_map(|pointer| json::entries(pod, pointer))
        .flat_map(|status| {
            [
                status.pointer("/state/terminated"),
                status.pointer("/lastState/terminated"),
            ]
        })
        .flatten();
    let end = ended.find(|end| json::number(end, "/exitCode").unwrap_or(0) != 0)?;
    let code = json::number(end, "/exitCode").unwrap_or(0);
    let pod = json::name(pod);
    let words: String = json::text(end, "/message")
        .trim()
        .chars()
        .take(WORDS)
        .collect();
    Some(match words.as_str() {
        "" => format!(
            "pod {pod} ended with exit code {code} ({})",
            json::text(end, "/reason")
        ),
        words => format!("pod {pod} ended with exit code {code}: {words}"),
    })
}

/// The result of a Job that succeeded. What is a secret stays where it is.
async fn result(
    session: &Session,
    scope: &Scope,
    wish: &Wish<'_>,
    at: &Located,
    live: &Value,
) -> Try<Option<Value>> {
    if let ResultFrom::Secret(name) = wish.result {
        must_be_there(session, scope, wish, name).await?;
        return Ok(None);
    }
    let pods = pods_of(session, scope, at, live).await?;
    let said = pods
        .iter()
        .filter(|pod| json::text(pod, "/status/phase") == "Succeeded")
        .flat_map(|pod| json::entries(pod, "/status/containerStatuses"))
        .map(|status| json::text(status, "/state/terminated/message"))
        .find(|message| !message.trim().is_empty())
        .unwrap_or_default();
    let wrong = |why: &str| {
        let way_out =
            "its Job succeeded and is not run again; roll back, or delete the Job and retry";
        wish.obstacle("HookResult", &format!("{why}; {way_out}"))
    };
    let result = hook::parse_result(said).map_err(|why| wrong(&why))?;
    if result.is_none() && *wish.result == ResultFrom::TerminationMessage {
        return Err(wrong("it left no termination message"));
    }
    let registration = result.as_ref().map(Registration::of).transpose();
    let registration = registration.map_err(|why| wrong(&why))?.flatten();
    if registration.is_some() && !wish.registers_vim {
        return Err(wrong(
            "its result holds registerVim, and the package does not declare register_vim for it",
        ));
    }
    Ok(result.map(hook::without_secrets))
}

/// The Secret that a hook promises. It may come a little later than the end of the Job.
async fn must_be_there(session: &Session, scope: &Scope, wish: &Wish<'_>, name: &str) -> Try<()> {
    let at = crate::credentials::secret_at(session, scope, name).await?;
    let object = at.object.to_string();
    if session
        .read(&at)
        .await
        .map_err(|e| e.reading(&object))?
        .is_some()
    {
        return Ok(());
    }
    Err(Halt::InTheWay(vec![Obstacle {
        object,
        source: "Secret".into(),
        reason: "ResultMissing".into(),
        message: format!(
            "{}: its Job succeeded and left no such Secret",
            wish.title()
        ),
        progress: 0,
    }]))
}

/// Removes the Jobs of this instance's hooks; done when none is left.
pub(crate) async fn remove(session: &Session, scope: &Scope, namespace: &str) -> Try<Outcome> {
    let kind = session
        .builtin("batch/v1", "Job")
        .await
        .map_err(|e| e.reading("Job"))?;
    let selector = format!("{}={},{}", marks::INSTANCE, scope.instance, hook::LABEL);
    let query = format!("&labelSelector={}", encode(&selector));
    let jobs = session
        .list(&kind.collection(Some(namespace)), &query)
        .await
        .map_err(|e| e.reading("Job"))?
        .items;
    let mut left = Vec::new();
    for job in jobs.iter().filter(|job| marks::labelled(scope, job)) {
        let object = ObjectRef {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: Some(namespace.to_owned()),
            name: json::name(job).to_owned(),
        };
        let at = Located {
            kind: kind.clone(),
            object,
        };
        if !json::deleting(job) {
            delete::by_uid(session, &at, json::uid(job), None).await?;
        }
        let message = "the Job of a hook is being removed".to_owned();
        left.extend(delete::pending(at.object.to_string(), "Job", message).obstacles());
    }
    if left.is_empty() {
        return Ok(Outcome::Gone {
            residue: Vec::new(),
        });
    }
    Err(Halt::InTheWay(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_ended_is_for_its_job_to_judge() {
        let obstacle = |source: &str, reason: &str| Obstacle {
            object: "Pod/p".into(),
            source: source.into(),
            reason: reason.into(),
            message: String::new(),
            progress: 0,
        };
        assert!(is_end(&obstacle("container", "Completed")));
        assert!(!is_end(&obstacle("container", "ImagePullBackOff")));
        assert!(!is_end(&obstacle("Job", "HookRunning")));
    }

    #[test]
    fn a_failed_pod_is_told_in_its_own_words() {
        let pod = |message: &str| {
            json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [
                {"state": {"terminated": {"exitCode": 3, "reason": "Error", "message": message}}}]}})
        };
        assert_eq!(
            last_words(&pod("no route\n")).unwrap(),
            "pod p ended with exit code 3: no route"
        );
        assert_eq!(
            last_words(&pod("")).unwrap(),
            "pod p ended with exit code 3 (Error)"
        );
        let well =
            json!({"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}});
        assert_eq!(last_words(&well), None);
    }
}
