import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NodeWatch } from '#jobs/queue/node-registry.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';

const BEAT_MS = 2_000;

/** A watch with a clock of its own, which sees one other node. */
function watched() {
  const log = keptLog();
  let nowMs = 0;
  const watch = new NodeWatch(log, () => nowMs);
  return {
    others: () => watch.others,
    told: () => log.lines.map(({ level, message }) => `${level} ${message.split(':')[0]}`),
    /** Lets heartbeats of this node go by, each of which sees the other one as silent as given. */
    beat(silentMs: number, beats = 1) {
      for (let beat = 0; beat < beats; beat += 1) {
        nowMs += BEAT_MS;
        watch.saw([
          { nodeId: 'b', name: 'other', settings: { outputRoots: {}, identity: null }, seenAtMs: 7, silentMs },
        ]);
      }
    },
    wait(ms: number) {
      nowMs += ms;
    },
  };
}

describe('the loss of a node', () => {
  test('is told once by the others, and its return as well', () => {
    const { beat, told, others } = watched();
    beat(1_000, 10);
    assert.deepEqual([told(), others()], [[], [{ name: 'other', isAlive: true, seenAtMs: 7, identities: [] }]]);
    beat(11_000, 3);
    assert.deepEqual([told(), others()?.[0]?.isAlive], [['warn a node was lost'], false]);
    beat(1_000);
    assert.deepEqual([told().length, others()?.[0]?.isAlive], [2, true]);
  });

  test('is not told after an outage of the database, before the others had the time to write', () => {
    const { beat, wait, told, others } = watched();
    beat(1_000, 10);
    wait(60_000);
    assert.equal(others(), null);
    beat(61_000, 4);
    assert.deepEqual([told(), others()?.[0]?.isAlive], [[], true]);
    beat(72_000, 3);
    assert.deepEqual(told(), ['warn a node was lost']);
  });
});
