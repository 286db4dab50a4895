'use strict';
// Draws the page from its data. Words of recordings are only ever set as text, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const at = (id) => document.getElementById(id);
const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
const MINUS = '\u2212';
const signed = (number, digits) => {
  const text = Math.abs(number).toFixed(digits);
  return (Number(text) === 0 ? '' : number < 0 ? MINUS : '+') + text;
};
const percent = (ratio, digits = 1) => signed((ratio - 1) * 100, digits) + '\u2009%';
const cut = (share) => (share >= 1 ? '1' : (Math.floor(share * 1000) / 1000).toFixed(3).replace(/^0/, ''));
const recall = (share, of) => (of === 0 ? '–' : cut(share));
const grouped = (number) => Math.round(number).toLocaleString('en-US');
const short = (number) => (number >= 995000 ? (number / 1e6).toFixed(1) + 'M' : number >= 9950 ? (number / 1e3).toFixed(0) + 'k'
  : number >= 999.5 ? (number / 1e3).toFixed(1) + 'k' : number >= 100 || Number.isInteger(number) ? number.toFixed(0) : number.toFixed(1));
const entrantOf = new Map(data.entrants.map((entrant) => [entrant.name, entrant]));
const rowsOf = (model) => data.rows.filter((row) => row.model === model);
// The folder that all sessions share is said once.
const paths = [...data.rows.map((row) => row.worst_session), ...data.curves.map((one) => one.session), ...data.misses.map((miss) => miss.session)];
const folder = (() => {
  let shared = paths[0] || '';
  for (const path of paths) while (!path.startsWith(shared)) shared = shared.slice(0, -1);
  return shared.slice(0, shared.lastIndexOf('/') + 1);
})();
const nameOf = (session) => session.slice(folder.length);
const LOSSES = [
  ['edit_anchor_recall', 'edit_anchors', 'edit anchors: texts to be replaced'],
  ['strict_reference_recall', 'strict_references', 'names that nobody guesses'],
  ['reference_recall', 'references', 'all names first used'],
  ['copied_line_recall', 'copied_lines', 'copied lines'],
  ['error_retention', 'errors', 'open errors'],
  ['instruction_retention', 'instructions', 'instructions'],
];
const PRICES = [
  ['cost_vs_raw', 'input dollars', 'cost_vs_raw_95'],
  ['cost_net_vs_raw', 'input dollars, with fetching again what was missed', 'cost_net_vs_raw_95'],
  ['tokens_vs_raw', 'input tokens', null],
];

// The tip: one box for the mouse, the finger and the keyboard.
const tip = at('tip');
function showTip(words, target) {
  tip.textContent = words;
  tip.hidden = false;
  const box = target.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 10;
  tip.style.left = left + window.scrollX + 'px';
  tip.style.top = (above > 0 ? above : box.bottom + 10) + window.scrollY + 'px';
}
const hideTip = () => { tip.hidden = true; };
const tipped = (words) => ({
  onmouseenter: (event) => showTip(words, event.currentTarget), onmouseleave: hideTip,
  onfocus: (event) => showTip(words, event.currentTarget), onblur: hideTip,
  onclick: (event) => showTip(words, event.currentTarget),
});
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });

// Marks differ in shape as well as in colour.
function shape(family, size) {
  if (family === 'policy') return draw('circle', { r: size, class: 'policy' });
  if (family === 'peer') return draw('rect', { x: -size, y: -size, width: 2 * size, height: 2 * size, class: 'peer' });
  const far = size * 1.5;
  return draw('path', { d: `M0 ${-far}L${far} 0L0 ${far}L${-far} 0Z`, class: 'oracle' });
}

