# What tests/postgres/up and down both know of the server; sourced, never run. Both set dir and bin.
# shellcheck shell=bash

# The newest that is installed; Debian keeps the programs off the path.
server_bin() {
    local initdb
    initdb=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1)
    [[ -n $initdb ]] || fail "no PostgreSQL under /usr/lib/postgresql"
    dirname "$initdb"
}

# PostgreSQL refuses to run as root. Its user may not be able to read our working folder, hence cd.
as_server() {
    if is_root; then
        (cd / && runuser -u postgres -- "$@")
    else
        (cd / && "$@")
    fi
}

is_up() { as_server "${bin:?}/pg_ctl" -D "${dir:?}/server/data" status >/dev/null 2>&1; }
