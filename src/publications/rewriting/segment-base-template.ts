import assert from 'node:assert/strict';
import { AppError } from '#errors/app-error.ts';
import type { RepresentationRewrite } from './representation-rewrite.ts';
import { elementName, escapeXml } from './xml-edits.ts';

/**
 * The SegmentTemplate that takes the place of a SegmentBase: numbered files, and the segment index's durations as a
 * SegmentTimeline. Players know it better than a SegmentList with a timeline.
 */
export function templateFor(
  { document, representation, init, fragments, referenceTo }: RepresentationRewrite,
  indent: string,
): string {
  const { index, lineage } = representation;
  assert(index !== undefined, 'the representation was addressed by a segment index');
  const prefix = /^(.*:)?/.exec(elementName(document.text, lineage[3].start))?.[1] ?? '';
  const media = numberedMedia(fragments.map(({ path }) => path));
  if (media === null) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: document.path,
      line: representation.line,
      feature: 'A file whose byte ranges another playlist names in another way',
      remedy: 'Make the playlists agree on where fragments begin and end.',
    });
  }
  const attributes = {
    timescale: String(index.timescale),
    ...presentationTimeOffset(lineage, index.timescale),
    initialization: escapeTemplate(referenceTo(init.path)),
    media: escapeTemplate(referenceTo(media.folder)) + media.template,
    startNumber: String(media.first),
  };
  const list = Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('');
  const entries = timelineEntries(
    index.startTicks,
    index.subsegments.map(({ durationTicks }) => durationTicks),
  );
  return [
    `<${prefix}SegmentTemplate${list}>`,
    `${indent}  <${prefix}SegmentTimeline>`,
    ...entries.map((entry) => `${indent}    <${prefix}S ${entry}/>`),
    `${indent}  </${prefix}SegmentTimeline>`,
    `${indent}</${prefix}SegmentTemplate>`,
  ].join('\n');
}

/** The numbers that new files carry as one template, or null where they do not follow one another. */
function numberedMedia(paths: readonly string[]): { folder: string; template: string; first: number } | null {
  const matches = paths.map((path) => /^(.*\/)(\d+)(\.[^./]*)$/.exec(path));
  const [, folder = '', digits = '1', extension = ''] = matches[0] ?? [];
  const first = Number(digits);
  for (const [position, match] of matches.entries()) {
    if (match?.[1] !== folder || Number(match[2]) !== first + position) return null;
  }
  return { folder, template: `$Number%0${digits.length}d$${extension}`, first };
}

function escapeTemplate(reference: string): string {
  return reference.replaceAll('$', '$$$$');
}

/** SegmentBase@presentationTimeOffset counts on SegmentBase@timescale; the timeline counts on the index's. */
function presentationTimeOffset(
  lineage: RepresentationRewrite['representation']['lineage'],
  timescale: number,
): { presentationTimeOffset?: string } {
  const bases = lineage.flatMap((element) => element.children.filter(({ name }) => name === 'SegmentBase'));
  const offset = bases
    .findLast(({ attributes }) => attributes.has('presentationTimeOffset'))
    ?.attributes.get('presentationTimeOffset');
  const own = bases.findLast(({ attributes }) => attributes.has('timescale'))?.attributes.get('timescale') ?? '1';
  if (offset === undefined || !/^\d{1,20}$/.test(offset) || !/^[1-9]\d{0,10}$/.test(own)) return {};
  return { presentationTimeOffset: String((BigInt(offset) * BigInt(timescale)) / BigInt(own)) };
}

/** `S` entries, runs of equal durations as one. */
function timelineEntries(startTicks: bigint, durations: readonly number[]): string[] {
  const runs: { duration: number; count: number }[] = [];
  for (const duration of durations) {
    const last = runs.at(-1);
    if (last?.duration === duration) last.count += 1;
    else runs.push({ duration, count: 1 });
  }
  return runs.map(({ duration, count }, position) => {
    const start = position === 0 ? `t="${startTicks}" ` : '';
    const repeat = count === 1 ? '' : ` r="${count - 1}"`;
    return `${start}d="${duration}"${repeat}`;
  });
}