// Linear while the range is small; else far values move closer together, and the axis says so.
function costScale(values, width, left, right) {
  const low = Math.min(-5, ...values), high = Math.max(5, ...values);
  const pressed = high - low > 110;
  const bend = (value) => (pressed ? Math.asinh(value / 15) : value);
  const from = bend(low) - (bend(high) - bend(low)) * 0.04, to = bend(high) + (bend(high) - bend(low)) * 0.04;
  const place = (value) => left + ((bend(value) - from) / (to - from)) * (width - left - right);
  const steps = pressed ? [-80, -50, -30, -20, -10, 0, 10, 20, 50, 100, 200, 500, 1000]
    : Array.from({ length: 41 }, (_, index) => (index - 20) * (high - low > 50 ? 20 : high - low > 22 ? 10 : 5));
  const ticks = [];
  for (const tick of [0, ...steps].filter((tick) => tick >= low - 3 && tick <= high + 3)) {
    if (ticks.every((other) => Math.abs(place(other) - place(tick)) > 44)) ticks.push(tick);
  }
  return { place, ticks, pressed };
}
const tickName = (tick) => (tick === 0 ? 'untrimmed' : signed(tick, 0) + '\u2009%');

function describe(row) {
  const entrant = entrantOf.get(row.policy);
  const range = row.cost_vs_raw_95 ? ` (95 %: ${percent(row.cost_vs_raw_95[0])} to ${percent(row.cost_vs_raw_95[1])})` : '';
  return `${row.policy}\n${entrant ? entrant.about + '\n' : ''}dollars ${percent(row.cost_vs_raw)}${range}\n` +
    `with re-fetches ${percent(row.cost_net_vs_raw)}, tokens ${percent(row.tokens_vs_raw)}\n` +
    `visible when needed: edit anchors ${recall(row.edit_anchor_recall, row.edit_anchors)}, names ${recall(row.strict_reference_recall, row.strict_references)}, ` +
    `lines ${recall(row.copied_line_recall, row.copied_lines)}\nworst session ${percent(row.worst_session_vs_raw, 0)}, dearer in ${(row.sessions_dearer * 100).toFixed(0)} % of sessions`;
}

// Which policies are drawn: all, each at its first setting, or one with all its settings beside those of trimtab and the bounds.
function isShown(policy) {
  const entrant = entrantOf.get(policy), chosen = at('shown').value;
  if (!entrant || chosen === 'all') return true;
  if (chosen === 'first') return data.entrants.find((other) => other.curve === entrant.curve) === entrant;
  return entrant.family !== 'peer' || entrant.curve === chosen;
}

