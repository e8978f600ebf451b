import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { telemetryOf } from '../support/jobs/test-telemetry.ts';

const ROOT = join(import.meta.dirname, '../..');
const RULES = join(ROOT, 'deploy/prometheus-rules.yml');
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Alert[] }[] };
const alerts = groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(textOf('deploy/grafana-dashboard.json')) as {
  panels: { title: string; targets: { expr: string }[] }[];
};
const runbook = textOf('docs/runbook.md');
/** The entries of the runbook by their headings. */
const entries = new Map(
  runbook
    .split(/^## /m)
    .slice(1)
    .map((entry) => [entry.split('\n', 1)[0] ?? '', entry]),
);

/** The names of all metrics that the service exports. */
async function exportedNames(): Promise<ReadonlySet<string>> {
  const text = await telemetryOf(() => null).metrics.render();
  return new Set(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
    ),
  );
}

const namesIn = (expr: string) => expr.match(/\b(?:attestream|process|nodejs)_\w+/g) ?? [];

describe('the alerts for Prometheus', () => {
  test('are rules that Prometheus takes', () => {
    execFileSync('promtool', ['check', 'rules', RULES], { stdio: 'pipe' });
  });

  test('fire where they should, and only there', () => {
    execFileSync('promtool', ['test', 'rules', join(ROOT, 'deploy/prometheus-rules-test.yml')], { stdio: 'pipe' });
  });

  test('name metrics that the service exports', async () => {
    const exported = await exportedNames();
    for (const { alert, expr } of alerts)
      for (const name of namesIn(expr)) assert.ok(exported.has(name), `${alert}: ${name}`);
  });

  test('have an entry in the runbook each, and link to it', () => {
    assert.deepEqual(alerts.map(({ alert }) => alert).sort(), [...entries.keys()].sort());
    for (const { alert, annotations } of alerts)
      assert.equal(annotations['runbook'], `docs/runbook.md#${alert.toLowerCase()}`);
  });
});

describe('the dashboard for Grafana', () => {
  test('names metrics that the service exports', async () => {
    const exported = await exportedNames();
    for (const { title, targets } of dashboard.panels)
      for (const { expr } of targets)
        for (const name of namesIn(expr)) assert.ok(exported.has(name), `${title}: ${name}`);
  });
});

describe('the runbook', () => {
  test('names messages that the service logs', () => {
    const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => textOf(join('src', name)))
      .join('\n');
    for (const [alert, entry] of entries) {
      const [, told = ''] = /\*?\*?Log\*?\*?[^:]*:([\s\S]*?)(?:\n- \*\*|$)/.exec(entry) ?? [];
      assert.notEqual(told, '', alert);
      const quoted = [...told.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
      // Others are names of fields, levels and reasons.
      for (const message of quoted.filter((text) => text.includes(' '))) assert.ok(isLogged(message, source), message);
    }
  });
});

/** An outcome or a cause may stand at the end of a message. */
function isLogged(message: string, source: string): boolean {
  if (source.includes(`'${message}'`)) return true;
  const words = message.split(' ');
  return source.includes(`\`${words.slice(0, -1).join(' ')} \${`) || source.includes(`\`${message}: \${`);
}
