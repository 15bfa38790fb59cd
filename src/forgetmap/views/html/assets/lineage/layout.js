// A layered layout (Sugiyama) of a graph whose parents come before their children. Layers of
// checkpoints alternate with layers of labels. Every edge owns a slot in each layer that it
// passes, and bends only between layers. So no edge can meet a box or a foreign label.
// Along is the way from the root to the ends, across is the other way.

const SWEEPS = 12;

function layeredSlots(nodes, edges, size) {
  const rank = [];
  nodes.forEach(({ parents }, place) => {
    rank[place] = parents.length ? 1 + Math.max(...parents.map((parent) => rank[parent])) : 0;
  });
  const layers = Array.from({ length: 2 * Math.max(...rank) + 1 }, () => []);
  const add = (layer, across, more) => {
    const slot = { layer, across, before: [], after: [], ...more };
    layers[layer].push(slot);
    return slot;
  };
  const join = (one, two) => {
    one.after.push(two);
    two.before.push(one);
  };
  const boxes = nodes.map((_, node) => add(2 * rank[node], size.box.across, { node }));
  const ways = edges.map(({ before, after }, edge) => {
    const way = [boxes[before]];
    for (let layer = 2 * rank[before] + 1; layer < 2 * rank[after]; layer += 1) {
      const isLabel = layer === 2 * rank[after] - 1;
      way.push(add(layer, isLabel ? size.label.across : size.bend, { edge, isLabel }));
    }
    way.push(boxes[after]);
    way.slice(1).forEach((slot, place) => join(way[place], slot));
    return way;
  });
  return { layers, boxes, ways };
}

// --- order: as few crossings as can be found -------------------------------------------------------

// Crossings between two layers: pairs of links that end in the other order than they begin.
function crossings(layers) {
  let count = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((slot) =>
      slot.after.map(({ order }) => order).sort((a, b) => a - b),
    );
    const seen = []; // sorted
    for (const end of ends) {
      let [low, high] = [0, seen.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (seen[middle] <= end) low = middle + 1;
        else high = middle;
      }
      count += seen.length - low;
      seen.splice(low, 0, end);
    }
  }
  return count;
}

const number = (layer) => layer.forEach((slot, order) => Object.assign(slot, { order }));

function orderLayers(layers) {
  layers.forEach(number);
  const mean = (near, slot) =>
    near.length ? near.reduce((sum, { order }) => sum + order, 0) / near.length : slot.order;
  let best = { count: crossings(layers), orders: layers.map((layer) => [...layer]) };
  for (let sweep = 0; sweep < SWEEPS && best.count; sweep += 1) {
    const isForth = sweep % 2 === 0;
    for (const layer of isForth ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((s) => [s, mean(isForth ? s.before : s.after, s)]));
      layer.sort((one, two) => wanted.get(one) - wanted.get(two) || one.order - two.order);
      number(layer);
    }
    const count = crossings(layers);
    if (count < best.count) best = { count, orders: layers.map((layer) => [...layer]) };
  }
  best.orders.forEach((slots, layer) => {
    layers[layer].splice(0, slots.length, ...slots);
    number(slots);
  });
}

// --- places across: near to what each slot is joined with, never closer than the gap ----------------

// How much a link wants to be straight: most inside of a long edge.
const inside = (slot) => slot.node === undefined;
const pull = (one, two) => (inside(one) && inside(two) ? 8 : 1);

// The places that are nearest to what is wanted and keep their distances: pooled neighbours.
function spread(layer, wanted, gap) {
  let offset = 0;
  const pools = [];
  layer.forEach((slot, place) => {
    if (place) offset += (layer[place - 1].across + slot.across) / 2 + gap;
    const { at, weight } = wanted(slot);
    let pool = { weight, sum: weight * (at - offset), slots: [[slot, offset]] };
    while (pools.length && pools.at(-1).sum / pools.at(-1).weight >= pool.sum / pool.weight) {
      const last = pools.pop();
      pool = {
        weight: last.weight + pool.weight,
        sum: last.sum + pool.sum,
        slots: last.slots.concat(pool.slots),
      };
    }
    pools.push(pool);
  });
  for (const { weight, sum, slots } of pools)
    for (const [slot, more] of slots) slot.at = sum / weight + more;
}

// First from one side after the other, then between both.
function placeAcross(layers, gap) {
  for (const layer of layers) spread(layer, () => ({ at: 0, weight: 1 }), gap);
  for (let sweep = 0; sweep < 3 * SWEEPS; sweep += 1) {
    const isForth = sweep % 2 === 1;
    const near = (slot) => {
      if (sweep >= SWEEPS) return [...slot.before, ...slot.after];
      return isForth ? slot.before : slot.after;
    };
    const wanted = (slot) => {
      const joined = near(slot);
      if (!joined.length) return { at: slot.at, weight: 1 };
      const pulls = joined.map((other) => pull(slot, other));
      const weight = pulls.reduce((sum, one) => sum + one, 0);
      return {
        at: joined.reduce((sum, { at }, place) => sum + pulls[place] * at, 0) / weight,
        weight,
      };
    };
    for (const layer of isForth ? layers : [...layers].reverse()) spread(layer, wanted, gap);
  }
}

