import { type Box, BoxFields } from '#formats/isobmff-boxes.ts';

/** A codec: the kind of its media, and what tells it from others that players may not know. */
export interface Codec {
  readonly kind: 'video' | 'audio' | 'text' | null;
  /** Its family, with the profile behind a colon where that is known and may be left out. */
  readonly id: string;
}

/** Returns true where the name of a codec may stand for media of another one: the profile counts where both say it. */
export function isOf(named: Codec, { id }: Codec): boolean {
  return named.id === id || id.startsWith(`${named.id}:`) || named.id.startsWith(`${id}:`);
}

/** Codecs by the names of their sample entries, of which several may stand for one (RFC 6381, and the registry of MP4RA). */
const CODECS: readonly (readonly [kind: Codec['kind'], id: string, names: RegExp])[] = [
  ['video', 'avc', /^avc[13]$/],
  ['video', 'hevc', /^(?:hvc1|hev1)$/],
  ['video', 'dolby-vision', /^(?:dvh1|dvhe|dva1|dvav)$/],
  ['video', 'vvc', /^(?:vvc1|vvi1)$/],
  ['video', 'vp9', /^vp0?9$/],
  ['video', 'vp8', /^vp0?8$/],
  ['video', 'av1', /^av01$/],
  ['video', 'mpeg', /^mp4v$/],
  ['video', 'jpeg', /^mjpg$/],
  ['audio', 'mp4a', /^mp4a$/],
  ['audio', 'ac-3', /^ac-3$/],
  ['audio', 'ec-3', /^ec-3$/],
  ['audio', 'ac-4', /^ac-4$/],
  ['audio', 'opus', /^[Oo]pus$/],
  ['audio', 'flac', /^(?:flac|fLaC)$/],
  ['audio', 'alac', /^alac$/],
  ['audio', 'mp3', /^mp3$/],
  ['audio', 'dts', /^dts[a-z]$/],
  ['audio', 'mpegh', /^mh[am][12]$/],
  ['text', 'wvtt', /^wvtt$/],
  ['text', 'stpp', /^stpp$/],
];

/** Types of audio objects by what they are: AAC with extensions, of which writers name any, and MP3 (ISO/IEC 14496-3 §1.5.1). */
const OBJECTS = { aac: /^40\.(?:0?2|0?5|29)$/, mp3: /^(?:40\.34|69|6b)$/i, 'ac-3': /^a5$/i, 'ec-3': /^a6$/i };
/** Profiles of AVC that all players know, so that it matters little which of them is named, or none: Baseline, Main and High. */
const USUAL_PROFILES: ReadonlySet<string> = new Set(['', '66', '77', '100']);

/** Codecs with a profile: its place in their names, whose levels are known ones, and in the configuration in sample entries. */
const PROFILED: ReadonlyMap<string, { named: RegExp; box: string; profileIn: (box: Buffer) => number }> = new Map(
  Object.entries({
    hevc: {
      named:
        /^[A-C]?(\d{1,2})\.[0-9a-f]{1,8}\.[LH](?:30|60|63|90|93|120|123|150|153|156|180|183|186)(?:\.[0-9a-f]{1,3}){0,6}$/i,
      box: 'hvcC',
      profileIn: (box) => (box[9] ?? 0) & 31,
    },
    vp9: {
      named: /^0(\d)\.(?:[1-4][01]|5[0-2]|6[0-2])\.(?:08|10|12)(?:\.\d\d){0,5}$/,
      box: 'vpcC',
      profileIn: (box) => box[12] ?? 0,
    },
    av1: {
      named: /^(\d)\.(?:[01]\d|2[0-3]|31)[MH]\.(?:08|10|12)(?:\.\d+){0,6}$/,
      box: 'av1C',
      profileIn: (box) => (box[9] ?? 0) >> 5,
    },
  }),
);

function codecOf(name: string, detail: string): Codec {
  const [kind, id] = CODECS.find(([, , names]) => names.test(name)) ?? [null, name];
  if (id === 'mp4a') {
    const known = Object.entries(OBJECTS).find(([, types]) => types.test(detail));
    return { kind, id: known?.[0] ?? `${id}.${detail.toLowerCase()}` };
  }
  return { kind, id: id === 'avc' && !USUAL_PROFILES.has(detail) ? `${id}.${detail}` : id };
}

/** Levels of AVC, as its names have them in hexadecimal (ITU-T H.264 table A-1). */
const AVC_LEVELS = /^(?:0[9a-d]|1[4-6]|1[e-f]|20|2[89a]|3[2-4]|3[c-e])$/i;

