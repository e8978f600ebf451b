import { signal } from '@preact/signals';
import { addressOf, poll } from './api.js';

const INTERVAL_MS = 5000;

/** Samples of an hour. */
const MAX_SAMPLES = 720;

/** Points of a chart. */
const MAX_POINTS = 60;

/** @typedef {ReturnType<typeof sampleOf>} Sample */

/** @typedef {{ name: string, seenAtMs: number }} OtherNode a node that shares the database, and its last heartbeat, in milliseconds since 1970 */

/** The other nodes, that with the oldest heartbeat first; only admins are told of them. */
export const otherNodes = signal(/** @type {readonly OtherNode[]} */ ([]));

/** Samples of the node's metrics, oldest first. They are kept while the console is open, whatever page is shown. */
export const samples = signal(/** @type {readonly Sample[]} */ ([]));

let isSampling = false;

/** Samples the metrics from the first call on, while somebody sees the console. */
export function sampleMetrics() {
  if (isSampling) return;
  isSampling = true;
  void poll(sample, INTERVAL_MS, new AbortController().signal);
}

async function sample() {
  try {
    const response = await fetch(addressOf('metrics'));
    if (!response.ok) return;
    const text = await response.text();
    otherNodes.value = othersIn(text);
    samples.value = [...samples.value, sampleOf(text, Date.now())].slice(-MAX_SAMPLES);
  } catch {
    // The service is out of reach: the numbers stay as they are.
  }
}

/** @param {string} text metrics in the text format of Prometheus @param {number} atMs */
function sampleOf(text, atMs) {
  return {
    atMs,
    succeeded: sumOf(text, 'attestream_input_runs_total', 'end="succeeded"'),
    failed: sumOf(text, 'attestream_input_runs_total', 'end="failed"'),
    bytes: sumOf(text, 'attestream_output_bytes_total'),
    waiting: sumOf(text, 'attestream_inputs', 'state="queued"'),
    running: sumOf(text, 'attestream_node_inputs_running'),
    oldestSeconds: sumOf(text, 'attestream_queue_oldest_seconds'),
    callbacks: sumOf(text, 'attestream_callbacks_waiting'),
    outputsFree: sumOf(text, 'attestream_disk_free_bytes', 'folder="outputs"'),
    outputsSize: sumOf(text, 'attestream_disk_size_bytes', 'folder="outputs"'),
    scratchFree: sumOf(text, 'attestream_disk_free_bytes', 'folder="scratch"'),
    scratchSize: sumOf(text, 'attestream_disk_size_bytes', 'folder="scratch"'),
    nodesAlive: sumOf(text, 'attestream_nodes', 'state="alive"'),
    nodesLost: sumOf(text, 'attestream_nodes', 'state="lost"'),
  };
}

/** @param {string} text @returns {OtherNode[]} */
function othersIn(text) {
  const found = text.matchAll(/^attestream_node_seen_timestamp_seconds\{node="(.*)"\} (.*)$/gm);
  return Array.from(found, ([, name = '', seconds]) => ({ name, seenAtMs: Number(seconds) * 1000 })).sort(
    (one, other) => one.seenAtMs - other.seenAtMs,
  );
}

/**
 * Returns the sum of a metric over its label sets.
 * @param {string} text
 * @param {string} name
 * @param {string} [label] only sets with this label
 */
function sumOf(text, name, label = '') {
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** Returns the points of a chart of a number that rises and falls: the largest value of each part of the time. @param {keyof Sample} name */
export function levelsOf(name) {
  const size = Math.ceil(samples.value.length / MAX_POINTS);
  const count = Math.ceil(samples.value.length / size);
  return Array.from({ length: count }, (_, part) =>
    Math.max(...samples.value.slice(part * size, (part + 1) * size).map((one) => one[name])),
  );
}

/** Returns the points of a chart of a number that grows: what was added in a second. @param {keyof Sample} name */
export function ratesOf(name) {
  const step = Math.ceil(samples.value.length / MAX_POINTS);
  const chosen = samples.value.filter((_, index) => (samples.value.length - 1 - index) % step === 0);
  return chosen.slice(1).map((one, index) => perSecond(name, chosen[index] ?? one, one));
}

/** Returns how much a number grew in a second, on average of all samples; NaN where one says nothing of that. @param {keyof Sample} name */
export function meanRateOf(name) {
  const [first, last] = [samples.value[0], samples.value.at(-1)];
  return first === undefined || last === undefined || first === last ? Number.NaN : perSecond(name, first, last);
}

/** A restart of the node sets its totals to zero. @param {keyof Sample} name @param {Sample} before @param {Sample} after */
function perSecond(name, before, after) {
  return (Math.max(0, after[name] - before[name]) / Math.max(1, after.atMs - before.atMs)) * 1000;
}