function pareto() {
  const [lostKey, lostCount, lostName] = LOSSES[at('lost').value];
  const [priceKey, priceName, priceRange] = PRICES[at('price').value];
  const panels = data.models.map((model) => {
    const figure = make('figure', {}, make('figcaption', {}, make('strong', {}, model.name), make('span', {},
      ` – $${model.input} per million tokens, $${model.cache_read} cached; rewriting costs ${model.rewriting.toFixed(1)} reads more`)));
    return [figure, rowsOf(model.name).filter((row) => isShown(row.policy))];
  });
  at('pareto').replaceChildren(...panels.map(([figure]) => figure));
  for (const [figure, rows] of panels) {
    const width = Math.max(280, figure.clientWidth - 20), height = width < 420 ? 400 : 420;
    figure.append(panel(rows, width, height));
  }
  function panel(rows, width, height) {
    const left = 46, right = 12, top = 14, floor = height - 108, bottom = height - 42;
    const value = (row) => (row[priceKey] - 1) * 100;
    const scale = costScale(rows.map(value), width, left, right);
    const lost = (row) => 1 - row[lostKey];
    const least = Math.min(0.01, ...rows.map(lost).filter((share) => share > 0)) / 1.6;
    const most = Math.min(1, Math.max(0.02, ...rows.map(lost)) * 1.5);
    const y = (row) => (lost(row) <= 0 ? bottom - 18 : top + ((Math.log(most) - Math.log(lost(row))) / (Math.log(most) - Math.log(least))) * (floor - top));
    const svg = draw('svg', { width, height, role: 'group', 'aria-label': `${priceName} against lost ${lostName}` });
    for (const share of [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001]) {
      if (share > most || share < least) continue;
      const line = top + ((Math.log(most) - Math.log(share)) / (Math.log(most) - Math.log(least))) * (floor - top);
      svg.append(draw('line', { x1: left, x2: width - right, y1: line, y2: line, class: 'grid' }),
        draw('text', { x: left - 6, y: line + 4, 'text-anchor': 'end', class: 'axis' }, Number((share * 100).toPrecision(1)) + '\u2009%'));
    }
    svg.append(draw('rect', { x: left, y: floor + 14, width: width - left - right, height: bottom - floor - 14, fill: 'var(--fill)', rx: 4 }),
      draw('text', { x: left - 6, y: bottom - 20, 'text-anchor': 'end', class: 'axis' }, 'none'),
      draw('text', { x: left - 6, y: bottom - 7, 'text-anchor': 'end', class: 'axis' }, 'lost'));
    for (const tick of scale.ticks) {
      const x = scale.place(tick);
      svg.append(draw('line', { x1: x, x2: x, y1: top, y2: bottom, class: tick === 0 ? 'zero' : 'grid' }),
        draw('text', { x: Math.min(x, width - 28), y: bottom + 16, 'text-anchor': 'middle', class: 'axis' }, tickName(tick)));
    }
    svg.append(draw('text', { x: width - right, y: height - 6, 'text-anchor': 'end', class: 'axis' }, priceName + (scale.pressed ? ' (far values pressed together)' : '')));
    const curves = new Map();
    for (const row of rows) {
      const entrant = entrantOf.get(row.policy);
      if (entrant && entrant.knob) curves.set(entrant.curve, [...(curves.get(entrant.curve) || []), [entrant.knob[1], row]]);
    }
    for (const points of curves.values()) {
      if (points.length < 2) continue;
      points.sort((one, other) => one[0] - other[0]);
      svg.append(draw('polyline', { points: points.map(([, row]) => `${scale.place(value(row))},${y(row)}`).join(' '), class: 'thin joins ' + entrantOf.get(points[0][1].policy).family }));
    }
    const spots = rows.map((row) => ({ row, x: scale.place(value(row)), y: y(row), family: (entrantOf.get(row.policy) || { family: 'policy' }).family }));
    // Marks without a loss share one line: those that would cover each other are set one above the other.
    const band = [];
    for (const spot of spots.filter((spot) => lost(spot.row) <= 0).sort((one, other) => one.x - other.x)) {
      let level = 0;
      while (band.some((other) => other.level === level && Math.abs(other.x - spot.x) < 15)) level += 1;
      spot.y = bottom - 10 - (level % 3) * 17;
      band.push({ x: spot.x, level });
    }
    const taken = spots.map((spot) => ({ x: spot.x - 7, y: spot.y - 7, w: 14, h: 14 }));
    const clash = (box) => taken.some((other) => box.x < other.x + other.w && other.x < box.x + box.w && box.y < other.y + other.h && other.y < box.y + box.h);
    const order = { policy: 0, oracle: 1, peer: 2 };
    const texts = draw('g', {}), marks = draw('g', {});
    for (const spot of [...spots].sort((one, other) => order[one.family] - order[other.family])) {
      const range = priceRange && spot.row[priceRange];
      if (range) svg.append(draw('line', { x1: Math.max(left, scale.place((range[0] - 1) * 100)), x2: Math.min(width - 2, scale.place((range[1] - 1) * 100)), y1: spot.y, y2: spot.y, class: 'whisker ' + spot.family }));
      const name = spot.row.policy.replace(/^peer:/, '').replace(/^oracle:(.*)$/, '$1 bound').replace(/000\)$/, 'k)');
      const wide = name.length * 6.4 + 2;
      const places = [];
      for (const far of [0, 12, 26, 42]) {
        for (const [dx, dy] of [[11 + far, 4], [-11 - far - wide, 4], [-wide / 2, -11 - far], [-wide / 2, 20 + far], [9 + far, -8 - far], [-9 - far - wide, -8 - far], [9 + far, 16 + far], [-9 - far - wide, 16 + far]]) {
          places.push({ far, x: spot.x + dx, y: spot.y + dy });
        }
      }
      const found = places.find((place) => {
        const box = { x: place.x, y: place.y - 11, w: wide, h: 14 };
        return box.x > left - 4 && box.x + box.w < width - 2 && box.y > 0 && box.y + box.h < bottom && !clash(box);
      });
      if (found) {
        taken.push({ x: found.x, y: found.y - 11, w: wide, h: 14 });
        if (found.far > 0) {
          const end = Math.max(found.x, Math.min(spot.x, found.x + wide));
          svg.append(draw('line', { x1: spot.x, y1: spot.y, x2: end, y2: found.y > spot.y ? found.y - 9 : found.y + 2, class: 'leader' }));
        }
        texts.append(draw('text', { x: found.x, y: found.y, class: spot.family }, name));
      }
      const words = describe(spot.row);
      marks.append(draw('g', { class: 'mark', transform: `translate(${spot.x} ${spot.y})`, tabindex: 0, role: 'img', 'aria-label': words, ...tipped(words) },
        draw('circle', { r: 12, class: 'halo' }), shape(spot.family, 5)));
    }
    svg.append(marks, texts);
    return svg;
  }
}

