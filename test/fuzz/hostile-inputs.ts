import { box, fullBox, u16, u32, u64 } from '../support/media/movie-bytes.ts';
import { seedFiles } from './make-seeds.ts';
import type { TargetName } from './targets.ts';

/** An input that took seconds, gigabytes or for ever once, and the target that reads it. */
export interface HostileInput {
  readonly name: string;
  readonly target: TargetName;
  /** `folder` holds the seeds. */
  input(folder: string): Buffer | string;
}

const HTML = '<title>Index of /a/</title>';

export const HOSTILE_INPUTS: readonly HostileInput[] = [
  {
    name: 'a Matroska file with 40 zero bytes where its next cluster should be',
    target: 'probe-matroska',
    input: (folder) => withZeros(seedFiles(folder, 'matroska', /^live/)[0] as Buffer),
  },
  {
    name: 'a Matroska file that ends in zeros',
    target: 'probe-matroska',
    input: (folder) => Buffer.concat([seedFiles(folder, 'matroska', /^live/)[0] as Buffer, Buffer.alloc(100)]),
  },
  {
    name: '20,000 entries of a SeekHead that each lead to another SeekHead',
    target: 'probe-matroska',
    input: () =>
      matroska(element('114d9b74', ...Array.from({ length: 20_000 }, (_, number) => seekHeadAt(number * 37)))),
  },
  {
    name: '400,000 cue points of one time',
    target: 'probe-matroska',
    input: () => {
      const positions = element('b7', element('f7', Buffer.from([1])), element('f1', Buffer.from([0x40])));
      return matroska(
        element('1c53bb6b', repeated(element('bb', element('b3', Buffer.from([0])), positions), 400_000)),
      );
    },
  },
  {
    name: 'a cluster of 30,000 blocks with 256 frames each',
    target: 'probe-matroska',
    input: () => matroska(cluster(repeated(element('a3', Buffer.from('81000084ff', 'hex')), 30_000))),
  },
  {
    name: 'a table of 500,000 fragments of one time',
    target: 'probe-movie',
    input: (folder) => {
      const bytes = fragmented(folder);
      const entry = Buffer.concat([u32(0, bytes.indexOf('moof', 0, 'latin1') - 4), Buffer.from([1, 1, 1])]);
      return Buffer.concat([bytes, randomAccess(fullBox('tfra', 0, u32(1, 0, 500_000), repeated(entry, 500_000)))]);
    },
  },
  {
    name: 'a fragment that claims four billion samples of one size and duration',
    target: 'probe-movie',
    input: (folder) => withCount(fragmented(folder), 'trun', 4, Buffer.from('00000001ffffffff', 'hex')),
  },
  {
    name: 'a fragment inside the media that does so, and that an index of fragments leads to',
    target: 'probe-movie',
    input: (folder) => hiddenFragment(fragmented(folder)),
  },
  {
    name: 'a movie whose samples have four billion times',
    target: 'probe-movie',
    input: (folder) => withCount(movie(folder), 'stts', 12, u32(0xffffffff)),
  },
  {
    name: 'a movie whose composition offsets are of four billion samples',
    target: 'probe-movie',
    input: (folder) => withCount(movie(folder), 'ctts', 12, u32(0xffffffff)),
  },
  {
    name: 'a movie whose chunks are numbered up to four billion',
    target: 'probe-movie',
    input: (folder) => withCount(seedFiles(folder, 'movie', /^pcm/)[0] as Buffer, 'stsc', 24, u32(0xfffffff0), 1),
  },
  {
    name: 'a movie with four billion samples in a chunk',
    target: 'probe-movie',
    input: (folder) => withCount(movie(folder), 'stsc', 16, u32(0xff000001)),
  },
  {
    name: 'indexes of segments that refer to the same indexes',
    target: 'fragments',
    input: () => crossedIndexes(60),
  },
  {
    name: '20,000 EXT-X-MEDIA tags and ten variants that use them',
    target: 'hls',
    input: () => multivariant(20_000, 10),
  },
  {
    name: '100,000 variants without an address',
    target: 'hls',
    input: () => `=== p.m3u8\n#EXTM3U\n${'#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1\n'.repeat(100_000)}`,
  },
  {
    name: '20,000 date ranges of one class',
    target: 'hls',
    input: () => segmentsWith('#EXT-X-DATERANGE:ID="x",CLASS="c",START-DATE="2026-01-01T00:00:00Z",DURATION=1', 20_000),
  },
  {
    name: 'a tag with 5,000 attributes at each of 200 segments',
    target: 'hls',
    input: () => segmentsWith(`#EXT-X-DATERANGE:ID="x"${',X-A="b"'.repeat(5_000)}`, 200),
  },
  {
    name: '5,000 representations whose timelines repeat where their period has ended',
    target: 'mpd',
    input: () =>
      mpd(
        '<SegmentTemplate media="$Time$.m4s" initialization="init-stream0.m4s"><SegmentTimeline><S d="1" r="399998"/></SegmentTimeline></SegmentTemplate>',
        5_000,
      ),
  },
  {
    name: 'timelines of files that are not there, with names that have to be resolved',
    target: 'mpd',
    input: () =>
      mpd(
        '<SegmentTemplate media="$Time$x%20é.m4s" initialization="init-stream0.m4s"><SegmentTimeline><S d="1" r="399998"/></SegmentTimeline></SegmentTemplate>',
        5,
      ),
  },
  {
    name: 'a list of one segment with a timeline of 400,000, in 2,000 representations',
    target: 'mpd',
    input: () =>
      mpd(
        '<SegmentList><Initialization sourceURL="init-stream0.m4s"/><SegmentTimeline><S d="1" r="199998"/></SegmentTimeline><SegmentURL media="chunk-stream0-00001.m4s"/></SegmentList>',
        2_000,
      ),
  },
  {
    name: '20,000 representations that inherit what they lack from their set',
    target: 'mpd',
    input: () => mpd('', 20_000),
  },
  {
    name: 'an address of a megabyte that 5,000 others are relative to',
    target: 'mpd',
    input: () =>
      mpd(`<BaseURL>${'a/'.repeat(500_000)}</BaseURL><SegmentTemplate media="1" initialization="2"/>`, 5_000),
  },
  {
    name: 'a link with address after address in a tag that does not end',
    target: 'listing',
    input: () => `${HTML}<a ${'href="" '.repeat(115_000)}`,
  },
  { name: 'tags of links without an end', target: 'listing', input: () => HTML + '<a href="x"'.repeat(70_000) },
  {
    name: 'a line of subtitles with 800,000 fonts that do not end',
    target: 'subtitles',
    input: () => `WEBVTT\n\n00:01.000 --> 00:02.000\n${'<font'.repeat(800_000)}\n`,
  },
  {
    name: 'a line of subtitles with 800,000 positions that do not end',
    target: 'subtitles',
    input: () => `1\n00:00:01,000 --> 00:00:02,000\n${'{\\'.repeat(800_000)}\n`,
  },
  {
    name: 'glob patterns of nested repetitions',
    target: 'patterns',
    input: () => `${'+(a|a*|+(a|aa))'.repeat(20)}b\n{1..99999}{1..99999}{${'{a,'.repeat(200)}\n**`,
  },
];

