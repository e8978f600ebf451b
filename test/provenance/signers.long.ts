import assert from 'node:assert/strict';
import { verify, X509Certificate } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { probeSigning } from '#provenance/probe-signing.ts';
import type { Signer } from '#provenance/signer.ts';
import type { Signers } from '#provenance/signers.ts';
import { until } from '../support/jobs/test-jobs.ts';
import type { TestIdentity } from '../support/manifests/test-identity.ts';
import { isRunning } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { clientOf, connectedClient } from './connected-client.ts';
import { configWith, credentialIn, fitIdentity, startedSigners } from './identities.ts';

const DATA = Buffer.from('what is to be signed');

/** Tells whether a client signs with the key of an identity. */
async function signsFor(signer: Signer | null, { chain }: TestIdentity): Promise<boolean> {
  assert(signer !== null);
  const key = new X509Certificate(itemAt(chain, 0)).publicKey;
  return verify('sha256', DATA, { key, dsaEncoding: 'ieee-p1363' }, await signer.sign(DATA));
}

function keysOf({ identities }: Signers): Record<string, string> {
  return Object.fromEntries(identities.map(({ name, process, key }) => [name, `${process} ${key}`]));
}

describe('several identities', () => {
  test('sign each with their own keys, those of files in one process and each device in another', async (t) => {
    const folder = temporaryFolder();
    const [news, sport, publisher] = [
      await credentialIn(folder, 'pem'),
      await credentialIn(folder, 'http'),
      await credentialIn(folder, 'pem'),
    ];
    const { signers } = await startedSigners(
      t,
      configWith(folder, {
        news: { ...news.settings, tsa_url: 'https://tsa.example.com' },
        sport: { ...sport.settings, publisher: publisher.settings },
      }),
    );
    assert.deepEqual(
      signers.identities.map(({ name, process, keyKind, tsaUrls }) => [name, process, keyKind, tsaUrls]),
      [
        ['news', 0, 'pem', ['https://tsa.example.com']],
        ['sport', 1, 'http', []],
      ],
    );
    assert.equal(signers.identityOf('sport')?.publisher?.process, 0);
    const { client, access } = await connectedClient(t, signers);
    access.allow('news');
    assert(await signsFor(client.identityOf('news').signer, news.identity));
    assert.equal(client.identityOf('news').publisher, null);
    access.allow('sport');
    assert(await signsFor(client.identityOf('sport').signer, sport.identity));
    assert(await signsFor(client.identityOf('sport').publisher, publisher.identity));
    for (const name of ['news', 'sport']) assert.equal(await probeSigning(signers, name), null);
  });

  test('end the process that asks for a key of another one, also of the same process', async (t) => {
    const folder = temporaryFolder();
    const [news, sport, radio] = [
      await credentialIn(folder, 'pem'),
      await credentialIn(folder, 'http'),
      await credentialIn(folder, 'pem'),
    ];
    const identities = { news: news.settings, sport: sport.settings, radio: radio.settings };
    const { signers } = await startedSigners(t, configWith(folder, identities));
    for (const other of ['radio', 'sport']) {
      const { promise: killed, resolve: kill } = Promise.withResolvers<string>();
      const { client, access, exit } = await connectedClient(t, signers, { timeoutMs: 100, kill });
      access.allow('news');
      await assert.rejects(client.identityOf(other).signer.sign(DATA), /did not answer/);
      assert.match(await killed, /a key that its input may not use/);
      exit();
    }
  });

  test('are warned of where others may read the token of a device', async (t) => {
    const folder = temporaryFolder();
    const { settings } = await credentialIn(folder, 'http');
    const { signer, ...rest } = settings as { readonly signer: object };
    const file = join(folder, 'token');
    writeFileSync(file, 'a token', { mode: 0o644 });
    const { log } = await startedSigners(
      t,
      configWith(folder, { news: { ...rest, signer: { ...signer, token_path: file } } }),
    );
    const warned = log.lines.find(({ message }) => message === 'others can read or change a file that signing needs');
    assert.deepEqual(warned?.fields, {
      identity: 'news',
      role: 'claim',
      file,
      mode: '0644',
      remedy: `chmod 600 "${file}"`,
    });
  });

  test('may share a certificate and its key, and differ in their publisher', async (t) => {
    const folder = temporaryFolder();
    const shared = await credentialIn(folder, 'http');
    const [one, two] = [await credentialIn(folder, 'http'), await credentialIn(folder, 'pem')];
    const { signers } = await startedSigners(
      t,
      configWith(folder, {
        news: { ...shared.settings, publisher: one.settings },
        sport: { ...shared.settings, publisher: two.settings },
      }),
    );
    const { news, sport } = keysOf(signers);
    assert.equal(news, sport);
    const { client, access } = await connectedClient(t, signers);
    access.allow('sport');
    assert(await signsFor(client.identityOf('sport').signer, shared.identity));
    assert(await signsFor(client.identityOf('sport').publisher, two.identity));
  });

  test('do not start where a publisher has the key of claims', async (t) => {
    const folder = temporaryFolder();
    const [news, sport] = [await credentialIn(folder, 'pem'), await credentialIn(folder, 'pem')];
    const again = await credentialIn(folder, 'http', sport.identity);
    const config = configWith(folder, {
      news: { ...news.settings, publisher: again.settings },
      sport: sport.settings,
    });
    await assert.rejects(
      startedSigners(t, config),
      /publisher of the identity "news" has the key that claims of "sport"/,
    );
  });

  test('are renewed each for itself, and keep their number where only the files were written again', async (t) => {
    const folder = temporaryFolder();
    const [news, sport] = [await credentialIn(folder, 'pem'), await credentialIn(folder, 'http')];
    const { signers, log } = await startedSigners(
      t,
      configWith(folder, { news: news.settings, sport: sport.settings }),
    );
    const { identities } = signers;
    const before = keysOf(signers);
    news.replace(news.identity);
    const next = await fitIdentity();
    sport.replace(next);
    await until(() => signers.identities !== identities);
    assert.equal(keysOf(signers)['news'], before['news']);
    assert.notEqual(keysOf(signers)['sport'], before['sport']);
    assert(await signsFor(await clientOf(t, signers, 'sport'), next));
    assert(await signsFor(await clientOf(t, signers, 'news'), news.identity));
    const loaded = log.lines.filter(({ message }) => message === 'signing identity loaded');
    assert.deepEqual(
      loaded.map(({ fields }) => (fields as { identity: string }).identity),
      ['news', 'sport', 'sport'],
    );
  });
});