// The table.
const COLUMNS = [
  ['tokens', (row) => row.tokens_vs_raw, (row) => percent(row.tokens_vs_raw), 'input tokens of all requests'],
  ['dollars', (row) => row.cost_vs_raw, (row) => percent(row.cost_vs_raw), 'input dollars'],
  ['95 %', (row) => (row.cost_vs_raw_95 || [0])[0], (row) => (row.cost_vs_raw_95 ? row.cost_vs_raw_95.map((end) => percent(end)).join(' … ') : '–'), 'of dollars, by drawing sessions again'],
  ['net', (row) => row.cost_net_vs_raw, (row) => percent(row.cost_net_vs_raw), 'dollars with fetching again what was missed'],
  ['worst session', (row) => row.worst_session_vs_raw, (row) => percent(row.worst_session_vs_raw, 0), 'dollars of the session that is dearest against untrimmed'],
  ['dearer', (row) => row.sessions_dearer, (row) => (row.sessions_dearer * 100).toFixed(0) + '\u2009%', 'share of sessions that cost more than untrimmed'],
  ['cache breaks', (row) => row.cache_breaks, (row) => short(row.cache_breaks), 'per session'],
  ['edit anchors', (row) => row.edit_anchor_recall, (row) => recall(row.edit_anchor_recall, row.edit_anchors), 'share of texts to be replaced that were still visible'],
  ['names, strict', (row) => row.strict_reference_recall, (row) => recall(row.strict_reference_recall, row.strict_references), 'share of names that nobody guesses'],
  ['names', (row) => row.reference_recall, (row) => recall(row.reference_recall, row.references), 'share of all names first used'],
  ['copied lines', (row) => row.copied_line_recall, (row) => recall(row.copied_line_recall, row.copied_lines), 'share of copied lines that were still visible'],
  ['errors', (row) => row.error_retention, (row) => recall(row.error_retention, row.errors), 'share of open errors that were still visible'],
  ['instructions', (row) => row.instruction_retention, (row) => recall(row.instruction_retention, row.instructions), 'share of instructions that were still visible'],
  ['stale tokens', (row) => row.unmarked_stale_tokens, (row) => short(row.unmarked_stale_tokens), 'no longer true and not marked, summed over requests, per session'],
  ['fetch again', (row) => row.forced_refetches, (row) => short(row.forced_refetches), 'hidden blocks that had to be fetched again, per session'],
  ['refused', (row) => row.invalid_requests, (row) => grouped(row.invalid_requests), 'requests that break a rule of the protocol'],
  ['over budget', (row) => row.over_budget_requests, (row) => grouped(row.over_budget_requests), 'requests above the budget'],
  ['plan, µs', (row) => row.plan_us_p50, (row) => (row.plan_us_p50 === null ? '–' : short(row.plan_us_p50) + ' / ' + short(row.plan_us_p99)), 'time of a plan: median / 99 of 100'],
];
let sorting = null;
function figures() {
  const rows = rowsOf(document.querySelector('select.model').value);
  if (sorting) rows.sort((one, other) => sorting.sign * ((COLUMNS[sorting.column][1](one) ?? -1) - (COLUMNS[sorting.column][1](other) ?? -1)));
  const head = (name, column, about) => {
    const sorted = sorting && sorting.column === column;
    const press = () => {
      sorting = column === null ? null : { column, sign: sorted ? -sorting.sign : 1 };
      figures();
      at('figures').querySelectorAll('thead button')[column === null ? 0 : column + 1].focus();
    };
    return make('th', { scope: 'col', 'aria-sort': sorted ? (sorting.sign > 0 ? 'ascending' : 'descending') : null, title: about },
      make('button', { type: 'button', onclick: press }, name + (sorted ? (sorting.sign > 0 ? ' ↑' : ' ↓') : '')));
  };
  let family = null;
  const lines = rows.map((row) => {
    const own = (entrantOf.get(row.policy) || {}).family;
    const split = !sorting && family !== null && family !== own;
    family = own;
    return make('tr', { class: split ? 'split' : null }, make('th', { scope: 'row', title: (entrantOf.get(row.policy) || {}).about }, row.policy),
      ...COLUMNS.map(([, , cell]) => make('td', {}, cell(row))));
  });
  at('figures').replaceChildren(make('thead', {}, make('tr', {}, head('policy', null, 'in their own order'), ...COLUMNS.map(([name, , , about], index) => head(name, index, about)))), make('tbody', {}, ...lines));
}

