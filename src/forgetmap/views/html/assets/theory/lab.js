// The numbers of the page: the functions of forgetmap.theory again, for one set of inputs at a time.
// Old mode N(0, 1), new mode N(delta, 1), old weight beta = expit(l). A test in a browser compares
// every series with the Python functions.

const expit = (x) => 1 / (1 + Math.exp(-x));
const logit = (share) => Math.log(share / (1 - share));
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const REWARD_GAP = 1;
const RISK = 0.01;

// --- quadrature --------------------------------------------------------------------------------

// Points and weights for means under N(0, 1) of logistic functions up to a steepness. The trapezoid
// rule errs by exp(-2 pi^2) when its spacing is 1 / steepness.
function grid(steepness) {
  const step = Math.min(0.5, 1 / steepness);
  const half = Math.ceil(6.5 / step);
  const points = Float64Array.from({ length: 2 * half + 1 }, (_, i) => (i - half) * step);
  const weights = points.map((z) => Math.exp((-z * z) / 2));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return { points, weights: weights.map((weight) => weight / total) };
}

// --- overlap -----------------------------------------------------------------------------------

const overlap = (delta) => Math.exp((-delta * delta) / 8);
const misassignedBound = (beta, delta) => (Math.sqrt((1 - beta) / beta) * overlap(delta)) / 2;

// Two means under the old mode at a model's logit l: the chance that a sample is taken for a new
// one, and that of ln(model / old mode). At -l they are those of the new mode, mirrored.
function underOld(l, delta, { points, weights }) {
  let misassigned = 0;
  let logRatio = -softplus(-l);
  for (let i = 0; i < points.length; i += 1) {
    const odds = delta * (points[i] - delta / 2) - l; // of new against old, at an old sample
    const small = Math.exp(-Math.abs(odds));
    misassigned += (weights[i] * (odds > 0 ? 1 : small)) / (1 + small);
    logRatio += weights[i] * (Math.max(odds, 0) + Math.log1p(small));
  }
  return { misassigned, logRatio };
}

// --- slopes in the logit of beta ---------------------------------------------------------------

// Both slopes need two functions of the logit: the resolution, how well a sample tells its mode,
// and the contrast of ln(model) between the modes, whose derivative it is. They are tabulated once
// for a separation; between the points a polynomial errs by less than 1e-8.
const TABLE_LOW = -16;
const TABLE_STEP = 0.1;
const TABLE_SIZE = 220;

function slopeTable(delta, nodes) {
  const resolution = new Float64Array(TABLE_SIZE);
  const contrast = new Float64Array(TABLE_SIZE);
  for (let i = 0; i < TABLE_SIZE; i += 1) {
    const l = TABLE_LOW + i * TABLE_STEP;
    const onOld = underOld(l, delta, nodes);
    const onNew = underOld(-l, delta, nodes);
    resolution[i] = 1 - onOld.misassigned - onNew.misassigned;
    contrast[i] = onOld.logRatio - onNew.logRatio;
  }
  return { resolution, contrast };
}

function lookUp(values, l) {
  const at = (l - TABLE_LOW) / TABLE_STEP;
  const first = Math.min(Math.max(Math.floor(at) - 2, 0), TABLE_SIZE - 6);
  let found = 0;
  for (let i = 0; i < 6; i += 1) {
    let part = values[first + i];
    for (let k = 0; k < 6; k += 1) if (k !== i) part *= (at - first - k) / (i - k);
    found += part;
  }
  return found;
}

const forwardSlope = (l, replay, table) =>
  (expit(l) - replay) * (table ? lookUp(table.resolution, l) : 1);

// `goal` is the contrast of the target, minus delta^2 / 2 for one of the new mode alone.
const reverseSlope = (l, goal, table) => expit(l) * expit(-l) * (lookUp(table.contrast, l) - goal);

function goalContrast(target, delta, nodes) {
  const l = logit(target);
  return underOld(l, delta, nodes).logRatio - underOld(-l, delta, nodes).logRatio;
}

