# What tests/cluster/up and down both know of a cluster in the folder `dir`; sourced, never run.
# shellcheck shell=bash

# dir is absolute: it is compared with command lines and written into configurations.
parse_dir() {
    dir=${TMPDIR:-/tmp}/cairn-cluster
    while (($#)); do
        case $1 in
        --dir) dir=${2:?--dir needs a folder} && shift 2 ;;
        *) fail "unknown argument $1; usage: ${0##*/} [--dir DIR]" ;;
        esac
    done
    dir=$(realpath -m "$dir")
    # A Unix socket's path ends at 107 bytes, and containerd's shims need some of them.
    ((${#dir} <= 70)) || fail "the path $dir is too long for sockets; choose a shorter one with --dir"
}

# The process that holds the namespaces. Its number may have been given to another since:
# the command line tells.
holder() {
    local pid
    [[ -f $dir/pid ]] || return 1
    pid=$(<"$dir/pid")
    [[ -r /proc/$pid/cmdline ]] || return 1
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "cluster/node $dir " || return 1
    printf '%s\n' "$pid"
}

is_up() { holder >/dev/null && [[ -f $dir/ready ]]; }

ended() { [[ ! -d /proc/$1 || $(ps -o stat= -p "$1") == Z* ]]; }
