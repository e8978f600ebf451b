import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SeededRandom } from '../support/seeded-random.ts';
import { mutatePlaylist, playerSeeds } from './player-targets.ts';
import { compareReadings } from './players/compare-readings.ts';
import { Ffmpeg } from './players/ffmpeg-reading.ts';

/** Mutants of a fixed seed; `npm run fuzz -- players` makes others. */
const MUTANTS = 2_000;
const MUTANTS_FOR_FFMPEG = 80;
const SEED = 1;

const MEDIA = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4",BYTERANGE="100@0"
#EXTINF:4.0,
1.m4s
#EXTINF:4.0,
2.m4s
#EXT-X-ENDLIST
`;

type Edit = (text: string) => string;

const HLS_EDITS: Readonly<Record<string, Edit>> = {
  'an address without #EXTINF': (text) => text.replace('\n1.m4s', '\n1.m4s\nother.m4s'),
  'two byte ranges above an address': (text) =>
    text.replace('1.m4s', '#EXT-X-BYTERANGE:5@0\n#EXT-X-BYTERANGE:9@0\n1.m4s'),
  'an init segment between an address and its tags': (text) => text.replace('1.m4s', '#EXT-X-MAP:URI="o.mp4"\n1.m4s'),
  'an init segment behind the first key frame': (text) =>
    text
      .replace(/#EXT-X-MAP.*/, '#EXT-X-I-FRAMES-ONLY')
      .replace('\n2.m4s', '\n2.m4s\n#EXT-X-MAP:URI="o.mp4"\n#EXTINF:4,\n3.m4s'),
  'a range without an offset': (text) => text.replace('100@0', '100'),
  'a duration at its end': (text) => `${text}#EXTINF:4.000,`,
  'a tag that begins like another': (text) => text.replace('1.m4s', '#EXT-X-GAP-OTHER\n1.m4s'),
  'a part that was skipped': (text) => text.replace('1.m4s', '#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n1.m4s'),
  'a variable that stands twice in an address': (text) =>
    text.replace('#EXT-X-VERSION:7', '#EXT-X-DEFINE:NAME="v",VALUE="a"').replace('1.m4s', '{$v}{$v}.m4s'),
  'a variable of no text': (text) =>
    text.replace('#EXT-X-VERSION:7', '#EXT-X-DEFINE:NAME="v",VALUE=""').replace('1.m4s', '{$v}1.m4s'),
  'a variable behind the first segment': (text) =>
    text.replace('#EXTINF:4.0,\n2', '#EXT-X-DEFINE:NAME="v",VALUE="a"\n#EXTINF:4.0,\n{$v}2'),
  'a variable with a hyphen in its name': (text) =>
    text.replace('#EXT-X-VERSION:7', '#EXT-X-DEFINE:NAME="v-1",VALUE="a"').replace('1.m4s', '{$v-1}.m4s'),
  'a variable in encoded braces': (text) =>
    text.replace('#EXT-X-VERSION:7', '#EXT-X-DEFINE:NAME="v",VALUE="a"').replace('1.m4s', '%7B$v%7D.m4s'),
  'an encoded slash': (text) => text.replace('1.m4s', 'a%2F1.m4s'),
  'an address of the placeholder of its folder': (text) => text.replace('1.m4s', 'http://folder.invalid/folder/1.m4s'),
  'an address through the placeholder of its folder': (text) => text.replace('1.m4s', '../folder/1.m4s'),
};

/** What real packagers write, and what people write in their languages. */
const ACCEPTED_EDITS: Readonly<Record<string, Edit>> = {
  'a tab behind a duration': (text) => text.replace('#EXTINF:4.0,', '#EXTINF:4.0,\t'),
  'white space of another script in a title': (text) =>
    text.replace('#EXTINF:4.0,', '#EXTINF:4.0,\u3000a\u00a0b\u200f'),
  'a tab and an address in a comment': (text) => text.replace('#EXTINF', '#\tother.m4s \n#EXTINF'),
  'a discontinuity of key frames that keeps the init segment': (text) =>
    text
      .replace('#EXT-X-MAP', '#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP')
      .replace(/\n(\d)/g, '\n#EXT-X-BYTERANGE:500@84\n$1')
      .replace(/(1\.m4s\n)/, '$1#EXT-X-DISCONTINUITY\n'),
};

