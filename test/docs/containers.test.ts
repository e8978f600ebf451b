import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments, parseDocument } from 'yaml';
import { loadConfig } from '#config/load-config.ts';
import { ROOT } from './code-blocks.ts';

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: Readonly<Record<string, { content: string }>>;
  readonly secrets: object;
  readonly volumes: object;
}

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly configs?: readonly { source: string }[];
  readonly depends_on?: object;
}

interface Resource {
  readonly kind: string;
  readonly data?: { 'service.toml': string };
}

const textOf = (name: string): string => readFileSync(join(ROOT, 'deploy', name), 'utf8');

function compose(): Compose {
  const document = parseDocument(textOf('compose.yaml').replace(/\$\{\w+:\?\}/g, 'a-secret'), { merge: true });
  assert.deepEqual(document.errors, []);
  return document.toJS();
}

function resources(): Resource[] {
  const documents = parseAllDocuments(textOf('kubernetes.yaml'));
  for (const { errors } of documents) assert.deepEqual(errors, []);
  return documents.map((document) => document.toJS());
}

describe('the compose file', () => {
  test('gives its nodes a configuration that the service takes', async () => {
    const { services } = compose();
    for (const name of ['node-1', 'node-2']) {
      const config = await loadConfig({ env: services[name]?.environment ?? {}, cwd: tmpdir() });
      assert.deepEqual(config.output_sinks.s3?.buckets, ['published']);
    }
  });

  test('uses only secrets, configurations, volumes and files that are there', () => {
    const { services, configs, secrets, volumes } = compose();
    for (const service of Object.values(services)) {
      for (const each of service.secrets ?? []) assert.ok(each in secrets, each);
      for (const { source } of service.configs ?? []) assert.ok(source in configs, source);
      for (const each of Object.keys(service.depends_on ?? {})) assert.ok(each in services, each);
      for (const each of service.volumes ?? []) {
        const source = each.split(':')[0] ?? '';
        const isThere = source.startsWith('./')
          ? source === './media' || existsSync(join(ROOT, 'deploy', source))
          : source in volumes;
        assert.ok(isThere, source);
      }
    }
    for (const { content } of Object.values(configs)) assert.deepEqual(parseDocument(content).errors, []);
  });
});

describe('the manifests of Kubernetes', () => {
  test('give both roles a configuration that the service takes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'attestream-kubernetes-'));
    const path = join(folder, 'service.toml');
    const toml = resources().find(({ kind }) => kind === 'ConfigMap')?.data?.['service.toml'];
    writeFileSync(path, toml ?? '');
    for (const role of ['api', 'worker']) {
      const env = {
        SERVICE_CONFIG_PATH: path,
        SERVICE__JOBS__ROLE: role,
        SERVICE__JOBS__DATABASE_URL: 'postgres://attestream@db.example.com/attestream',
      };
      assert.equal((await loadConfig({ env, cwd: folder })).jobs.role, role);
    }
    rmSync(folder, { recursive: true });
  });
});