// A long edge becomes straight lines, as few as there is room for.
function straighten(layers, ways, gap) {
  const limits = (slot) => {
    const layer = layers[slot.layer];
    const [above, below] = [layer[slot.order - 1], layer[slot.order + 1]];
    const apart = (other) => (other.across + slot.across) / 2 + gap;
    return [
      above ? above.at + apart(above) : -Infinity,
      below ? below.at - apart(below) : Infinity,
    ];
  };
  const settle = ({ slots, low, high }) => {
    const mean = slots.reduce((sum, { at }) => sum + at, 0) / slots.length;
    for (const slot of slots) slot.at = Math.min(high, Math.max(low, mean));
  };
  for (const way of ways) {
    const runs = [];
    for (const slot of way.filter(inside)) {
      const [low, high] = limits(slot);
      const last = runs.at(-1);
      if (last && low <= last.high && high >= last.low) {
        last.slots.push(slot);
        last.low = Math.max(low, last.low);
        last.high = Math.min(high, last.high);
      } else runs.push({ slots: [slot], low, high });
    }
    runs.forEach(settle);
  }
}

// --- places along, and lines: a long chain goes on in the next line, as text does -------------------

const MOST_CARRIED = 2; // edges that may go on in the next line; more would be a tangle

function placeAlong(layers, size) {
  let along = 0;
  return layers.map((layer, place) => {
    if (place) {
      const steps = layer.flatMap((slot) => slot.before.map(({ at }) => Math.abs(at - slot.at)));
      along += size.gap + Math.min(40, 0.08 * Math.max(0, ...steps));
    }
    const start = along;
    along += layer.some(({ node }) => node !== undefined) ? size.box.along : size.label.along;
    return { start, end: along };
  });
}

// The layers of each line: [first, last]. A line breaks behind checkpoints.
function breakLines(layers, spans, ways, room) {
  const lines = [];
  let first = 0;
  let fits = null;
  for (let layer = 0; layer < layers.length; layer += 2) {
    if (spans[layer].end - spans[first].start > room && fits !== null) {
      lines.push([first, fits]);
      first = fits + 1;
      fits = null;
    }
    if (layer < layers.length - 1 && carriedOn(ways, layer).length <= MOST_CARRIED) fits = layer;
  }
  return [...lines, [first, layers.length - 1]];
}

const RAIL = { margin: 14, step: 9, corner: 8 };

// Where everything is. `room` is how long a line may be; without it there is one line.
function layOut(nodes, edges, size, room = Infinity) {
  const { layers, boxes, ways } = layeredSlots(nodes, edges, size);
  orderLayers(layers);
  placeAcross(layers, size.between);
  straighten(layers, ways, size.between);
  const spans = placeAlong(layers, size);
  const rails = RAIL.margin + MOST_CARRIED * RAIL.step;
  const lines = breakLines(layers, spans, ways, room - 2 * rails);
  const side = lines.length > 1 ? rails : 0;
  let top = 0;
  const placed = lines.map(([first, last]) => {
    const slots = layers.slice(first, last + 1).flat();
    const low = Math.min(...slots.map(({ at, across }) => at - across / 2));
    const high = Math.max(...slots.map(({ at, across }) => at + across / 2));
    for (const slot of slots) {
      slot.at += top - low;
      slot.start = spans[slot.layer].start - spans[first].start + side;
      slot.end = slot.start + spans[slot.layer].end - spans[slot.layer].start;
    }
    const end = side + spans[last].end - spans[first].start;
    const line = { first, last, bottom: top + high - low, end };
    if (last < layers.length - 1) line.carried = carriedOn(ways, last);
    top = line.bottom + 2 * RAIL.margin + (line.carried?.length ?? 0) * RAIL.step;
    return line;
  });
  return {
    boxes,
    ways: ways.map((way) => routed(way, placed)),
    along: Math.max(...placed.map(({ end }) => end)) + side,
    across: placed.at(-1).bottom,
  };
}

// The edges that go on behind a layer, from the lowest up: the highest goes outside of the others,
// so that none cross.
function carriedOn(ways, last) {
  const here = (way) => way.find(({ layer }) => layer === last);
  return ways
    .filter((way) => here(way) && way.at(-1).layer > last)
    .sort((one, two) => here(two).at - here(one).at);
}

// The way of an edge as steps: to, curve, and for a break the corners of the way to the next line.
function routed(way, lines) {
  const steps = [{ kind: "start", along: way[0].end, across: way[0].at }];
  way.slice(1).forEach((slot, place) => {
    const from = way[place];
    const line = lines.find(({ last }) => last === from.layer);
    if (line?.carried) {
      const rank = line.carried.indexOf(way);
      const out = line.end + RAIL.margin + rank * RAIL.step;
      const down = line.bottom + RAIL.margin + rank * RAIL.step;
      const back = RAIL.margin / 2 + rank * RAIL.step;
      const corners = [
        [out, from.at],
        [out, down],
        [back, down],
        [back, slot.at],
      ];
      steps.push({ kind: "corners", corners, along: slot.start, across: slot.at });
    } else steps.push({ kind: "curve", from: from.end, along: slot.start, across: slot.at });
    if (slot.node === undefined) steps.push({ kind: "straight", along: slot.end, across: slot.at });
  });
  return { label: way.find(({ isLabel }) => isLabel), steps };
}
