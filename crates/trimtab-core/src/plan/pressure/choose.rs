//! Chooses what makes room, and from which place on. Takes what could be hidden ([`Room`]) as plain values: where it stands, what
//! hiding it frees, how much it is expected to be needed; gives the order in which to hide ([`Cut`]). Knows neither blocks nor
//! policies: `make_room` does.
//!
//! Everything after the first change of a request must be cached again. So it can cost less to hide more that is needed near the end
//! than less near the beginning: several beginnings are tried, each with the candidates that stand after it in order of need
//! lost per token freed, and the one with the least sum of caching again and of fetching again what is missed is chosen.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use super::super::CachePrices;

/// The shares of the request at which a cut may begin.
const STARTS: [f64; 7] = [0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.88];

/// What fetching costs beside its tokens: the call that the model writes, in tokens at the plain input price.
const CALL: f64 = 750.0;

/// One text that could become a note: a result or the arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HideablePart {
    /// Where it stands: the number of its block.
    pub(super) place: usize,
    /// How many tokens hiding it frees.
    pub(super) frees: f64,
    /// How often it is expected to be needed.
    pub(super) need: f64,
    /// The parts that must be hidden before it, or they would pass for the newest.
    pub(super) first: Vec<usize>,
}

/// One exchange that could go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Going {
    /// Where it begins.
    pub(super) place: usize,
    /// How many tokens it has, with all its parts whole.
    pub(super) frees: f64,
    /// How much it is needed beside its parts: as the record of what was done.
    pub(super) need: f64,
    /// Its parts.
    pub(super) parts: Vec<usize>,
    /// The parts of other exchanges that must be hidden before it goes.
    pub(super) first: Vec<usize>,
}

/// All that could be hidden, and what the request counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    pub(super) parts: Vec<HideablePart>,
    pub(super) exchanges: Vec<Going>,
    /// For every place, the tokens that must be cached again where it changes; all zero where nothing is cached.
    pub(super) cached_after: Vec<f64>,
    /// For every place, the tokens that precede it.
    pub(super) before: Vec<f64>,
    /// What is to be freed.
    pub(super) excess: f64,
}

/// What hiding costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stakes {
    pub(super) prices: CachePrices,
    /// The tokens that a request reads beside what it fetches.
    pub(super) request: f64,
    /// How many requests are expected to profit from tokens that are gone.
    pub(super) expected: f64,
    /// What a missed text costs, as a multiple of fetching it again.
    pub(super) miss: f64,
    /// What hiding more than must be has to gain, as a multiple of what is missed.
    pub(super) ride: f64,
}

impl Stakes {
    /// Returns what hiding something costs by its being missed, in tokens at the plain input price.
    fn loss(&self, need: f64, frees: f64) -> f64 {
        self.miss * need * (self.prices.write * frees + self.prices.read * self.request + CALL)
    }

    fn rewriting(&self) -> f64 {
        (self.prices.write - self.prices.read).max(0.0)
    }
}

/// One thing to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    Part(usize),
    Exchange(usize),
}

/// Where a cut begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// At the first candidate: what is taken for less room is taken for more.
    Anywhere,
    /// Where the sum is least.
    Cheapest,
}

/// What to hide, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Cut {
    /// What is to be hidden until there is room enough; where the cut may begin anywhere, all there is.
    pub(super) takes: Vec<Take>,
    /// How many of these are enough, by what they are expected to free.
    pub(super) enough: usize,
    /// What is worth hiding with it, because caching again what follows is paid anyway.
    pub(super) riding: Vec<Take>,
}

/// Chooses the cut whose sum is least; of those that make too little room, the one that makes most.
pub(super) fn choose(room: &Room, stakes: Stakes, beginning: Beginning) -> Cut {
    let all = room.before.last().copied().unwrap_or_default();
    let starts = match beginning {
        Beginning::Anywhere => STARTS.get(..1).unwrap_or_default(),
        Beginning::Cheapest => &STARTS,
    };
    let mut best: Option<(bool, f64, Cut)> = None;
    for start in starts {
        let from = room.before.partition_point(|before| *before < all * start);
        let tried = Greedy::new(room, from).run(stakes, beginning);
        let better = match &best {
            None => true,
            Some((is_enough, least, _)) if *is_enough == tried.is_enough => tried.sum < *least,
            Some((is_enough, ..)) => !is_enough,
        };
        if better {
            best = Some((tried.is_enough, tried.sum, tried.cut));
        }
    }
    best.map(|(.., cut)| cut).unwrap_or_default()
}

