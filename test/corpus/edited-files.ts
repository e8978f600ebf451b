import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes files that no common program writes, but that are about: by editing bytes of files in the corpus. */
export function makeEditedFiles(corpus: string): void {
  const edit = (from: string, to: string, change: (bytes: Buffer) => Buffer): void =>
    writeFileSync(join(corpus, to), change(readFileSync(join(corpus, from))));
  editMovies(edit);
  editMpegAudio(edit);
  editWaves(edit);
  edit('flac.flac', 'id3-before.flac', (flac) =>
    Buffer.concat([id3Tag({ version: 3, frames: [titleFrame(3)] }), flac]),
  );
}

type Edit = (from: string, to: string, change: (bytes: Buffer) => Buffer) => void;

function editMovies(edit: Edit): void {
  edit('moov-last.mp4', '64-bit-mdat.mp4', withLargeMediaBox);
  edit('moov-first.mp4', 'mdat-to-the-end.mp4', (movie) => {
    const { offset } = boxOf(movie, 'mdat');
    const open = Buffer.from(movie);
    open.writeUInt32BE(0, offset);
    return open;
  });
  edit('moov-last.mp4', 'second-mdat.mp4', (movie) => Buffer.concat([movie, box('mdat', Buffer.alloc(5000, 7))]));
  edit('moov-first.mp4', 'free-boxes.mp4', (movie) =>
    Buffer.concat([movie, box('free', Buffer.alloc(1000)), box('skip', Buffer.alloc(10))]),
  );
  edit('moov-first.mp4', 'unknown-boxes.mp4', (movie) =>
    Buffer.concat([movie, box('zzzz', Buffer.alloc(300, 1)), box('uuid', Buffer.alloc(64, 0xab))]),
  );
  edit('moov-last.mp4', 'trailing-zeros.mp4', (movie) => Buffer.concat([movie, Buffer.alloc(5)]));
  edit('moov-last.mp4', 'reference-to-nowhere.mp4', (movie) => {
    // Flagged as a reference to another file, of which no address is given.
    const lost = Buffer.from(movie);
    for (
      let at = lost.indexOf('url \0\0\0\x01', 0, 'latin1');
      at !== -1;
      at = lost.indexOf('url \0\0\0\x01', at, 'latin1')
    )
      lost[at + 7] = 0;
    return lost;
  });
  edit('quicktime.mov', 'no-ftyp.mov', (movie) => {
    const old = Buffer.from(movie);
    old.write('wide', 4, 'latin1');
    return old;
  });
}

/** Uses the 8 bytes of `free` that ffmpeg leaves before `mdat` for the header's larger size: no offset changes. */
function withLargeMediaBox(movie: Buffer): Buffer {
  const free = boxOf(movie, 'free');
  const media = boxOf(movie, 'mdat');
  if (free.sizeBytes !== 8 || free.offset + 8 !== media.offset) throw new Error('there is no room for a larger header');
  const large = Buffer.from(movie);
  large.writeUInt32BE(1, free.offset);
  large.write('mdat', free.offset + 4, 'latin1');
  large.writeBigUInt64BE(BigInt(media.sizeBytes + 8), free.offset + 8);
  return large;
}

function editMpegAudio(edit: Edit): void {
  const before = (start: Buffer) => (audio: Buffer) => Buffer.concat([start, audio]);
  const after = (end: Buffer) => (audio: Buffer) => Buffer.concat([audio, end]);
  edit('no-id3.mp3', 'garbage-first.mp3', before(Buffer.alloc(700, 0x55)));
  edit('no-id3.mp3', 'zeros-first.mp3', before(Buffer.alloc(2000)));
  edit('no-id3.mp3', 'id3v22.mp3', before(id3Tag({ version: 2, frames: [titleFrame(2)] })));
  edit(
    'no-id3.mp3',
    'id3v24-footer.mp3',
    before(withFooter(id3Tag({ version: 4, frames: [titleFrame(4)], flags: 0x10 }))),
  );
  const withFalseSync = frame(3, 'PRIV', Buffer.from('616262630000ffe00012ff00ffff', 'hex'));
  const body = unsynchronised(Buffer.concat([titleFrame(3), withFalseSync]));
  edit('no-id3.mp3', 'id3v23-unsynchronised.mp3', before(id3Tag({ version: 3, frames: [body], flags: 0x80 })));
  edit(
    'no-id3.mp3',
    'id3v23-odd-padding.mp3',
    before(id3Tag({ version: 3, frames: [titleFrame(3), Buffer.alloc(4097)] })),
  );
  edit('no-id3.mp3', 'empty-tag.mp3', before(id3Tag({ version: 3, frames: [Buffer.alloc(20)] })));
  edit('no-id3.mp3', 'ape-tag.mp3', after(apeTag()));
  edit('id3v23.mp3', 'trailing-garbage.mp3', after(Buffer.alloc(333, 0x11)));
}

