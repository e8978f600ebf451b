import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { makeCorpus } from './make-corpus.ts';
import { signCorpus, type Verdict } from './sign-corpus.ts';

/** Everything that a player plays must come out signed; there are no exceptions in this corpus. */
describe('a corpus by many muxers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-corpus-'));
  try {
    const corpus = await makeCorpus(folder);
    const files = readdirSync(corpus).map((name) => join(corpus, name));
    for (const verdict of await judge(folder, files)) {
      test(`signs ${basename(verdict.file)}: valid to both readers, the same media as before`, () => {
        assert.equal(verdict.kind, 'signed', explain(verdict));
      });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

async function judge(folder: string, files: readonly string[]): Promise<Verdict[]> {
  await using service = await startService({ folder: join(folder, 'service') });
  const verdicts: Verdict[] = [];
  for await (const verdict of signCorpus(service, files, join(folder, 'inputs'))) verdicts.push(verdict);
  return verdicts;
}

function explain(verdict: Verdict): string {
  if (verdict.kind === 'signed') return '';
  return verdict.kind === 'refused' ? `refused: ${verdict.message}` : verdict.problem;
}
