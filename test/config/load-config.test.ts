import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { identitiesOf } from '#config/identities.ts';
import { loadConfig } from '#config/load-config.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';

let cwd: string;

before(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'attestream-config-'));
});

after(async () => {
  await rm(cwd, { recursive: true });
});

/** Loads a file of the given content under the given environment. */
async function load(toml: string | Uint8Array, env: NodeJS.ProcessEnv = {}) {
  await writeFile(join(cwd, 'test.toml'), toml);
  return await loadConfig({ env: { ...env, SERVICE_CONFIG_PATH: 'test.toml' }, cwd });
}

/** The problems that stop a start, or the reason where it is another one. */
async function refusal(loading: Promise<unknown>): Promise<AppErrorData> {
  const error = await loading.then(
    () => assert.fail('the configuration was accepted'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof AppError, String(error));
  return error.toData();
}

async function problems(toml: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const { reason, details } = await refusal(load(toml, env));
  assert.equal(reason, 'CONFIG_INVALID');
  return (details as { problems: string[] }).problems;
}

/** Digests that docs/production.md once showed as an example: of "foo" and "bar". */
const FORMER_EXAMPLES = ['foo', 'bar'].map((token) => createHash('sha256').update(token).digest('hex')) as [
  string,
  string,
];

describe('loadConfig', () => {
  test('starts on its defaults where there is no file, with every path absolute', async () => {
    const config = await loadConfig({ env: {}, cwd });
    assert.equal(config.server.bind_addr, '0.0.0.0:8080');
    assert.equal(config.worker.default_max_files_parallel, availableParallelism());
    assert.equal(config.jobs.data_dir, join(cwd, '.artifacts/data'));
    assert.equal(config.jobs.scratch_dir, join(cwd, '.artifacts/data/scratch'));
    assert.equal(config.output_sinks.local.base_dir, join(cwd, '.artifacts/output'));
    assert.deepEqual(structuredClone(config), config);
  });

  test('reads config/service.toml without being told', async () => {
    const folder = join(cwd, 'started-here');
    await mkdir(join(folder, 'config'), { recursive: true });
    await writeFile(join(folder, 'config/service.toml'), '[server]\nsync_timeout_ms = 7');
    assert.equal((await loadConfig({ env: {}, cwd: folder })).server.sync_timeout_ms, 7);
  });

  test('asks for a database where nodes have different roles, and for an identity where they share a database', async () => {
    const database = 'database_url = "postgres://attestream:pass-word@db:5432/jobs"';
    const identity = '[signing]\ncertificate_path = "c.pem"\nprivate_key_path = "k.pem"';
    for (const role of ['api', 'worker']) {
      assert.match((await problems(`[jobs]\nrole = "${role}"`)).join(), /jobs\.role: .*database_url/);
      assert.equal((await load(`[jobs]\nrole = "${role}"\n${database}\n${identity}`)).jobs.role, role);
    }
    const [problem = ''] = await problems(`[jobs]\n${database}`);
    assert.match(problem, /jobs\.database_url: .*signing\.certificate_path/);
    assert(!problem.includes('pass-word'));
    assert(!(await problems('[jobs]\ndatabase_url = "mysql://me:pass-word@db/jobs"')).join().includes('pass-word'));
  });

  test('takes one time-stamp authority or a list of them', async () => {
    const [first, second] = ['https://tsa.example.com', 'http://user:pass-word@tsa.example.net/tsa'];
    const authoritiesOf = async (toml: string, env = {}) => (await load(toml, env)).signing.tsa_url;
    assert.deepEqual(await authoritiesOf(''), []);
    assert.deepEqual(await authoritiesOf(`[signing]\ntsa_url = "${first}"`), [first]);
    assert.deepEqual(await authoritiesOf(`[signing]\ntsa_url = ["${first}", "${second}"]`), [first, second]);
    assert.deepEqual(await authoritiesOf('', { SERVICE__SIGNING__TSA_URL: `${first}, ${second}` }), [first, second]);
    for (const refused of ['"ftp://tsa.example.com"', '5', `["${second}", "pass-word"]`]) {
      const [problem = '', ...others] = await problems(`[signing]\ntsa_url = ${refused}`);
      assert.deepEqual(others, []);
      assert.match(problem, /signing\.tsa_url(\.1)?: .*https or http/);
      assert(!problem.includes('pass-word'));
    }
  });

  test('refuses a file that is named and absent', async () => {
    const { reason } = await refusal(loadConfig({ env: { SERVICE_CONFIG_PATH: 'absent.toml' }, cwd }));
    assert.equal(reason, 'CONFIG_FILE_UNREADABLE');
  });

  test('says where a file is malformed, without showing its lines', async () => {
    const data = await refusal(load('[auth]\ntokens = ["geheim'));
    assert.equal(data.reason, 'CONFIG_FILE_MALFORMED');
    assert.equal((data.details as { line: number }).line, 2);
    assert.doesNotMatch(AppError.fromData(data).message, /geheim/);
  });

  test('says where a file is not UTF-8', async () => {
    const before = Buffer.from('# Größe, \ufffd\n[signing]\nprivate_key_passphrase = "gr');
    const refused = await refusal(load(Buffer.concat([before, Buffer.from([0xfc]), Buffer.from('n"\n')])));
    assert.equal(refused.reason, 'CONFIG_FILE_MALFORMED');
    const { line, column } = refused.details as { line: number; column: number };
    assert.deepEqual([line, column], [3, 29]);
    await load(Buffer.from('# ends with \ufffd'));
  });

  test('lists every problem at once, each with its file or variable and its key', async () => {
    const listed = await problems(
      '[server]\nbind_adr = "x"\nsync_timeout_ms = "7"\n[bogus]\n[worker]\nqueue_capacity = 0',
      {
        SERVICE__SERVER__DOCS: 'maybe',
        SERVICE__SERVER__PORT: '1',
      },
    );
    const file = join(cwd, 'test.toml');
    for (const start of [
      `${file}: server.bind_adr:`,
      `${file}: server.sync_timeout_ms:`,
      `${file}: bogus:`,
      `${file}: worker.queue_capacity:`,
      'SERVICE__SERVER__DOCS: server.docs:',
      'SERVICE__SERVER__PORT: server.port:',
    ]) {
      assert.ok(
        listed.some((problem) => problem.startsWith(start)),
        `${start} is in ${listed.join('\n')}`,
      );
    }
    assert.equal(listed.length, 6);
  });

  test('names the variable of a key that is missing, where there is no file', async () => {
    const env = { SERVICE__OUTPUT_SINKS__S3__REGION: 'eu-north-1' };
    const { details } = await refusal(loadConfig({ env, cwd }));
    const [problem = ''] = (details as { problems: string[] }).problems;
    assert.ok(problem.startsWith('SERVICE__OUTPUT_SINKS__S3__BUCKETS: output_sinks.s3.buckets:'), problem);
  });

  test('never repeats a value: it may be a secret', async () => {
    const listed = await problems(
      '[auth]\ntokens = ["sha256:hush", "with space hush", 5]\n[signing]\nalgorithm = "hush"',
      {
        SERVICE__SIGNING__TSA_URL: 'ftp://user:hush@host',
        SERVICE__SERVER__MAX_UPLOAD_BYTES: 'hush',
      },
    );
    assert.doesNotMatch(listed.join('\n'), /hush/);
    assert.equal(listed.length, 6);
  });

  test('takes tokens as they are, as digests and as tables, and keeps none of them', async () => {
    const digestOf = (token: string) => createHash('sha256').update(token).digest('hex');
    const digest = digestOf('hush');
    const tables = `{ name = "a", token = "hush-a" }, { name = "b", sha256 = "${digestOf('hush-b').toUpperCase()}", admin = true }`;
    const { tokens } = (await load(`[auth]\ntokens = ["hush", ${tables}]`)).auth;
    assert.deepEqual(tokens.map(({ caller, admin }) => [caller, admin]).slice(1), [
      ['a', false],
      ['b', true],
    ]);
    assert.match(tokens[0]?.caller ?? '', /^token-[0-9a-f]{8}$/);
    assert.equal(tokens[0]?.digest, digest);
    assert.doesNotMatch(JSON.stringify(tokens), /hush/);
    const [variable] = (await load('', { SERVICE__AUTH__TOKENS: ` hush , sha256:${digest.toUpperCase()}` })).auth
      .tokens;
    assert.deepEqual(variable, tokens[0]);
  });

  for (const [what, entry] of [
    ['names nobody', '{ token = "hush" }'],
    ['has no token', '{ name = "a" }'],
    ['has a token and a digest', `{ name = "a", token = "hush", sha256 = "${'0'.repeat(64)}" }`],
    ['has half a digest', '{ name = "a", sha256 = "00ff" }'],
    ['has a name that is none', '{ name = "a b", token = "hush" }'],
    ['has a key that is none', '{ name = "a", token = "hush", role = "admin" }'],
    ['is the token of another caller', '"hush", { name = "a", token = "hush" }'],
    ['is a number', '5'],
    ['earlier documentation showed, as a digest', `{ name = "a", sha256 = "${FORMER_EXAMPLES[0]}" }`],
    ['earlier documentation showed, as a string', `"sha256:${FORMER_EXAMPLES[1].toUpperCase()}"`],
    ['earlier documentation showed the digest of', '"foo"'],
  ] as const) {
    test(`refuses an entry of auth.tokens that ${what}`, async () => {
      const listed = await problems(`[auth]\ntokens = [${entry}]`, {});
      assert.equal(listed.length, 1, listed.join('\n'));
      assert.match(listed[0] ?? '', /: auth\.tokens\.[01]/);
      assert.doesNotMatch(listed.join('\n'), /hush/);
    });
  }

  test('switches S3 on by any of its keys, in a file or by a variable', async () => {
    assert.equal((await load('')).input_resolvers.s3, undefined);
    const config = await load('[input_resolvers.s3]\nregion = "eu-central-1"', {
      SERVICE__OUTPUT_SINKS__S3__BUCKETS: 'one,two',
      SERVICE__OUTPUT_SINKS__S3__BASE_PREFIX: '/signed/',
    });
    assert.deepEqual(config.input_resolvers.s3, { region: 'eu-central-1', force_path_style: false });
    assert.deepEqual(config.output_sinks.s3, {
      buckets: ['one', 'two'],
      base_prefix: 'signed',
      naming: 'derived',
      force_path_style: false,
    });
  });

  test('says of a number with a fraction, and of a key that is missing, what they should be', async () => {
    const listed = await problems('[output_sinks.s3]\nregion = "eu-central-1"', {
      SERVICE__SERVER__SYNC_TIMEOUT_MS: '1.5',
    });
    assert.match(listed.join('\n'), /sync_timeout_ms: must be a whole number/);
    assert.match(listed.join('\n'), /buckets: is missing/);
  });

  test('refuses an algorithm that no key would sign with', async () => {
    assert.equal((await problems('[signing]\nalgorithm = "ps256"')).length, 1);
    const identity = 'certificate_path = "chain.pem"\nprivate_key_path = "key.pem"';
    assert.equal((await load(`[signing]\nalgorithm = "ps256"\n${identity}`)).signing.algorithm, 'ps256');
  });

  test('names the nearest key to a typo in an identity, its signer and its publisher', async () => {
    const publisher = '[signing.identities.news.publisher]\ncertificate_pth = "p.pem"';
    const listed = await problems(
      `[signing.identities.news]\ncertificate_path = "c.pem"\ntsa_ulr = "https://tsa.example.com"\nsigner = { type = "pem", private_key_pat = "k.pem" }\n${publisher}`,
    );
    for (const key of ['tsa_url', 'signer.private_key_path', 'publisher.certificate_path']) {
      assert(
        listed.some((problem) => problem.endsWith(`did you mean signing.identities.news.${key}?`)),
        listed.join(),
      );
    }
  });

  test('refuses names of identities, and kinds of signers, that there are not', async () => {
    const identity = 'certificate_path = "c.pem"\nsigner';
    const pem = '{ type = "pem", private_key_path = "k.pem" }';
    const [name] = await problems(`[signing.identities.News-1]\n${identity} = ${pem}`);
    assert.match(name ?? '', /signing\.identities\.News-1: must be 1 to 32 lower-case letters/);
    const [kind] = await problems(`[signing.identities.news]\n${identity} = { type = "paper" }`);
    assert.match(kind ?? '', /signer.*: must be a table with a type: pem, pkcs11/);
  });

  test('gives no token to whoever listens on the way, and has servers sign for nobody without a credential', async () => {
    const problemOf = async (signer: string) =>
      (
        await problems(`[signing.identities.news]\ncertificate_path = "c.pem"\nsigner = { key = "k", ${signer} }`)
      ).join();
    const vault = (url: string) => problemOf(`type = "vault", token_path = "t", url = "${url}"`);
    assert.match(await vault('http://vault.example.com:8200'), /signer\.url: must have the scheme https/);
    for (const url of ['https://vault.example.com', 'http://127.0.0.1:8200', 'http://localhost:8200', 'http://[::1]'])
      await load(
        `[signing.identities.news]\ncertificate_path = "c.pem"\nsigner = { key = "k", type = "vault", token_path = "t", url = "${url}" }`,
      );
    const open = 'type = "http", url = "https://keys.example.com/"';
    assert.match(await problemOf(open), /signer: url needs token_path or client_certificate_path/);
  });

  test('has one way to configure an identity, and takes its absent parts from signing', async () => {
    const own = 'tsa_url = "https://tsa.example.com"\ncertificate_path = "c.pem"\nprivate_key_path = "k.pem"\n';
    const news =
      '[signing.identities.news]\ncertificate_path = "n.pem"\nsigner = { type = "vault", url = "https://v", key = "k", token_path = "t" }';
    const [both] = await problems(`[signing]\n${own}${news}`);
    assert.match(both ?? '', /signing\.identities: cannot stand beside signing\.certificate_path/);
    const [one] = identitiesOf(await load(`[signing]\n${own}`));
    const [several] = identitiesOf(await load(`[signing]\ntsa_url = "https://tsa.example.com"\n${news}`));
    assert.deepEqual([one?.name, one?.certificatePath, one?.signer.type], ['default', join(cwd, 'c.pem'), 'pem']);
    assert.deepEqual([several?.name, several?.tsaUrls], ['news', ['https://tsa.example.com']]);
  });

  test('refuses a secret of callbacks that could be guessed, and does not repeat it', async () => {
    const [problem, ...others] = await problems('', { SERVICE__CALLBACKS__SECRET: 'hush-hush-hush!' });
    assert.match(problem ?? '', /callbacks\.secret/);
    assert.doesNotMatch(problem ?? '', /hush/);
    assert.deepEqual(others, []);
    assert.equal((await load('', { SERVICE__CALLBACKS__SECRET: 'sixteen-letters!' })).callbacks.secret?.length, 16);
  });

  test('refuses a passphrase without the key that it would open', async () => {
    const [problem, ...others] = await problems('', { SERVICE__SIGNING__PRIVATE_KEY_PASSPHRASE: 'hush' });
    assert.match(problem ?? '', /PRIVATE_KEY_PASSPHRASE|private_key_passphrase/);
    assert.doesNotMatch(problem ?? '', /hush/);
    assert.deepEqual(others, []);
  });

  test('refuses buckets whose names are addresses or paths', async () => {
    for (const bucket of ['s3://published', 'published/signed', 'two words', 'ab']) {
      assert.equal((await problems(`[output_sinks.s3]\nbuckets = ["good-one", "${bucket}"]`)).length, 1, bucket);
      assert.equal((await problems(`[input_resolvers.s3]\nbuckets = ["${bucket}"]`)).length, 1, bucket);
    }
  });

  test('refuses S3 outputs without a bucket, and prefixes that lead elsewhere', async () => {
    const listed = await problems('[output_sinks.s3]\nregion = "eu-central-1"\nbase_prefix = "a/../b"');
    assert.equal(listed.length, 2);
  });

  test('lets a variable win over the file, whatever its case', async () => {
    const config = await load('[server]\nsync_timeout_ms = 7\ndocs = true', {
      SERVICE__SERVER__SYNC_TIMEOUT_MS: '9',
      service__server__docs: 'FALSE',
      SERVICE__OUTPUT_SINKS__LOCAL__NAMING: 'in_place',
    });
    assert.equal(config.server.sync_timeout_ms, 9);
    assert.equal(config.server.docs, false);
    assert.equal(config.output_sinks.local.naming, 'in_place');
  });

  test('reads lists from variables separated by commas', async () => {
    const config = await load('', { SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: '/media, ingest' });
    assert.deepEqual(config.input_resolvers.local.roots, ['/media', join(cwd, 'ingest')]);
  });

  for (const variable of [
    'SERVICE__',
    'SERVICE__SERVER',
    'SERVICE__SERVER____DOCS',
    'SERVICE__SERVER__DOCS__X',
    'SERVICE____PROTO____X',
  ]) {
    test(`refuses the variable ${variable}`, async () => {
      assert.equal((await problems('[server]\ndocs = true', { [variable]: '1' })).length, 1);
    });
  }

  for (const [what, toml] of [
    ['a certificate without a key', '[signing]\ncertificate_path = "chain.pem"'],
    ['an address without a port', '[server]\nbind_addr = "localhost"'],
    ['a port that does not exist', '[server]\nbind_addr = "localhost:70000"'],
    ['an empty path', '[jobs]\ndata_dir = ""'],
    ['no roots at all', '[input_resolvers.local]\nroots = []'],
    ['a key of a later version', '[jobs]\ndatabase_url = "postgres://host/db"'],
    ['a section that is no table', 'server = 5'],
    ['a fraction where a whole number belongs', '[worker]\nqueue_capacity = 1.5'],
  ] as const) {
    test(`refuses ${what}`, async () => {
      assert.equal((await problems(toml)).length, 1);
    });
  }
});
