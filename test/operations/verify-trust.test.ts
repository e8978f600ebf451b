import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Builder } from '@contentauth/c2pa-node';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { Verification } from '#contract/verification.ts';
import { NO_MANIFEST, withTrustList } from '#operations/verification/describe-verdict.ts';
import { summarize } from '#operations/verification/summarize.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { verifyAsIngredient } from '#publications/verify-as-ingredient.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { defaultIdentity, type TestIdentity, testIdentity } from '../support/manifests/test-identity.ts';
import { filesAt, folderAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

const home = temporaryFolder();
const { signal } = new AbortController();
let count = 0;

function rootOf({ chain }: { readonly chain: readonly Buffer[] }): Buffer {
  return Buffer.from(pemOf(chain.at(-1) as Buffer));
}

/** Signs a picture with the SDK alone. */
async function signPicture({ chain, signer }: TestIdentity): Promise<Buffer> {
  ffmpeg(home, ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:d=1'], '-frames:v 1 picture.jpg');
  const builder = Builder.withJson(
    { title: 'picture', claim_generator_info: [{ name: 'test', version: '1' }] } as never,
    { verify: { verify_after_sign: false } },
  );
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  const certs = [Buffer.from(chain.slice(0, -1).map(pemOf).join(''))];
  const call = { alg: 'es256', certs, reserveSize: 4096, directCoseHandling: false } as const;
  const output = { path: join(home, 'signed.jpg') };
  await builder.signConfigAsync((data: Buffer) => signer.sign(data), call, { path: join(home, 'picture.jpg') }, output);
  return readFileSync(output.path);
}

describe('a signer', async () => {
  const identity = await testIdentity({ intermediate: true });
  const stranger = await testIdentity();
  const { bytes, manifest } = await signWav(testAuthor({ signer: identity.signer }));
  const lists = writeFiles(join(home, 'lists'), {
    'others.pem': rootOf(stranger),
    'house list.pem': Buffer.concat([Buffer.from('A comment\n'), rootOf(identity)]),
    'notes.txt': Buffer.from('none'),
  });

  async function verified(
    trust: { anchors?: string[]; tsa_anchors?: string[] },
    file: Uint8Array = bytes,
  ): Promise<Verification> {
    const folder = writeFiles(join(home, String(count++)), { file });
    const input = { type: 'local_file_path', path: join(folder, 'file') } as const;
    return (await verifyInput(input, folder, { trust: { anchors: [], tsa_anchors: [], ...trust } })).verification;
  }

  test('is trusted who is on a list, which is named', async () => {
    const { state, trust_list: list, codes } = await verified({ anchors: [lists] });
    assert.deepEqual([state, list], ['trusted', 'house list']);
    assert(codes.some(({ code }) => code === 'signingCredential.trusted'));
  });

  test('is not trusted who is on no list, or on one of time-stamp authorities only', async () => {
    assert.equal((await verified({ anchors: [join(lists, 'others.pem')] })).state, 'valid');
    assert.equal((await verified({ tsa_anchors: [lists] })).state, 'valid');
  });

  test('of a picture is not trusted who is on a list of time-stamp authorities only', async () => {
    const picture = await signPicture(identity);
    assert.equal((await verified({ anchors: [lists] }, picture)).state, 'trusted');
    assert.equal((await verified({ tsa_anchors: [lists] }, picture)).state, 'valid');
  });

  test('of one of several manifests has to be on a list like those of the others', async (t) => {
    const theirs = await signWav(testAuthor({ signer: stranger.signer }));
    const settings = { anchors: [join(lists, 'house list.pem')], tsa_anchors: [lists] };
    const store = await TrustStore.open({ settings, log: NO_LOG });
    t.after(() => store.close());
    const known = store.current;
    const trusted = { ...NO_MANIFEST, state: 'trusted' } as const;
    assert.equal(withTrustList(trusted, [manifest, manifest], known).trust_list, 'house list');
    assert.equal(withTrustList(trusted, [manifest, theirs.manifest], known).state, 'valid');
  });

  test('is not judged by a list that cannot be used', async () => {
    for (const path of [join(lists, 'notes.txt'), join(lists, 'absent.pem')]) {
      await assert.rejects(verified({ anchors: [path] }), { reason: 'TRUST_LIST_UNUSABLE' });
    }
  });
});

describe('the signer of a publication', async () => {
  const dash = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
  const files = Object.fromEntries(Object.entries(dash).map(([path, bytes]) => [path, Buffer.from(bytes)]));
  const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
  const { renditions } = await readPublication(folderOf(files), patterns, signal);

  test('is trusted who is on a list, and recorded so where it is signed again', async (t) => {
    const folder = writeFiles(join(home, 'show'), await signAsOthers(files, renditions, {}));
    const anchors = [join(writeFiles(join(home, 'own'), { 'own.pem': rootOf(defaultIdentity) }), 'own.pem')];
    const input = { type: 'local_folder_path', path: folder } as const;
    const { verification } = await verifyInput(input, home, { trust: { anchors, tsa_anchors: [] } });
    assert.deepEqual([verification.state, verification.trust_list], ['trusted', 'own']);

    const store = await TrustStore.open({ settings: { anchors, tsa_anchors: [] }, log: NO_LOG });
    t.after(() => store.close());
    const scratch = new ScratchSpace({ dir: home, dataDir: home }, { jobId: 'again', inputIndex: 0, attempt: 1 });
    const publication = folderAt(folder);
    const read = await readPublication(publication, patterns, signal);
    const inits = await readInits(publication, read.renditions, signal);
    const context = {
      signal,
      scratch,
      reader: createFragmentReader(),
      trust: store.current,
      progress: () => undefined,
      describeParent: () => assert.fail('its parts lie in several files'),
    };
    const { ingredient } = await verifyAsIngredient({ folder: publication, publication: read, inits }, context);
    assert(ingredient.kind === 'manifest-store');
    const { success = [] } = ingredient.validationResults?.activeManifest ?? {};
    assert(success.some(({ code }) => code === 'signingCredential.trusted'));
  });

  for (const usage of ['documentSigning', 'c2paClaimSigning'] as const) {
    test(`may have a certificate for ${usage} alone, as that of a file may`, async () => {
      const identity = await testIdentity({ leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE[usage]] } });
      const place = join(home, String(count++));
      const folder = writeFiles(join(place, 'show'), await signAsOthers(files, renditions, { identity }));
      const anchors = [join(writeFiles(place, { 'own.pem': rootOf(identity) }), 'own.pem')];
      const input = { type: 'local_folder_path', path: folder } as const;
      const { verification } = await verifyInput(input, place, { trust: { anchors, tsa_anchors: [] } });
      assert.equal(verification.state, 'trusted');
    });
  }
});

test('a time-stamp by an authority on no list is told to prove nothing, and one by a listed authority needs no word', async () => {
  const path = join(home, 'stamped.wav');
  writeFiles(home, { 'stamped.wav': (await signWav(testAuthor())).bytes });
  const { verification } = await verifyInput({ type: 'local_file_path', path }, home);
  const [active] = verification.manifests;
  assert(active !== undefined);
  assert.match(verification.summary, /There is no time-stamp/);
  const told = (trusted: boolean) => {
    const time_stamp = { time: '2026-01-01T00:00:00Z', authority: 'Anybody', trusted };
    return summarize({ ...verification, manifests: [{ ...active, time_stamp }] });
  };
  assert.match(
    told(false),
    /The time-stamp is of an authority on no trust list .*: the time of signing is not proven\./,
  );
  assert.doesNotMatch(told(true), /time-stamp/);
});
