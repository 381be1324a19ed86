//! GET of one instance by 16 clients, against a bare axum and sqlx handler that reads the same row.

use crate::child::{Server, free_port};
use crate::package;
use crate::report::{Good, Report};
use anyhow::{Context, bail};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::try_join_all;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The argument that makes this program the bare server.
pub const BARE: &str = "bare-reader";
const CLIENTS: usize = 16;
const REQUESTS: usize = 400;
const ROUNDS: usize = 5;

/// The bare server: one row by id, its JSON as it lies there.
pub async fn bare(database: &str, id: &str, port: u16) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::new()
        .filename(database)
        .read_only(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(5)
        .connect_with(options)
        .await?;
    let app = axum::Router::new()
        .route("/{id}", axum::routing::get(bare_row))
        .with_state(pool);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("bare reader of {id} on {port}");
    axum::serve(listener, app).await?;
    Ok(())
}

async fn bare_row(State(pool): State<SqlitePool>, Path(id): Path<String>) -> Response {
    let row: Result<Option<(String,)>, _> =
        sqlx::query_as("SELECT state FROM vnf_instances WHERE id = $1")
            .bind(id)
            .fetch_optional(&pool)
            .await;
    match row {
        Ok(Some((state,))) => ([(header::CONTENT_TYPE, "application/json")], state).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(failed) => (StatusCode::INTERNAL_SERVER_ERROR, failed.to_string()).into_response(),
    }
}

/// Measures both, in turns, and compares the medians.
pub async fn measure() -> anyhow::Result<Report> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &["--simulated"]).await?;
    let vnfd = server.push(package::csar()?).await?;
    let (id, op) = server.instantiate(&vnfd, "default").await?;
    crate::many::completed(&server, &op).await?;
    let database = data.path().join("cairn.db");
    let port = free_port()?;
    let mut bare = tokio::process::Command::new(std::env::current_exe()?)
        .args([
            BARE,
            &database.display().to_string(),
            &id,
            &port.to_string(),
        ])
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let bare_url = format!("http://127.0.0.1:{port}/{id}");
    let our_url = format!("{}/vnflcm/v2/vnf_instances/{id}", server.base);
    answers(&bare_url).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(rate(&our_url).await?);
        theirs.push(rate(&bare_url).await?);
    }
    bare.kill().await?;
    server.stop().await?;
    let (ours, theirs) = (median(ours), median(theirs));
    Ok(Report {
        name: "GET one instance, 16 clients",
        figures: format!("{ours:.0}/s against {theirs:.0}/s bare"),
        ratio: ours / theirs,
        limit: 0.8,
        good: Good::AtLeast,
    })
}

async fn answers(url: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(5))
        .build()?;
    while began.elapsed() < Duration::from_secs(10) {
        if client
            .get(url)
            .send()
            .await
            .is_ok_and(|a| a.status().is_success())
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("{url} does not answer")
}

async fn rate(url: &str) -> anyhow::Result<f64> {
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(30))
        .build()?;
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let client = client.clone();
        async move {
            for _ in 0..REQUESTS {
                let answer = client.get(url).header("Version", "2.0.0").send().await?;
                answer.error_for_status()?.bytes().await?;
            }
            anyhow::Ok(())
        }
    });
    try_join_all(clients).await?;
    let all = u32::try_from(CLIENTS * REQUESTS).context("too many requests")?;
    Ok(f64::from(all) / began.elapsed().as_secs_f64())
}

/// The middle one.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}
