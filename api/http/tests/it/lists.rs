//! Lists: filters and selectors.

use cairn_domain::ids::VnfInstanceId;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::fakes::Fakes;
use crate::server::{Server, judge, server, settings};

const INSTANCES: &str = "/vnflcm/v2/vnf_instances";

fn running() -> Server {
    Server::over(Fakes::running().subscribed(), settings())
}

async fn list(server: &Server, path: &str) -> Vec<Value> {
    let answer = server.get(path).await;
    assert_eq!(
        answer.status,
        200,
        "{path}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json().as_array().unwrap().clone()
}

#[tokio::test]
async fn an_empty_list_is_a_list() {
    assert_eq!(list(&server(), INSTANCES).await, Vec::<Value>::new());
    assert_eq!(
        list(&server(), "/vnflcm/v2/vnf_lcm_op_occs").await,
        Vec::<Value>::new()
    );
}

#[tokio::test]
async fn entries_follow_the_schema_whatever_is_selected() {
    let server = running();
    for selector in [
        "",
        "?all_fields",
        "?exclude_default",
        "?fields=metadata",
        "?exclude_fields=metadata",
        "?fields=instantiatedVnfInfo/vnfState&exclude_default",
    ] {
        let entries = list(&server, &format!("{INSTANCES}{selector}")).await;
        judge("VnfInstance", &entries[0]);
    }
    assert!(
        list(&server, INSTANCES).await[0]
            .get("instantiatedVnfInfo")
            .is_none()
    );
    assert!(
        list(&server, &format!("{INSTANCES}?all_fields")).await[0]
            .get("instantiatedVnfInfo")
            .is_some()
    );
    judge(
        "VnfLcmOpOcc",
        &list(&server, "/vnflcm/v2/vnf_lcm_op_occs?all_fields").await[0],
    );
    judge(
        "LccnSubscription",
        &list(&server, "/vnflcm/v2/subscriptions").await[0],
    );
}

#[tokio::test]
async fn filters_choose_entries_by_any_attribute_shown_or_not() {
    let server = running();
    let id = server.fakes.instance_id();
    for (filter, found) in [
        (format!("(eq,id,{id})"), 1),
        ("(eq,id,other)".to_owned(), 0),
        ("%28eq%2CinstantiationState%2CINSTANTIATED%29".to_owned(), 1),
        (
            "(eq,instantiatedVnfInfo/scaleStatus/aspectId,web);(eq,vnfdId,vnfd-1)".to_owned(),
            1,
        ),
        (
            "(eq,instantiatedVnfInfo/scaleStatus/scaleLevel,0)".to_owned(),
            0,
        ),
        ("(in,vnfProductName,Sample,Other)".to_owned(), 1),
    ] {
        let entries = list(&server, &format!("{INSTANCES}?filter={filter}")).await;
        assert_eq!(entries.len(), found, "{filter}");
    }
    let ops = "/vnflcm/v2/vnf_lcm_op_occs";
    assert_eq!(
        list(
            &server,
            &format!("{ops}?filter=(eq,vnfInstanceId,{id});(eq,operation,INSTANTIATE)")
        )
        .await
        .len(),
        1
    );
    assert_eq!(
        list(&server, &format!("{ops}?filter=(eq,operationState,FAILED)"))
            .await
            .len(),
        0
    );
    let subscriptions = "/vnflcm/v2/subscriptions";
    assert_eq!(
        list(
            &server,
            &format!("{subscriptions}?filter=(eq,filter/operationTypes,SCALE)")
        )
        .await
        .len(),
        1
    );
    assert_eq!(
        list(
            &server,
            &format!("{subscriptions}?filter=(eq,verbosity,FULL)")
        )
        .await
        .len(),
        0
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_told() {
    let server = running();
    for (query, says) in [
        ("filter=", "filter needs a value"),
        ("filter=(like,id,x)", "unknown operator"),
        ("filter=(eq,colour,red)", "colour is not an attribute"),
        ("filter=(eq,id,x", "not closed"),
        ("fields=colour", "colour"),
        ("all_fields&fields=id", "go together"),
        ("nextpage_opaque_marker=x", "not a marker"),
        ("limit=3", "limit is not a query parameter"),
        ("filter=%zz", "percent-encoded"),
    ] {
        server
            .get(&format!("{INSTANCES}?{query}"))
            .await
            .is_problem(400, says);
    }
    // One resource has no parameters at all.
    for path in [
        format!("{INSTANCES}/{}?fields=id", server.fakes.instance_id()),
        "/vnflcm/v2/vnf_lcm_op_occs/x?exclude_default".to_owned(),
        "/vnflcm/v2/subscriptions/s-1?foo=1".to_owned(),
    ] {
        server
            .get(&path)
            .await
            .is_problem(400, "is not a query parameter here");
    }
    server
        .get("/vnflcm/v2/subscriptions?all_fields")
        .await
        .is_problem(400, "all_fields");
}

#[tokio::test]
async fn the_authentication_of_a_subscription_is_in_no_list() {
    let text = json!(list(&running(), "/vnflcm/v2/subscriptions").await).to_string();
    assert!(!text.contains("listener") && !text.contains("ref-1"));
}

/// `count` instances of the ids 0 and up.
fn many(count: usize) -> Server {
    let fakes = Fakes::running();
    {
        let mut instances = fakes.instances.lock().unwrap();
        let one = instances.pop().unwrap();
        instances.extend((0..count).map(|n| {
            let mut row = one.clone();
            Arc::make_mut(&mut row.state).id = VnfInstanceId::parse(format!("i-{n}")).unwrap();
            row
        }));
    }
    Server::over(fakes, settings())
}

/// The ids of a page, and the address of the next one without its host.
async fn page(server: &Server, path: &str) -> (Vec<String>, Option<String>) {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    let next = answer.header("link").map(|link| {
        let url = link.strip_suffix(">; rel=\"next\"").unwrap();
        let at = url.find("/vnflcm/").unwrap();
        url[at..].to_owned()
    });
    let body = answer.json();
    let entries = body.as_array().unwrap().iter();
    let ids = entries.map(|entry| entry["id"].as_str().unwrap().to_owned());
    (ids.collect(), next)
}

#[tokio::test]
async fn a_thousand_entries_are_one_page() {
    let (ids, next) = page(&many(1000), INSTANCES).await;
    assert_eq!((ids.len(), next), (1000, None));
}

#[tokio::test]
async fn pages_hold_each_entry_once_and_end() {
    let server = many(2100);
    let mut path = Some(format!("{INSTANCES}?exclude_default&filter=(neq,id,i-7)"));
    let (mut all, mut pages) = (Vec::new(), Vec::new());
    while let Some(next) = path {
        let (ids, following) = page(&server, &next).await;
        pages.push(ids.len());
        all.extend(ids);
        path = following;
    }
    assert_eq!(pages, [1000, 1000, 99]);
    let expected = (0..2100).filter(|n| *n != 7).map(|n| format!("i-{n}"));
    assert!(all.into_iter().eq(expected));
}

#[tokio::test]
async fn a_filter_that_hardly_anything_passes_gives_short_pages() {
    let server = many(10_050);
    let path = format!("{INSTANCES}?filter=(in,id,i-3,i-10049)");
    let (first, next) = page(&server, &path).await;
    assert_eq!(first, ["i-3"]);
    let (second, end) = page(&server, &next.unwrap()).await;
    assert_eq!((second, end), (vec!["i-10049".to_owned()], None));
}
