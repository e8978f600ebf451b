import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { PublicationPatterns } from '#publications/publication.ts';
import { makeToken } from '../provenance/signers/softhsm.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { judgeIdentity } from '../support/judges/identity-judges.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { assertSignedPublication } from '../support/publications/signed-publication.ts';
import {
  assertHolds,
  assertSignedBy,
  dependenciesAway,
  IdentityConfiguration,
  outputsOf,
  submitSounds,
  waitingFor,
} from './device-service.ts';
import { PATTERNS, SAMPLE, signFolder } from './signed-folders.ts';

const leaf = { commonName: 'Newsroom', organization: 'Example News' };
const [news, sport, publisher] = [
  await testIdentity(),
  await testIdentity({ algorithm: 'es384' }),
  await testIdentity({ leaf }),
];
const token = makeToken({ sport: sport.privateKey, publisher: publisher.privateKey });

const service = await new IdentityConfiguration({
  news: { identity: news },
  sport: {
    identity: sport,
    signer: token.settings('sport'),
    publisher: { identity: publisher, signer: token.settings('publisher') },
  },
}).start();
after(() => service.stop());

test('a service signs files and publications with the identity that a job names, and for its publisher', async () => {
  await assertSignedBy(service, await submitSounds(service, 'news'), news);
  const [sound = Buffer.alloc(0)] = await outputsOf(service, await submitSounds(service, 'sport'));
  assertHolds(sound, sport);
  const { native, wasm } = await judgeIdentity(sound, 'audio/wav', publisher);
  assert.deepEqual([native.state, wasm.state], ['Valid', 'Valid']);
  assert(wasm.codes.includes('cawg.x509.credential.trusted'), wasm.codes.join());

  const signed = filesAt(
    await signFolder(service, '/v2/sync/c2pa/fragmented', SAMPLE, { ...PATTERNS, identity: 'sport' }),
  );
  const patterns: PublicationPatterns = {
    playlist: PATTERNS.playlist_pattern,
    init: PATTERNS.init_pattern,
    frag: PATTERNS.frag_pattern,
  };
  const renditions = await assertSignedPublication(filesAt(SAMPLE), patterns, signed);
  for (const { init } of renditions)
    for (const identity of [sport, publisher]) assertHolds(signed[init.path] as Uint8Array, identity);
});

test('inputs wait while the token of their identity is away, and those of other identities go on', async () => {
  token.takeAway();
  const waiting = await Promise.all([3, 1, 2].map((count) => submitSounds(service, 'sport', count)));
  for (const jobId of waiting) {
    const [cause] = (await waitingFor(service, jobId)) ?? [];
    assert.equal(cause?.dependency, 'signer:sport');
  }
  await assertSignedBy(service, await submitSounds(service, 'news', 3), news);
  token.bringBack();
  for (const jobId of waiting) await assertSignedBy(service, jobId, sport);
  await until(async () => (await dependenciesAway(service)).length === 0);
});
