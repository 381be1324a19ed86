# Functions shared by tests/run, tests/cluster/* and tests/postgres/*; sourced, never run.
# Nothing here waits without an end and nothing is silently swallowed.
# shellcheck shell=bash

# Standard output is for what the caller reads (a URL, an export line), so talk goes to standard error.
say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# The caches live outside the checkout, so that a fresh clone on a warm machine is warm too.
cache_dir() { printf '%s\n' "${CAIRN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cairn}"; }

# wait_until SECONDS WHAT COMMAND…: asks ten times a second until the command succeeds.
wait_until() {
    local seconds=$1 what=$2
    shift 2
    local end=$((SECONDS + seconds))
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS >= end)); then
            say "error: waited $seconds s for $what"
            return 1
        fi
        sleep 0.1
    done
}

# Of two ups at the same moment one may lose the port between here and its bind. Drawing at
# random makes that rare. The range lies below the kernel's ephemeral ports, which outgoing
# connections would take away from us.
free_port() {
    local port try
    for try in {1..200}; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        if [[ -z $(ss -Hltn "sport = :$port") ]]; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    fail "no free port in 20000 to 31999 after $try draws"
}

is_root() { [[ $(id -u) == 0 ]]; }

# need_packages WHAT-IT-IS-FOR COMMAND-OR-PATH:PACKAGE…: installs only what is missing.
need_packages() {
    local what=$1 pair missing=()
    shift
    for pair in "$@"; do
        have "${pair%%:*}" || missing+=("${pair##*:}")
    done
    ((${#missing[@]})) || return 0
    { is_root && have apt-get; } ||
        fail "$what needs the packages: ${missing[*]}. Install them, or run this as root on Debian or Ubuntu."
    say "installing ${missing[*]}"
    install_packages "${missing[@]}" || fail "cannot install ${missing[*]}; $what needs them"
}

# A path with stars counts as present where anything matches it.
have() { command -v "$1" >/dev/null || compgen -G "$1" >/dev/null; }

install_packages() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq)
    local log
    log=$(mktemp)
    if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
