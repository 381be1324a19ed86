//! Benchmarks: each prints its figure, the figure that it is held against, measured in the same run, and the
//! ratio beside its limit. They are no tests: machines are shared and noisy. `tests/bench/run` builds and runs all.
//!
//! | name | measures | must reach |
//! |---|---|---|
//! | `replay` | folding an operation's stream, in memory | 500,000 events/s |
//! | `unit` | one unit of work with its read models, 8 tasks, PostgreSQL | 0.6 of the same statements as bare SQL |
//! | `read` | GET of one instance, 16 clients | 0.8 of a bare axum and sqlx handler of the same row |
//! | `many` | 200 concurrent instantiates on the simulated cluster | all COMPLETED, GET p99 below 50 ms |
//! | `cluster` | instantiate of 5 objects on a real cluster | 1.15 of a bare kube program |
//! | `idle` | memory of an idle server | 60 MB |
//! | `start` | start to ready, empty and with 100,000 events | 0.5 s |
//! | `takeover` | one replica goes on with 1,500 operations, both databases | 10 s |
//! | `thousand` | 1,000 operations at once: clocks and memory | none late, 300 MB |
//! | `growth` | one operation with 100,000 instances in the database | 1.2 of that with 10 |
//! | `journal` | operations whose processes end at every call, in the tests | 60 s |
//! | `pairs` | the same at all pairs of calls | 600 s |

mod child;
mod cluster;
mod fill;
mod growth;
mod journal;
mod many;
mod package;
mod read;
mod report;
mod start;
mod takeover;
mod thousand;
mod unit;

use anyhow::bail;
use report::Report;
use tokio::signal::unix::SignalKind;

const ALL: [&str; 12] = [
    "replay", "unit", "read", "many", "cluster", "idle", "start", "takeover", "thousand", "growth",
    "journal", "pairs",
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    cairn::speak_tls();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    if let [name, database, id, port] = arguments.as_slice()
        && name == read::BARE
    {
        return runtime.block_on(read::bare(database, id, port.parse()?));
    }
    let chosen: Vec<&str> = if arguments.is_empty() {
        ALL.to_vec()
    } else {
        arguments.iter().map(String::as_str).collect()
    };
    for name in chosen {
        let reports = runtime.block_on(async {
            // Asked to end, it drops what runs, and with it the children.
            let mut asked = tokio::signal::unix::signal(SignalKind::terminate())?;
            tokio::select! {
                reports = run(name) => reports,
                _ = asked.recv() => bail!("asked to end"),
                ended = tokio::signal::ctrl_c() => { ended?; bail!("asked to end") }
            }
        })?;
        for report in reports {
            println!("{report}");
        }
    }
    Ok(())
}

async fn run(name: &str) -> anyhow::Result<Vec<Report>> {
    match name {
        "replay" => Ok(vec![report::replay()]),
        "unit" => Ok(vec![unit::measure().await?]),
        "read" => Ok(vec![read::measure().await?]),
        "many" => many::measure().await,
        "cluster" => Ok(vec![cluster::measure().await?]),
        "idle" => Ok(vec![start::idle().await?]),
        "start" => start::measure().await,
        "takeover" => takeover::measure().await,
        "thousand" => thousand::measure().await,
        "growth" => growth::measure().await,
        "journal" => Ok(vec![journal::measure(false)?]),
        "pairs" => Ok(vec![journal::measure(true)?]),
        other => bail!(
            "there is no benchmark {other:?}; there are: {}",
            ALL.join(", ")
        ),
    }
}
