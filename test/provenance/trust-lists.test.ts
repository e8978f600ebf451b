import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { type TrustSettings, TrustStore } from '#provenance/trust-store.ts';
import { keptLog, until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { readManifest, type ShownIngredient } from '../support/manifests/read-manifest.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { type TestIdentity, testIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type FakeAuthority, startAuthority } from './time-stamp-authority.ts';

const signer = await testIdentity({ intermediate: true });
const stranger = await testIdentity();

function rootOf({ chain }: TestIdentity): string {
  return pemOf(chain.at(-1) as Buffer);
}

function damaged(pem: string): string {
  return pem.replace('\nMII', '\nAAA');
}

/** Writes a file beside its path and renames it, so that no look finds it half-written. The other name is that of no list. */
function replaceFile(path: string, contents: string): void {
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
}

/** The list that an identity is on. */
function listOf({ current }: TrustStore, { chain }: TestIdentity): string | null {
  return current.listOfChain(chain.slice(0, -1).map((der) => new X509Certificate(der)));
}

let authority: FakeAuthority;
before(async () => {
  authority = await startAuthority();
});
after(() => authority.close());

async function opened(t: TestContext, settings: Partial<TrustSettings>, log = keptLog()) {
  const store = await TrustStore.open({
    settings: { anchors: [], tsa_anchors: [], ...settings },
    log,
    pollIntervalMs: 5,
  });
  t.after(() => store.close());
  return { store, log };
}

/** A file that an identity signed with a time-stamp. */
async function sourceOf(folder: string, { signer: key }: TestIdentity): Promise<string> {
  const timeStamps = { urls: [authority.url], timeoutMs: 600_000, isRequired: true };
  const path = join(folder, 'source.wav');
  writeFileSync(path, (await signWav(testAuthor({ signer: key, timeStamps }))).bytes);
  return path;
}

/** The codes that a source is recorded with in the manifest of an output, which both readers have to accept without any list. */
async function recorded(path: string, trust: TrustStore): Promise<string[]> {
  const origin = { kind: 'file', path, title: 'source.wav', mediaType: 'audio/wav' } as const;
  const { bytes } = await signWav(testAuthor({ trust }), { origin });
  await assertValid(bytes, 'audio/wav');
  const [ingredient] = (await readManifest(bytes)).ingredients;
  return codesOf(ingredient);
}

function codesOf(ingredient: ShownIngredient | undefined): string[] {
  const { success = [], informational = [], failure = [] } = ingredient?.validation_results?.activeManifest ?? {};
  return [...success, ...informational, ...failure]
    .map(({ code }) => code)
    .filter((code) => /trusted$/.test(code))
    .sort();
}

describe('the new manifest', () => {
  test('records signer and time-stamp of a source as trusted where both are on lists', async (t) => {
    const folder = temporaryFolder();
    const [anchors, authorities] = [join(folder, 'signers.pem'), join(folder, 'authorities.pem')];
    writeFileSync(anchors, rootOf(stranger) + rootOf(signer));
    writeFileSync(authorities, authority.root);
    const { store } = await opened(t, { anchors: [anchors], tsa_anchors: [authorities] });
    const source = await sourceOf(folder, signer);
    assert.deepEqual(await recorded(source, store), ['signingCredential.trusted', 'timeStamp.trusted']);
  });

  test('records as untrusted who is on no list, or on one of time-stamp authorities only', async (t) => {
    const folder = temporaryFolder();
    const [anchors, authorities] = [join(folder, 'signers.pem'), join(folder, 'authorities.pem')];
    writeFileSync(anchors, rootOf(stranger));
    writeFileSync(authorities, rootOf(signer));
    const source = await sourceOf(folder, signer);
    for (const settings of [{}, { anchors: [anchors] }, { anchors: [anchors], tsa_anchors: [authorities] }]) {
      const { store } = await opened(t, settings);
      assert.deepEqual(await recorded(source, store), ['signingCredential.untrusted', 'timeStamp.untrusted']);
    }
  });

  test('records a source by the lists as they are when it is made', async (t) => {
    const folder = temporaryFolder();
    const source = await sourceOf(folder, signer);
    const list = join(folder, 'list.pem');
    writeFileSync(list, rootOf(stranger));
    const { store } = await opened(t, { anchors: [list] });
    assert((await recorded(source, store)).includes('signingCredential.untrusted'));
    replaceFile(list, rootOf(signer));
    await until(() => listOf(store, signer) === 'list');
    assert((await recorded(source, store)).includes('signingCredential.trusted'));
  });
});

describe('trust lists', () => {
  test('are read again when files of a folder are added, edited and removed', async (t) => {
    const lists = join(temporaryFolder(), 'lists');
    mkdirSync(lists);
    const { store, log } = await opened(t, { anchors: [lists] });
    const told: (string | null)[] = [];
    store.onChange(() => told.push(listOf(store, signer)));
    assert.equal(store.current.pem, null);

    replaceFile(join(lists, 'house.pem'), rootOf(stranger));
    await until(() => listOf(store, stranger) === 'house');
    replaceFile(join(lists, 'house.pem'), rootOf(stranger) + rootOf(signer));
    await until(() => listOf(store, signer) === 'house');
    rmSync(join(lists, 'house.pem'));
    await until(() => store.current.pem === null);
    assert.deepEqual(told, [null, 'house', null]);
    assert.deepEqual(
      log.lines.filter(({ level }) => level !== 'info'),
      [],
    );
  });

  test('stay as they were after a change that cannot be used, which one warning names', async (t) => {
    const folder = temporaryFolder();
    // The lists of a folder are read in the order of their names, so "first" is the one that is warned of where both are bad.
    const [first, second] = [join(folder, 'first.pem'), join(folder, 'second.pem')];
    writeFileSync(second, rootOf(signer));
    const { store, log } = await opened(t, { anchors: [folder] });
    const warnings = () => log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields);

    replaceFile(second, damaged(rootOf(signer)));
    await until(() => warnings().length > 0);
    assert.equal(listOf(store, signer), 'second');
    replaceFile(first, 'no certificate');
    await until(() => warnings().length > 1);
    assert.equal(listOf(store, signer), 'second');
    assert.deepEqual(
      warnings().map((fields) => ('file' in fields ? fields.file : null)),
      [second, first],
    );

    replaceFile(second, rootOf(stranger));
    replaceFile(first, rootOf(signer));
    await until(() => listOf(store, signer) === 'first');
    assert.equal(warnings().length, 2);
  });

  for (const [what, contents] of [
    ['is missing', null],
    ['holds no certificate', 'no certificate\n'],
    ['holds a damaged certificate', `${rootOf(stranger)}${damaged(rootOf(signer))}`],
    ['holds a key', rootOf(stranger) + signer.privateKey.export({ type: 'pkcs8', format: 'pem' })],
    ['is cut off', `${rootOf(stranger)}${rootOf(signer).slice(0, 200)}`],
  ] as const) {
    test(`are refused at the start where one ${what}, by key and file`, async (t) => {
      const folder = temporaryFolder();
      const file = join(folder, 'list.pem');
      if (contents !== null) writeFileSync(file, contents);
      const path = contents === null ? file : folder;
      await assert.rejects(opened(t, { tsa_anchors: [path] }), (error) => {
        assert(error instanceof AppError && error.reason === 'TRUST_LIST_UNUSABLE');
        assert.partialDeepStrictEqual(error.details, { field: 'trust.tsa_anchors', file });
        return true;
      });
    });
  }
});