describe('a device', () => {
  test('that hangs or crashes delays no other key, and signs again when it is back', async (t) => {
    const folder = temporaryFolder();
    const [news, sport] = [await credentialIn(folder, 'pem'), await credentialIn(folder, 'http')];
    const { signers } = await startedSigners(t, configWith(folder, { news: news.settings, sport: sport.settings }));
    const [one, other] = [await clientOf(t, signers, 'news'), await clientOf(t, signers, 'sport')];
    for (const order of ['hangs', 'crashes'] as const) {
      const pid = signers.pidOf(1) ?? 0;
      sport.order(order);
      const asked = other.sign(DATA);
      for (let count = 0; count < 20; count += 1) assert(await signsFor(one, news.identity));
      sport.order(null);
      // A process that hangs is killed, as the supervisor does after a while.
      if (order === 'hangs') process.kill(pid, 'SIGKILL');
      assert.equal((await asked).length, 64);
      assert.notEqual(signers.pidOf(1), pid);
    }
  });

  test('that is away when its process is started again is tried until it answers', async (t) => {
    const folder = temporaryFolder();
    const sport = await credentialIn(folder, 'http');
    const { signers, log } = await startedSigners(t, configWith(folder, { sport: sport.settings }));
    const client = await clientOf(t, signers, 'sport');
    sport.order('away');
    process.kill(signers.pidOf(1) ?? 0, 'SIGKILL');
    await until(() => log.lines.some(({ message }) => message.includes('cannot load the signing identity')));
    await assert.rejects(client.sign(DATA), /cannot be loaded now/);
    sport.order(null);
    await until(() =>
      client.sign(DATA).then(
        () => true,
        () => false,
      ),
    );
  });

  test('that is away does not stop the start, and its identity comes into force when it answers', async (t) => {
    const folder = temporaryFolder();
    const [news, sport, crashing] = [
      await credentialIn(folder, 'pem'),
      await credentialIn(folder, 'http'),
      await credentialIn(folder, 'http'),
    ];
    sport.order('away');
    crashing.order('crashes');
    const { signers, log } = await startedSigners(
      t,
      configWith(folder, { news: news.settings, sport: sport.settings, radio: crashing.settings }),
    );
    assert.deepEqual(
      signers.identities.map(({ name }) => name),
      ['news'],
    );
    assert.deepEqual([...signers.away.keys()], ['sport', 'radio']);
    assert.match(signers.away.get('sport')?.message ?? '', /the device is away/);
    assert.match(signers.away.get('radio')?.message ?? '', /the signer process exited by the signal SIGKILL/);
    assert.match((await probeSigning(signers, 'sport')) ?? '', /the device is away/);
    const told = log.lines.filter(({ level }) => level === 'error');
    assert.deepEqual(
      told.map(({ fields }) => (fields as { dependency: string }).dependency),
      ['signer:sport', 'signer:radio'],
    );
    const { access } = await connectedClient(t, signers);
    assert.equal(access.allow('sport'), false);
    sport.order(null);
    crashing.order(null);
    await until(() => signers.identities.length === 3);
    assert.equal(signers.away.size, 0);
    assert(await signsFor(await clientOf(t, signers, 'sport'), sport.identity));
    assert(await signsFor(await clientOf(t, signers, 'radio'), crashing.identity));
  });

  test('whose settings are wrong stops the start', async (t) => {
    const folder = temporaryFolder();
    const sport = await credentialIn(folder, 'http');
    sport.order('wrong');
    await assert.rejects(startedSigners(t, configWith(folder, { sport: sport.settings })), /there is no such key/);
  });
});

