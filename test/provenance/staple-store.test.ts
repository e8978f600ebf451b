import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, beforeEach, describe, mock, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import type { AppError } from '#errors/app-error.ts';
import { StapleStore } from '#provenance/revocation/staple-store.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { keptLog, NO_LOG, until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startResponder } from './ocsp-responder.ts';

const DAY_MS = 24 * 60 * 60_000;
const responder = await startResponder();
after(() => responder.close());
const { signer } = responder;

// No time passes but where a test says so. The types do not know the second API.
beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'AbortSignal.timeout' as never] });
  responder.behave('good');
});
afterEach(() => mock.timers.reset());

function storeIn(
  t: TestContext,
  ocsp: 'staple' | 'require',
  folder = temporaryFolder(),
  trust = { current: NO_TRUST_LISTS },
) {
  const config = configSchema.parse({ jobs: { data_dir: folder }, signing: { ocsp } }) as Config;
  const log = keptLog();
  const store = new StapleStore({ config, trust, log });
  t.after(() => store.close());
  const follow = (chain = signer.certificateChain) => store.follow([chain]);
  const problems = () => log.lines.filter(({ level }) => level !== 'info');
  return { store, folder, follow, problems };
}

const outcomeOf = async (store: StapleStore): Promise<string> => {
  try {
    const { manifest } = await signWav(testAuthor({ signer, staples: store }));
    return Buffer.from(manifest).includes('ocspVals') ? 'stapled' : 'plain';
  } catch (error) {
    return (error as AppError).reason;
  }
};

describe('the OCSP response of a signing certificate', () => {
  test('is asked for once, and stapled to what is signed', async (t) => {
    const { store, follow, problems } = storeIn(t, 'require');
    const queries = responder.queryCount();
    await follow();
    await follow();
    assert.equal(await outcomeOf(store), 'stapled');
    assert.equal(responder.queryCount(), queries + 1);
    assert.deepEqual(problems(), []);
  });

  test('comes from any responder, such as that of OpenSSL', async (t) => {
    const openssl = await startResponder({ isOpenssl: true });
    t.after(() => openssl.close());
    const { store, follow, problems } = storeIn(t, 'require');
    await follow(openssl.signer.certificateChain);
    assert.deepEqual(problems(), []);
    const { bytes } = await signWav(testAuthor({ signer: openssl.signer, staples: store }));
    await assertValid(bytes, 'audio/wav');
  });

  test('is kept in the data folder, so that a restart needs no responder, which is asked soon after', async (t) => {
    const before = storeIn(t, 'require');
    await before.follow();
    before.store.close();
    responder.behave('hanging-up');
    const { store, follow } = storeIn(t, 'require', before.folder);
    await follow();
    assert.equal(await outcomeOf(store), 'stapled');
    responder.behave('revoked');
    mock.timers.tick(30_000);
    await until(async () => (await outcomeOf(store)) === 'IDENTITY_REVOKED');
  });

  test('that somebody changed in the data folder is asked for again', async (t) => {
    const before = storeIn(t, 'require');
    await before.follow();
    const [name = ''] = readdirSync(join(before.folder, 'ocsp'));
    const file = join(before.folder, 'ocsp', name);
    const [kept, lie] = [readFileSync(file), await responder.respond('other-key')];
    for (const bytes of [lie, Buffer.alloc(0), Buffer.from('garbage')]) {
      writeFileSync(file, bytes);
      const { store, follow } = storeIn(t, 'require', before.folder);
      const queries = responder.queryCount();
      await follow();
      assert.equal(responder.queryCount(), queries + 1);
      assert.equal(await outcomeOf(store), 'stapled');
      assert.equal(readFileSync(file).length > 300 && kept.length > 300, true);
    }
  });

  test('is renewed when half of its time is over, and stays in use while the responder is away', async (t) => {
    const { store, follow, problems } = storeIn(t, 'require');
    await follow();
    const { current } = store;
    responder.behave('silent');
    const queries = responder.queryCount();
    mock.timers.tick((7 * DAY_MS) / 2);
    await until(() => responder.queryCount() > queries);
    assert.equal(await outcomeOf(store), 'stapled');
    mock.timers.tick(10_000);
    await until(() => problems().length > 0);
    assert.equal(await outcomeOf(store), 'stapled');
    responder.behave('good');
    mock.timers.tick(60_000);
    await until(() => store.current !== current);
  });

  test('that says revoked stops signatures with either setting, also after a restart, and the log says so', async (t) => {
    for (const ocsp of ['staple', 'require'] as const) {
      responder.behave('revoked');
      const before = storeIn(t, ocsp);
      await before.follow();
      assert.equal(await outcomeOf(before.store), 'IDENTITY_REVOKED');
      assert.deepEqual(
        before.problems().map(({ level, message }) => [level, message]),
        [['error', 'the signing certificate was revoked: nothing is signed with it']],
      );
      responder.behave('hanging-up');
      const { store, follow } = storeIn(t, ocsp, before.folder);
      await follow();
      assert.equal(await outcomeOf(store), 'IDENTITY_REVOKED');
    }
  });

  test('that says revoked is not undone by one from before it', async (t) => {
    const early = await responder.respond('good');
    const madeAt = Date.now();
    // Times in responses have whole seconds.
    await until(() => Date.now() >= madeAt + 1000);
    responder.behave('revoked');
    const { store, follow, problems } = storeIn(t, 'staple');
    await follow();
    responder.behave(early);
    mock.timers.tick(DAY_MS);
    await until(() => problems().length > 1);
    assert.match(JSON.stringify(problems()), /the response is older than the one before/);
    assert.equal(await outcomeOf(store), 'IDENTITY_REVOKED');
  });

  test('of a certificate that was replaced stays for inputs that began with it, and is asked for no more', async (t) => {
    const { store, follow } = storeIn(t, 'require');
    const { signer: next } = await testIdentity();
    await follow();
    await follow(next.certificateChain);
    const queries = responder.queryCount();
    mock.timers.tick(7 * DAY_MS);
    assert.equal(await outcomeOf(store), 'stapled');
    assert.equal(responder.queryCount(), queries);
    responder.behave('revoked');
    await follow();
    mock.timers.tick(DAY_MS);
    await until(async () => (await outcomeOf(store)) === 'IDENTITY_REVOKED');
  });

  test('needs the certificate of the issuer, which a trust list may have', async (t) => {
    const leafOnly = signer.certificateChain.slice(0, 1);
    const { store, follow, problems } = storeIn(t, 'require');
    await follow(leafOnly);
    assert.equal(await outcomeOf(store), 'OCSP_RESPONSE_MISSING');
    assert.match(
      JSON.stringify(problems()),
      /the issuer's certificate is neither in the identity's file nor in trust\.anchors/,
    );
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'issuer.pem'), responder.issuer.toString());
    const trust = await TrustStore.open({ settings: { anchors: [folder], tsa_anchors: [] }, log: NO_LOG });
    t.after(() => trust.close());
    const other = storeIn(t, 'require', undefined, trust);
    await other.follow(leafOnly);
    assert.equal(await outcomeOf(other.store), 'stapled');
  });

  test('of a certificate that names no responder is missing', async (t) => {
    const { store, follow, problems } = storeIn(t, 'staple');
    await follow((await testIdentity({ intermediate: true })).signer.certificateChain);
    assert.match(JSON.stringify(problems()), /the certificate names no OCSP responder/);
    assert.equal(await outcomeOf(store), 'plain');
  });
});

