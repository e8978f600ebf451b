import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { Verification } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { publicationOrigin } from '#operations/sign-fragmented-folder.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';
import {
  beforeSegments,
  behindHead,
  type Edit,
  MASTER,
  MPD,
  playlistAlterations,
  replaced,
  VIDEO,
} from './playlist-alterations.ts';

// Publications whose media are as they were signed, by a manifest that says nothing of playlists: players show them otherwise.

const { signal } = new AbortController();
const home = temporaryFolder();
const OPTIONS = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
const files = Object.fromEntries(
  Object.entries(filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash'), OPTIONS))).map(([path, bytes]) => [
    path,
    Buffer.from(bytes),
  ]),
);
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, signal);
const signed: Record<string, Uint8Array> = await signAsOthers(files, renditions, {});
const MISMATCH = 'assertion.bmffHash.mismatch';
/** Alterations that cannot be signed. */
const refused = new Set<string>();
const lists = await TrustStore.open({ settings: { anchors: [], tsa_anchors: [] }, log: NO_LOG });
const scratch = new ScratchSpace(
  { dir: join(home, 'scratch'), dataDir: home },
  { jobId: 'job', inputIndex: 0, attempt: 1 },
);
const verification = {
  signal,
  scratch,
  reader: createFragmentReader(),
  trust: lists.current,
  progress: () => undefined,
  describeParent: () => assert.fail('its parts lie in several files'),
};
after(() => lists.close());
let count = 0;

async function verified(playlist: string, text: string | Uint8Array, params: object = {}): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), { ...signed, [playlist]: text });
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'), { params })).verification;
}

function textOf(playlist: string): string {
  return Buffer.from(signed[playlist] ?? []).toString();
}