function editWaves(edit: Edit): void {
  edit('sox.wav', 'bytes-after-riff.wav', (wave) => Buffer.concat([wave, Buffer.from('left over')]));
  edit('sox.wav', 'odd-chunks.wav', (wave) =>
    withChunks(wave, [chunk('note', Buffer.alloc(7, 1)), chunk('JUNK', Buffer.alloc(3))]),
  );
  edit('sox.wav', 'chunks-first.wav', (wave) =>
    withChunks(wave, [], [chunk('JUNK', Buffer.alloc(28)), chunk('iXML', Buffer.from('<BWFXML/>'))]),
  );
  edit('list-info.wav', 'cue-points.wav', (wave) =>
    withChunks(wave, [chunk('cue ', Buffer.concat([Buffer.from('0100000001000000', 'hex'), Buffer.alloc(20)]))]),
  );
}

function withChunks(wave: Buffer, last: readonly Buffer[], first: readonly Buffer[] = []): Buffer {
  const made = Buffer.concat([wave.subarray(0, 12), ...first, wave.subarray(12), ...last]);
  made.writeUInt32LE(made.length - 8, 4);
  return made;
}

function chunk(id: string, data: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.write(id, 'latin1');
  header.writeUInt32LE(data.length, 4);
  return Buffer.concat([header, data, Buffer.alloc(data.length % 2)]);
}

interface Id3Parts {
  readonly version: 2 | 3 | 4;
  readonly frames: readonly Buffer[];
  readonly flags?: number;
}

function id3Tag({ version, frames, flags = 0 }: Id3Parts): Buffer {
  const body = Buffer.concat(frames);
  return Buffer.concat([Buffer.from([0x49, 0x44, 0x33, version, 0, flags]), synchsafe(body.length), body]);
}

function withFooter(tag: Buffer): Buffer {
  const footer = Buffer.from(tag.subarray(0, 10));
  footer.write('3DI', 'latin1');
  return Buffer.concat([tag, footer]);
}

function titleFrame(version: 2 | 3 | 4): Buffer {
  return frame(version, version === 2 ? 'TT2' : 'TIT2', Buffer.from('\0Song', 'latin1'));
}

function frame(version: 2 | 3 | 4, id: string, content: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(content.length);
  const header = { 2: [size.subarray(1)], 3: [size, Buffer.alloc(2)], 4: [synchsafe(content.length), Buffer.alloc(2)] };
  return Buffer.concat([Buffer.from(id, 'latin1'), ...header[version], content]);
}

/** Seven bits a byte (ID3v2.4.0 structure, §6.2). */
function synchsafe(value: number): Buffer {
  return Buffer.from([21, 14, 7, 0].map((shift) => (value >> shift) & 0x7f));
}

/** A zero after each $FF that something like a frame sync or another zero follows (ID3v2.3.0, §5). */
function unsynchronised(bytes: Buffer): Buffer {
  const pieces = [...bytes].flatMap((byte, index) => {
    const next = bytes[index + 1] ?? 0;
    return byte === 0xff && (next >= 0xe0 || next === 0) ? [byte, 0] : [byte];
  });
  return Buffer.from(pieces);
}

/** An APEv2 tag with one item, as players append it. */
function apeTag(): Buffer {
  const item = Buffer.concat([Buffer.from('0400000000000000', 'hex'), Buffer.from('Title\0Song')]);
  const footer = Buffer.alloc(32);
  footer.write('APETAGEX', 'latin1');
  footer.writeUInt32LE(2000, 8);
  footer.writeUInt32LE(item.length + 32, 12);
  footer.writeUInt32LE(1, 16);
  return Buffer.concat([item, footer]);
}

function box(type: string, content: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + content.length);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, content]);
}

/** Finds a top-level box with a 32-bit size. */
function boxOf(movie: Buffer, type: string): { readonly offset: number; readonly sizeBytes: number } {
  for (let offset = 0; offset < movie.length; offset += movie.readUInt32BE(offset)) {
    if (movie.toString('latin1', offset + 4, offset + 8) === type)
      return { offset, sizeBytes: movie.readUInt32BE(offset) };
  }
  throw new Error(`there is no ${type} box`);
}