const FAULTS = {
  unknown: /the responder does not know the certificate/,
  'other-certificate': /the response cannot be used: it is about another certificate/,
  'other-key': /the response cannot be used: it is not signed by the issuer/,
  garbage: /the response cannot be used: it is no OCSP response/,
  'try-later': /the response cannot be used: the responder gives none \(tryLater\)/,
  refusing: /the responder \S+ answered with the HTTP status 503/,
  redirecting: /the responder \S+ answered with the HTTP status 302/,
  huge: /the responder \S+ sent more than 16384 bytes/,
  silent: /the responder \S+ did not answer within 10000 ms/,
  'hanging-up': /the responder \S+ could not be reached/,
  ending: /the last response ended on/,
} as const;

describe('where the responder gives no response that can be used', () => {
  for (const [fault, problem] of Object.entries(FAULTS) as [keyof typeof FAULTS, RegExp][]) {
    test(`(${fault}), outputs are made without one, or not where one is required`, async (t) => {
      responder.behave(fault);
      for (const [ocsp, outcome] of [
        ['staple', 'plain'],
        ['require', 'OCSP_RESPONSE_MISSING'],
      ] as const) {
        const { store, follow, problems } = storeIn(t, ocsp);
        const queries = responder.queryCount();
        const followed = follow();
        await until(() => responder.queryCount() > queries);
        if (fault === 'silent') mock.timers.tick(10_000);
        await followed;
        assert.equal(await outcomeOf(store), outcome);
        const refusal = store.current.refusalOf(signer.certificateChain[0] as Buffer);
        assert.match(
          ocsp === 'staple' ? JSON.stringify(problems()) : (refusal ?? ''),
          fault === 'ending' && ocsp === 'staple' ? /^\[\]$/ : problem,
        );
      }
    });
  }
});
