//! Everything that the server knows, behind one mutex that is never held across an await.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::SimClock;
use crate::controllers::Memory;
use crate::faults::{Denial, Faults};
use crate::json;
use crate::kinds::{Kind, Kinds};
use crate::requests::RequestRecord;
use crate::store::Store;

/// The name of the only node.
pub(crate) const NODE: &str = "sim-node-1";

pub(crate) struct State {
    pub kinds: Kinds,
    pub store: Store,
    pub clock: SimClock,
    pub memory: Memory,
    pub faults: Faults,
    pub denials: Vec<Denial>,
    pub requests: VecDeque<RequestRecord>,
    next_address: u32,
    next_pod_address: u32,
    next_node_port: u16,
}

impl State {
    /// A fresh cluster: two namespaces and one node.
    pub fn new(window: usize) -> Self {
        let mut state = Self {
            kinds: Kinds::built_in(),
            store: Store::new(window),
            clock: SimClock::start(),
            memory: Memory::default(),
            faults: Faults::default(),
            denials: Vec::new(),
            requests: VecDeque::new(),
            next_address: 1,
            next_pod_address: 1,
            next_node_port: 30_000,
        };
        for namespace in ["default", "kube-system"] {
            state.seed("namespaces", json!({"metadata": {"name": namespace}}));
        }
        state.seed("nodes", node());
        state.kubernetes_service();
        state
    }

    /// The same objects in a state of its own, where no fault is scripted and no request was counted.
    pub fn fork(&self) -> Self {
        Self {
            kinds: self.kinds.clone(),
            store: self.store.clone(),
            clock: self.clock,
            memory: self.memory.clone(),
            faults: Faults::default(),
            denials: Vec::new(),
            requests: VecDeque::new(),
            ..*self
        }
    }

    fn seed(&mut self, qualified: &str, object: Value) {
        let kind = self.kinds.get(qualified);
        let namespace = json::namespace(&object).to_owned();
        self.create_as("kube-apiserver", &kind, &namespace, object)
            .expect("the objects of a fresh cluster are valid");
    }

    fn kubernetes_service(&mut self) {
        let service = json!({
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
        });
        self.seed("services", service);
    }

    /// The live object, by qualified plural.
    pub fn get(&self, qualified: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.store.get(qualified, namespace, name)
    }

    /// Copies of the objects of a kind; an empty namespace means all of them.
    pub fn list(&self, qualified: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.store.list(qualified, namespace).cloned().collect()
    }

    /// The kind of a stored object (its preferred version).
    pub fn kind_of(&self, storage: &str) -> Option<Arc<Kind>> {
        self.kinds.find(storage)
    }

    /// The next free address of the Service range 10.96.0.0/16.
    pub fn allocate_service_address(&mut self) -> String {
        let address = format!(
            "10.96.{}.{}",
            self.next_address >> 8 & 0xff,
            self.next_address & 0xff
        );
        self.next_address += 1;
        address
    }

    pub fn allocate_pod_address(&mut self) -> String {
        self.next_pod_address += 1;
        let n = self.next_pod_address;
        format!("10.244.{}.{}", n >> 8 & 0xff, n & 0xff)
    }

    pub fn allocate_node_port(&mut self) -> u16 {
        let port = self.next_node_port;
        self.next_node_port = if port >= 32_767 { 30_000 } else { port + 1 };
        port
    }
}

fn node() -> Value {
    let resources =
        json!({"cpu": "16", "memory": "64Gi", "pods": "1000", "ephemeral-storage": "100Gi"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady",
        "message": "kubelet is posting ready status"}]);
    json!({
        "metadata": {"name": NODE, "labels": {
            "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"]},
        "status": {"capacity": resources, "allocatable": resources, "conditions": ready,
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "Hostname", "address": NODE}],
            "nodeInfo": {"kubeletVersion": crate::VERSION, "operatingSystem": "linux",
                "architecture": "amd64", "bootID": "sim", "containerRuntimeVersion": "sim://1",
                "kernelVersion": "sim", "kubeProxyVersion": "", "machineID": "sim",
                "osImage": "simulated", "systemUUID": "sim"}},
    })
}
