#![allow(warnings, clippy::all, clippy::pedantic, clippy::restriction)]
use std::sync::Mutex;
use trimtab_core::*;
fn walk(p: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
    if p.is_dir() { let mut v: Vec<_> = std::fs::read_dir(p).unwrap().map(|e| e.unwrap().path()).collect(); v.sort(); for e in v { walk(&e, out) } }
    else if p.extension().is_some_and(|e| e == "jsonl" || e == "json") { out.push(p.to_owned()) }
}
// sweep usual|recorded BUDGETS REPO=POLICY[,POLICY]...
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let kept = if a[0] == "recorded" { Kept::AsRecorded } else { Kept::Usually };
    let budgets: Vec<f64> = a[1].split(',').map(|b| b.parse().unwrap()).collect();
    let model = find_model("claude-opus-5").unwrap();
    for spec in &a[2..] {
        let (repo, pols) = spec.split_once('=').unwrap();
        let cons: Vec<Contender> = pols.split(',').map(|p| if p.ends_with(".toml") { Contender::from_toml(p, &std::fs::read_to_string(p).unwrap()).unwrap() } else { Contender::parse(p).unwrap() }).collect();
        let mut files = Vec::new(); walk(repo.as_ref(), &mut files);
        for b in &budgets {
            let next = Mutex::new(0usize); let res = Mutex::new(Vec::new());
            std::thread::scope(|s| for _ in 0..2 { s.spawn(|| loop {
                let i = { let mut n = next.lock().unwrap(); *n += 1; *n - 1 };
                let Some(f) = files.get(i) else { break };
                let Ok(rec) = read(&std::fs::read(f).unwrap()) else { continue };
                let terms = Terms { budget: Some(Budget::OfPeak(*b)), kept, ..Terms::default() };
                let segs: Vec<Vec<Score>> = rec.segments.iter().map(|seg| replay(seg, &cons, &[model.clone()], &terms)).collect();
                if let Some(x) = SessionScores::of(f.display().to_string(), segs) { res.lock().unwrap().push((i, x)); }
            }); });
            let mut v = res.into_inner().unwrap(); v.sort_by_key(|x| x.0);
            for c in 0..cons.len() {
                let (mut d, mut r, mut h, mut o, mut sh, mut so, mut br, mut over, mut inv, mut worst, mut dear, mut req) = (0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0f64, 0, 0);
                let mut us: Vec<u32> = vec![];
                for (_, x) in &v { let s = &x.scores[c]; d += s.dollars; r += s.raw_dollars; h += s.edit_anchors.held; o += s.edit_anchors.of; sh += s.strict_references.held; so += s.strict_references.of; br += s.cache_breaks; over += s.over_budget_requests; inv += s.invalid_requests; worst = worst.max(s.cost_vs_raw()); dear += (s.dollars > s.raw_dollars * 1.000000001) as u32; req += s.requests; us.extend(&s.plan_us) }
                println!("{}\t{}\t{}\t{b}\t{d}\t{r}\t{h}\t{o}\t{sh}\t{so}\t{br}\t{over}\t{inv}\t{worst:.3}\t{dear}\t{}\t{req}", a[0], std::path::Path::new(repo).file_name().unwrap().to_str().unwrap(), cons[c].name(), v.len());
            }
        }
    }
}
