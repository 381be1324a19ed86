//! Lists: filters and selectors.

use serde_json::{Value, json};

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
