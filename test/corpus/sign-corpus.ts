import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { RunningService } from '../../scripts/running-service.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { differences, type MediaReading, readMedia } from './compare-media.ts';

/** The verdict on one file of a corpus. */
export type Verdict =
  /** Signed, valid to both official readers, and the same media as before to ffmpeg and mediabunny. */
  | { readonly file: string; readonly kind: 'signed'; readonly compared: MediaReading }
  /** The service did not take it or could not sign it. `playable`: ffmpeg decodes frames of it all the same. */
  | {
      readonly file: string;
      readonly kind: 'refused';
      readonly reason: string;
      readonly message: string;
      readonly playable: boolean;
    }
  /** Signed and valid, but not compared to the end: ffmpeg already complained about the source. */
  | { readonly file: string; readonly kind: 'damaged'; readonly problem: string }
  /** Signed, but the output is not what it should be. */
  | { readonly file: string; readonly kind: 'wrong'; readonly problem: string };

/** Extensions of the files that a corpus may hold, each with the endpoint that signs it and its media type. */
export const ENDPOINTS: Readonly<Record<string, { readonly endpoint: string; readonly mediaType: string }>> = {
  mp3: { endpoint: 'audio', mediaType: 'audio/mpeg' },
  wav: { endpoint: 'audio', mediaType: 'audio/wav' },
  flac: { endpoint: 'audio', mediaType: 'audio/flac' },
  m4a: { endpoint: 'audio', mediaType: 'audio/mp4' },
  mp4: { endpoint: 'video', mediaType: 'video/mp4' },
  m4v: { endpoint: 'video', mediaType: 'video/mp4' },
  mov: { endpoint: 'video', mediaType: 'video/quicktime' },
  qt: { endpoint: 'video', mediaType: 'video/quicktime' },
  avi: { endpoint: 'video', mediaType: 'video/x-msvideo' },
  '3gp': { endpoint: 'video', mediaType: 'video/mp4' },
  '3g2': { endpoint: 'video', mediaType: 'video/mp4' },
};

const BATCH_FILES = 100;

interface Piece {
  readonly file: string;
  /** A copy under a name of its own, so that the outputs of a batch do not collide. */
  readonly copy: string;
}

/** Signs every file through the service, in batches, and judges each output. */
export async function* signCorpus(
  service: RunningService,
  files: readonly string[],
  folder: string,
): AsyncGenerator<Verdict> {
  mkdirSync(folder, { recursive: true });
  const pieces = files.map((file, index) => ({
    file,
    copy: join(folder, `${String(index).padStart(5, '0')}-${basename(file)}`),
  }));
  for (const endpoint of ['audio', 'video']) {
    const fitting = pieces.filter(({ file }) => endpointOf(file)?.endpoint === endpoint);
    for (let start = 0; start < fitting.length; start += BATCH_FILES) {
      yield* signBatch(service, endpoint, fitting.slice(start, start + BATCH_FILES));
    }
  }
}

async function* signBatch(
  service: RunningService,
  endpoint: string,
  pieces: readonly Piece[],
): AsyncGenerator<Verdict> {
  for (const { file, copy } of pieces) copyFileSync(file, copy);
  const inputs = pieces.map(({ copy }) => ({ type: 'local_file_path', path: copy }));
  const jobId = await service.submit(`/v2/c2pa/${endpoint}`, { inputs });
  const { results } = await service.waitFor(jobId);
  for (const [index, { file, copy }] of pieces.entries()) {
    const result = results.find(({ input_index: position }) => position === index);
    if (result === undefined) yield { file, kind: 'wrong', problem: 'the job has no result for it' };
    else if (result.output_path !== undefined) yield await judge(file, copy, result.output_path);
    else {
      const reason = result.error_details?.reason ?? result.error_code ?? 'no reason';
      const playable = (await readMedia(copy)).frames !== null;
      yield { file, kind: 'refused', reason, message: result.error ?? '', playable };
    }
  }
}

async function judge(file: string, copy: string, output: string): Promise<Verdict> {
  const mediaType = endpointOf(file)?.mediaType ?? '';
  try {
    await assertValid(readFileSync(output), mediaType);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { file, kind: 'wrong', problem: `not valid: ${text.split('\n').slice(0, 12).join(' ')}` };
  }
  const [source, signed] = await Promise.all([readMedia(copy), readMedia(output)]);
  const different = differences(source, signed);
  if (different.length > 0) {
    const problem = `other ${different.join(' and ')} than before`;
    return { file, kind: source.damaged ? 'damaged' : 'wrong', problem };
  }
  return { file, kind: 'signed', compared: source };
}

function endpointOf(file: string): { readonly endpoint: string; readonly mediaType: string } | undefined {
  return ENDPOINTS[extname(file).slice(1).toLowerCase()];
}
