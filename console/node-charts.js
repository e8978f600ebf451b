import { useEffect } from 'preact/hooks';
import { html } from './html.js';
import { levelsOf, meanRateOf, ratesOf, sampleMetrics, samples } from './node-metrics.js';
import { Sparkline } from './sparkline.js';
import { durationText, sizeText } from './text.js';

const UNKNOWN = 'not known now';
const SECONDS_PER_MINUTE = 60;

/** Shows a few numbers of the node's metrics, and how they changed in the last hour while the console was open. */
export function NodeCharts() {
  useEffect(sampleMetrics, []);
  const [first, last] = [samples.value[0], samples.value.at(-1)];
  if (first === undefined || last === undefined) return html`<p class="muted">No metrics are available.</p>`;
  const charts = [
    ['Inputs that wait', countText(last.waiting), levelsOf('waiting')],
    [
      'Longest wait now',
      knownText(last.oldestSeconds, (seconds) => durationText(seconds * 1000)),
      levelsOf('oldestSeconds'),
    ],
    ['Inputs that run here', countText(last.running), levelsOf('running')],
    ['Inputs that succeeded', growthText(last.succeeded, 'succeeded'), ratesOf('succeeded')],
    ['Inputs that failed', growthText(last.failed, 'failed'), ratesOf('failed')],
    [
      'Bytes of outputs',
      `${sizeText(last.bytes)}${rateText('bytes', (rate) => `${sizeText(rate)}/s`)}`,
      ratesOf('bytes'),
    ],
    ['Callbacks that wait', countText(last.callbacks), levelsOf('callbacks')],
    ['Free for outputs', spaceText(last.outputsFree, last.outputsSize), levelsOf('outputsFree')],
    ['Free for scratch files', spaceText(last.scratchFree, last.scratchSize), levelsOf('scratchFree')],
    [
      'Nodes',
      `${countText(last.nodesAlive)}${last.nodesLost > 0 ? `, ${last.nodesLost} lost` : ''}`,
      levelsOf('nodesAlive'),
    ],
  ];
  const spanMs = last.atMs - first.atMs;
  return html`<dl class="charts">${charts.map(([label, value, values]) => html`<div><dt>${label}</dt><dd>${value}</dd><${Sparkline} values=${values} /></div>`)}</dl>
    <p class="muted">Totals are of this node since its start.${spanMs > 0 && ` Lines and rates are of the last ${durationText(spanMs)}: what this page has seen, an hour at most.`}</p>`;
}

/** @param {number} total @param {'succeeded' | 'failed'} name */
function growthText(total, name) {
  return `${countText(total)}${rateText(name, (rate) => `${(rate * SECONDS_PER_MINUTE).toLocaleString('en', { maximumFractionDigits: 1 })} a minute`)}`;
}

/** @param {'succeeded' | 'failed' | 'bytes'} name @param {(perSecond: number) => string} format */
function rateText(name, format) {
  const rate = meanRateOf(name);
  return Number.isNaN(rate) ? '' : `, ${format(rate)}`;
}

/** @param {number} freeBytes @param {number} sizeBytes */
function spaceText(freeBytes, sizeBytes) {
  return knownText(freeBytes, () => `${sizeText(freeBytes)} of ${sizeText(sizeBytes)}`);
}

/** @param {number} count */
function countText(count) {
  return knownText(count, () => count.toLocaleString('en'));
}

/**
 * Formats a number; the service does not know those of its store while that is out of reach.
 * @param {number} value @param {(value: number) => string} format
 */
function knownText(value, format) {
  return Number.isNaN(value) ? UNKNOWN : format(value);
}