const withoutSound: Edit = (text) =>
  text
    .replace(/#EXT-X-MEDIA:TYPE=AUDIO.*\n/g, '')
    .replace(/,AUDIO="[^"]*"/g, '')
    .replace(/,mp4a[^",]*/g, '');

describe('entries that were chosen', () => {
  const params = { entries: [MASTER] };

  test('are not valid without the sound that was signed with their pictures', async () => {
    const { state, summary } = await verified(MASTER, withoutSound(textOf(MASTER)), params);
    assert.equal(state, 'invalid');
    assert.match(summary, /pictures without the sound/);
  });

  test('are said to leave out what nobody can look at', async () => {
    const gone = writeFiles(join(home, `case-${count++}`, 'show'), {
      ...Object.fromEntries(Object.entries(signed).filter(([path]) => !path.includes('stream1'))),
      [MASTER]: withoutSound(textOf(MASTER)),
    });
    const { verification } = await verifyInput({ type: 'local_folder_path', path: gone }, join(gone, '..'), { params });
    assert.match(verification.summary, /The chosen entries leave out 1 of the signed renditions/);
  });
});

describe('a file of the folder', () => {
  test('makes a publication invalid that servers may send in place of a playlist, there or not, or of a fragment', async () => {
    // Browsers read of several members or frames what no other decoder does: what they hold does not count.
    const fragment = itemAt(itemAt(renditions, 0).fragments, 0).path;
    for (const [path, plain] of [
      [`${MASTER}.gz`, MASTER],
      ['other.mpd.zst', 'other.mpd'],
      [`${fragment}.br`, fragment],
    ] as const) {
      const { state, summary } = await verified(path, gzipSync(textOf(MASTER)));
      assert.equal(state, 'invalid');
      assert.ok(summary.includes(`some servers send it in place of "${plain}"`), summary);
    }
    assert.equal((await verified('backup.tar.gz', gzipSync('other'))).state, 'valid');
  });

  test('makes a publication invalid that is named like an address with a variable', async () => {
    const { state, summary } = await verified('{$v}-1.m4s', 'other');
    assert.equal(state, 'invalid');
    assert.match(summary, /its name is that of a variable/);
  });
});

const alterations = playlistAlterations(textOf(VIDEO));

for (const [playlist, edits] of alterations) {
  describe(`a publication is not valid whose ${playlist} has`, () => {
    for (const [name, edit] of Object.entries(edits)) {
      test(name, async () => {
        const text = textOf(playlist);
        assert.notEqual(edit(text), text);
        try {
          const { state, publication, summary } = await verified(playlist, edit(text));
          assert.equal(state, 'invalid', JSON.stringify({ summary, publication }));
        } catch (error) {
          assert.ok(error instanceof AppError && error.reason.startsWith('PLAYLIST_'), String(error));
        }
      });
    }
  });
}

/** Signs a publication again as far as its source is verified, and returns what the new manifest would record of it. */
async function signedAgain(playlist: string, text: string) {
  const opened: string[] = [];
  const source = folderOf({ ...signed, [playlist]: text });
  const open = (path: string, at: AbortSignal) => {
    opened.push(path);
    return source.open(path, at);
  };
  const folder = { ...source, open };
  const publication = await readPublication(folder, { ...patterns, playlist: '*.{m3u8,mpd}' }, signal);
  const inits = await readInits(folder, publication.renditions, signal);
  opened.length = 0;
  const read = { folder, publication, inits };
  const { ingredients } = await publicationOrigin(read, null, verification);
  const [middle] = renditions[0]?.fragments.slice(2) ?? [];
  const timesRead = opened.filter((path) => path === middle?.path).length;
  const { origin, isHistoryKnown } = ingredients.roles;
  const results = origin.kind === 'manifest-store' ? origin.validationResults : null;
  const codes = (results?.activeManifest?.failure ?? []).map(({ code }) => code);
  const matches = (results?.activeManifest?.success ?? []).map(({ code }) => code);
  return { codes, matches, warnings: ingredients.warnings, isHistoryKnown, timesRead };
}

describe('a publication that is not valid is recorded as such when it is signed again, unless it is refused, with', () => {
  for (const [playlist, edits] of alterations) {
    for (const [name, edit] of Object.entries(edits)) {
      test(`${name} (${playlist})`, async () => {
        try {
          const { codes, matches, warnings, isHistoryKnown, timesRead } = await signedAgain(
            playlist,
            edit(textOf(playlist)),
          );
          assert.ok(codes.includes('com.attestream.publication.mismatch'), codes.join());
          assert.ok(!codes.includes(MISMATCH) && matches.includes('assertion.bmffHash.match'));
          assert.equal(isHistoryKnown, false);
          assert.ok(
            warnings.some(({ reason, details }) => {
              const { playlist: file = '', line = 0 } = details as { playlist?: string; line?: number };
              return reason === 'PUBLICATION_PLAYED_OTHERWISE' && line > 0 && /\.(?:m3u8|mpd)$/.test(file);
            }),
            JSON.stringify(warnings),
          );
          assert.ok(timesRead <= 1, String(timesRead));
        } catch (error) {
          assert.ok(error instanceof AppError && /^(?:PLAYLIST|FRAGMENT)_/.test(error.reason), String(error));
          refused.add(name);
        }
      });
    }
  }

  test('some of them, which are not refused', () => {
    const count = alterations.flatMap(([, edits]) => Object.keys(edits)).length;
    assert.ok(count - refused.size >= 15, [...refused].join());
  });
});

test('a valid publication is recorded as such when it is signed again', async () => {
  const { codes, warnings, isHistoryKnown } = await signedAgain(VIDEO, textOf(VIDEO));
  assert.deepEqual([codes, warnings, isHistoryKnown], [['signingCredential.untrusted'], [], true]);
});

describe('a publication stays valid, and says that nobody signed its playlists, with', () => {
  const harmless: Readonly<Record<string, [string, Edit]>> = {
    'nothing changed': [VIDEO, (text) => text],
    comments: [VIDEO, beforeSegments('# a comment, with "quotes"\n#\ta tab, and a space at its end ')],
    'a tab behind durations, as by tools of Apple': [VIDEO, (text) => text.replace(/(#EXTINF:[\d.]+,)/g, '$1\t')],
    'titles with white space of other scripts': [
      VIDEO,
      (text) => text.replace(/(#EXTINF:[\d.]+,)/g, '$1第一章\u3000 '),
    ],
    'a name with white space and joiners of other scripts behind an address': [
      MASTER,
      (text) =>
        text
          .replace(/(,NAME="[^"]*")(.*)/, '$2$1')
          .replace(/NAME="/, 'NAME="日本語\u3000Français\u00a0: \u0646\u0645\u06cc\u200c\u062f'),
    ],
    'tags of low latency': [
      VIDEO,
      behindHead('#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0\n#EXT-X-PART-INF:PART-TARGET=0.33334'),
    ],
    'marks of advertisements': [VIDEO, beforeSegments('#EXT-X-CUE-OUT:30\n#EXT-OATCLS-SCTE35:/DAlAAAA\n#EXT-X-CUE-IN')],
    'a range of dates': [
      VIDEO,
      behindHead(
        '#EXT-X-DATERANGE:ID="a",START-DATE="2020-01-01T00:00:00Z",DURATION=5.0,SCTE35-OUT=0xFC00,X-COM-EXAMPLE="b"',
      ),
    ],
    'lines that end as in Windows': [VIDEO, (text) => text.replaceAll('\n', '\r\n')],
    'times that are rounded': [
      MPD,
      replaced('<S t="0" d="12288" r="5"', '<S t="0" d="12288"/><S t="12287" d="12288" r="4"'),
    ],
    'another language': [MASTER, (text) => text.replace('NAME="', 'LANGUAGE="de",NAME="')],
    events: [
      MPD,
      replaced(
        '<AdaptationSet',
        '<EventStream schemeIdUri="urn:scte:scte35:2013:xml"><Event>a</Event></EventStream><AdaptationSet',
      ),
    ],
    'events with elements of SCTE': [
      MPD,
      replaced(
        '<AdaptationSet',
        '<EventStream schemeIdUri="urn:scte:scte35:2014:xml+bin"><Event><Signal xmlns="http://www.scte.org/schemas/35/2016"><Binary>/DAlAAAA</Binary></Signal></Event></EventStream><AdaptationSet',
      ),
    ],
    'events with all elements of SCTE': [
      MPD,
      replaced(
        '<AdaptationSet',
        '<EventStream schemeIdUri="urn:scte:scte35:2013:xml"><Event><scte35:SpliceInfoSection xmlns:scte35="http://www.scte.org/schemas/35/2016"><scte35:SpliceInsert><scte35:Program><scte35:SpliceTime ptsTime="1"/></scte35:Program></scte35:SpliceInsert><scte35:SegmentationDescriptor><scte35:SegmentationUpid>https://example.com/a</scte35:SegmentationUpid></scte35:SegmentationDescriptor></scte35:SpliceInfoSection></Event></EventStream><AdaptationSet',
      ),
    ],
    'events with elements of applications': [
      MPD,
      replaced(
        '<AdaptationSet',
        '<EventStream schemeIdUri="urn:example"><Event><mark xmlns="urn:example" name="goal"/></Event></EventStream><AdaptationSet',
      ),
    ],
    'an element of another namespace': [
      MPD,
      replaced('<AdaptationSet', '<x:Other xmlns:x="http://example.com/a" value="b"/><AdaptationSet'),
    ],
    'codecs in the namespace of SCTE': [
      MPD,
      replaced(
        '<Representation ',
        '<Representation xmlns:scte214="urn:scte:dash:scte214-extensions" scte214:supplementalCodecs="dvh1.08.01" ',
      ),
    ],
    'protection that nothing in it refers to': [
      MPD,
      replaced(
        '<Period',
        '<ContentProtection schemeIdUri="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed" refId="a"/><Period',
      ),
    ],
    'points of resynchronisation, and popularity': [
      MPD,
      replaced(
        /(?=<SegmentTemplate )/,
        '<Resync type="0" dT="1"/><ContentPopularityRate contentIndex="0"><PR popularityRate="5"/></ContentPopularityRate>',
      ),
    ],
    'authenticity of content': [
      MPD,
      replaced(
        '<Representation ',
        '<ContentAuthenticity schemeIdUri="urn:example"><x:Manifest xmlns:x="urn:example" uri="a.c2pa"/></ContentAuthenticity><Representation ',
      ),
    ],
  };
  for (const [name, [playlist, edit]] of Object.entries(harmless)) {
    test(name, async () => {
      const { state, summary, publication } = await verified(playlist, edit(textOf(playlist)));
      assert.equal(state, 'valid', JSON.stringify({ summary, publication }));
      assert.match(summary, /^Media unchanged\. Nobody signed the playlists: names, languages/);
    });
  }

  test('names that are not known, which it tells', async () => {
    const { state, publication, summary } = await verified(VIDEO, behindHead('#EXT-X-COM-EXAMPLE:a=b')(textOf(VIDEO)));
    assert.equal(state, 'valid');
    assert.deepEqual(publication?.unknown_names, [{ file: VIDEO, line: 2, name: '#EXT-X-COM-EXAMPLE' }]);
    assert.match(summary, /does not know "#EXT-X-COM-EXAMPLE" \(line 2 of "media_0\.m3u8"\)/);
  });
});