function spread() {
  const model = document.querySelectorAll('select.model')[1].value;
  const rows = data.rows.map((row, index) => [row, data.spread[index]]).filter(([row]) => row.model === model);
  const all = rows.flatMap(([, ratios]) => ratios).map((ratio) => (ratio - 1) * 100);
  const list = at('spread');
  const lines = rows.map(([row, ratios]) => {
    const middle = make('div', {});
    const worst = make('div', { class: 'worst', title: row.worst_session }, make('b', {}, '◆ ' + percent(row.worst_session_vs_raw, 0)), make('span', {}, make('bdi', { dir: 'ltr' }, nameOf(row.worst_session))));
    return [make('div', { class: 'strip' }, make('div', { class: 'name' }, row.policy), middle, worst), middle, row, ratios];
  });
  const axis = make('div', {});
  list.replaceChildren(...lines.map(([line]) => line), make('div', { class: 'strip' }, make('div', {}), axis, make('div', {})));
  const width = Math.max(240, axis.clientWidth);
  const scale = costScale(all, width, 8, 8);
  for (const [, middle, row, ratios] of lines) {
    const family = (entrantOf.get(row.policy) || { family: 'policy' }).family;
    const x = (ratio) => scale.place((ratio - 1) * 100);
    const rank = (share) => ratios[Math.round(share * (ratios.length - 1))];
    const words = `${row.policy}: median ${percent(rank(0.5))}, middle half ${percent(rank(0.25))} to ${percent(rank(0.75))}, cheapest ${percent(rank(0))}, dearest ${percent(row.worst_session_vs_raw)} in ${nameOf(row.worst_session)}`;
    const svg = draw('svg', { width, height: 30, tabindex: 0, role: 'img', 'aria-label': words, ...tipped(words) });
    for (const tick of scale.ticks) svg.append(draw('line', { x1: scale.place(tick), x2: scale.place(tick), y1: 0, y2: 30, class: tick === 0 ? 'zero' : 'grid' }));
    svg.append(...ratios.map((ratio, index) => draw('circle', { cx: x(ratio), cy: 15 + ((index * 7) % 9) - 4, r: 2, class: family, opacity: 0.45 })));
    svg.append(draw('rect', { x: x(rank(0.25)), y: 6, width: Math.max(1, x(rank(0.75)) - x(rank(0.25))), height: 18, class: 'thin ' + family }),
      draw('line', { x1: x(rank(0.5)), x2: x(rank(0.5)), y1: 4, y2: 26, stroke: 'var(--ink)', 'stroke-width': 2.5 }),
      draw('path', { transform: `translate(${x(row.worst_session_vs_raw)} 15)`, d: 'M0 -6L6 0L0 6L-6 0Z', fill: 'var(--card)', stroke: 'var(--ink)', 'stroke-width': 1.5 }));
    middle.append(svg);
  }
  const svg = draw('svg', { width, height: 20, 'aria-hidden': 'true' });
  for (const tick of scale.ticks) svg.append(draw('text', { x: Math.max(20, Math.min(scale.place(tick), width - 26)), y: 14, 'text-anchor': 'middle', class: 'axis' }, tickName(tick)));
  axis.append(svg);
}

