import { randomFillSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BufferTarget, EncodedPacket, EncodedVideoPacketSource, Mp4OutputFormat, Output } from 'mediabunny';
import { AVCC } from './media.ts';

/** The size of a publication of the benchmark. */
export interface PublicationShape {
  readonly renditions: number;
  /** Of all renditions together; a multiple of their number. */
  readonly fragments: number;
  /** Size of every fragment in bytes. */
  readonly fragmentBytes: number;
}

/** 1.5 GB in fragments of 750 kB. */
export const LARGE: PublicationShape = { renditions: 3, fragments: 2_001, fragmentBytes: 750_000 };
/** Small fragments, so that what counts is what a file costs. */
export const SMALL: PublicationShape = { renditions: 3, fragments: 20_001, fragmentBytes: 4_096 };

const BOX_HEADER_BYTES = 8;

/** Writes an HLS publication: a folder for each rendition, fragments of random bytes behind real headers. */
export async function writePublication(folder: string, shape: PublicationShape): Promise<string> {
  const { init, moof } = await headers();
  const count = shape.fragments / shape.renditions;
  const master = ['#EXTM3U'];
  for (let rendition = 1; rendition <= shape.renditions; rendition += 1) {
    const name = `rendition-${rendition}`;
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'init.mp4'), init);
    const fragment = Buffer.alloc(shape.fragmentBytes);
    for (let number = 1; number <= count; number += 1) {
      fillFragment(fragment, moof, number);
      writeFileSync(join(folder, name, `${number}.m4s`), fragment);
    }
    writeFileSync(join(folder, name, 'index.m3u8'), mediaPlaylist(count));
    master.push(`#EXT-X-STREAM-INF:BANDWIDTH=${rendition}000000,CODECS="avc1.64002a"`, `${name}/index.m3u8`);
  }
  writeFileSync(join(folder, 'master.m3u8'), `${master.join('\n')}\n`);
  return folder;
}

/** An init segment, and the moof of a fragment. */
async function headers(): Promise<{ readonly init: Buffer; readonly moof: Buffer }> {
  const source = new EncodedVideoPacketSource('avc');
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: 'fragmented' }), target });
  output.addVideoTrack(source, { frameRate: 25 });
  await output.start();
  const decoderConfig = { codec: 'avc1.64002a', codedWidth: 1920, codedHeight: 1080, description: AVCC };
  await source.add(new EncodedPacket(new Uint8Array(1000), 'key', 0, 1), { decoderConfig });
  await output.finalize();
  const bytes = Buffer.from(target.buffer as ArrayBuffer);
  const moof = bytes.indexOf('moof', 0, 'latin1') - 4;
  return { init: bytes.subarray(0, moof), moof: bytes.subarray(moof, moof + bytes.readUInt32BE(moof)) };
}

/** A fragment with a sequence number of its own (mfhd, ISO/IEC 14496-12 §8.8.5). */
function fillFragment(fragment: Buffer, moof: Buffer, sequenceNumber: number): void {
  randomFillSync(fragment);
  moof.copy(fragment);
  fragment.writeUInt32BE(sequenceNumber, moof.indexOf('mfhd', 0, 'latin1') + BOX_HEADER_BYTES);
  fragment.writeUInt32BE(fragment.length - moof.length, moof.length);
  fragment.write('mdat', moof.length + 4, 'latin1');
}

function mediaPlaylist(count: number): string {
  const lines = ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:1', '#EXT-X-MAP:URI="init.mp4"'];
  for (let number = 1; number <= count; number += 1) lines.push('#EXTINF:1.0,', `${number}.m4s`);
  return `${[...lines, '#EXT-X-ENDLIST'].join('\n')}\n`;
}