/// Chooses what to hide before there is need for room: from the place on where that saves most, all that saves more over the
/// requests to come than it costs by being missed. `may_cost` is what it may cost now.
pub(super) fn choose_ahead(room: &Room, stakes: Stakes, may_cost: f64) -> Vec<Take> {
    let gain = |part: &HideablePart| {
        let saved = stakes.expected * stakes.prices.read * part.frees;
        saved - stakes.ride * stakes.loss(part.need, part.frees)
    };
    let mut worth: Vec<(usize, &HideablePart)> =
        room.parts.iter().enumerate().filter(|(_, part)| part.first.is_empty() && gain(part) > 0.0).collect();
    worth.sort_by_key(|(number, part)| (Reverse(part.place), *number));
    let (mut most, mut best, mut gained, mut freed) = (0.0, 0, 0.0, 0.0);
    for (count, (_, part)) in worth.iter().enumerate() {
        gained += gain(part);
        freed += part.frees;
        let again = room.cached_after.get(part.place).copied().unwrap_or_default();
        let now = stakes.rewriting() * (again - freed).max(0.0);
        if gained - now > most && now - stakes.prices.read * freed <= may_cost {
            (most, best) = (gained - now, count + 1);
        }
    }
    worth.truncate(best);
    worth.into_iter().map(|(number, _)| Take::Part(number)).collect()
}

/// A cut that was tried.
struct Tried {
    is_enough: bool,
    /// What it costs; where it is not enough, how much is missing.
    sum: f64,
    cut: Cut,
}

/// Hides one thing after the other, from a place on.
struct Greedy<'a> {
    room: &'a Room,
    from: usize,
    is_taken: Vec<bool>,
    is_gone: Vec<bool>,
    /// What each exchange still frees, and is still needed.
    left: Vec<(f64, f64)>,
    exchange_of: Vec<Option<usize>>,
    queue: BinaryHeap<Reverse<Ranked>>,
}