describe('a reload of identities', () => {
  test('under running signatures keeps the unchanged key, adds one, and drops one when its last client has exited', async (t) => {
    const folder = temporaryFolder();
    const [news, sport, radio] = [
      await credentialIn(folder, 'pem'),
      await credentialIn(folder, 'http'),
      await credentialIn(folder, 'http'),
    ];
    const { signers } = await startedSigners(t, configWith(folder, { news: news.settings, sport: sport.settings }));
    const before = keysOf(signers);
    const pid = signers.pidOf(1) ?? 0;
    const { client, access, exit } = await connectedClient(t, signers);
    access.allow('sport');
    const steady = await connectedClient(t, signers);
    steady.access.allow('news');
    let isReloaded = false;
    const signing = [steady.client.identityOf('news').signer, client.identityOf('sport').signer].map(async (signer) => {
      for (let after = 0; after < 20; after += isReloaded ? 1 : 0) await signer.sign(DATA);
    });
    await signers.reload(configWith(folder, { news: news.settings, radio: radio.settings }));
    isReloaded = true;
    await Promise.all(signing);
    assert.deepEqual(Object.keys(keysOf(signers)), ['news', 'radio']);
    assert.equal(keysOf(signers)['news'], before['news']);
    assert(await signsFor(await clientOf(t, signers, 'radio'), radio.identity));
    steady.exit();
    assert(isRunning(pid), 'a client may still use the key');
    exit();
    await until(() => !isRunning(pid));
  });

  test('that cannot be used changes nothing, and says why', async (t) => {
    const folder = temporaryFolder();
    const [news, away, broken] = [
      await credentialIn(folder, 'pem'),
      await credentialIn(folder, 'http'),
      await credentialIn(folder, 'pem'),
    ];
    const { signers, log } = await startedSigners(t, configWith(folder, { news: news.settings }));
    const { identities } = signers;
    log.lines.length = 0;
    away.order('away');
    writeFileSync(broken.keyFile, 'no key');
    for (const [other, problem] of [
      [broken.settings, /holds no private key in PEM/],
      [away.settings, /the device is away/],
      [{ ...news.settings, publisher: (await credentialIn(folder, 'pem', news.identity)).settings }, /has the key/],
    ] as const) {
      const config = configWith(folder, { news: news.settings, other });
      await assert.rejects(signers.reload(config), ({ message }: AppError) => problem.test(message));
      assert.equal(signers.identities, identities);
      assert.equal(signers.away.size, 0);
    }
    assert.deepEqual(log.lines, []);
    assert(await signsFor(await clientOf(t, signers, 'news'), news.identity));
  });

  test('takes files that were replaced at once, and refuses those that cannot be used', async (t) => {
    const folder = temporaryFolder();
    const news = await credentialIn(folder, 'pem');
    const config = configWith(folder, { news: news.settings });
    const { signers } = await startedSigners(t, config);
    const next = await fitIdentity();
    news.replace(next);
    await signers.reload(config);
    assert(await signsFor(await clientOf(t, signers, 'news'), next));
    const { identities } = signers;
    rmSync(news.keyFile);
    await assert.rejects(signers.reload(config), { reason: 'IDENTITY_FILE_UNREADABLE' });
    assert.equal(signers.identities, identities);
  });

  test('closes the device of a key that is gone', async (t) => {
    const folder = temporaryFolder();
    const [news, sport] = [await credentialIn(folder, 'pem'), await credentialIn(folder, 'http')];
    const { signers } = await startedSigners(t, configWith(folder, { sport: sport.settings }));
    const next = await fitIdentity();
    sport.replace(next);
    await until(() => existsSync(`${sport.keyFile}.closed`));
    const pid = signers.pidOf(1) ?? 0;
    await signers.reload(configWith(folder, { news: news.settings }));
    await until(() => !isRunning(pid));
  });
});
