//! Instantiate of a 5-object CNF on a real cluster, against a bare kube program that does the same.

use crate::child::Server;
use crate::many::{cluster, completed, namespace};
use crate::package;
use crate::read::median;
use crate::report::{Good, Report};
use anyhow::{Context, bail};
use futures::TryStreamExt as _;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const DEADLINE: Duration = Duration::from_mins(1);

/// Measures both in turns, each in a namespace of its own, and compares the medians.
pub async fn measure() -> anyhow::Result<Report> {
    let file = std::env::var("CAIRN_TEST_KUBECONFIG")
        .context("CAIRN_TEST_KUBECONFIG: tests/cluster/up prints it")?;
    let client = cluster(&PathBuf::from(&file)).await?;
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &["--kubeconfig", &file]).await?;
    let vnfd = server.push(package::csar()?).await?;
    let run = uuid::Uuid::now_v7().simple().to_string();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let name = format!("bench-{}-{round}", &run[20..]);
        for (kind, figures) in [("c", &mut ours), ("b", &mut theirs)] {
            let name = format!("{name}{kind}");
            namespace(&client, &name).await?;
            tokio::time::sleep(out_of_step()).await;
            let began = Instant::now();
            if kind == "c" {
                let (_, op) = server.instantiate(&vnfd, &name).await?;
                completed(&server, &op).await?;
            } else {
                bare(&client, &name).await?;
            }
            figures.push(began.elapsed().as_secs_f64());
            let namespaces: Api<Namespace> = Api::all(client.clone());
            namespaces.delete(&name, &DeleteParams::default()).await?;
        }
    }
    server.stop().await?;
    let (ours, theirs) = (median(ours), median(theirs));
    Ok(Report {
        name: "instantiate of 5 objects, real",
        figures: format!(
            "{:.0} ms against {:.0} ms bare",
            ours * 1000.0,
            theirs * 1000.0
        ),
        ratio: ours / theirs,
        limit: 1.15,
        good: Good::AtMost,
    })
}

/// A kubelet looks at its containers once a second. Who begins when another has just ended begins in step with it, and a
/// small difference then costs a whole second, or nothing.
fn out_of_step() -> Duration {
    let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
    Duration::from_millis(random % 1000)
}

async fn bare(client: &kube::Client, namespace: &str) -> anyhow::Result<()> {
    let params = PatchParams::apply("bare");
    for manifest in package::manifests() {
        let text = |member: &serde_json::Value| member.as_str().unwrap_or_default().to_owned();
        let version = text(&manifest["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = text(&manifest["kind"]);
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let name = text(&manifest["metadata"]["name"]);
        api.patch(&name, &params, &Patch::Apply(&manifest)).await?;
    }
    let workloads: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let waits = ["front", "back"].map(|name| async {
        await_condition(workloads.clone(), name, is_available).await?;
        has_endpoint(client, namespace, name).await
    });
    tokio::time::timeout(DEADLINE, try_join_all(waits)).await??;
    Ok(())
}

/// Waits until a Service leads to a ready pod: a CNF whose Services lead nowhere is not up.
async fn has_endpoint(client: &kube::Client, namespace: &str, service: &str) -> anyhow::Result<()> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let labels = format!("kubernetes.io/service-name={service}");
    let config = watcher::Config::default().labels(&labels);
    let mut seen = pin!(watcher(slices, config).applied_objects());
    while let Some(slice) = seen.try_next().await? {
        let mut endpoints = slice.endpoints.iter().flatten();
        if endpoints.any(|one| one.conditions.as_ref().and_then(|c| c.ready) == Some(true)) {
            return Ok(());
        }
    }
    bail!("the watch of the endpoints of {service} ended")
}

fn is_available(workload: Option<&Deployment>) -> bool {
    let status = workload.and_then(|w| w.status.as_ref());
    status.and_then(|s| s.available_replicas).unwrap_or(0) >= 1
}
