import { findPublication, NO_PATTERNS } from '#publications/find-publication.ts';
import type { SignedParts } from '#publications/fragments/signed-part.ts';
import { outputPathsOf } from '#publications/fragments/signed-part.ts';
import { partKey } from '#publications/media-part.ts';
import { matchingPaths, matchPatterns } from '#publications/path-patterns.ts';
import { declaredKinds } from '#publications/playlists/rendition-listings.ts';
import type { Publication } from '#publications/publication.ts';
import { readPublication } from '#publications/read-publication.ts';
import { rewritePlaylists } from '#publications/rewriting/rewrite-playlists.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { type FuzzTarget, mayRefuse } from './fuzz-target.ts';
import { seedFiles } from './make-seeds.ts';
import { textMutation } from './mutate-text.ts';

const { signal } = new AbortController();
const PATTERNS = { playlist: '*.{m3u8,mpd}', init: 'init*', frag: 'chunk*' };

/** Names of an input's files stand in lines of their own, so that one text holds a folder of playlists. */
const FILE_LINE = /^=== (\S{1,100})$/m;

/** A folder of playlists out of one text, and the media that they name. */
function foldersFrom(input: Buffer): Record<string, string | Uint8Array> {
  const pieces = input.toString('utf8').split(FILE_LINE);
  const files: Record<string, string | Uint8Array> = { ...media };
  for (let at = 1; at < pieces.length; at += 2) files[pieces[at] as string] = (pieces[at + 1] as string).slice(1);
  return files;
}

const media: Record<string, Uint8Array> = {};
for (const stream of [0, 1]) {
  media[`init-stream${stream}.m4s`] = new Uint8Array(700);
  for (let number = 1; number < 6; number += 1) media[`chunk-stream${stream}-0000${number}.m4s`] = new Uint8Array(900);
}

/** Parts as if all of them had been signed. */
function signedParts(publication: Publication): SignedParts {
  const paths = outputPathsOf(publication);
  const parts = publication.renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
  return new Map(
    parts.map((source) => {
      const key = partKey(source);
      return [key, { source, path: paths.get(key) ?? source.path, addedBytes: 300, merkleBoxSizeBytes: 200 }];
    }),
  );
}

async function readFolder(input: Buffer): Promise<void> {
  const folder = folderOf(foldersFrom(input));
  await mayRefuse(async () => {
    const publication = await readPublication(folder, PATTERNS, signal);
    declaredKinds(publication.playlists);
    await rewritePlaylists(publication, folder, signedParts(publication), signal);
  });
  await mayRefuse(() => findPublication(folder, NO_PATTERNS, signal));
}

function joined(files: Readonly<Record<string, string>>): Buffer {
  return Buffer.from(
    Object.entries(files)
      .map(([name, text]) => `=== ${name}\n${text}`)
      .join('\n'),
  );
}

