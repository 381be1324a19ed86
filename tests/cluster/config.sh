# Writes what the parts of a cluster in the folder `dir` read; sourced by tests/cluster/up.
# shellcheck shell=bash disable=SC2154 # `dir` is set by parse_dir

# A cluster has its own ports, bridge and subnet, so that several can be up.
choose_places() {
    local number
    mkdir -p "$dir/ports"
    free_port >"$dir/ports/apiserver"
    free_port >"$dir/ports/etcd"
    free_port >"$dir/ports/etcd-peer"
    free_port >"$dir/ports/kubelet"
    free_port >"$dir/ports/kubelet-health"
    make_bridge
    number=$(<"$dir/number")
    printf 'cairn-%s-%s\n' "$number" "$$" >"$dir/cgroup"
    make_cgroups "$(<"$dir/cgroup")"
}

# kubelet wants its root to exist, in version 1 in the tree of each controller. There a new
# group for processors begins with none, in which nothing can run.
make_cgroups() {
    local tree
    if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
        hand_down_controllers /sys/fs/cgroup
        mkdir "/sys/fs/cgroup/$1"
        hand_down_controllers "/sys/fs/cgroup/$1"
        return
    fi
    for tree in /sys/fs/cgroup/*/; do
        # Some trees have two names, joined by a link.
        mkdir -p "$tree$1"
        [[ ! -f $tree/cpuset.cpus ]] || copy_cpuset "$tree" "$tree$1"
    done
}

# In version 2 a group has the controllers that the one above hands down.
hand_down_controllers() {
    local controller
    for controller in $(<"$1/cgroup.controllers"); do
        printf '+%s\n' "$controller" >"$1/cgroup.subtree_control" ||
            fail "$1 does not hand down $controller; inside a container, give it a control group of its own"
    done
}

copy_cpuset() {
    cat "$1/cpuset.cpus" >"$2/cpuset.cpus"
    cat "$1/cpuset.mems" >"$2/cpuset.mems"
}

# Making the bridge is also how a number between 0 and 63 is claimed: the kernel lets one win.
# The node's address is the bridge's own, for kube-apiserver finds no kubelet on loopback.
make_bridge() {
    local number first
    first=$((RANDOM % 64))
    for ((number = first; number < first + 64; number++)); do
        local n=$((number % 64))
        if [[ -z $(ip route show "$(subnet "$n")") ]] && ip link add "cairn$n" type bridge 2>/dev/null; then
            printf '%s\n' "$n" >"$dir/number"
            printf 'cairn%s\n' "$n" >"$dir/bridge"
            printf '10.213.%s.1\n' $((n * 4)) >"$dir/address"
            ip address add "$(<"$dir/address")/22" dev "cairn$n"
            ip link set "cairn$n" up
            return 0
        fi
    done
    fail "cannot make a bridge for the pods (this needs the right to administer networks)"
}

# 1,022 addresses: more than the pods a node may have.
subnet() { printf '10.213.%s.0/22\n' $(($1 * 4)); }

# An authority of our own: clients can be given a wrong one, and certificates of their own.
write_pki() {
    local pki=$dir/pki
    mkdir -m 700 "$pki"
    # Kept out of sight while it works; shown when it fails.
    {
        openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=cairn-test-ca \
            -keyout "$pki/ca.key" -out "$pki/ca.crt"
        certificate apiserver /CN=kube-apiserver \
            "subjectAltName=IP:127.0.0.1,IP:$(<"$dir/address"),IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        certificate admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
        openssl genrsa -out "$pki/accounts.key" 2048
    } 2>"$dir/logs/pki.log" || fail "openssl failed: $(cat "$dir/logs/pki.log")"
    printf '%s,admin,admin,"system:masters"\n' "$(openssl rand -hex 16)" >"$pki/tokens.csv"
}

# certificate NAME SUBJECT EXTENSION
certificate() {
    openssl req -new -newkey rsa:2048 -nodes -subj "$2" -keyout "$dir/pki/$1.key" -out "$dir/pki/$1.csr"
    openssl x509 -req -days 30 -in "$dir/pki/$1.csr" -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" \
        -CAcreateserial -extfile <(printf '%s\n' "$3") -out "$dir/pki/$1.crt"
    rm "$dir/pki/$1.csr"
}

write_kubeconfig() {
    (umask 077 && cat >"$dir/kubeconfig") <<END
apiVersion: v1
kind: Config
current-context: cairn-test
contexts: [{name: cairn-test, context: {cluster: cairn-test, user: admin}}]
clusters:
- name: cairn-test
  cluster:
    server: https://127.0.0.1:$(<"$dir/ports/apiserver")
    certificate-authority-data: $(base64 -w 0 "$dir/pki/ca.crt")
users:
- name: admin
  user: {token: $(cut -d, -f1 "$dir/pki/tokens.csv")}
END
}

# A copy per layer where the file system cannot be stacked (inside another container).
snapshotter() {
    local probe=$dir/probe
    mkdir -p "$probe"/{lower,upper,work,merged}
    if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" \
        "$probe/merged" 2>/dev/null; then
        umount "$probe/merged"
        printf 'overlayfs\n'
    else
        printf 'native\n'
    fi
    rm -rf "$probe"
}

write_containerd() {
    cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd/root"
state = "$dir/containerd/state"
oom_score = 0

[grpc]
  address = "$dir/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "cairn.test/pause:1"
  # Where CAP_SYS_RESOURCE is absent every pod would fail with "can't get final child's PID".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_tcp_service = true

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "$(snapshotter)"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$dir/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "$dir/registries"
END
    # Nothing is looked up outside: an image that was not made here fails at once, with
    # ErrImagePull and then ImagePullBackOff, as in the field.
    mkdir -p "$dir/registries/_default"
    printf 'server = "http://127.0.0.1:1"\n' >"$dir/registries/_default/hosts.toml"
}

write_cni() {
    mkdir -p "$dir/cni"
    cat >"$dir/cni/10-cairn.conflist" <<END
{"cniVersion": "1.0.0", "name": "cairn", "plugins": [{
  "type": "bridge", "bridge": "$(<"$dir/bridge")", "isGateway": true, "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": "$dir/addresses",
           "ranges": [[{"subnet": "$(subnet "$(<"$dir/number")")", "gateway": "$(<"$dir/address")"}]]}
}]}
END
}

write_kubelet() {
    cat >"$dir/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(<"$dir/address")
port: $(<"$dir/ports/kubelet")
healthzPort: $(<"$dir/ports/kubelet-health")
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$dir/containerd.sock
podLogsDir: $dir/pod-logs
resolvConf: ""
maxPods: 500
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
# Two kubelets that share one tree of control groups would each clear the other's pods away.
cgroupRoot: /$(<"$dir/cgroup")
enforceNodeAllocatable: []
# The machine's packet filter is none of our business.
makeIPTablesUtilChains: false
# A full disk of the developer's must not evict pods or delete the images made for us.
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
kubeAPIQPS: 200
kubeAPIBurst: 400
# See a container's end soon: the tests wait for it.
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
END
}

# The volumes that wait for claims, and the pod that empties one for the next claim.
write_volumes() {
    local n
    cat >"$dir/recycler.yaml" <<END
apiVersion: v1
kind: Pod
metadata: {name: recycler, namespace: default}
spec:
  restartPolicy: Never
  dnsPolicy: Default
  volumes: [{name: vol, hostPath: {path: /any}}]
  containers:
  - name: recycler
    image: cairn.test/sh:1
    imagePullPolicy: IfNotPresent
    command: [/bin/sh, -c, "rm -rf /scrub/..?* /scrub/.[!.]* /scrub/*"]
    volumeMounts: [{name: vol, mountPath: /scrub}]
END
    {
        cat <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: manual}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
END
        for n in {1..16}; do
            cat <<END
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: manual-$n}
spec:
  storageClassName: manual
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Recycle
  hostPath: {path: $dir/volumes/$n, type: DirectoryOrCreate}
END
        done
    } >"$dir/volumes.yaml"
}

write_configuration() {
    write_pki
    write_kubeconfig
    write_containerd
    write_cni
    write_kubelet
    write_volumes
}
