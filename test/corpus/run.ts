// `npm run corpus -- DIR…`: signs every media file in the given folders through a service of its own, has the official
// readers judge the outputs, compares the media with what it was before, and prints counts and each failure.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { startService } from '../../scripts/running-service.ts';
import { ENDPOINTS, signCorpus, type Verdict } from './sign-corpus.ts';

const folders = process.argv.slice(2);
if (folders.length === 0) {
  console.error('Name at least one folder with media files: npm run corpus -- DIR…');
  process.exit(2);
}
const files = folders.flatMap(mediaFilesOf);
console.log(`${files.length} files. Signing, reading back, decoding before and after …`);
const verdicts = await judgeAll(files);
report(verdicts);
if (verdicts.some(({ kind }) => kind === 'wrong')) process.exitCode = 1;

function mediaFilesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => Object.hasOwn(ENDPOINTS, extname(name).slice(1).toLowerCase()))
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .sort();
}

async function judgeAll(media: readonly string[]): Promise<Verdict[]> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-corpus-'));
  const verdicts: Verdict[] = [];
  try {
    await using service = await startService({ folder, settings: { SERVICE__SIGNING__VERIFY_OUTPUTS: 'false' } });
    for await (const verdict of signCorpus(service, media, join(folder, 'inputs'))) {
      verdicts.push(verdict);
      if (verdict.kind === 'wrong') console.log(`WRONG    ${verdict.file}\n         ${verdict.problem}`);
      if (verdicts.length % 50 === 0) console.log(`… ${verdicts.length} of ${media.length}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return verdicts;
}

function report(all: readonly Verdict[]): void {
  const signed = all.filter((verdict) => verdict.kind === 'signed');
  const refused = all.filter((verdict) => verdict.kind === 'refused');
  const damaged = all.filter((verdict) => verdict.kind === 'damaged');
  const wrong = all.filter((verdict) => verdict.kind === 'wrong');
  const byReason = Map.groupBy(
    refused,
    ({ reason, playable }) => `${reason}${playable ? ', though ffmpeg plays it' : ''}`,
  );
  for (const [reason, verdicts] of [...byReason].sort()) {
    console.log(`\nRefused (${reason}): ${verdicts.length}`);
    for (const { file, message } of verdicts) console.log(`  ${file}\n    ${message}`);
  }
  const compared = (reading: 'frames' | 'packets' | 'samples'): number =>
    signed.filter((verdict) => verdict.compared[reading] !== null).length;
  console.log(`\nSigned, valid to both readers, media unchanged: ${signed.length} of ${all.length}`);
  console.log(
    `  compared by decoded frames ${compared('frames')}, by packets ${compared('packets')}, by samples ${compared('samples')}`,
  );
  console.log(`Refused: ${refused.length}`);
  console.log(`Signed and valid, but ffmpeg finds the source damaged and reads it differently: ${damaged.length}`);
  for (const { file, problem } of damaged) console.log(`  ${file}\n    ${problem}`);
  console.log(`Wrong: ${wrong.length}`);
  for (const { file, problem } of wrong) console.log(`  ${file}\n    ${problem}`);
}