test('refuses a variant that names a group of sound as one of pictures', async () => {
  const entry = (kind: string): string =>
    `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="a",URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1,${kind}="g"\nv.m3u8\n`;
  assert.ok((await compareReadings(entry('AUDIO'))).isAccepted);
  assert.ok(!(await compareReadings(entry('VIDEO'))).isAccepted);
});

const MPD = `<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT8S"><Period>
<AdaptationSet mimeType="video/mp4"><SegmentTemplate timescale="10" initialization="init.mp4" media="$Number$.m4s"><SegmentTimeline><S t="0" d="40" r="1"/></SegmentTimeline></SegmentTemplate>
<Representation id="v" bandwidth="1000"/></AdaptationSet></Period></MPD>
`;

const MPD_EDITS: Readonly<Record<string, Edit>> = {
  'a duration beside a timeline': (text) => text.replace('timescale=', 'duration="20" timescale='),
  'a duration of segments on a representation': (text) => text.replace('id="v"', 'id="v" duration="20"'),
  'an address among the attributes': (text) => text.replace('timescale=', 'baseUrl="other/" timescale='),
  'a timeline in a period and in a set': (text) =>
    text.replace(
      '<Period>',
      '<Period><SegmentTemplate><SegmentTimeline><S d="9"/></SegmentTimeline></SegmentTemplate>',
    ),
  'an init segment beside a template of one': (text) =>
    text.replace('<SegmentTimeline>', '<Initialization sourceURL="o.mp4"/><SegmentTimeline>'),
  'an address with a prefix': (text) => text.replace('media=', 'x:media="o.m4s" media='),
  'a name with a colon in front': (text) => text.replace(' d=', ' :d='),
  'a name with an underscore in front': (text) => text.replace(' d=', ' _d="9" d='),
  'an attribute in the value of one without a letter': (text) => text.replace(' d=', ` _='x d="9"' d=`),
  'a comment that begins with its end': (text) => text.replace('<Period>', '<!--><BaseURL>o/</BaseURL>--><Period>'),
  'a comment that begins with half of its end': (text) =>
    text.replace('<Period>', '<!---><BaseURL>o/</BaseURL>--><Period>'),
  'a reference to a character in a number': (text) => text.replace('d="40"', 'd="4&#48;"'),
  'a reference to a character in the name of a scheme': (text) =>
    text.replace('<Representation', '<Role schemeIdUri="urn:mpeg:dash:role&#58;2011" value="main"/><Representation'),
  'an element in an address': (text) => text.replace('<Period>', '<BaseURL>o/<x/></BaseURL><Period>'),
  'a kind of media in capitals': (text) => text.replace('mimeType=', 'contentType="VIDEO" mimeType='),
  'a reference to a character in a range': (text) =>
    text.replace(
      /<SegmentTemplate.*SegmentTemplate>/,
      '<SegmentList duration="4"><SegmentURL media="1.m4s" mediaRange="1&#48;-20"/></SegmentList>',
    ),
  'an end number': (text) => text.replace('timescale=', 'endNumber="2" timescale='),
  'a representation that depends on another': (text) => text.replace('id="v"', 'id="v" dependencyId="w"'),
  'a number of the last segment': (text) =>
    text.replace(
      '<Representation',
      '<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/last-segment-number" value="2"/><Representation',
    ),
  'parameters of requests': (text) => text.replace('<Period>', '<RequestParam queryTemplate="a=b"/><Period>'),
  'a tag in another namespace': (text) => text.replace('<S ', '<S xmlns="" '),
  'a time before the segment above': (text) => text.replace('<S t', '<S t="0" d="40"/><S t'),
  'a negative repetition but one': (text) => text.replace('r="1"', 'r="-2"'),
  'a representation without an id': (text) => text.replace(' id="v"', ''),
  'a width for what is no number': (text) => text.replace('$Number$', '$RepresentationID%05d$-$Number$'),
  'white space in an address': (text) => text.replace('"init.mp4"', '" init.mp4"'),
  'segments behind the end of their period': (text) =>
    text
      .replace(
        /<SegmentTemplate.*SegmentTemplate>/,
        '<SegmentList duration="4"><SegmentURL media="1.m4s"/></SegmentList>',
      )
      .replace('<SegmentURL media="1.m4s"/>', '<SegmentURL media="1.m4s"/>'.repeat(5)),
};