// --- means trained too: the field of reverse KL, and its gates ---------------------------------

// Means under N(at, 1) of ln(model / target) and of both responsibilities of the new mode.
function underComponent(at, [l, old, fresh], goal, delta, { points, weights }) {
  let ratio = 0;
  let model = 0;
  let target = 0;
  for (let i = 0; i < points.length; i += 1) {
    const x = at + points[i];
    const own = (fresh - old) * (x - (fresh + old) / 2) - l; // log odds of new against old
    const aim = delta * (x - delta / 2) - goal;
    const smallOwn = Math.exp(-Math.abs(own));
    const smallAim = Math.exp(-Math.abs(aim));
    const tails = Math.log1p(smallOwn) - Math.log1p(smallAim);
    ratio += weights[i] * (Math.max(own, 0) - Math.max(aim, 0) + tails + old * (x - old / 2));
    model += (weights[i] * (own > 0 ? 1 : smallOwn)) / (1 + smallOwn);
    target += (weights[i] * (aim > 0 ? 1 : smallAim)) / (1 + smallAim);
  }
  ratio += softplus(-goal) - softplus(-l);
  return { ratio, model, target };
}

function jointSpeed(state, goal, delta, nodes) {
  const [l, old, fresh] = state;
  const onOld = underComponent(old, state, goal, delta, nodes);
  const onNew = underComponent(fresh, state, goal, delta, nodes);
  const beta = expit(l);
  return [
    -beta * (1 - beta) * (onOld.ratio - onNew.ratio),
    -beta * (old - onOld.model * (old - fresh) - onOld.target * delta),
    -(1 - beta) * (fresh - delta + (1 - onNew.model) * (old - fresh) + (1 - onNew.target) * delta),
  ];
}

// Size of the push on the old mean; the largest on the way bounds the whole drift.
function driftGate(state, goal, delta, nodes) {
  const [, old, fresh] = state;
  const { model, target } = underComponent(old, state, goal, delta, nodes);
  return Math.abs(target * delta + model * (old - fresh));
}

// --- flows: Dormand and Prince's pair of orders 5 and 4 ----------------------------------------

const STAGES = [
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];
const TOLERANCE = 1e-9;

function trial(speed, state, first, step) {
  const slopes = [first];
  let reached = state;
  for (const stage of STAGES) {
    reached = state.map((value, i) =>
      stage.reduce((sum, part, k) => sum + step * part * slopes[k][i], value),
    );
    slopes.push(speed(reached));
  }
  const error = state.map((value, i) => {
    const off = ERROR.reduce((sum, part, k) => sum + step * part * slopes[k][i], 0);
    return Math.abs(off) / (TOLERANCE * (1 + Math.max(Math.abs(value), Math.abs(reached[i]))));
  });
  return { reached, last: slopes[6], error: Math.max(...error) };
}

// The states at rising times, from `state` at time 0.
function flow(speed, state, times) {
  const path = [];
  let now = 0;
  let slope = speed(state);
  let step = 0.01;
  for (const time of times) {
    while (now < time) {
      const length = Math.min(step, time - now);
      const { reached, last, error } = trial(speed, state, slope, length);
      if (error <= 1) {
        now = length < step ? time : now + length;
        state = reached;
        slope = last;
      }
      const change = Math.min(5, Math.max(0.2, 0.9 * error ** -0.2));
      if (error > 1 || length === step) step = length * change;
    }
    path.push(state);
  }
  return path;
}

const weightFlow = (speed, start, times) =>
  flow(([l]) => [speed(l)], [logit(start)], times).map(([l]) => expit(l));

// --- finite batches, temperature ---------------------------------------------------------------

const behaviourShare = (beta, replay) => replay + (1 - replay) * beta;
const starvation = (beta, batch, replay) =>
  Math.exp(batch * Math.log1p(-behaviourShare(beta, replay)));
const smallestBatch = (beta, replay) =>
  Math.ceil((Math.log(RISK) / Math.log1p(-behaviourShare(beta, replay))) * (1 - 1e-12));
