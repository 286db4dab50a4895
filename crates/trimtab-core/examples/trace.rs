#![allow(warnings, clippy::all, clippy::pedantic, clippy::restriction)]
use trimtab_core::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let rec = read(&std::fs::read(&a[0]).unwrap()).unwrap();
    let share: f64 = a[2].parse().unwrap();
    let model = find_model("claude-opus-5").unwrap();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    for seg in &rec.segments {
        if seg.points.len() < 20 { continue }
        let counter = Counter::for_model("claude-opus-5");
        let peak = counter.request(&seg.history, &mut Memo::default()).total();
        let policy = Policy::from_toml("p", &text, &[]).unwrap();
        let settings = Settings { budget: Some(peak.scaled(share)), model: Some("claude-opus-5".into()), prices: Some(model.clone()), markers: Markers::OneMore, keeping: Some(Keeping::Hour), unseen: Tokens(15000), ..Settings::new(policy).with_format(seg.history.format()) };
        let mut s = Session::new(settings);
        let mut now = Millis(0);
        let mut prev: Vec<String> = vec![];
        for (n, p) in seg.points.iter().enumerate() {
            now = p.at.map_or(Millis(now.0 + 60000), |at| Millis(at.0.max(now.0)));
            let Ok(f) = s.fit(request_of(&seg.history, p.messages), now) else { println!("err"); continue };
            let is: Vec<String> = f.plan.decisions().iter().map(|d| format!("{:?}", d.verdict).chars().take(300).collect()).collect();
            let ch: Vec<String> = f.plan.decisions().iter().enumerate().filter(|(i, d)| prev.get(*i).is_some_and(|w| *w != is[*i])).map(|(i, d)| format!("{}{}{:?}{}->{}", i, match d.verdict { Verdict::Drop => "D", Verdict::Keep => "K", _ => "S" }, f.plan.moment_of(d.block).unwrap(), f.plan.tokens_of(d.block).0.0, f.plan.tokens_of(d.block).1.0)).collect();
            if !ch.is_empty() || f.plan.broken().is_some() {
                println!("req {n} blocks {} raw {} sent {} budget {} broken {:?} floor {:?} changed {}: {}", is.len(), f.plan.before(), f.plan.after(), f.budget.unwrap(), f.plan.broken().map(|b| (b.block.0, b.rewritten.0)), f.plan.floor().map(|f| f.tokens), ch.len(), ch.iter().take(14).cloned().collect::<Vec<_>>().join(" "));
            }
            prev = is;
            s.sent(&f);
        }
        println!("---");
    }
}