/// A candidate by need lost per token freed; of equals, the older first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked {
    score: f64,
    place: usize,
    take: Take,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let kind = |take: Take| matches!(take, Take::Exchange(_));
        let by_score = self.score.total_cmp(&other.score).then(self.place.cmp(&other.place));
        by_score.then(kind(self.take).cmp(&kind(other.take)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Greedy<'a> {
    fn new(room: &'a Room, from: usize) -> Greedy<'a> {
        let part = |number: &usize| room.parts.get(*number);
        let left = room.exchanges.iter().map(|going| {
            let needed: f64 = going.parts.iter().filter_map(part).map(|part| part.need).sum();
            (going.frees, going.need + needed)
        });
        let mut exchange_of = vec![None; room.parts.len()];
        for (number, going) in room.exchanges.iter().enumerate() {
            for part in &going.parts {
                exchange_of.get_mut(*part).into_iter().for_each(|slot| *slot = Some(number));
            }
        }
        let mut greedy = Greedy {
            room,
            from,
            is_taken: vec![false; room.parts.len()],
            is_gone: vec![false; room.exchanges.len()],
            left: left.collect(),
            exchange_of,
            queue: BinaryHeap::new(),
        };
        for (number, part) in room.parts.iter().enumerate() {
            greedy.push(Take::Part(number), part.place, part.need, part.frees);
        }
        (0..room.exchanges.len()).for_each(|number| greedy.push_exchange(number));
        greedy
    }

    fn push(&mut self, take: Take, place: usize, need: f64, frees: f64) {
        if place >= self.from && frees > 0.0 {
            self.queue.push(Reverse(Ranked { score: need / frees, place, take }));
        }
    }

    fn push_exchange(&mut self, number: usize) {
        let going = self.room.exchanges.get(number);
        if let (Some(going), Some((frees, need))) = (going, self.left.get(number).copied()) {
            self.push(Take::Exchange(number), going.place, need, frees);
        }
    }

    fn run(mut self, stakes: Stakes, beginning: Beginning) -> Tried {
        let mut cut = Cut::default();
        let (mut freed, mut loss, mut place) = (0.0, 0.0, usize::MAX);
        while let Some(Reverse(ranked)) = self.queue.pop() {
            let Some(first) = self.open_before(ranked) else { continue };
            let steps = first.into_iter().map(Take::Part).chain([ranked.take]);
            let steps: Vec<(Take, f64, f64, usize)> = steps
                .filter_map(|take| self.take(take).map(|(frees, need, at)| (take, frees, need, at)))
                .collect();
            let is_enough = freed >= self.room.excess;
            if is_enough && beginning == Beginning::Anywhere {
                // What frees less than expected is made up for by what comes next.
                cut.takes.extend(steps.iter().map(|(take, ..)| *take));
                continue;
            }
            if is_enough {
                // Caching again what follows the first change is paid: what is gone by then need not be.
                let gain = stakes.expected * stakes.prices.read + stakes.rewriting();
                let worth: f64 = steps
                    .iter()
                    .map(|(_, frees, need, _)| gain * frees - stakes.ride * stakes.loss(*need, *frees))
                    .sum();
                let is_after = steps.iter().all(|(.., at)| *at >= place);
                if is_after && worth > 0.0 {
                    cut.riding.extend(steps.iter().map(|(take, ..)| *take));
                    freed += steps.iter().map(|(_, frees, ..)| frees).sum::<f64>();
                    // It puts the next cut off, too: what it saves now counts here beside the tokens that are not cached again.
                    loss -= worth;
                }
                continue;
            }
            for (take, frees, need, at) in steps {
                freed += frees;
                loss += stakes.loss(need, frees);
                place = place.min(at);
                cut.takes.push(take);
                cut.enough = cut.takes.len();
            }
        }
        let is_enough = freed >= self.room.excess;
        let again = self.room.cached_after.get(place).copied().unwrap_or_default();
        let sum = stakes.rewriting() * (again - freed).max(0.0) + loss;
        Tried { is_enough, sum: if is_enough { sum } else { self.room.excess - freed }, cut }
    }

    /// Returns what must be hidden before a candidate; nothing where the candidate is out of date or that precedes the cut.
    fn open_before(&self, ranked: Ranked) -> Option<Vec<usize>> {
        let taken = |part: usize| self.is_taken.get(part).copied().unwrap_or(true);
        let first = match ranked.take {
            Take::Part(part) if taken(part) => return None,
            Take::Part(part) => &self.room.parts.get(part)?.first,
            Take::Exchange(number) => {
                let (frees, need) = self.left.get(number)?;
                let is_current = (need / frees).total_cmp(&ranked.score) == Ordering::Equal;
                if self.is_gone.get(number).copied().unwrap_or(true) || !is_current {
                    return None;
                }
                &self.room.exchanges.get(number)?.first
            }
        };
        let open: Vec<usize> = first.iter().copied().filter(|part| !taken(*part)).collect();
        let is_after = |part: &usize| self.room.parts.get(*part).is_some_and(|part| part.place >= self.from);
        open.iter().all(is_after).then_some(open)
    }

    /// Takes one thing; gives what that frees, how much it was needed, and where it stands.
    fn take(&mut self, take: Take) -> Option<(f64, f64, usize)> {
        match take {
            Take::Part(number) => {
                let part = self.room.parts.get(number)?;
                let slot = self.is_taken.get_mut(number)?;
                if std::mem::replace(slot, true) {
                    return None;
                }
                if let Some(exchange) = self.exchange_of.get(number).copied().flatten() {
                    if let Some(left) = self.left.get_mut(exchange) {
                        *left = (left.0 - part.frees, left.1 - part.need);
                    }
                    self.push_exchange(exchange);
                }
                Some((part.frees, part.need, part.place))
            }
            Take::Exchange(number) => {
                let going = self.room.exchanges.get(number)?;
                let slot = self.is_gone.get_mut(number)?;
                if std::mem::replace(slot, true) {
                    return None;
                }
                for part in &going.parts {
                    self.is_taken.get_mut(*part).into_iter().for_each(|taken| *taken = true);
                }
                let (frees, need) = self.left.get(number).copied()?;
                Some((frees, need, going.place))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAKES: Stakes = Stakes {
        prices: CachePrices { read: 0.1, write: 2.0 },
        request: 10_000.0,
        expected: 5.0,
        miss: 30.0,
        ride: 2.0,
    };

    /// A request of parts of 1,000 tokens each, of which 900 can go.
    fn room(needs: &[f64], excess: f64) -> Room {
        let thousand = |number: usize| 1000.0 * f64::from(u32::try_from(number).unwrap());
        let parts = needs.iter().enumerate();
        Room {
            parts: parts
                .map(|(place, need)| HideablePart { place, frees: 900.0, need: *need, first: Vec::new() })
                .collect(),
            exchanges: Vec::new(),
            cached_after: (0..needs.len()).map(|place| thousand(needs.len() - place)).collect(),
            before: (0..needs.len()).map(thousand).collect(),
            excess,
        }
    }

    fn parts(takes: &[Take]) -> Vec<usize> {
        let number = |take: &Take| match take {
            Take::Part(number) => *number,
            Take::Exchange(number) => 100 + number,
        };
        takes.iter().map(number).collect()
    }

    #[track_caller]
    fn check(room: &Room, beginning: Beginning, takes: &[usize]) {
        let cut = choose(room, STAKES, beginning);
        assert_eq!(parts(&cut.takes[..cut.enough]), takes);
    }

    #[test]
    fn what_is_needed_least_for_its_size_goes_first_and_of_equals_the_older() {
        let mut room = room(&[0.3, 0.1, 0.2, 0.1], 1500.0);
        check(&room, Beginning::Anywhere, &[1, 3]);
        // Half the need for a third of the tokens is more need per token.
        room.parts[1].need = 0.15;
        room.parts[1].frees = 300.0;
        check(&room, Beginning::Anywhere, &[3, 2]);
    }

    #[test]
    fn a_place_near_the_end_is_chosen_where_caching_again_costs_more_than_what_is_missed() {
        // One part must go. From the first on, 1.9 x (10,000 - 900) = 17,290 tokens are cached again; from the last on, 1.9 x 100 =
        // 190. Missing costs 30 x need x (2 x 900 + 0.1 x 10,000 + 750) = 106,500 x need: for 0.1 more, 10,650.
        let mut needs = [1.0; 10];
        (needs[0], needs[9]) = (0.1, 0.2);
        check(&room(&needs, 900.0), Beginning::Cheapest, &[9]);
        // For 0.2 more it is 21,300.
        needs[9] = 0.3;
        check(&room(&needs, 900.0), Beginning::Cheapest, &[0]);
        check(&room(&needs, 900.0), Beginning::Anywhere, &[0]);
    }

    #[test]
    fn what_follows_the_cut_and_is_not_needed_goes_with_it() {
        let needs = [1.0, 0.0, 1.0, 0.0001, 0.5];
        let cut = choose(&room(&needs, 900.0), STAKES, Beginning::Cheapest);
        // (5 x 0.1 + 1.9) x 900 = 2,160 against 2 x 106,500 x 0.0001 = 21.
        assert_eq!((parts(&cut.takes), parts(&cut.riding)), (vec![1], vec![3]));
        let cut = choose(&room(&needs, 900.0), STAKES, Beginning::Anywhere);
        assert_eq!((cut.enough, parts(&cut.takes), parts(&cut.riding)), (1, vec![1, 3, 4, 0, 2], vec![]));
    }

    #[test]
    fn what_is_hardly_needed_is_hidden_ahead_where_little_is_cached_again() {
        // Ten requests read 900 tokens less each: 900. Needed once in 10,000 times it is missed for 2 x 10.65.
        let stakes = Stakes { expected: 10.0, ..STAKES };
        let ahead = |needs: &[f64], may_cost| parts(&choose_ahead(&room(needs, 0.0), stakes, may_cost));
        // At the end 1.9 x 100 are cached again for it; before a whole thousand 1.9 x 1,100.
        assert_eq!(ahead(&[1.0, 1.0, 1e-4], f64::INFINITY), [2]);
        assert_eq!(ahead(&[1.0, 1e-4, 1.0], f64::INFINITY), Vec::<usize>::new());
        // Two pay together what one does not: 2 x 879 against 1.9 x 200.
        assert_eq!(ahead(&[1.0, 1e-4, 1e-4], f64::INFINITY), [2, 1]);
        // 190 now, less the 90 that this request need not read.
        assert_eq!(ahead(&[1.0, 1.0, 1e-4], 99.0), Vec::<usize>::new());
        assert_eq!(ahead(&[1.0, 1.0, 1e-2], f64::INFINITY), Vec::<usize>::new(), "it is missed too often");
    }

    #[test]
    fn an_exchange_whose_result_went_is_weighed_by_what_is_left_of_it() {
        let mut room = room(&[0.01, 0.3], 1000.0);
        room.exchanges = vec![
            Going { place: 0, frees: 1200.0, need: 0.02, parts: vec![0], first: Vec::new() },
            Going { place: 1, frees: 1200.0, need: 0.02, parts: vec![1], first: Vec::new() },
        ];
        // 0.01 / 900 comes before 0.03 / 1,200; then what is left, 0.02 / 300, comes before 0.3 / 900.
        check(&room, Beginning::Anywhere, &[0, 100]);
        room.excess = 900.0;
        check(&room, Beginning::Anywhere, &[0]);
    }

    #[test]
    fn an_older_view_goes_before_the_newer_one_or_neither() {
        let mut room = room(&[0.5, 1.0, 0.1], 900.0);
        room.parts[2].first = vec![0];
        check(&room, Beginning::Anywhere, &[0, 2]);
        // A cut after the older view has no place for the newer one.
        room.before = vec![0.0, 9000.0, 9100.0];
        room.cached_after = vec![1e9, 100.0, 50.0];
        check(&room, Beginning::Cheapest, &[1]);
    }

    #[test]
    fn where_there_is_not_enough_all_goes_that_can() {
        check(&room(&[0.2, 0.1], 5000.0), Beginning::Cheapest, &[1, 0]);
    }
}