function curve() {
  const chosen = data.curves[at('session').value], entrant = Number(at('curve-policy').value);
  if (!chosen) { at('curve').replaceChildren(make('p', { class: 'small' }, 'No session has a curve.')); return; }
  const raw = chosen.raw, own = chosen.by[entrant] && chosen.by[entrant].length ? chosen.by[entrant] : raw;
  const figure = make('figure', {}), name = data.entrants[entrant].name;
  at('curve').replaceChildren(figure);
  const width = Math.max(280, figure.clientWidth - 20), height = 300, left = 46, right = 16, top = 16, bottom = height - 24;
  const most = Math.max(1, ...raw, ...own);
  const x = (index) => left + (index / Math.max(1, raw.length - 1)) * (width - left - right);
  const y = (tokens) => bottom - (tokens / (most * 1.08)) * (bottom - top);
  const words = `${nameOf(chosen.session)}: ${grouped(chosen.requests)} requests. The last request of ${name} counts ${grouped(own[own.length - 1])} tokens, untrimmed ${grouped(raw[raw.length - 1])}.`;
  const svg = draw('svg', { width, height, tabindex: 0, role: 'img', 'aria-label': words });
  const step = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5].find((step) => most / step <= 6) || 1e6;
  for (let tick = 0; tick <= most * 1.05; tick += step) {
    svg.append(draw('line', { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: 'grid' }), draw('text', { x: left - 6, y: y(tick) + 4, 'text-anchor': 'end', class: 'axis' }, short(tick)));
  }
  const path = (sizes) => sizes.map((size, index) => `${index ? 'L' : 'M'}${x(index).toFixed(1)} ${y(size).toFixed(1)}`).join('');
  const back = own.map((size, index) => `L${x(own.length - 1 - index).toFixed(1)} ${y(own[own.length - 1 - index]).toFixed(1)}`).join('');
  svg.append(draw('path', { d: path(raw) + back + 'Z', fill: 'var(--fill)' }),
    draw('path', { d: path(raw), fill: 'none', stroke: 'var(--raw)', 'stroke-width': 2, 'stroke-dasharray': '6 4' }),
    draw('path', { d: path(own), fill: 'none', stroke: 'var(--policy)', 'stroke-width': 2.5 }),
    draw('text', { x: width - right, y: Math.max(14, y(raw[raw.length - 1]) - 8), 'text-anchor': 'end', class: 'axis' }, 'untrimmed (dashed)'),
    draw('text', { x: width - right, y: Math.min(bottom - 6, y(own[own.length - 1]) + 18), 'text-anchor': 'end', class: 'own' }, name),
    draw('text', { x: left, y: height - 6, class: 'axis' }, 'request 1'),
    draw('text', { x: width - right, y: height - 6, 'text-anchor': 'end', class: 'axis' }, 'request ' + grouped(chosen.requests)));
  figure.append(svg, make('p', { class: 'small' }, 'Tokens of each request; the shaded part was hidden. ' + words));
}

