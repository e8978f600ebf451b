import { html } from './html.js';
import { Reason } from './reason.js';
import { clockTimeText, exactTime } from './text.js';

/** @typedef {import('../src/contract/job.ts').WaitingFor} WaitingFor */

/** Kinds of dependencies as sentences name them. @type {ReadonlyMap<string, string>} */
const KINDS = new Map(
  Object.entries({
    input_bucket: 'the bucket of inputs',
    output_bucket: 'the bucket of outputs',
    input_folder: 'the folder of inputs',
    output_folder: 'the disk of outputs',
    scratch_folder: 'the scratch disk',
    time_stamp_authority: 'the time-stamp authorities',
    signer: 'the signing identity',
  }),
);

/**
 * Returns a dependency in words, such as `the bucket of outputs "media"`; only admins are told names.
 * @param {string} dependency
 */
export function dependencyText(dependency) {
  const [, kind = '', name] = /^([^:]*)(?::(.*))?$/s.exec(dependency) ?? [];
  const words = KINDS.get(kind) ?? kind;
  return name === undefined ? words : `${words} "${name}"`;
}

/** Returns a sentence such as "12 inputs wait since 14:02 for the scratch disk". @param {WaitingFor} waiting */
export function waitingText({ dependency, since, inputs }) {
  const wait = inputs === 1 ? '1 input waits' : `${inputs.toLocaleString('en')} inputs wait`;
  return `${wait} since ${clockTimeText(new Date(since))} for ${dependencyText(dependency)}`;
}

/** Says what inputs of a job wait for, and why. @param {{ waiting: readonly WaitingFor[] }} props */
export function Waiting({ waiting }) {
  return waiting.map(
    (entry) => html`<div key=${entry.dependency} class="notice waits">
      <p><strong title=${exactTime(entry.since)}>${waitingText(entry)}.</strong></p>
      <p class="path">${entry.message}</p>
      <${Reason} reason=${entry.reason} />
    </div>`,
  );
}
