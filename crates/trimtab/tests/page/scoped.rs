//! Whose conversations are shown: those of the own project, unless all are asked for.

use crate::server::{World, ask, post_from, working};

#[test]
fn two_projects_do_not_see_each_other() {
    let world = World::new();
    let of_a = world.keep("a", &working("The zebra of a.", 3), "none", 50_000, 1_000);
    let of_b = world.keep("b", &working("The wombat of b.", 3), "none", 50_000, 2_000);
    let page = world.page("a", &[]);
    let other = format!("/trimtab/sessions/{}", of_b.session);
    let list = page.get("/trimtab/sessions").page();
    assert!(list.contains("The zebra of a.") && !list.contains("wombat"), "{list}");
    assert!(list.contains("1 session of other projects"), "{list}");
    let first = page.get("/").page();
    assert!(!first.contains("wombat") && !first.contains(&world.path("b").display().to_string()));
    let found = page.get("/trimtab/sessions?q=wombat").page();
    assert!(found.contains("No block of this project") && !found.contains("of b."), "{found}");
    let of_project = page.get(&format!("/trimtab/sessions?project={}", world.path("b").display())).page();
    assert!(of_project.contains("No session is stored here."), "{of_project}");
    let mixed = format!("/trimtab/sessions/{}/requests/{}", of_a.session, of_b.id.0);
    let ends = ["", "/files", "/head", "/what-if"].map(|end| format!("{other}{end}"));
    let paths = ends.into_iter().chain([format!("{other}/requests/{}", of_b.id.0), mixed]);
    for path in paths {
        let shown = page.get(&path);
        assert!(shown.status == 404 && !shown.text.contains("wombat"), "{path}: {}", shown.text);
    }
    let token = page.get(&format!("/trimtab/sessions/{}/requests/{}", of_a.session, of_a.id.0)).token();
    let origin = format!("http://{}", page.address);
    let handle = "0123456789ab";
    let fields = [("token", token.as_str()), ("handle", handle), ("kind", "pin")];
    assert_eq!(post_from(&page.address, &origin, &format!("{other}/wish"), &fields).status, 404);
    assert!(world.page("a", &["--all"]).get("/trimtab/sessions").page().contains("wombat"));
    assert!(world.page("b", &[]).get("/trimtab/sessions").page().contains("wombat"));
}

#[test]
fn other_hosts_other_origins_and_forms_of_others_are_refused() {
    let world = World::new();
    let kept = world.keep("a", &working("Hello there.", 3), "none", 50_000, 1_000);
    let page = world.page("a", &[]);
    let get = |head: &[&str]| ask(&page.address, &[&["GET / HTTP/1.1"], head].concat(), "").status;
    assert_eq!(get(&["Host: evil.example"]), 403);
    assert_eq!(get(&["Origin: https://evil.example"]), 403);
    assert_eq!(get(&["Sec-Fetch-Site: cross-site"]), 403);
    assert_eq!(get(&["Sec-Fetch-Site: none"]), 200);
    let path = format!("/trimtab/sessions/s1/requests/{}", kept.id.0);
    let (shown, wish) = (page.get(&path), "/trimtab/sessions/s1/wish");
    let token = shown.token();
    let (_, rest) = shown.text.split_once("data-handle=\"").unwrap();
    let handle = rest.split('"').next().unwrap();
    let own = format!("http://{}", page.address);
    let post = |origin: &str, token: &str| {
        post_from(&page.address, origin, wish, &[("token", token), ("handle", handle), ("kind", "pin")])
    };
    assert_eq!(post(&own, "").status, 403);
    assert_eq!(post(&own, &"0".repeat(32)).status, 403);
    let another = world.page("a", &[]).get(&path).token();
    assert_eq!(post(&own, &another).status, 403, "of another process");
    assert_eq!(post("http://localhost:3000", &token).status, 403);
    assert_eq!(post("null", &token).status, 403);
    assert!(world.run("a", &["pin", "--list"]).is_empty(), "nothing was pinned");
    let done = post(&own, &token);
    assert_eq!(done.status, 200, "{}", done.text);
    assert!(done.text.contains(&format!("trimtab pin {handle} --session s1")), "{}", done.text);
    assert!(world.run("a", &["pin", "--list"]).starts_with(handle));
    // A GET changes nothing, whatever it says.
    let query = format!("{wish}?token={token}&handle={handle}&kind=unpin");
    assert_eq!(page.get(&query).status, 404);
    assert!(world.run("a", &["pin", "--list"]).starts_with(handle));
    let long = "x".repeat(40_000);
    assert_eq!(post(&own, &long).status, 413);
}

#[test]
fn without_a_store_the_page_says_so() {
    let world = World::new();
    let shown = world.page("a", &[]).get("/").page();
    assert!(shown.contains("Nothing to show yet"), "{shown}");
    assert!(!world.path("kept.db").exists(), "looking makes no store");
}