function fragmented(folder: string): Buffer {
  return seedFiles(folder, 'movie', /^fragments/)[0] as Buffer;
}

function movie(folder: string): Buffer {
  return seedFiles(folder, 'movie', /^last/)[0] as Buffer;
}

/** Forty zeros over the last cluster's header, behind which no other element is found. */
function withZeros(bytes: Buffer): Buffer {
  const cluster = bytes.lastIndexOf(Buffer.from('1f43b675', 'hex'));
  return Buffer.concat([bytes])
    .fill(0, cluster, cluster + 40)
    .subarray(0, cluster + 200);
}

/** Writes over a field behind the type of a box, of the first such box or a later one. */
function withCount(bytes: Buffer, type: string, behindType: number, value: Buffer, which = 0): Buffer {
  let at = bytes.indexOf(type, 0, 'latin1');
  for (let passed = 0; passed < which; passed += 1) at = bytes.indexOf(type, at + 4, 'latin1');
  const changed = Buffer.from(bytes);
  value.copy(changed, at + behindType);
  return changed;
}

/** A movie with a fragment in its media that no walk over its boxes finds, but a table at its end names. */
function hiddenFragment(bytes: Buffer): Buffer {
  const header = fullBox('tfhd', 0x20038, u32(1), u32(1), u32(1), u32(0));
  const moof = box(
    'moof',
    fullBox('mfhd', 0, u32(1)),
    box('traf', header, fullBox('trun', 1, u32(0xffffffff), u32(0))),
  );
  const hidden = bytes.length + 8;
  const tfra = fullBox('tfra', 0x1000000, u32(1), u32(0), u32(1), u64(0), u64(hidden), Buffer.from([1, 1, 1]));
  return Buffer.concat([bytes, box('mdat', moof), randomAccess(tfra)]);
}