const smallestReplay = (beta, batch) => Math.max(1 - RISK ** (1 / batch) / (1 - beta), 0);

const tilted = (mass, strength) => expit(logit(mass) - strength);

// Old mass that TTT-Discover's objective keeps, found by halving.
function entropicKept(reference, penalty) {
  const start = logit(reference);
  const shrink = Math.exp(-REWARD_GAP);
  const pressure = (beta) => (1 - shrink) / (beta * shrink + 1 - beta);
  let low = start - pressure(reference) / penalty - 1;
  let high = start;
  while (high - low > 1e-12 * Math.max(1, Math.abs(low))) {
    const middle = (low + high) / 2;
    if (pressure(expit(middle)) + penalty * (middle - start) < 0) low = middle;
    else high = middle;
  }
  return expit((low + high) / 2);
}

// --- everything the page shows -----------------------------------------------------------------

const spaced = (count, low, high) =>
  Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));
const geometric = (count, low, high) => spaced(count, Math.log(low), Math.log(high)).map(Math.exp);

const TIMES = geometric(61, 0.1, 1000);
const DRIFT_TIMES = spaced(41, 0, 1).map((part) => 60 * part * part);
const WEIGHTS = spaced(99, 0.01, 0.99);
const TEMPERATURES = geometric(61, 0.1, 10);
const SYNCS = [1, 5, 20];

function flows({ start, replay }, goals, table) {
  return {
    sft: weightFlow((l) => -forwardSlope(l, 0, table), start, TIMES),
    apart: weightFlow((l) => -forwardSlope(l, 0, null), start, TIMES),
    replayed: weightFlow((l) => -forwardSlope(l, replay, table), start, TIMES),
    reverse: weightFlow((l) => -reverseSlope(l, goals.target, table), start, TIMES),
    newOnly: weightFlow((l) => -reverseSlope(l, goals.newOnly, table), start, TIMES),
  };
}

function slopes({ replay }, goals, table) {
  const over = (f) => WEIGHTS.map((beta) => f(logit(beta)));
  return {
    sft: over((l) => forwardSlope(l, 0, table)),
    replayed: over((l) => forwardSlope(l, replay, table)),
    reverse: over((l) => reverseSlope(l, goals.target, table)),
    newOnly: over((l) => reverseSlope(l, goals.newOnly, table)),
  };
}

function drift({ delta, start, target }, nodes, newMean) {
  const goal = logit(target);
  const speed = (state) => jointSpeed(state, goal, delta, nodes);
  const path = flow(speed, [logit(start), 0, newMean], DRIFT_TIMES);
  const oldMean = path.map(([, old]) => old);
  return {
    oldMean,
    largest: Math.max(...oldMean.map(Math.abs)),
    bound: Math.max(...path.map((state) => driftGate(state, goal, delta, nodes))),
  };
}

function compute(inputs) {
  const { delta, start, target, replay, batch, temperature } = inputs;
  const nodes = grid(delta + 0.5); // the modes may move apart a little
  const table = slopeTable(delta, nodes);
  const goals = { target: goalContrast(target, delta, nodes), newOnly: (-delta * delta) / 2 };
  return {
    overlap: overlap(delta),
    misassigned: underOld(logit(start), delta, nodes).misassigned,
    misassignedBound: misassignedBound(start, delta),
    flows: flows(inputs, goals, table),
    slopes: slopes(inputs, goals, table),
    drift: { inPlace: drift(inputs, nodes, delta), halfWay: drift(inputs, nodes, delta / 2) },
    starved: starvation(start, batch, 0),
    starvedReplayed: starvation(start, batch, replay),
    smallestBatch: smallestBatch(start, 0),
    smallestReplay: smallestReplay(start, batch),
    kept: SYNCS.map((syncs) => tilted(start, (syncs * REWARD_GAP) / temperature)),
    entropic: entropicKept(start, temperature),
  };
}