describe('players decide', () => {
  test('accepts every playlist of ffmpeg, shaka-packager, mediabunny and by hand, and reads it as players do', async () => {
    const parsers = new Set<string>();
    for (const seed of playerSeeds()) {
      const text = seed.toString('utf8');
      const { isAccepted, readBy, differences } = await compareReadings(text);
      assert.ok(isAccepted && readBy.length > 0, text);
      assert.deepEqual(differences, [], text);
      for (const name of readBy) parsers.add(name);
    }
    assert.deepEqual([...parsers].sort(), ['hls-parser', 'hls.js', 'm3u8-parser', 'mpd-parser', 'shaka']);
  });

  for (const [change, edit] of Object.entries(ACCEPTED_EDITS)) {
    test(`accepts a media playlist with ${change}, and reads it as players do`, async () => {
      assert.notEqual(edit(MEDIA), MEDIA);
      const { isAccepted, readBy, differences } = await compareReadings(edit(MEDIA));
      assert.ok(isAccepted);
      assert.ok(readBy.includes('hls.js'));
      assert.deepEqual(differences, []);
    });
  }

  for (const [change, edit] of Object.entries(HLS_EDITS)) {
    test(`refuses a media playlist with ${change}`, async () => {
      assert.ok((await compareReadings(MEDIA)).isAccepted);
      assert.notEqual(edit(MEDIA), MEDIA);
      assert.ok(!(await compareReadings(edit(MEDIA))).isAccepted);
    });
  }

  for (const [change, edit] of Object.entries(MPD_EDITS)) {
    test(`refuses an MPD with ${change}`, async () => {
      assert.ok((await compareReadings(MPD)).isAccepted);
      assert.notEqual(edit(MPD), MPD);
      assert.ok(!(await compareReadings(edit(MPD))).isAccepted);
    });
  }

  test('reads what every player reads of a mutant that it accepts', async () => {
    const seeds = playerSeeds();
    let accepted = 0;
    for (let index = 0; index < MUTANTS; index += 1) {
      const random = new SeededRandom(SEED, index);
      const mutant = mutatePlaylist(random.pick(seeds), random, random.pick(seeds)).toString('utf8');
      const { isAccepted, differences } = await compareReadings(mutant);
      assert.deepEqual(differences, [], mutant);
      if (isAccepted) accepted += 1;
    }
    // Nothing is compared where nearly everything is refused.
    assert.ok(accepted > MUTANTS / 10, `${accepted} mutants are accepted`);
  });

  test('opens what ffmpeg opens of a mutant that it accepts', async () => {
    await using ffmpeg = await Ffmpeg.start();
    const seeds = playerSeeds();
    for (let index = 0; index < MUTANTS_FOR_FFMPEG; index += 1) {
      const random = new SeededRandom(SEED, index);
      const mutant = mutatePlaylist(random.pick(seeds), random, random.pick(seeds)).toString('utf8');
      assert.equal(await ffmpeg.differenceOf(mutant), null, mutant);
    }
    assert.ok(ffmpeg.played > MUTANTS_FOR_FFMPEG / 10, `${ffmpeg.played} mutants are played`);
  });
});