function randomAccess(tfra: Buffer): Buffer {
  return box('mfra', tfra, fullBox('mfro', 0, u32(8 + tfra.length + 16)));
}

function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.concat(new Array<Buffer>(count).fill(bytes));
}

/** An element of Matroska, its size in eight bytes. */
function element(id: string, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(content.length) | (1n << 56n));
  return Buffer.concat([Buffer.from(id, 'hex'), size, content]);
}

/** A file with a track of sound, and a segment that holds more. */
function matroska(inSegment: Buffer): Buffer {
  const sound = element('e1', element('9f', Buffer.from([1])));
  const fields = [
    element('d7', Buffer.from([1])),
    element('83', Buffer.from([2])),
    element('86', Buffer.from('A_OPUS')),
  ];
  const tracks = element('1654ae6b', element('ae', ...fields, sound));
  return Buffer.concat([
    element('1a45dfa3', element('4282', Buffer.from('matroska'))),
    element('18538067', tracks, inSegment, cluster(element('a3', Buffer.from('8100008000', 'hex')))),
  ]);
}

function cluster(blocks: Buffer): Buffer {
  return element('1f43b675', element('e7', Buffer.from([0])), blocks);
}

function seekHeadAt(position: number): Buffer {
  return element('4dbb', element('53ab', Buffer.from('114d9b74', 'hex')), element('53ac', u32(position)));
}

/** Five levels of indexes, each of which refers to all of the next level. */
function crossedIndexes(count: number): Buffer {
  const leaf = index(0, 0, 0);
  const inner = index(count, leaf.length, 0x80000000);
  const levels = [1, count, count, count, count].map((boxes, level) => ({
    boxes,
    sizeBytes: level === 4 ? leaf.length : inner.length,
  }));
  const parts: Buffer[] = [];
  let end = 0;
  for (const [level, { boxes, sizeBytes }] of levels.entries()) {
    const start = end;
    end += boxes * sizeBytes;
    const next = levels[level + 1];
    for (let number = 0; number < boxes; number += 1) {
      const behind = end - (start + (number + 1) * sizeBytes);
      parts.push(next === undefined ? leaf : index(count, next.sizeBytes, 0x80000000, behind));
    }
  }
  return Buffer.concat(parts);
}

/** A segment index (ISO/IEC 14496-12 §8.16.3) with references of one kind and size. */
function index(count: number, sizeBytes: number, flag: number, firstOffset = 0): Buffer {
  const references = Array.from({ length: count }, () => u32(flag + sizeBytes, 1, 0));
  return fullBox('sidx', 0, u32(1, 1, 0, firstOffset), u16(0, count), ...references);
}

function multivariant(mediaCount: number, variantCount: number): string {
  const media = Array.from(
    { length: mediaCount },
    (_, number) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n${number}",URI="m.m3u8"`,
  );
  const variants = Array.from({ length: variantCount }, () => '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nm.m3u8');
  const segments =
    '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="init-stream0.m4s"\n#EXTINF:1,\nchunk-stream0-00001.m4s';
  return `=== p.m3u8\n${['#EXTM3U', ...media, ...variants].join('\n')}\n=== m.m3u8\n${segments}\n`;
}

function segmentsWith(tag: string, count: number): string {
  const segment = `${tag}\n#EXTINF:1,\nchunk-stream0-00001.m4s\n`;
  return `=== m.m3u8\n#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="init-stream0.m4s"\n${segment.repeat(count)}`;
}

function mpd(inSet: string, representationCount: number): string {
  const representations = '<Representation id="v" bandwidth="1"/>'.repeat(representationCount);
  const period = `<Period duration="PT0S"><AdaptationSet mimeType="video/mp4">${inSet}${representations}</AdaptationSet></Period>`;
  return `=== p.mpd\n<?xml version="1.0"?>\n<MPD type="static">${period}</MPD>\n`;
}
