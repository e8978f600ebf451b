import { executePlan } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { FormatHandler } from '#formats/format-handler.ts';
import { formats } from '#formats/formats.ts';
import { findPictureManifest } from '#formats/picture-manifest.ts';
import { BrokenMedia } from '#packaging/probed-file.ts';
import { probeMedia } from '#packaging/probing/probe-media.ts';
import { readMatroskaSubtitles } from '#packaging/subtitles/matroska-subtitles.ts';
import { readMp4Subtitles } from '#packaging/subtitles/mp4-subtitles.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import { readFragmentLayout } from '#publications/fragments/fragment-layout.ts';
import { readInitLayout } from '#publications/fragments/init-layout.ts';
import { readerOf } from '#publications/fragments/top-boxes.ts';
import { findSegmentIndex, readSegmentIndex } from '#publications/playlists/sidx.ts';
import { planInit } from '#publications/signing/plan-parts.ts';
import { memorySink, memorySource } from '../support/memory-bytes.ts';
import { type FuzzTarget, mayRefuse } from './fuzz-target.ts';
import { seedFiles } from './make-seeds.ts';
import { mutateBytes } from './mutate-bytes.ts';

const { signal } = new AbortController();
const MANIFEST_BYTES = 20_000;

/** Lays a file out, plans a manifest into it, and copies it, as signing does. */
async function embed(input: Buffer): Promise<void> {
  const handler = formats.find((format) => format.matches(input)) as FormatHandler | undefined;
  if (handler === undefined) return;
  const source = memorySource(input);
  const layout = await handler.readLayout(source, signal);
  handler.placeholderBinding(layout);
  const { plan } = handler.planEmbedding(layout, MANIFEST_BYTES);
  await executePlan(plan, source, memorySink(outputSizeBytes(plan)), { signal });
}

function layoutTarget(name: string, kind: string): FuzzTarget {
  return {
    name,
    seeds: (folder) => seedFiles(folder, kind),
    mutate: mutateBytes,
    run: (input) => mayRefuse(() => embed(input)),
  };
}

function probeTarget(name: string, kind: string): FuzzTarget {
  return {
    name,
    seeds: (folder) => seedFiles(folder, kind),
    mutate: mutateBytes,
    run: (input) => mayRefuse(() => probeMedia(memorySource(input), 'input', signal), BrokenMedia),
  };
}

async function readParts(input: Buffer): Promise<void> {
  const reader = await readerOf(memorySource(input), { path: 'part.mp4', range: null }, signal);
  await mayRefuse(() => readFragmentLayout(reader));
  await mayRefuse(async () => planInit(await readInitLayout(reader), MANIFEST_BYTES));
  await mayRefuse(async () => {
    const found = await findSegmentIndex(memorySource(input), signal);
    if (found !== null) await readSegmentIndex(memorySource(input), found, signal);
  });
}

export const mediaTargets: readonly FuzzTarget[] = [
  layoutTarget('movie-layout', 'movie'),
  layoutTarget('audio-layout', 'audio'),
  probeTarget('probe-movie', 'movie'),
  probeTarget('probe-matroska', 'matroska'),
  probeTarget('probe-stream', 'stream'),
  {
    name: 'fragments',
    seeds: (folder) => [...seedFiles(folder, 'signed', /\.m4s$/), ...seedFiles(folder, 'movie', /index/)],
    mutate: mutateBytes,
    run: readParts,
  },
  {
    name: 'subtitle-tracks',
    seeds: (folder) => [...seedFiles(folder, 'movie', /text/), ...seedFiles(folder, 'matroska', /text|vtt/)],
    mutate: mutateBytes,
    run: async (input) => {
      await mayRefuse(() => readMp4Subtitles(memorySource(input), 0, signal));
      await mayRefuse(() => readMatroskaSubtitles(memorySource(input), 0, signal));
    },
  },
  {
    name: 'picture-manifest',
    seeds: (folder) => seedFiles(folder, 'picture'),
    mutate: mutateBytes,
    run: async (input) => {
      const found = await findPictureManifest(memorySource(input), stillMediaType(input), signal);
      const { offset, length } = found?.manifest ?? { offset: 0, length: 0 };
      found?.unwrap(Buffer.from(input.subarray(offset, offset + length)));
    },
  },
];