const MASTER = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-DEFINE:NAME="n",VALUE="1"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="media_1.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=100000,AVERAGE-BANDWIDTH=90000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=64x48,AUDIO="a"
media_0.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000,URI="media_0.m3u8"
`;
const RANGES = `#EXTM3U
#EXT-X-TARGETDURATION:1
#EXT-X-MAP:URI="chunk-stream0-00005.m4s",BYTERANGE="100@0"
#EXTINF:0.4,
#EXT-X-BYTERANGE:200@100
chunk-stream0-00005.m4s
#EXT-X-DATERANGE:ID="x",START-DATE="2026-01-01T00:00:00Z",X-A="b"
#EXTINF:0.4,title
#EXT-X-BYTERANGE:600
chunk-stream0-00005.m4s
#EXT-X-ENDLIST
`;
const LISTED = `<?xml version="1.0"?>
<MPD type="static" mediaPresentationDuration="PT2S"><BaseURL>./</BaseURL>
<Period><AdaptationSet mimeType="video/mp4"><SegmentList timescale="10" duration="4">
<Initialization sourceURL="init-stream0.m4s"/><SegmentURL media="chunk-stream0-00001.m4s" mediaRange="0-899"/>
</SegmentList><Representation id="v" bandwidth="1000"/></AdaptationSet>
<AdaptationSet mimeType="audio/mp4"><SegmentTemplate startNumber="1" endNumber="5" duration="4" timescale="10" initialization="init-stream1.m4s" media="chunk-stream1-$Number%05d$.m4s"/>
<Representation id="a" bandwidth="1000"><BaseURL>.</BaseURL></Representation></AdaptationSet></Period></MPD>
`;

const HLS_WORDS = [
  '#EXTINF:4,',
  '#EXT-X-BYTERANGE:5@3',
  '#EXT-X-GAP',
  '#EXT-X-DISCONTINUITY',
  '#EXT-X-I-FRAMES-ONLY',
  '#EXT-X-STREAM-INF:BANDWIDTH=1',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="b",URI="media_1.m3u8"',
  '#EXT-X-MAP:URI="init-stream0.m4s",BYTERANGE="5@1"',
  '#EXT-X-DEFINE:NAME="n",VALUE="{$n}{$n}"',
  '{$n}',
  '#EXT-X-KEY:METHOD=AES-128,URI="k"',
  '#EXT-X-PART:DURATION=1,URI="a"',
  'chunk-stream0-00001.m4s',
  'http://h/x',
  '../x',
  '/x',
  '=== p.m3u8',
  '=== master.m3u8',
  ',BANDWIDTH=1',
  '#EXT-X-DATERANGE:ID="x"',
  '#EXT-X-SKIP:SKIPPED-SEGMENTS=3',
  '#EXTM3U',
];
const MPD_WORDS = [
  '<S d="1" r="999999999"/>',
  '<S t="0" d="1" r="-1"/>',
  '<BaseURL>x/</BaseURL>',
  '<BaseURL>http://h/</BaseURL>',
  'startNumber="999999999999"',
  'endNumber="4"',
  'timescale="0"',
  'duration="1"',
  'media="$Time$"',
  '$Number%032d$',
  '$RepresentationID$',
  '<SegmentBase indexRange="0-99"/>',
  '<Representation id="x">',
  '</Representation>',
  '<Period start="PT1S">',
  '</Period>',
  '<AdaptationSet>',
  '</AdaptationSet>',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '<?x ?>',
  '&lt;',
  '&#x10ffff;',
  '&a;',
  'xlink:href="x"',
  '<SegmentTimeline>',
  '</SegmentTimeline>',
  'mediaRange="0-99999999999999"',
  'presentationTimeOffset="9"',
  'type="dynamic"',
  'PT1H',
  '=== p.mpd',
];
const GLOB_WORDS = [
  '**',
  '{a,b}',
  '{1..99999}',
  '+(a|aa)',
  '!(x)',
  '@(a|b)',
  '?(a)',
  '*(*(a))',
  '[!a-z]',
  '[[:alpha:]]',
  '\\',
  '((((',
  '){',
  '*a*a*a*',
  '***/**/*',
  '{,{,{,a}}}',
  '[',
  ']',
];

const paths = Array.from({ length: 300 }, (_, index) => `video/${'a'.repeat(index % 40)}/seg_${index}.m4s`);

/** A pattern is given up after so long here; in the service, later. */
const MATCHING_BOUND_MS = 200;

export const playlistTargets: readonly FuzzTarget[] = [
  {
    name: 'hls',
    seeds: (folder) => {
      const [first = '', second = ''] = seedFiles(folder, 'publication', /^media_.*m3u8$/).map(String);
      return [
        joined({ 'master.m3u8': MASTER, 'media_0.m3u8': first, 'media_1.m3u8': second }),
        joined({ 'media_0.m3u8': first }),
        joined({ 'ranges.m3u8': RANGES }),
      ];
    },
    mutate: textMutation(HLS_WORDS),
    run: readFolder,
  },
  {
    name: 'mpd',
    seeds: (folder) => [
      joined({ 'manifest.mpd': String(seedFiles(folder, 'publication', /mpd$/)[0]) }),
      joined({ 'listed.mpd': LISTED }),
    ],
    mutate: textMutation(MPD_WORDS),
    run: readFolder,
  },
  {
    name: 'patterns',
    seeds: () =>
      ['*.{m3u8,mpd}\n**/init*.mp4\n**/*.m4s', 'video/**\n*init*\n+(seg)_[0-9]*.m4s'].map((text) => Buffer.from(text)),
    mutate: textMutation(GLOB_WORDS),
    run: async (input) => {
      const [playlist = '', init = '', frag = ''] = input.toString('utf8').split('\n');
      for (const pattern of [playlist, init]) {
        await mayRefuse(() => matchingPaths(paths, pattern, 'params.frag_pattern', MATCHING_BOUND_MS));
      }
      if (frag === '**/*.m4s') await mayRefuse(() => matchPatterns(paths, { playlist: '*', init: '*', frag }));
    },
  },
];
