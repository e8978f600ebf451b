// Changes of playlists by which some player shows signed media otherwise than they were signed, for a publication of ffmpeg.

export const VIDEO = 'media_0.m3u8';
export const MASTER = 'master.m3u8';
export const MPD = 'manifest.mpd';

/** A change of a playlist. */
export type Edit = (text: string) => string;

const ENTRY = /#EXTINF:[^\n]*\n(?:#[^\n]*\n)*[^\n#]+\n/g;
export const behindHead =
  (tag: string): Edit =>
  (text) =>
    text.replace('#EXTM3U\n', `#EXTM3U\n${tag}\n`);
export const beforeSegments =
  (tag: string): Edit =>
  (text) =>
    text.replace('#EXTINF', `${tag}\n#EXTINF`);
export const replaced =
  (from: string | RegExp, to: string): Edit =>
  (text) =>
    text.replace(from, to);

/** Returns the changes by the playlists that they are made to. `video` is the text of the media playlist. */
export function playlistAlterations(video: string): readonly (readonly [string, Readonly<Record<string, Edit>>])[] {
  const entries = video.match(ENTRY) ?? [];
  const [first = '', second = ''] = entries;
  const last = entries.at(-1) ?? '';
  const IN_MEDIA_PLAYLISTS: Readonly<Record<string, Edit>> = {
    'text behind a duration': replaced(/#EXTINF:([\d.]+),/, '#EXTINF:$1 other.m4s,'),
    'a tag behind a duration': replaced(/#EXTINF:([\d.]+),/, '#EXTINF:$1,#EXTINF:1,'),
    'a line that begins with a space': beforeSegments(' #comment'),
    'an address with a space behind it': replaced(/(\.m4s)\n/, '$1 \n'),
    'a first line that is none of HLS': (text) => `\n${text}`,
    'a mark of the byte order': (text) => `\uFEFF${text}`,
    'a duration of zero': replaced(/#EXTINF:[\d.]+,/, '#EXTINF:0,'),
    'a duration that is too long': replaced(/#EXTINF:[\d.]+,/, '#EXTINF:9.0,'),
    'a duration that is too short': replaced(/#EXTINF:[\d.]+,/, '#EXTINF:0.01,'),
    'a duration that is no decimal': replaced(/#EXTINF:[\d.]+,/, '#EXTINF:1e0,'),
    'its first fragment left out': replaced(first, ''),
    'its last fragment left out': replaced(last, ''),
    'a fragment in the middle left out': replaced(second, ''),
    'a fragment twice': replaced(second, second + second),
    'all fragments twice': (text) => text.replace('#EXT-X-ENDLIST', `${entries.join('')}#EXT-X-ENDLIST`),
    'two fragments in another order': replaced(first + second, second + first),
    'a gap': replaced(second, `#EXT-X-GAP\n${second}`),
    'a gap between fragments that follow one another': replaced(second, `#EXT-X-GAP\n#EXTINF:3,\ngone.m4s\n${second}`),
    'a gap that is there': replaced(first, `#EXT-X-GAP\n#EXTINF:1,\n${MPD}\n${first}`),
    'addresses with a scheme and no host': (text) => text.replace(/^(\S+\.m4s)$/gm, 'http:$1'),
    'no end': replaced(/#EXT-X-ENDLIST\n?/, ''),
    'a start behind its start': behindHead('#EXT-X-START:TIME-OFFSET=2'),
    'a start before its end': behindHead('#EXT-X-START:TIME-OFFSET=-1,PRECISE=YES'),
    'an interstitial': behindHead(
      '#EXT-X-DATERANGE:ID="a",CLASS="com.apple.hls.interstitial",START-DATE="2020-01-01T00:00:00Z",X-ASSET-URI="other.m3u8"',
    ),
    'a list of interstitials': behindHead(
      '#EXT-X-DATERANGE:ID="a",START-DATE="2020-01-01T00:00:00Z",X-ASSET-LIST="a.json"',
    ),
    'a time of day that jumps': (text) => {
      let count = 0;
      const other = '#EXT-X-PROGRAM-DATE-TIME:2030-01-01T00:00:00.000Z';
      return text.replace(/#EXT-X-PROGRAM-DATE-TIME:.*/g, (tag) => (count++ === 1 ? other : tag));
    },
    'other times of day than the sound': (text) => text.replace(/(#EXT-X-PROGRAM-DATE-TIME:)\d{4}/g, '$11999'),
    'two times of day of a fragment': (text) => text.replace(/#EXT-X-PROGRAM-DATE-TIME:.*/, '$&\n$&'),
    'a variable that is defined twice': behindHead(
      '#EXT-X-DEFINE:NAME="a",VALUE="b"\n#EXT-X-DEFINE:NAME="a",VALUE="c"',
    ),
    'a variable from elsewhere': behindHead('#EXT-X-DEFINE:IMPORT="a"'),
    'a variable that is imported, too': behindHead('#EXT-X-DEFINE:NAME="a",VALUE="b",IMPORT="a"'),
    'a variable that a query of the player says, too': behindHead('#EXT-X-DEFINE:NAME="a",VALUE="b",QUERYPARAM="a"'),
    'discontinuities of other numbers': behindHead('#EXT-X-DISCONTINUITY-SEQUENCE:5'),
    'encryption of whole segments': behindHead('#EXT-X-KEY:METHOD=AES-128,URI="key"'),
    'a key for media that are not encrypted': behindHead('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key"'),
    'a key of FairPlay for media that are not encrypted': behindHead(
      '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"',
    ),
    'a number of the first segment that is not exact': behindHead('#EXT-X-MEDIA-SEQUENCE:99999999999999999999'),
    'key frames only': beforeSegments('#EXT-X-I-FRAMES-ONLY'),
    'a tag inside a comment': beforeSegments('# a comment #EXTINF:1,'),
    'a tag in small letters': beforeSegments('#extinf:1,'),
    'a tag behind a space': beforeSegments('# EXTINF:1,'),
    'a carriage return inside a line': replaced(/#EXTINF:([\d.]+),/, '#EXTINF:$1,a\rother.m4s'),
    'a line separator of Unicode': replaced(/#EXTINF:([\d.]+),/, '#EXTINF:$1,a\u2028other.m4s'),
    'a line separator of Unicode in a comment': beforeSegments('# a\u2028other.m4s'),
    'a null byte': replaced(/#EXTINF:([\d.]+),/, '#EXTINF:$1,a\0'),
    'an unknown tag with an address': behindHead('#EXT-X-OTHER:URI="https://cdn.example/other.m4s"'),
    'tags of both kinds of playlists': behindHead('#EXT-X-STREAM-INF:BANDWIDTH=1\nmedia_1.m3u8'),
    'a backslash before a quote': behindHead('#EXT-X-DATERANGE:ID="a\\",X-A="b"'),
    'an attribute twice': replaced(/#EXT-X-MAP:URI=("[^"]*")/, '#EXT-X-MAP:URI=$1,URI=$1'),
    'an attribute behind a space': replaced('#EXT-X-MAP:URI', '#EXT-X-MAP: URI'),
    'an attribute without quotes': replaced(/#EXT-X-MAP:URI="([^"]*)"/, '#EXT-X-MAP:URI=$1'),
    'an address with white space of another script': replaced(/(#EXT-X-MAP:URI="[^"]*)"/, '$1\u3000"'),
    'a variable with white space of another script': (text) =>
      behindHead('#EXT-X-DEFINE:NAME="v",VALUE="chunk\u00a0"')(text).replace('\nchunk', '\n{$v}'),
    'its end above its segments': (text) => behindHead('#EXT-X-ENDLIST')(text.replace(/#EXT-X-ENDLIST\n?/, '')),
    'percent signs that encode a letter, and nothing': replaced(/\nchunk([^\n]*)/, '\n%63hunk$1?%'),
    'a colon in an address': replaced(/\n(chunk[^\n]*)/, '\n4:$1'),
    'another init segment': replaced(/#EXT-X-MAP:URI="([^"]*)0\./, '#EXT-X-MAP:URI="$11.'),
  };

  const IN_MULTIVARIANT_PLAYLISTS: Readonly<Record<string, Edit>> = {
    'steering by a server': behindHead('#EXT-X-CONTENT-STEERING:SERVER-URI="steer.json"'),
    'no sound': (text) => text.replace(/#EXT-X-MEDIA:TYPE=AUDIO[^\n]*\n/g, '').replace(/,AUDIO="[^"]*"/g, ''),
    'a variable for a group': (text) =>
      text
        .replace('#EXTM3U\n', '#EXTM3U\n#EXT-X-DEFINE:NAME="v",VALUE="group_A1"\n')
        .replace(/AUDIO="group_A1"/g, 'AUDIO="{$v}"'),
    'a group with a name that objects of JavaScript have': (text) => text.replaceAll('"group_A1"', '"constructor"'),
    'a group with a space behind its name': (text) => text.replace('GROUP-ID="group_A1"', 'GROUP-ID="group_A1 "'),
    'a group that is named with a space before it': (text) => text.replaceAll('AUDIO="group_A1"', 'AUDIO=" group_A1"'),
    'a sound without an address': (text) =>
      text.replace(
        '#EXT-X-MEDIA:',
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="group_A1",NAME="other",DEFAULT=YES\n#EXT-X-MEDIA:',
      ),
    'pictures as a sound': (text) =>
      text.replace(
        '#EXT-X-MEDIA:',
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="group_A1",NAME="other",URI="media_0.m3u8"\n#EXT-X-MEDIA:',
      ),
    'pictures in a group, which some players do not know': (text) =>
      text
        .replace('#EXT-X-MEDIA:', '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="v",NAME="a",URI="media_0.m3u8"\n#EXT-X-MEDIA:')
        .replace(/^(#EXT-X-STREAM-INF:[^\n]*),AUDIO="[^"]*"\n.*$/m, '$1,VIDEO="v"\nmedia_1.m3u8'),
    'a variant without its sound': (text) =>
      `${text}${text.match(/#EXT-X-STREAM-INF[^\n]*\n[^\n]*\n/)?.[0].replace(/,AUDIO="[^"]*"/, '')}`,
    'codecs without that of its sound': replaced(/(CODECS="avc1[^",]*),[^"]*"/, '$1"'),
    'codecs without that of its pictures': replaced(/(CODECS=")avc1[^",]*,/, '$1'),
    ...Object.fromEntries(
      [
        ['a codec of sound that it does not offer', /(CODECS="[^"]*)"/, '$1,ac-4"'],
        ['a codec that nobody knows', /(CODECS="[^"]*)"/, '$1,xxxx"'],
        ['a codec with a name that every object has', /(CODECS="[^"]*)"/, '$1,constructor.1"'],
        ['reserved bits of a profile', /(avc1\.42)c0/, '$1c3'],
        ['no profile', /avc1\.[0-9a-f]{6}/, 'avc1'],
        ['a level that no player knows', /(avc1\.[0-9a-f]{4})[0-9a-f]{2}/, '$1ff'],
        ['a codec in capitals', 'avc1.', 'AVC1.'],
      ].map(([name, from, to]): [string, Edit] => [`codecs with ${name}`, replaced(from as string, to as string)]),
    ),
    'captions with an address': behindHead(
      '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="other",INSTREAM-ID="CC1",URI="media_0.m3u8"',
    ),
    'text without an address': behindHead('#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="text",NAME="other"'),
    'a variant in a comment': (text) => `${text}\n# #EXT-X-STREAM-INF:BANDWIDTH=1\n`,
    'a tag before the address of a variant': replaced(
      /(#EXT-X-STREAM-INF:[^\n]*\n)/,
      '$1#EXT-X-INDEPENDENT-SEGMENTS\n',
    ),
    'a variant without an address': (text) => `${text}#EXT-X-STREAM-INF:BANDWIDTH=1\n`,
    'durations of a media playlist': (text) => `${text}#EXTINF:1,\nchunk-stream0-00001.m4s\n`,
  };

  const IN_MPDS: Readonly<Record<string, Edit>> = {
    'a base address in other letters and another namespace': replaced(
      '<Period',
      '<x:BASEURL xmlns:x="urn:example">other/</x:BASEURL><Period',
    ),
    'a segment in other letters and another namespace': replaced('<S t=', '<s xmlns="urn:example" t="0" d="1" /><S t='),
    'pictures whose type names video': replaced(
      '</Period>',
      '<AdaptationSet mimeType="image/video"><Representation id="9" bandwidth="1"><BaseURL>p.jpg</BaseURL></Representation></AdaptationSet></Period>',
    ),
    'a frame rate below zero, by which some players take the pictures for unknown': replaced(
      /frameRate="[^"]*"/,
      'frameRate="-1"',
    ),
    'two components of sound': replaced(
      /(<AdaptationSet id="1"[^>]*>)/,
      '$1<ContentComponent id="1" contentType="audio"/><ContentComponent id="2" contentType="audio"/>',
    ),
    'a list of segments around a representation with a base address': (text) => {
      const [template = ''] = text.match(/<SegmentTemplate[\s\S]*?<\/SegmentTemplate>/) ?? [];
      const urls = [1, 2, 3, 4, 5, 6].map((number) => `<SegmentURL media="chunk-stream0-0000${number}.m4s"/>`).join('');
      const list = `<SegmentList timescale="1" duration="1"><Initialization sourceURL="init-stream0.m4s"/>${urls}</SegmentList>`;
      return text.replace(template, '<BaseURL>other.mp4</BaseURL>').replace(/(?=<Representation id="0")/, list);
    },
    'a second base address': replaced('<Period', '<BaseURL>a/</BaseURL><BaseURL>b/</BaseURL><Period'),
    'a location elsewhere': replaced('<Period', '<Location>https://cdn.example/a.mpd</Location><Period'),
    'steering by a server': replaced('<Period', '<ContentSteering>https://cdn.example/a</ContentSteering><Period'),
    'steering by a server, in the description of the service': replaced(
      '<Period',
      '<ServiceDescription><ContentSteering>/steering</ContentSteering></ServiceDescription><Period',
    ),
    'a pattern of durations in another namespace': (text) =>
      text
        .replace('<SegmentTimeline>', '<SegmentTimeline><Pattern xmlns="urn:example" id="1"><P d="999999"/></Pattern>')
        .replace('<S t=', '<S p="1" t='),
    'a range of an index beside a template': replaced('<SegmentTemplate ', '<SegmentTemplate indexRange="831-942" '),
    'an attribute under which some parsers keep the names of elements': replaced(
      '</SegmentTemplate>',
      '</SegmentTemplate><other xmlns="urn:example" nodeName="SegmentTemplate" media="other$Number$"/>',
    ),
    'the same at an element that is known': replaced('<AdaptationSet ', '<AdaptationSet nodeName="other" '),
    'an element with a name under which they keep it': replaced(
      /(<AdaptationSet [^>]*>)/,
      '$1<x:nodeName xmlns:x="urn:example"/>',
    ),
    'encryption of whole segments': replaced(
      /(<AdaptationSet [^>]*>)/,
      '$1<ContentProtection schemeIdUri="urn:mpeg:dash:sea:2012"/>',
    ),
    'protection of media that are not encrypted': replaced(
      /(<AdaptationSet [^>]*contentType="audio"[^>]*>)/,
      '$1<ContentProtection schemeIdUri="urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95"/>',
    ),
    'an element with the name of an attribute': replaced(
      /(<AdaptationSet [^>]*>)/,
      '$1<contentType xmlns="urn:example"/>',
    ),
    'a presentation offset': replaced(/timescale="(\d+)"/, 'timescale="$1" presentationTimeOffset="$1"'),
    'a period that ends early': replaced(/<Period ([^>]*)>/, '<Period $1 duration="PT2S">'),
    'a duration that ends early': replaced(/mediaPresentationDuration="[^"]*"/, 'mediaPresentationDuration="PT2.0S"'),
    'no end': replaced('type="static"', 'type="dynamic"'),
    'a timeline that ends early': replaced(/ r="\d+"/, ''),
    'a timeline of longer segments': (text) => text.replace(/ d="(\d+)"/g, (_, ticks) => ` d="${Number(ticks) * 3}"`),
    'segments from a later number': replaced('startNumber="1"', 'startNumber="3"'),
    'an element with a prefix': replaced(/<Period ([^>]*)>/, '<m:Period $1></m:Period><Period $1>'),
    'a subset that leaves sets out': replaced('</Period>', '<Subset contains="0"/></Period>'),
    'a subset in another namespace': replaced('</Period>', '<x:Subset xmlns:x="urn:example" contains="0"/></Period>'),
    'an element of a later version': replaced(/<Period ([^>]*)>/, '<Period $1><ImportedMPD>other</ImportedMPD>'),
    'an event that some players show': replaced(
      '<AdaptationSet',
      '<EventStream schemeIdUri="urn:mpeg:dash:event:2012"><Event><OverlayEvent uri="other.mp4"/></Event></EventStream><AdaptationSet',
    ),
    'an event of SCTE that some players show': replaced(
      '<AdaptationSet',
      '<EventStream schemeIdUri="urn:scte:dash:scte214-events"><Event><OverlayEvent uri="other.mp4"/></Event></EventStream><AdaptationSet',
    ),
    ...Object.fromEntries(
      [
        '<OverlayEvent xmlns="urn:example" uri="other.mp4"/>',
        '<x:OverlayEvent xmlns:x="urn:example" uri="other"/>',
        '<x:Overlay xmlns:x="urn:example"><x:Clip href="other"/></x:Overlay>',
        '<clip xmlns="urn:example">other.mp4</clip>',
      ].map((content): [string, Edit] => [
        `an event with ${content}`,
        replaced(
          '<AdaptationSet',
          `<EventStream schemeIdUri="urn:mpeg:dash:event:2012"><Event>${content}</Event></EventStream><AdaptationSet`,
        ),
      ]),
    ),
    'a period elsewhere in another namespace': replaced(
      '<Period ',
      '<x:ImportedMPD xmlns:x="urn:example">other</x:ImportedMPD><Period ',
    ),
    'a buffer for time shift': replaced('type="static"', 'type="static" timeShiftBufferDepth="PT1S"'),
    'an element of another namespace with an address': replaced(
      '<AdaptationSet',
      '<x:Other xmlns:x="urn:example" uri="other.mp4"/><AdaptationSet',
    ),
    'a codec that some players do not know': replaced('mp4a.40.2', 'mp4a.40.99'),
    'a codec beside the one that it is': replaced('mp4a.40.2', 'mp4a.40.2,xxxx'),
    'a level that no player knows': replaced(/(avc1\.[0-9a-f]{4})[0-9a-f]{2}/, '$1ff'),
    'a profile that some players do not know': replaced(/avc1\.../, 'avc1.7a'),
    'a type that some players do not know': replaced('mimeType="audio/mp4"', 'mimeType="audio/x-none"'),
    'a declaration of another encoding': replaced('encoding="utf-8"', 'encoding="UTF-7"'),
    'a declaration that some players end early': replaced(/^<\?xml[^>]*\?>/, '<?xml version="1.0" ><MPD></MPD>?>'),
    'times that are no doubles': (text) =>
      text
        .replace(/timescale="\d+"/, 'timescale="999999999999001"')
        .replace(/<S t="0" d="(\d+)"/, '<S t="9007199254740993" d="$1"'),
    'an entity': replaced('initialization="', 'initialization="&other;'),
    'a section of text': replaced('<Period', '<![CDATA[<Period/>]]><Period'),
    'a document type': replaced('<MPD', '<!DOCTYPE MPD [<!ENTITY a "b">]><MPD'),
    'a second template': replaced(/(<SegmentTemplate[\s\S]*?<\/SegmentTemplate>)/, '$1$1'),
    'text between elements': replaced('<Period', 'text<Period'),
    chaining: replaced(
      '<Period',
      '<SupplementalProperty schemeIdUri="urn:mpeg:dash:chaining:2016" value="a.mpd"/><Period',
    ),
    'parameters in addresses': replaced(
      '<Representation ',
      '<EssentialProperty schemeIdUri="urn:mpeg:dash:urlparam:2014"/><Representation ',
    ),
    'sound that it calls text': replaced('contentType="audio"', 'contentType="text"'),
    'pictures that it calls still ones': replaced('contentType="video"', 'contentType="image"'),
    'addresses with a bandwidth of 0': (text) =>
      text.replace(/bandwidth="\d+"/, 'bandwidth="0"').replace('media="', 'media="$Bandwidth$'),
    'a type of its own': replaced('type="static"', 'type="STATIC"'),
    'no sound': replaced(/<AdaptationSet[^>]*contentType="audio"[\s\S]*?<\/AdaptationSet>/, ''),
    'an identifier of templates in an id': replaced('<Representation id="0"', '<Representation id="$Bandwidth$"'),
    'pictures that some players leave out': replaced(
      /(<AdaptationSet[^>]*contentType="video"[^>]*>)/,
      '$1<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="0"/>',
    ),
    'two dollar signs in a template': replaced('$Number', '$$$$a-$$Number'),
    'an index of its own': replaced('<SegmentTemplate ', '<SegmentTemplate index="other.sidx" '),
    'a number of the last segment': replaced(
      '<SegmentTemplate',
      '<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/last-segment-number" value="2"/><SegmentTemplate',
    ),
    'a base address in white space': replaced('<Period', '<BaseURL> ./ </BaseURL><Period'),
    'a base address with a comment': replaced('<Period', '<BaseURL><!-- a -->./</BaseURL><Period'),
    'a base address with a reference': replaced('<Period', '<BaseURL>.&#47;</BaseURL><Period'),
    'a base address behind a period': replaced('</MPD>', '<BaseURL>./</BaseURL></MPD>'),
    'numbers without a count': replaced(/<SegmentTimeline>[\s\S]*?<\/SegmentTimeline>/, ''),
    'segments of a duration without an end': (text) =>
      text
        .replace(/\smediaPresentationDuration="[^"]*"/, '')
        .replace(/timescale="(\d+)"/g, 'timescale="$1" duration="$1"')
        .replace(/<SegmentTimeline>[\s\S]*?<\/SegmentTimeline>/g, ''),
    'a set of sound twice': replaced(/<AdaptationSet[^>]*contentType="audio"[\s\S]*?<\/AdaptationSet>/, '$&$&'),
    'a link to a period elsewhere': replaced('<Period ', '<Period xlink:href="a.xml" '),
  };
  return [
    [VIDEO, IN_MEDIA_PLAYLISTS],
    [MASTER, IN_MULTIVARIANT_PLAYLISTS],
    [MPD, IN_MPDS],
  ];
}
