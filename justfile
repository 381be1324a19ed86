# What a person types. `just` lists it; none of it is needed.

_default:
    @just --list

# The main job, told step by step on a simulated cluster
demo *flags:
    cargo run --release -- demo {{flags}}

# All tests, exactly as CI runs them
ci *flags:
    tests/run {{flags}}

# The rules alone: seconds
rules:
    cargo test -p cairn-domain

# One test, or some, by words of the name
test words:
    cargo build --workspace
    cargo test -p cairn-tests {{words}}

# Formatting and lints, as CI demands them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# A server on SQLite and a simulated cluster, with faults
serve *flags:
    cargo run --release -- serve --simulated --enable-faults {{flags}}

# A CSAR of an example
package name:
    cargo run --release -- package build examples/{{name}} --output {{name}}.csar

# PostgreSQL for tests; prints its URL
postgres-up:
    tests/postgres/up

postgres-down:
    tests/postgres/down

# A real Kubernetes for tests (root, Debian)
cluster-up:
    tests/cluster/up

cluster-down:
    tests/cluster/down

# Licences, sources, doubled crates (needs cargo-deny)
deny:
    cargo deny check
