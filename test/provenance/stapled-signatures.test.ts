import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, mock, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import type { AppError } from '#errors/app-error.ts';
import { withRevocation } from '#operations/verification/revocation.ts';
import { readerSettings, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { readReport } from '#provenance/sdk/sdk.ts';
import { fingerprintOf, type HeldStatus, Staples } from '#provenance/staples.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { requestWith, signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';
import { type Answer, startResponder } from './ocsp-responder.ts';
import { startAuthority } from './time-stamp-authority.ts';

const DAY_MS = 24 * 60 * 60_000;
const FAR = new Date(Date.now() + DAY_MS).toISOString();
const [responder, authority] = await Promise.all([startResponder(), startAuthority()]);
after(() => {
  responder.close();
  authority.close();
});
const { signer, leaf, rootPath } = responder;
const home = temporaryFolder();
const tsaRoot = join(writeFiles(join(home, 'tsa'), { 'tsa.pem': authority.root }), 'tsa.pem');
const timeStamps = { urls: [authority.url], timeoutMs: 600_000, isRequired: true };
let count = 0;

const staplesWith = (held: HeldStatus, isRequired = false): Staples =>
  new Staples({ isRequired, certificates: { [fingerprintOf(leaf.raw)]: held } });

/** Staples whatever the response says, as somebody else's product might. */
const stapling = (response: Buffer) => ({
  current: staplesWith({ status: 'good', response: response.toString('base64'), endsAt: FAR }),
});

async function signed(answer: Answer, isStamped = false) {
  const staples = stapling(await responder.respond(answer));
  const author = testAuthor({ signer, staples, ...(isStamped && { timeStamps }) });
  return await signWav(author);
}

async function verified(bytes: Buffer): Promise<Verification> {
  const folder = writeFiles(join(home, String(count++)), { 'file.wav': bytes });
  const input = { type: 'local_file_path', path: join(folder, 'file.wav') } as const;
  const trust = { anchors: [rootPath], tsa_anchors: [tsaRoot] };
  return (await verifyInput(input, folder, { trust })).verification;
}

/** Returns what the readers that know the root of the signer say about revocation. */
async function codesOf(bytes: Buffer): Promise<{ native: string[]; wasm: string[] }> {
  const anchors = `${readFileSync(rootPath, 'latin1')}\n${authority.root.toString('latin1')}`;
  const native = await readReport({ bytes, mediaType: 'audio/wav' }, anchors, new AbortController().signal);
  const Reader = await wasmReader();
  const reader = await Reader.fromBytes('audio/wav', bytes, readerSettings(anchors));
  const wasm = reader.manifestStore() as typeof native;
  reader.free();
  const [first, second] = [native, wasm].map((report) => {
    const { success = [], informational = [], failure = [] } = report?.validation_results?.activeManifest ?? {};
    return [...success, ...informational, ...failure].map(({ code }) => code).filter((code) => code.includes('.ocsp.'));
  });
  return { native: first ?? [], wasm: second ?? [] };
}

describe('a stapled OCSP response', () => {
  for (const isStamped of [false, true]) {
    test(`leaves outputs valid to both readers, and as large as measured, ${isStamped ? 'with' : 'without'} a time-stamp`, async () => {
      const { bytes, manifest, measuredBytes } = await signed('good', isStamped);
      await assertValid(bytes, 'audio/wav');
      assert.equal(manifest.length, measuredBytes);
      assert.deepEqual(await codesOf(bytes), { native: [], wasm: ['signingCredential.ocsp.notRevoked'] });
      const { state, summary, codes, manifests } = await verified(bytes);
      assert.equal(state, 'trusted');
      assert.equal(manifests[0]?.revocation?.status, 'good');
      assert(codes.some(({ code, kind }) => code === 'signingCredential.ocsp.notRevoked' && kind === 'success'));
      assert.equal(/There is no/.exec(summary)?.[0], isStamped ? undefined : 'There is no');
    });
  }

  test('that says revoked makes an output invalid', async () => {
    const { bytes } = await signed('revoked', true);
    assert.deepEqual(await codesOf(bytes), { native: [], wasm: ['signingCredential.ocsp.revoked'] });
    const { state, codes, manifests } = await verified(bytes);
    assert.equal(state, 'invalid');
    assert.deepEqual(manifests[0]?.revocation, { status: 'revoked', revoked_at: '2020-01-01T00:00:00.000Z' });
    assert.equal(codes[0]?.code, 'signingCredential.ocsp.revoked');
  });

  test('that says revoked later than a trusted time-stamp leaves it trusted', async () => {
    const { bytes } = await signed('revoked-later', true);
    const { state, manifests } = await verified(bytes);
    assert.deepEqual([state, manifests[0]?.revocation?.status], ['trusted', 'good']);
  });

  test('that says revoked makes what anybody may have signed after that invalid', async (t) => {
    const { bytes, manifest } = await signed('revoked-later', true);
    const verification = await verified(bytes);
    const [active] = verification.manifests;
    const { time = '', trusted } = active?.time_stamp ?? {};
    assert.equal(trusted, true);
    mock.timers.enable({ apis: ['Date'], now: new Date('2030-01-02') });
    t.after(() => mock.timers.reset());
    const stateWith = (stamp: object): string => {
      const manifests = [{ ...active, time_stamp: stamp }] as Verification['manifests'];
      return withRevocation({ ...verification, manifests }, [manifest], NO_TRUST_LISTS).state;
    };
    assert.equal(stateWith({ time, trusted: true }), 'trusted');
    assert.equal(stateWith({ time, trusted: false }), 'invalid');
  });

  test('of an authority that does not know the certificate is told, and decides nothing', async () => {
    const { bytes } = await signed('unknown');
    assert.deepEqual(await codesOf(bytes), { native: [], wasm: [] });
    const { state, summary, manifests } = await verified(bytes);
    assert.deepEqual([state, manifests[0]?.revocation?.status], ['trusted', 'unknown']);
    assert.match(summary, /does not know whether it is revoked/);
  });

  test('that lies counts as none, and the verdict says why', async () => {
    for (const answer of ['other-certificate', 'other-key'] as const) {
      const { bytes } = await signed(answer);
      const { state, summary, manifests } = await verified(bytes);
      assert.equal(state, 'trusted');
      const { status, problem = '' } = manifests[0]?.revocation ?? {};
      assert.equal(status, 'none');
      assert(problem !== '' && summary.includes(`The revocation data cannot be used: ${problem}.`));
    }
  });

  test('that is not there is told, and so is a time-stamp', async () => {
    const { bytes } = await signWav(testAuthor({ signer }));
    const { summary, manifests } = await verified(bytes);
    assert.deepEqual(manifests[0]?.revocation, { status: 'none' });
    assert.match(summary, / There is no time-stamp and no revocation data\.$/);
    const stamped = await verified((await signWav(testAuthor({ signer, timeStamps }))).bytes);
    assert.match(stamped.summary, /root\. There is no revocation data\.$/);
  });
});

describe('signatures', () => {
  const good = async (endsAt: Date, days = 7): Promise<HeldStatus> => ({
    status: 'good',
    response: (await responder.respond('good', days)).toString('base64'),
    endsAt: endsAt.toISOString(),
  });
  const soon = new Date(Date.now() + DAY_MS);
  const reasonOf = (reason: string) => (error: AppError) => error.reason === reason;

  async function draftWith(staples: { current: Staples }) {
    const { signal } = new AbortController();
    const draft = await testAuthor({ signer, staples }).draft(requestWith(), signal);
    const binding = {
      label: 'c2pa.hash.data',
      data: { exclusions: [], name: 'none', alg: 'sha256', hash: [], pad: [] },
    };
    const measure = () => draft.measure([binding], signal);
    const sign = async () => (await draft.sign([binding], signal)).manifest;
    return { measure, sign };
  }

  test('take the latest response, also one that came after they were measured', async () => {
    const staples = { current: staplesWith(await good(soon)) };
    const { measure, sign } = await draftWith(staples);
    const sizeBytes = await measure();
    const later = await good(soon, 9);
    staples.current = staplesWith(later);
    const manifest = await sign();
    assert.equal(manifest.length, sizeBytes);
    assert(later.status === 'good' && manifest.includes(Buffer.from(later.response, 'base64')));
  });

  test('are made without a response that is ending or has become much larger; where one is required not at all', async () => {
    const larger = { ...(await good(soon)), response: Buffer.alloc(4000, 1).toString('base64') } as HeldStatus;
    const ending = await good(new Date(Date.now() + 1000));
    for (const later of [larger, ending]) {
      for (const isRequired of [false, true]) {
        const staples = { current: staplesWith(await good(soon), isRequired) };
        const { measure, sign } = await draftWith(staples);
        const sizeBytes = await measure();
        staples.current = staplesWith(later, isRequired);
        if (isRequired) await assert.rejects(sign(), reasonOf('OCSP_RESPONSE_MISSING'));
        else assert.equal((await sign()).length, sizeBytes);
      }
    }
  });

  test('are not made with a certificate that is revoked, whether a response is required or not', async () => {
    for (const isRequired of [false, true]) {
      const staples = { current: staplesWith(await good(soon), isRequired) };
      const { measure, sign } = await draftWith(staples);
      await measure();
      staples.current = staplesWith({ status: 'revoked', revokedAt: '2020-01-01T00:00:00.000Z' }, isRequired);
      await assert.rejects(sign(), reasonOf('IDENTITY_REVOKED'));
      await assert.rejects(measure(), reasonOf('IDENTITY_REVOKED'));
    }
  });

  test('of any size keep the size that was measured, whatever the response takes of the padding', async () => {
    for (const extra of [0, 1, 100, 253, 254, 255, 256]) {
      const base = Buffer.from(await responder.respond('good'));
      const held = (bytes: Buffer) => staplesWith({ status: 'good', response: bytes.toString('base64'), endsAt: FAR });
      const staples = { current: held(base) };
      const { measure, sign } = await draftWith(staples);
      const sizeBytes = await measure();
      const response = Buffer.concat([base, Buffer.alloc(extra)]);
      staples.current = held(response);
      const manifest = await sign();
      assert.equal(manifest.length, sizeBytes);
      assert(manifest.includes(response));
    }
  });
});