/** A profile of AVC in hexadecimal, with constraints whose last two bits are reserved and zero (ITU-T H.264 §7.4.2.1.1). */
const AVC_PROFILE = /^[0-9a-f]{3}[048c][0-9a-f]{2}$/i;

/** Returns the codec that a playlist names, such as `avc1.42c00c` or `mp4a.40.2` (RFC 6381). */
export function codecNamed(text: string): Codec {
  const [name = '', ...details] = text.trim().split('.');
  const detail = details.join('.');
  if (!/^avc[13]$/.test(name)) return profiled(codecOf(name, detail), detail);
  // An older form counts profile and level in decimals, and says no constraints.
  const hex = detail.replace(/^(\d{2,3})\.(\d{1,2})$/, (_, profile, level) => `${inHex(profile)}00${inHex(level)}`);
  const isKnown = AVC_PROFILE.test(hex) && AVC_LEVELS.test(hex.slice(4));
  return isKnown ? codecOf(name, `${Number.parseInt(hex.slice(0, 2), 16)}`) : { kind: 'video', id: text.trim() };
}

function inHex(decimal: string): string {
  return Number(decimal).toString(16).padStart(2, '0');
}

/** Returns a codec with the profile that its name states; the name as it is where it does not have the form of one. */
function profiled({ kind, id }: Codec, detail: string): Codec {
  const form = PROFILED.get(id);
  if (form === undefined || detail === '') return { kind, id };
  const [, profile] = form.named.exec(detail) ?? [];
  return { kind, id: profile === undefined ? `${id}.${detail}` : `${id}:${Number(profile)}` };
}

/** Bytes of sample entries before the boxes in them (ISO/IEC 14496-12 §12.1.3 and §12.2.3). */
const ENTRY_BYTES: ReadonlyMap<string, number> = new Map(Object.entries({ vide: 78, soun: 28 }));

/** Returns true for a track with a sample entry of encrypted samples (ISO/IEC 14496-12 §8.12). */
export function isEncrypted(trak: Box): boolean {
  return [...entriesOf(trak)].some(({ type }) => /^enc[a-z]$/.test(type));
}

function entriesOf(trak: Box): Iterable<Box> {
  return trak.descendant('mdia', 'minf', 'stbl', 'stsd')?.children(8) ?? [];
}

/** Returns the codecs of a track by its sample entries; what is encrypted counts as what it was. */
export function codecsOfTrack(trak: Box, handler: string): Codec[] {
  return Array.from(entriesOf(trak)).flatMap((entry) => {
    const boxes = [...entry.children(ENTRY_BYTES.get(handler) ?? entry.bytes.length)];
    const original = boxes.find(({ type }) => type === 'sinf')?.descendant('frma');
    const name = original === undefined ? entry.type : new BoxFields(original).text(4);
    const esds = boxes.find(({ type }) => type === 'esds');
    const avcC = boxes.find(({ type }) => type === 'avcC');
    const { kind, id } = codecOf(name, esds !== undefined ? objectTypeIn(esds) : `${avcC?.bytes[9] ?? ''}`);
    const form = PROFILED.get(id);
    const box = boxes.find(({ type }) => type === form?.box);
    const own = { kind, id: form === undefined || box === undefined ? id : `${id}:${form.profileIn(box.bytes)}` };
    // Dolby Vision may be in what other players take for HEVC or AVC.
    return boxes.some(({ type }) => /^dv[cvw]C$/.test(type)) ? [own, codecOf('dvh1', '')] : [own];
  });
}

/** Tags of the descriptors in an `esds` box, with the bytes before the descriptors in them (ISO/IEC 14496-1 §7.2.6). */
const DESCRIPTORS: Readonly<Record<number, number>> = { 3: 3, 4: 13 };

/** Returns the object type of an `esds` box as playlists name it: `40.2`, or `6b`. */
function objectTypeIn(esds: Box): string {
  const { bytes } = esds;
  let at = esds.header.headerSizeBytes + 4;
  let type = '';
  while (at < bytes.length) {
    const tag = bytes[at] ?? 0;
    at += 1;
    while (((bytes[at] ?? 0) & 0x80) !== 0) at += 1;
    at += 1;
    if (tag === 4) type = (bytes[at] ?? 0).toString(16).padStart(2, '0');
    const inside = DESCRIPTORS[tag];
    if (inside === undefined) {
      const [first = 0, second = 0] = bytes.subarray(at);
      const object = first >> 3 === 31 ? 32 + ((first & 7) << 3) + (second >> 5) : first >> 3;
      return tag === 5 && type === '40' ? `${type}.${object}` : type;
    }
    at += inside;
  }
  return type;
}
