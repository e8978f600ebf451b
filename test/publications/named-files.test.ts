import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FolderIndex } from '#publications/playlists/folder-index.ts';
import { filesNamedBy } from '#publications/playlists/other-files.ts';
import { parsePlaylist } from '#publications/playlists/read-playlists.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { empty, mpd, period } from './make-playlists.ts';

const { signal } = new AbortController();

async function namedBy(path: string, text: string, others: readonly string[]): Promise<string[]> {
  const folder = folderOf({ [path]: text, ...empty(...others) });
  const index = new FolderIndex(folder, 'keep');
  const named = filesNamedBy(await parsePlaylist(folder, index, path, text, signal), index);
  return [...new Set(named.filter(({ path: each, isKey }) => !isKey && index.has(each)).map(({ path: each }) => each))];
}

test('an HLS playlist names the files of its addresses, and of whatever stands in quotes in its tags', async () => {
  const text = [
    '#EXTM3U',
    '#EXT-X-TARGETDURATION:5',
    '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key.bin"',
    '#EXT-X-MAP:URI="init.mp4"',
    '#EXT-X-DATERANGE:ID="a",START-DATE="2020-01-01T00:00:00Z",X-ASSET-LIST="ads/list.json?x=1",X-COM-ICON="icon.png"',
    '#EXT-X-DATERANGE:ID="b",START-DATE="2020-01-01T00:00:00Z",X-ASSET-URI="../elsewhere.m3u8"',
    '# a comment with "comment.txt"',
    '#EXTINF:5,',
    '1.m4s',
    '',
  ].join('\n');
  const others = ['key.bin', 'init.mp4', '1.m4s', 'ads/list.json', 'icon.png', 'comment.txt', 'elsewhere.m3u8'];
  assert.deepEqual(await namedBy('p.m3u8', text, others), ['init.mp4', 'ads/list.json', 'icon.png', '1.m4s']);
  const session =
    '#EXTM3U\n#EXT-X-SESSION-DATA:DATA-ID="a",URI="data.json"\n#EXT-X-CONTENT-STEERING:SERVER-URI="steer.json"\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="key.bin"\n#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,URI="images.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n';
  const named = ['data.json', 'steer.json', 'images.m3u8', 'v.m3u8'];
  assert.deepEqual(await namedBy('m.m3u8', session, [...named, 'key.bin']), named);
});

test('an MPD names the files of its representations, and those that any other element or attribute names', async () => {
  const template =
    '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" index="$Number$.sidx" duration="5"><RepresentationIndex sourceURL="all.sidx"/><BitstreamSwitching sourceURL="switch.mp4"/></SegmentTemplate>';
  const events =
    '<EventStream schemeIdUri="urn:example"><Event>event.json</Event><Event messageData="data.json"/></EventStream>';
  const keys = '<ContentProtection schemeIdUri="urn:a"><laurl>licence.xml</laurl></ContentProtection>';
  const text = mpd(
    `<ProgramInformation moreInformationURL="info.html"/><BaseURL>v/</BaseURL>${period(template, `${keys}<Representation id="v" bandwidth="1000"/>`)}`.replace(
      '<AdaptationSet',
      `${events}<AdaptationSet`,
    ),
  );
  const segment = ['v/init.mp4', 'v/1.m4s'];
  const named = ['info.html', 'v/event.json', 'data.json', 'v/1.sidx', 'v/all.sidx', 'v/switch.mp4'];
  const found = await namedBy('m.mpd', text, [...segment, ...named, 'v/licence.xml', 'unnamed.txt']);
  assert.deepEqual(found, [...segment, ...named]);
});