function misses() {
  const entrant = Number(at('miss-policy').value);
  const told = data.misses.filter((miss) => miss.entrant === entrant);
  const name = data.entrants[entrant].name;
  const counted = (data.rows.find((row) => row.policy === name) || { missed: 0 }).missed;
  at('miss-count').textContent = counted === 0 ? `${name} hid nothing that was needed later.` : `${name} missed ${grouped(counted)} times; ${told.length} are listed, of as many sessions as possible.`;
  const lasting = ['errors', 'instructions'];
  const place = (miss) => (lasting.includes(miss.metric) ? ` hidden while they still mattered; said in block ${miss.used_in} of step ${miss.used_at_step}`
    : ` needed at step ${miss.used_at_step} (block ${miss.used_in}); last shown in block ${miss.block} of step ${miss.step}, hidden by then`);
  const item = (miss) => make('li', {},
    make('div', {}, make('strong', {}, miss.metric.replace(/_/g, ' ')), place(miss) + (miss.about ? `: ${miss.about}` : '') + (miss.recoverable ? '. A note named its handle: it could have been recalled.' : '. Nothing said how to bring it back.')),
    make('pre', {}, miss.what), make('div', { class: 'small' }, nameOf(miss.session)));
  const list = at('misses'), rest = told.slice(6);
  list.replaceChildren(...told.slice(0, 6).map(item));
  if (rest.length === 0) return;
  const more = make('li', {}, make('button', { type: 'button', class: 'more', onclick: () => {
    more.remove();
    const items = rest.map(item);
    list.append(...items);
    items[0].tabIndex = -1;
    items[0].focus();
  } }, `Show ${rest.length} more`));
  list.append(more);
}

function options(select, names, chosen) {
  select.replaceChildren(...names.map(([value, name]) => make('option', { value }, name)));
  if (chosen !== undefined) select.value = chosen;
}
const first = data.rows[0] || { sessions: 0, requests: 0, resamples: 0 };
at('about').textContent = `${grouped(first.sessions)} recorded sessions with ${grouped(first.requests)} requests, ${data.entrants.length} policies. ` +
  `Prices of ${data.prices_date}; intervals from drawing sessions again ${grouped(first.resamples)} times; trimtab ${data.version}.` + (folder ? ` Sessions are named by their place below ${folder}` : '');
options(at('lost'), LOSSES.map(([, , name], index) => [index, name]));
options(at('price'), PRICES.map(([, name], index) => [index, name]));
const peers = [...new Set(data.entrants.filter((entrant) => entrant.family === 'peer').map((entrant) => entrant.curve))];
options(at('shown'), [['all', 'all policies'], ['first', 'each policy at its first setting'], ...peers.map((curve) => [curve, `${curve} beside trimtab and the bounds`])],
  data.entrants.length > 30 ? 'first' : 'all');
for (const select of document.querySelectorAll('select.model')) options(select, data.models.map((model) => [model.name, model.name]));
options(at('session'), data.curves.map((one, index) => [index, `${nameOf(one.session)} (${grouped(one.requests)} requests)`]));
const names = data.entrants.map((entrant, index) => [index, entrant.name]);
const missed = data.misses.map((miss) => miss.entrant);
const steady = data.entrants.findIndex((entrant) => entrant.name === 'steady');
options(at('curve-policy'), names, steady < 0 ? data.entrants.length - 1 : steady);
options(at('miss-policy'), names, missed.includes(steady) ? steady : missed.length ? missed[0] : 0);
at('legend').replaceChildren(...[['policy', 'policy of trimtab'], ['peer', 'what another tool does'], ['oracle', 'bound: knows what will be used']]
  .filter(([family]) => data.entrants.some((entrant) => entrant.family === family))
  .map(([family, name]) => make('li', {}, draw('svg', { width: 14, height: 14, viewBox: '-7 -7 14 14', 'aria-hidden': 'true' }, shape(family, 4.5)), name)));
at('left').replaceChildren(...data.left_out.map((sentence) => make('li', {}, sentence)));
at('lost').addEventListener('change', pareto);
at('price').addEventListener('change', pareto);
at('shown').addEventListener('change', pareto);
document.querySelectorAll('select.model')[0].addEventListener('change', figures);
document.querySelectorAll('select.model')[1].addEventListener('change', spread);
at('session').addEventListener('change', curve);
at('curve-policy').addEventListener('change', curve);
at('miss-policy').addEventListener('change', misses);
const drawAll = () => { hideTip(); pareto(); spread(); curve(); };
figures();
misses();
drawAll();
let drawnWidth = window.innerWidth;
window.addEventListener('resize', () => {
  if (window.innerWidth === drawnWidth) return;
  drawnWidth = window.innerWidth;
  drawAll();
});
