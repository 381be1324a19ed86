use super::*;

fn levels(of: &[(&str, u32)]) -> BTreeMap<AspectId, u32> {
    of.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect()
}

fn aspect(max: u32, step_deltas: &[&str]) -> Aspect {
    Aspect {
        name: String::new(),
        description: String::new(),
        max_scale_level: max,
        step_deltas: step_deltas.iter().map(|d| (*d).to_owned()).collect(),
    }
}

fn vdu(name: &str, initial: Option<u32>, deltas: &[(&str, &[(&str, u32)])]) -> Vdu {
    Vdu {
        name: name.to_owned(),
        min: 1,
        max: None,
        initial_delta: initial,
        deltas: deltas
            .iter()
            .map(|(aspect, of)| ((*aspect).to_owned(), levels(of)))
            .collect(),
    }
}

/// A front end that scales by two, workers in steps of 1, 2 and 4, a store moved by both aspects,
/// and a probe whose number the descriptor does not state.
fn flavour() -> Flavour {
    let mut flavour = Flavour::named("simple");
    flavour.aspects = BTreeMap::from([
        ("front".into(), aspect(3, &["two"])),
        ("work".into(), aspect(3, &["a", "b", "c"])),
    ]);
    flavour.vdus = BTreeMap::from([
        (
            "FRONT".into(),
            vdu("frontend", Some(1), &[("front", &[("two", 2)])]),
        ),
        (
            "WORK".into(),
            vdu(
                "worker",
                Some(2),
                &[("work", &[("a", 1), ("b", 2), ("c", 4)])],
            ),
        ),
        (
            "STORE".into(),
            vdu(
                "store",
                Some(1),
                &[("front", &[("two", 1)]), ("work", &[("c", 1)])],
            ),
        ),
        ("PROBE".into(), vdu("probe", None, &[])),
    ]);
    flavour.instantiation_levels = BTreeMap::from([
        (
            "small".into(),
            InstantiationLevel {
                description: String::new(),
                scale_info: BTreeMap::new(),
                vdu_levels: BTreeMap::new(),
            },
        ),
        (
            "big".into(),
            InstantiationLevel {
                description: String::new(),
                scale_info: levels(&[("front", 2)]),
                vdu_levels: levels(&[("PROBE", 3)]),
            },
        ),
    ]);
    flavour.default_instantiation_level = Some("small".into());
    flavour
}

#[test]
fn uniform_deltas_add_the_same_at_each_step() {
    let counts = |n| flavour().replicas_at(&levels(&[("front", n)]))["FRONT"];
    assert_eq!([0, 1, 2, 3].map(counts), [1, 3, 5, 7]);
}

#[test]
fn non_uniform_deltas_add_what_each_step_names() {
    let counts = |n| flavour().replicas_at(&levels(&[("work", n)]))["WORK"];
    assert_eq!([0, 1, 2, 3].map(counts), [2, 3, 5, 9]);
}

#[test]
fn two_aspects_may_move_one_vdu() {
    let replicas = flavour().replicas_at(&levels(&[("front", 2), ("work", 3)]));
    assert_eq!(replicas["STORE"], 4);
}

#[test]
fn a_vdu_without_a_stated_number_is_left_to_its_manifest() {
    assert!(
        !flavour()
            .replicas_at(&BTreeMap::new())
            .contains_key("PROBE")
    );
}

#[test]
fn absurd_levels_and_deltas_neither_overflow_nor_loop() {
    let mut flavour = flavour();
    flavour
        .aspects
        .insert("front".into(), aspect(u32::MAX, &["two"]));
    let replicas = flavour.replicas_at(&levels(&[("front", u32::MAX), ("work", u32::MAX)]));
    assert_eq!(replicas["FRONT"], u32::MAX);
    assert_eq!(replicas["WORK"], 9);
}

#[test]
fn the_default_level_lists_every_aspect() {
    let target = flavour().levels_of(None).unwrap();
    assert_eq!(target.levels, levels(&[("front", 0), ("work", 0)]));
    assert_eq!(
        target.replicas,
        levels(&[("FRONT", 1), ("STORE", 1), ("WORK", 2)])
    );
}

#[test]
fn numbers_stated_for_a_level_go_over_the_sum_of_deltas() {
    let target = flavour().levels_of(Some("big")).unwrap();
    assert_eq!(target.levels, levels(&[("front", 2), ("work", 0)]));
    assert_eq!(
        target.replicas,
        levels(&[("FRONT", 5), ("PROBE", 3), ("STORE", 3), ("WORK", 2)])
    );
}

#[test]
fn an_unknown_level_is_refused_with_the_levels_there_are() {
    assert_eq!(
        flavour().levels_of(Some("huge")).unwrap_err().to_string(),
        "instantiationLevelId: \"huge\" is not in the VNFD; allowed: big, small"
    );
}

#[test]
fn scaling_moves_one_aspect_and_stays_in_its_range() {
    let at = levels(&[("front", 1), ("work", 2)]);
    let up = flavour().scaled(&at, "front", 2).unwrap();
    assert_eq!(up.levels, levels(&[("front", 3), ("work", 2)]));
    assert_eq!((up.replicas["FRONT"], up.replicas["WORK"]), (7, 5));
    let down = flavour().scaled(&at, "work", -2).unwrap();
    assert_eq!(down.replicas["WORK"], 2);
}

#[test]
fn scaling_out_of_range_names_field_and_range() {
    let at = levels(&[("front", 2)]);
    let refusal = |aspect, steps| {
        flavour()
            .scaled(&at, aspect, steps)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal("front", 2),
        "numberOfSteps: level 4 of scaling aspect \"front\" is out of range; allowed: 0 to 3"
    );
    assert_eq!(
        refusal("front", -3),
        "numberOfSteps: level -1 of scaling aspect \"front\" is out of range; allowed: 0 to 3"
    );
    assert_eq!(
        refusal("front", i64::MAX),
        "numberOfSteps: level 9223372036854775807 of scaling aspect \"front\" is out of range; \
         allowed: 0 to 3"
    );
    assert_eq!(
        refusal("front", 0),
        "numberOfSteps: 0 is out of range; allowed: 1 or more"
    );
    assert_eq!(
        refusal("back", 1),
        "aspectId: \"back\" is not in the VNFD; allowed: front, work"
    );
    assert_eq!(
        Flavour::named("x")
            .scaled(&at, "front", 1)
            .unwrap_err()
            .to_string(),
        "aspectId: \"front\" is not in the VNFD; allowed: none (the VNFD declares no such thing)"
    );
}

#[test]
fn scale_info_keeps_the_aspects_it_does_not_name() {
    let at = levels(&[("front", 1), ("work", 2)]);
    let target = flavour()
        .levels_from(&at, &BTreeMap::from([("work".to_owned(), 3)]))
        .unwrap();
    assert_eq!(target.levels, levels(&[("front", 1), ("work", 3)]));
    assert_eq!(
        flavour()
            .levels_from(&at, &BTreeMap::from([("work".to_owned(), 4)]))
            .unwrap_err()
            .to_string(),
        "scaleInfo: level 4 of scaling aspect \"work\" is out of range; allowed: 0 to 3"
    );
}

#[test]
fn a_workload_is_found_by_its_name() {
    assert_eq!(flavour().vdu_named("store").unwrap().0, "STORE");
    assert!(flavour().vdu_named("STORE").is_none());
    assert_eq!(flavour().max_levels(), levels(&[("front", 3), ("work", 3)]));
}
